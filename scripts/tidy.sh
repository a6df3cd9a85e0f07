#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# clang-tidy, with the checks of .clang-tidy, over all C++ that is built here. The sources of a folder
# are read as one, so that what they include is read once.
#
#   tidy.sh [--core] [--since COMMIT]
#
# --core: only what needs neither SYCL nor MPI, without tests, which takes a fraction of the time.
# --since: only the folders in which files differ from that commit's; where there is no such commit
# the status is 77.
set -euo pipefail
cd "$(dirname "$0")/.."
tidy=${SUCL_VENV:-$PWD/.venv}/bin/clang-tidy
preset=tidy
if [[ ${1:-} == --core ]]; then
  preset="tidy-core"
  shift
fi
build=build/$preset
since=
if [[ ${1:-} == --since ]]; then
  since=$2
  git rev-parse --quiet --verify "$since^{commit}" >/dev/null || {
    echo "skipped: there is no commit $since to compare with"
    exit 77
  }
fi
mkdir -p "$build"
cmake --fresh --preset "$preset" >"$build/configure.log" 2>&1 || {
  cat "$build/configure.log"
  exit 1
}
# An option of GCC alone.
sed -i 's/ -fno-toplevel-reorder//' "$build/compile_commands.json"
mapfile -t sets < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json")

# The sources that a set puts together, relative to the root.
members() {
  case $1 in
    */Unity/*) sed -n "s|^#include \"$PWD/\(.*\)\"$|\1|p" "$1" ;;
    *) echo "${1#"$PWD/"}" ;;
  esac
}

# Whether a set reads a file first of all: one of its sources, a header beside them, or a header from
# elsewhere that one of them includes.
concerns() {
  local file=$1 source
  shift
  for source; do
    [[ $file != "$source" ]] || return 0
    [[ $file != *.cpp && ${file%/*} = "${source%/*}" ]] && return 0
  done
  [[ $file = include/* ]] && grep -qF "#include <${file#include/}>" "$@"
}

if [[ -n $since ]]; then
  mapfile -t changed < <(git diff --name-only --diff-filter=d "$since" -- '*.cpp' '*.hpp' '*.h')
  chosen=()
  declare -A done_with=()
  for set in "${sets[@]}"; do
    mapfile -t sources < <(members "$set")
    ((${#sources[@]})) || continue
    wanted=
    for file in ${changed[@]+"${changed[@]}"}; do
      # A public header is looked at where it is found first.
      [[ -z ${done_with[$file]:-} || $file != include/* ]] || continue
      if concerns "$file" "${sources[@]}"; then
        wanted=1
        done_with[$file]=1
      fi
    done
    [[ -z $wanted ]] || chosen+=("$set")
  done
  sets=(${chosen[@]+"${chosen[@]}"})
fi

# What is built of other projects' sources is theirs.
own=()
for set in ${sets[@]+"${sets[@]}"}; do
  if grep -qv '^\.venv/' < <(members "$set"); then own+=("$set"); fi
done
sets=(${own[@]+"${own[@]}"})

# Warnings of the compiler itself are for the build.
if ((${#sets[@]})); then
  printf '%s\0' "${sets[@]}" |
    xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "$tidy" -p "$build" --quiet --extra-arg=-w 2>"$build/log" || {
    echo "clang-tidy: see above; what it could not read is in $build/log" >&2
    exit 1
  }
fi
echo "clang-tidy: ${#sets[@]} sets of sources, nothing found."
