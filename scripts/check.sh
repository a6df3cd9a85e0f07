#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Format, licence heads, length of files, shell and Python scripts, width and links of
# documents, words that stay out, purity of the core.
# With --format the sources are formatted instead.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${SUCL_VENV:-.venv}/bin
status=0

complain() {
  printf '%s\n' "$*" >&2
  status=1
}

# What is tracked, and what is new and not ignored.
mapfile -t files < <(git ls-files --cached --others --exclude-standard)
sources=()
heads=()
scripts=()
python=()
for file in "${files[@]}"; do
  [[ -f $file ]] || continue
  case $file in
    *.cpp | *.hpp | *.h | *.c) sources+=("$file") heads+=("$file") ;;
    *.cmake | *CMakeLists.txt | Makefile) heads+=("$file") ;;
    *.py) python+=("$file") heads+=("$file") ;;
    *.sh | .ci/run | .ci/nightly) scripts+=("$file") heads+=("$file") ;;
  esac
done

if [[ ${1:-} == --format ]]; then
  "$bin/clang-format" -i "${sources[@]}"
  exit 0
fi

"$bin/clang-format" --dry-run -Werror "${sources[@]}" ||
  complain "The format differs from .clang-format. Run: make format"

for file in "${heads[@]}"; do
  grep -q 'SPDX-License-Identifier: Apache-2.0' <<<"$(head -n 4 "$file")" ||
    complain "$file: the two-line licence head is missing; copy it from src/base/error.cpp"
done

for file in "${sources[@]}"; do
  lines=$(wc -l <"$file")
  ((lines <= 600)) || complain "$file: $lines lines; split it below 600"
done

"$bin/shellcheck" "${scripts[@]}" || status=1
"$bin/ruff" check --quiet "${python[@]}" || status=1
"$bin/ruff" format --quiet --check packaging/spack ||
  complain "The recipe of Spack is not formatted. Run: $bin/ruff format packaging/spack"
"$bin/python" -B scripts/requirements.py check || status=1
"$bin/python" -B scripts/check_docs.py || status=1
"$bin/python" -B scripts/check_words.py || status=1
scripts/check_purity.sh || status=1
"$bin/python3" -B scripts/check_components.py || status=1
((status != 0)) || echo "Checked ${#heads[@]} files: all is well."
exit "$status"
