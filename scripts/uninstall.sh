#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Removes what `make install` has installed: uninstall.sh PREFIX. DESTDIR counts as it did then.
set -euo pipefail
prefix=${1:?"usage: uninstall.sh PREFIX"}
root=${DESTDIR:-}
manifest=$root$prefix/share/sucl/manifest.txt
if [[ ! -r $manifest ]]; then
  echo "uninstall: there is no $manifest: SuCL was not installed there by 'make install'." \
    "Name its PREFIX." >&2
  exit 1
fi
mapfile -t files < <(cat "$manifest"; echo)
count=0
declare -A folders
for file in "${files[@]}" "$prefix/share/sucl/manifest.txt"; do
  # What is elsewhere was not installed to PREFIX.
  [[ $file = "$prefix"/* && $file != */../* ]] || continue
  rm -f -- "$root$file" && count=$((count + 1))
  folder=${file%/*}
  while [[ $folder = "$prefix"/* ]]; do
    folders[$folder]=1
    folder=${folder%/*}
  done
done
# The deepest first; one that has files of others stays.
while read -r folder; do
  rmdir -- "$root$folder" 2>/dev/null || true
done < <(printf '%s\n' "${!folders[@]}" | awk '{ print length, $0 }' | sort -rn | cut -d' ' -f2-)
echo "uninstall: removed $count files below $prefix"
