#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# How much of the core its own tests reach: builds it with gcc's --coverage, without SYCL and MPI,
# runs the tests, and prints lines and branches. The report by file is build/coverage/index.html.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${SUCL_VENV:-$PWD/.venv}/bin
build=build/coverage
scripts/setup.sh coverage
mkdir -p "$build"
cmake --preset coverage >"$build/configure.log" 2>&1 || {
  cat "$build/configure.log"
  exit 1
}
cmake --build --preset coverage -j "${JOBS:-$(nproc)}"
find "$build" -name '*.gcda' -delete
ctest --preset coverage -j "${JOBS:-$(nproc)}"
"$bin/gcovr" --root . --filter src/ --gcov-ignore-parse-errors all --exclude-throw-branches \
  --print-summary --html-details "$build/index.html" "$build"
