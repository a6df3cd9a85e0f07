#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzzers with clang and runs each for some seconds (0: not at all), two at a time and no
# longer than that takes in all, from the committed corpus: run.sh [SECONDS (60)] [FORMAT...]. An
# input that breaks something is left in build/asan/found and the status is 1: mend what it breaks,
# and put it into tests/fuzz/corpus/FORMAT.
#
# They are a part of the preset asan. Exit status 77: no clang here has libFuzzer.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
shift || true
formats=("$@")
((${#formats[@]})) || formats=(configuration tuning_table plan_text plan_json machine msccl_xml mscclpp_json record)

build=build/asan
mkdir -p "$build/found"
if [[ ! -f $build/build.ninja ]]; then
  cmake --preset asan >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log"
    exit 1
  }
fi
if ! grep -q '^SUCL_COMPILES_FUZZERS:INTERNAL=1' "$build/CMakeCache.txt"; then
  echo "skipped: no clang with libFuzzer (Debian: clang-19 and libclang-rt-19-dev)"
  exit 77
fi
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target fuzzers

export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
one() {  # FORMAT SECONDS
  local format=$1 log=$build/$1.log
  mkdir -p "$build/corpus/$format"
  # New inputs go to the first folder; the committed ones are read only.
  if "$build/tests/libfuzzer_$format" -max_total_time="$2" -max_len=8192 -rss_limit_mb=1024 \
    -timeout=1 -print_final_stats=1 -artifact_prefix="$build/found/$format-" \
    "$build/corpus/$format" "tests/fuzz/corpus/$format" >"$log" 2>&1; then
    printf '%s: %s runs in %d s, nothing found\n' "$format" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$2"
  else
    printf '%s: FAILED\n' "$format"
    tail -40 "$log"
    return 1
  fi
}

several() {  # FORMAT:SECONDS...
  local status=0
  for job; do one "${job%:*}" "${job#*:}" || status=1; done
  return "$status"
}

# Of an odd number, one goes on in the first row at the end with what it began in the second.
half=$(((${#formats[@]} * seconds + 1) / 2))
((half >= seconds)) || half=$seconds
rows=("" "")
row=0 left=$half
for format in "${formats[@]}"; do
  first=$((seconds < left ? seconds : left))
  rows[row]+=" $format:$first"
  left=$((left - first))
  ((left == 0)) || continue
  row=1 left=$((half - seconds + first))
  ((first == seconds)) || rows[1]+=" $format:$((seconds - first))"
done
pids=()
for jobs in "${rows[@]}"; do
  read -ra list <<<"$jobs"
  several "${list[@]}" &
  pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit "$failed"
