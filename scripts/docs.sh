#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Makes the API reference from the docstrings of the public headers.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v doxygen >/dev/null || {
  echo "doxygen is not installed. On Debian: apt-get install doxygen" >&2
  exit 1
}
mkdir -p build/docs
doxygen - <<'END'
PROJECT_NAME           = SuCL
OUTPUT_DIRECTORY       = build/docs
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
HAVE_DOT               = NO
CLASS_GRAPH            = NO
QUIET                  = YES
WARN_IF_UNDOCUMENTED   = NO
WARN_AS_ERROR          = FAIL_ON_WARNINGS
END
echo "API reference: build/docs/html/index.html"
