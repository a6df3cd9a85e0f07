#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# clang-tidy, with the checks of .clang-tidy, over all that needs neither SYCL nor MPI. The sources
# of a folder are read as one, so that what they include is read once.
set -euo pipefail
cd "$(dirname "$0")/.."
tidy=${SUCL_VENV:-$PWD/.venv}/bin/clang-tidy
build=build/tidy
mkdir -p "$build"
cmake --preset tidy >"$build/configure.log" 2>&1 || {
  cat "$build/configure.log"
  exit 1
}
mapfile -t sources < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json")
# Warnings of the compiler itself are for the build.
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "$tidy" -p "$build" --quiet --extra-arg=-w 2>"$build/log" || {
  echo "clang-tidy: see above; what it could not read is in $build/log" >&2
  exit 1
}
echo "clang-tidy: ${#sources[@]} sets of sources, nothing found."
