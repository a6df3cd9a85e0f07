#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# The core's sources include neither SYCL nor MPI: they build with a plain C++ compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=()
for folder in base balance plan sim tune core backends process; do
  [[ ! -d src/$folder ]] || folders+=("src/$folder")
done

forbidden='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]((sycl|CL|hipSYCL)/|mpi\.h|sycl\.hpp)'
if grep -nE -r --include='*.cpp' --include='*.hpp' --include='*.h' "$forbidden" "${folders[@]}"; then
  echo "These lines include SYCL or MPI in the core. Move what needs them to src/sycl or backends." >&2
  exit 1
fi
# A public header that includes SYCL must not be reached from the core either.
pattern=$({ grep -lE "$forbidden" -r include/sucl || true; } | sed "s,^include/,," | paste -sd"|")
if [[ -n $pattern ]] &&
  grep -nE -r "#include <($pattern)>" "${folders[@]}"; then
  echo "These lines include a public header that includes SYCL or MPI." >&2
  exit 1
fi
echo "No SYCL and no MPI in: ${folders[*]}"
