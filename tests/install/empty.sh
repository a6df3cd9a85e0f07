#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Uses an installation as its user would: another user, if the test runs as root, with an empty
# environment, from another folder, in a folder that it was not installed to, and with SuCL's
# sources, build and virtual environment hidden by a mount namespace of this script's own.
#
#   empty.sh PREFIX SOURCE BUILD VENV CMAKE [PROGRAMS]
#
# PROGRAMS is a file: a line for each program that was built with the installation, with its
# arguments. Exit status 77: this cannot be done here; the last line says why.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/hidden.sh"

prefix=$1 source=$2 build=$3 venv=$4 cmake=$5 programs=()
[[ -z ${6:-} ]] || mapfile -t programs <"$6"
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'cd /; umount "$folder/installed" "$folder/runtime"; rm -rf --one-file-system "$folder"' EXIT
mkdir "$folder/installed" "$folder/runtime" "$folder/programs" "$folder/home" "$folder/home/tmp"
for program in "${programs[@]}"; do cp "${program%% *}" "$folder/programs/"; done
cp "$source/examples/ring.cpp" "$folder/home/"
cat >"$folder/home/CMakeLists.txt" <<'LISTS'
cmake_minimum_required(VERSION 3.25)
project(ring LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(sucl REQUIRED)
add_executable(ring ring.cpp)
target_link_libraries(ring PRIVATE sucl::sucl)
sucl_enable_sycl(ring)
LISTS
mount --bind "$prefix" "$folder/installed"
mount --bind "$prefix/lib/sucl/runtime" "$folder/runtime"
for hidden in "$venv" "$build" "$source"; do
  # It may lie in one of those before.
  mkdir -p "$hidden"
  mount -t tmpfs -o mode=755 none "$hidden"
done
mkdir -p "$prefix"
mount --bind "$folder/installed" "$prefix"

fail() {
  echo "FAILED: $*"
  exit 1
}
# The environment of a user who has set nothing, and not the user who has installed.
user=()
if [[ $(id -u) = 0 && $(awk '{ print $3 }' /proc/self/uid_map) = 4294967295 ]]; then
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
chown -R 65534:65534 "$folder/home" 2>/dev/null || true
cd "$folder/home"
bare() {
  # ${a[@]+...}: an empty array is unset in old versions of bash.
  ${user[@]+"${user[@]}"} env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$folder/home" \
    TMPDIR="$folder/home/tmp" "$@"
}
said() { bare "$@" >"$folder/said" 2>&1 || fail "$*: status $?: $(cat "$folder/said")"; }

# Moved: the same files in another folder.
moved=$folder/installed
sucl=$moved/bin/sucl
said "$sucl" version
said "$sucl" plan verify --collective allreduce --ranks 4 --bytes 1Ki --recipe ring
said "$sucl" info
grep -q "platform .*: " "$folder/said" || fail "it found no device: $(cat "$folder/said")"
if grep -e "does not load" -e "$source" -e "$venv" "$folder/said"; then
  fail "something of the clone is missing"
fi
said "$sucl" doctor
if grep -e BROKEN "$folder/said"; then fail "$(cat "$folder/said")"; fi
said "$sucl" bench allreduce -n 2 --memory device --sizes 4:64
grep -q " 64 B" "$folder/said" || grep -q "^ *64 " "$folder/said" || fail "$(cat "$folder/said")"
if left=$(grep -rIl --exclude-dir=runtime -e "$source" -e "$venv" "$prefix"); then
  fail "these files name the clone: $left"
fi

# Programs are compiled with it, by CMake and with what pkg-config says, and run.
said "$cmake" -S . -B build -DCMAKE_PREFIX_PATH="$moved"
said "$cmake" --build build
compiled=("build/ring")
if command -v pkg-config >/dev/null; then
  flags=$(bare PKG_CONFIG_PATH="$(dirname "$(find "$moved/" -name sucl.pc)")" \
    pkg-config --cflags --libs sucl)
  # shellcheck disable=SC2086  # words
  said c++ -std=c++17 ring.cpp -o ring $flags
  compiled+=(./ring)
fi
mapfile -t flavours < <(sed -n 's/^\[mpi\.\([a-z0-9_]*\)\]$/\1/p' "$moved/lib/sucl/environment.toml")
runs=0
for program in "${compiled[@]}"; do
  said "$sucl" run -n 2 --launcher local -- "$program"
  for flavour in "${flavours[@]}"; do
    said "$sucl" run -n 2 --mpi "$flavour" -- "$program"
    [[ $(grep -c ": right" "$folder/said") = 2 ]] || fail "$program: $(cat "$folder/said")"
    runs=$((runs + 1))
  done
done
((runs > 0)) || fail "no program was run"

# What was built with the installation where it was runs there, one with kernels among them.
for program in "${programs[@]}"; do
  name=${program%% *}
  words=()
  [[ $program = "$name" ]] || read -ra words <<<"${program#* }"
  said "$prefix/bin/sucl" run -n 2 -- "$folder/programs/$(basename "$name")" ${words[@]+"${words[@]}"}
done

# The runtime has gone: an error that says what to do.
mount -t tmpfs -o mode=755 none "$prefix/lib/sucl/runtime"
if bare "$prefix/bin/sucl" version 2>"$folder/said"; then fail "it started without a SYCL runtime"; fi
grep -q "library libsycl.so.* was not found.*lib/sucl/runtime.*set SUCL_SYCL_ROOT to the folder" \
  "$folder/said" || fail "its message: $(cat "$folder/said")"
# It has been moved, and the variable says where to.
said SUCL_SYCL_ROOT="$folder/runtime" "$prefix/bin/sucl" info
grep -q "platform .*: " "$folder/said" || fail "it found no device: $(cat "$folder/said")"
umount "$prefix/lib/sucl/runtime"
echo "the installation works by itself: $runs runs of programs, with ${#flavours[@]} MPI libraries"
