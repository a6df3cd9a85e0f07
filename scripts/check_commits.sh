#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# check_commits.sh [RANGE]: the messages of the commits that are not on origin/main yet, or of the
# last one where there is no origin/main.
set -euo pipefail
cd "$(dirname "$0")/.."
git rev-parse --git-dir >/dev/null 2>&1 || exit 0
if (($# > 0)); then
  range=$1
elif git rev-parse --verify --quiet origin/main >/dev/null; then
  range=origin/main..HEAD
else
  range=HEAD^..HEAD
fi
git rev-parse --verify --quiet "${range%%..*}" >/dev/null || exit 0 # the first of all, or shallow
status=0
message=$(mktemp)
trap 'rm -f "$message"' EXIT
for commit in $(git rev-list --no-merges "$range"); do
  git log -1 --format=%B "$commit" >"$message"
  scripts/hooks/commit-msg "$message" || status=1
done
exit "$status"
