#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Precompiles <sucl/sucl.hpp> of an installation with the options that programs of pages have, and
# fails if the compiler does not take the result: precompile.sh PREFIX SCRATCH CMAKE
set -euo pipefail
prefix=$1 scratch=$2 cmake=$3
export PATH=/usr/local/bin:/usr/bin:/bin
unset CXX CXXFLAGS CMAKE_CXX_COMPILER_LAUNCHER
headers=$prefix/include/sucl/sucl.hpp.gch
rm -rf "$scratch" "$headers"
mkdir -p "$scratch" "$headers"
cd "$scratch"
cat >CMakeLists.txt <<'LISTS'
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(sucl REQUIRED)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE sucl::sucl)
sucl_enable_sycl(program)
LISTS
echo '#include <sucl/sucl.hpp>' >program.cpp
# Programs are built without a build type, but for one, which does without.
"$cmake" -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >log 2>&1 || {
  cat log
  exit 1
}
read -ra command < <(sed -n 's/.*"command": "\(.*\) -o .*/\1/p' build/compile_commands.json)
"${command[@]}" -w -x c++-header "$prefix/include/sucl/sucl.hpp" -o "$headers/program.gch"
# -H marks a precompiled header that is used with an exclamation mark.
"${command[@]}" -H -fsyntax-only program.cpp 2>used
grep -q "^! .*sucl\.hpp\.gch/program\.gch" used || {
  echo "the compiler does not take it:"
  cat used
  exit 1
}
