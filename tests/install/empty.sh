#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Uses an installation as its user would: with an empty environment, from another folder, and with
# SuCL's sources and build hidden by a mount namespace of this script's own.
#
#   empty.sh PREFIX SOURCE BUILD VENV PROGRAMS
#
# PROGRAMS is a file: a line for each program that uses the installation, to be run by it. Exit
# status 77: this cannot be done here; the last line says why.
set -euo pipefail

if [[ ${SUCL_TEST_HIDDEN:-} != 1 ]]; then
  flags=(--mount)
  [[ $(id -u) = 0 ]] || flags+=(--map-root-user)
  if ! unshare "${flags[@]}" true 2>/dev/null; then
    echo "skipped: there are no mount namespaces for this user"
    exit 77
  fi
  exec env SUCL_TEST_HIDDEN=1 unshare "${flags[@]}" "$0" "$@"
fi

prefix=$1 source=$2 build=$3 venv=$4
mapfile -t programs <"$5"
folder=$(mktemp -d)
trap 'cd /; umount "$folder/venv" "$folder/prefix"; rm -rf --one-file-system "$folder"' EXIT
mkdir "$folder/prefix" "$folder/venv" "$folder/programs" "$folder/elsewhere"
for program in "${programs[@]}"; do cp "$program" "$folder/programs/"; done
[[ ! -e $(dirname "$5")/ring.cpp ]] || cp "$(dirname "$5")/ring.cpp" "$folder/elsewhere/"
mount --bind "$prefix" "$folder/prefix"
mount --bind "$venv" "$folder/venv"
mount -t tmpfs -o mode=755 none "$build"
mount -t tmpfs -o mode=755 none "$source"
mkdir -p "$prefix"
mount --bind "$folder/prefix" "$prefix"
cd "$folder/elsewhere"

fail() {
  echo "FAILED: $*"
  exit 1
}
# The environment of a user who has set nothing.
bare() { env -i PATH=/usr/bin:/bin HOME="$folder/elsewhere" "$@"; }
sucl=$prefix/bin/sucl

# The clone and its virtual environment have gone: an error that says what to do.
if [[ $venv = "$source"/* ]]; then
  if bare "$sucl" version 2>"$folder/message"; then fail "it started without a SYCL runtime"; fi
  grep -q "library libsycl.so.* was not found.*$venv/lib.*set SUCL_SYCL_ROOT to the folder" \
    "$folder/message" || fail "its message: $(cat "$folder/message")"
fi
# They have been moved, and the variable says where to.
bare SUCL_SYCL_ROOT="$folder/venv" "$sucl" version
bare SUCL_SYCL_ROOT="$folder/venv" "$sucl" info >"$folder/info"
for program in "$folder/programs"/*; do
  bare SUCL_SYCL_ROOT="$folder/venv" "$sucl" run -n 2 -- "$program"
done

# The clone has gone, but not the virtual environment: nothing has to be said.
mkdir -p "$venv"
mount --bind "$folder/venv" "$venv"
bare "$sucl" version
bare "$sucl" plan verify --collective allreduce --ranks 4 --bytes 1Ki --recipe ring >/dev/null
bare "$sucl" info >"$folder/info"
grep -q "platform .*: " "$folder/info" || fail "it found no device: $(cat "$folder/info")"
grep -q "does not load" "$folder/info" && fail "a module does not load: $(cat "$folder/info")"
for program in "$folder/programs"/*; do
  bare "$sucl" run -n 2 -- "$program"
done
# A program is compiled, with what pkg-config says, and runs.
if [[ -e ring.cpp ]] && command -v pkg-config >/dev/null; then
  pc=$(dirname "$(find "$prefix" -name sucl.pc)")
  said=$(bare PKG_CONFIG_PATH="$pc" pkg-config --cflags --libs sucl)
  # shellcheck disable=SC2086  # words
  bare c++ -std=c++17 ring.cpp -o ring $said
  bare "$sucl" run -n 2 -- ./ring
fi
echo "the installation works in an empty environment"
