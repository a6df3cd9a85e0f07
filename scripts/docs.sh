#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Builds the site of the documentation: the pages in docs/ with MkDocs, and within it the API
# reference, from the docstrings of the public headers, with Doxygen. Links to nothing are errors.
#
#   DOXYGEN      the program (default: doxygen); none: the site without the API reference
#   SUCL_VENV    the virtual environment, into which `scripts/setup.sh docs` has put MkDocs
set -euo pipefail
cd "$(dirname "$0")/.."
doxygen=${DOXYGEN:-doxygen}
rm -rf build/docs
mkdir -p build/docs/api

if [[ $doxygen == none ]]; then
  cat >build/docs/api/index.html <<'END'
<!DOCTYPE html><title>SuCL</title>
<p>This site was built without Doxygen (DOXYGEN=none), so there is no API reference.
END
else
  command -v "$doxygen" >/dev/null || {
    echo "doxygen, which makes the API reference, is not installed. On Debian: apt-get install" \
      "doxygen. Without the API reference: make docs DOXYGEN=none" >&2
    exit 1
  }
  "$doxygen" - <<'END'
PROJECT_NAME           = SuCL
PROJECT_BRIEF          = "API reference"
OUTPUT_DIRECTORY       = build/docs
HTML_OUTPUT            = api
INPUT                  = include/sucl
FILE_PATTERNS          = *.hpp *.h
RECURSIVE              = YES
STRIP_FROM_INC_PATH    = include
FULL_PATH_NAMES        = YES
STRIP_FROM_PATH        = include
GENERATE_LATEX         = NO
EXTRACT_ALL            = NO
HIDE_UNDOC_MEMBERS     = NO
JAVADOC_AUTOBRIEF      = YES
OPTIMIZE_OUTPUT_FOR_C  = NO
MACRO_EXPANSION        = YES
EXPAND_ONLY_PREDEF     = YES
PREDEFINED             = SUCL_API= SUCL_CORE_API= __cplusplus
EXCLUDE_SYMBOLS        = sucl::detail sucl::detail::*
GENERATE_TREEVIEW      = YES
HAVE_DOT               = NO
CLASS_GRAPH            = NO
QUIET                  = YES
WARN_IF_UNDOCUMENTED   = NO
WARN_AS_ERROR          = FAIL_ON_WARNINGS
END
fi
NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1 \
  "${SUCL_VENV:-.venv}/bin/python3" -m mkdocs build --strict >build/docs/log 2>&1 || {
  grep -v '^INFO' build/docs/log >&2
  exit 1
}
echo "The site: build/docs/site/index.html"
