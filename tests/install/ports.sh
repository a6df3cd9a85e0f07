#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Does what the tutorials on ports say, with an installation in a folder that it was not installed
# to, and with SuCL's sources, build and virtual environment hidden by a mount namespace of this
# script's own.
#
#   ports.sh PREFIX SOURCE BUILD VENV PAGE...
#
# PAGE is relative to docs/ of SOURCE. Exit status 77: this cannot be done here.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/hidden.sh"

prefix=$1 source=$2 build=$3 venv=$4
shift 4
folder=$(mktemp -d)
trap 'cd /; umount "$folder/installed"; rm -rf --one-file-system "$folder"' EXIT
mkdir "$folder"/{installed,pages,nothing}
cp "$source/tests/docs/run_page.py" "$folder"
for page; do cp "$source/docs/$page.md" "$folder/pages/"; done
mount --bind "$prefix" "$folder/installed"
for hidden in "$venv" "$build" "$source"; do
  mkdir -p "$hidden"  # it may lie in one of those before
  mount -t tmpfs -o mode=755 none "$hidden"
done
[[ ! -e $prefix ]] || { echo "FAILED: $prefix is still there" && exit 1; }

cd "$folder"
for page in pages/*.md; do
  env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$folder" \
    python3 -B run_page.py "$page" "$folder/installed" "$folder/nothing" "$folder/nothing" \
    "$folder/run.$(basename "$page")"
done
