#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Installs the wheel of `make wheel` with nothing but what it asks for and numpy, and uses it with no
# environment variable set; root does so as a user who owns nothing and has no home:
#   wheel.sh WHEELS SCRATCH PYTHON [REQUIREMENT...]
# WHEELS is a folder with the wheel, PYTHON what it was built with, and a REQUIREMENT one of pip's, as
# intel-sycl-rt==2026.1.2, or dpnp, whose arrays are tried then.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheels=$1 scratch=$2 python=$3
shift 3
rm -rf "$scratch"
mkdir -p "$scratch/work"
scratch=$(cd "$scratch" && pwd)
"$python" -m venv "$scratch/env"
"$scratch/env/bin/pip" install -q "$wheels"/sucl-*.whl numpy ml_dtypes "$@"
cp -r "$here"/{alone,ranks,steps,support,sycl_arrays,dpnp_arrays}.py "$here/../install/consumer" \
  "$here/../../examples" "$scratch/work"

user=()
if ((EUID == 0)) && command -v setpriv >/dev/null; then
  user=(setpriv --reuid 65534 --clear-groups)
  chown -R 65534 "$scratch/work"
  # Above what belongs to root alone, as where its home has the interpreter, no other user starts one.
  "${user[@]}" "$scratch/env/bin/python" -c '' 2>/dev/null || user=()
fi
cd "$scratch/work"
bare() { "${user[@]}" env -i PATH=/usr/bin:/bin "$@"; }

bare "$scratch/env/bin/python" -c 'import sucl; assert sucl.world().size == 1'
bare HOME=/nonexistent "$scratch/env/bin/python" -m sucl info | grep 'platform opencl'
bare "$scratch/env/bin/python" -B alone.py
bare "$scratch/env/bin/sucl" run -n 2 -- python -B ranks.py
bare "$scratch/env/bin/sucl" run -n 3 -- python -B steps.py
# Of the REQUIREMENTs.
if "$scratch/env/bin/python" -c 'import dpnp' 2>/dev/null; then
  bare "$scratch/env/bin/sucl" run -n 2 -- python -B dpnp_arrays.py
fi
cmake_dir=$(bare "$scratch/env/bin/sucl-config" --cmake-dir)
bare cmake -S consumer -B build -D "sucl_DIR=$cmake_dir" -D "SUCL_EXAMPLES=$PWD/examples" -D SUCL_LAUNCH=ON
bare cmake --build build --target core run
bare build/core
echo "the wheel works: $(cd "$wheels" && echo sucl-*.whl)"
