#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# What becomes of an installation: packages of it have what it has, and it goes without a trace.
#
#   packages.sh SOURCE BUILD SCRATCH CMAKE CPACK [VENV]
#
# With VENV, the virtual environment that SuCL was built with, what is unpacked has to work without
# it.
set -euo pipefail
source=$1 build=$2 scratch=$3 cmake=$4 cpack=$5 venv=${6:-}
rm -rf "$scratch"
mkdir -p "$scratch"
fail() {
  echo "FAILED: $*"
  exit 1
}

# As `make install` and `make uninstall` do, into a folder that has a file of someone else's.
prefix=$scratch/prefix
mkdir -p "$prefix/share/man/man1" "$prefix/share/sucl"
touch "$prefix/share/man/man1/other.1"
"$cmake" --install "$build" --component Unspecified --prefix "$prefix" >/dev/null
cp "$build/install_manifest_Unspecified.txt" "$prefix/share/sucl/manifest.txt"
for file in bin/sucl share/man/man1/sucl.1 share/man/man1/sucl-plan-search.1 \
  share/bash-completion/completions/sucl share/zsh/site-functions/_sucl \
  share/fish/vendor_completions.d/sucl.fish; do
  [[ -s $prefix/$file ]] || fail "$file is not installed"
done
(cd "$prefix" && find . -type f -o -type l | grep -v -e other.1 -e manifest.txt | sort) >"$scratch/installed"
"$source/scripts/uninstall.sh" "$prefix"
left=$(cd "$prefix" && find . ! -type d)
[[ $left = ./share/man/man1/other.1 ]] || fail "uninstall has left: $left"
[[ ! -d $prefix/include ]] || fail "uninstall has left folders"
if "$source/scripts/uninstall.sh" "$prefix" 2>"$scratch/message"; then fail "uninstalled twice"; fi
grep -q "was not installed there by 'make install'" "$scratch/message" || fail "$(cat "$scratch/message")"

generators=TZST
command -v dpkg-deb >/dev/null && generators+=";DEB"
"$cpack" --config "$build/CPackConfig.cmake" -B "$scratch/packages" -G "$generators" >/dev/null
mkdir "$scratch/unpacked"
"$cmake" -E chdir "$scratch/unpacked" "$cmake" -E tar xf "$scratch"/packages/*.tar.zst
found=$(find "$scratch/unpacked" -path '*/bin/sucl')
[[ $found ]] || fail "the archive has no program"
(cd "${found%/bin/sucl}" && find . -type f -o -type l | sort) | diff - "$scratch/installed" ||
  fail "the archive does not have what was installed"
if [[ $generators = *DEB ]]; then
  [[ $(dpkg-deb --field "$scratch"/packages/*.deb Package) = sucl* ]] ||
    fail "the package has no name"
  dpkg-deb --fsys-tarfile "$scratch"/packages/*.deb | tar t | grep -v '/$' |
    sed 's|^\./usr/local/|./|' | sort | diff - "$scratch/installed" ||
    fail "the package does not have what was installed"
fi
if [[ $venv ]]; then
  status=0
  "$source/tests/install/empty.sh" "${found%/bin/sucl}" "$source" "$build" "$venv" "$cmake" || status=$?
  ((status == 0 || status == 77)) || fail "the package needs the clone"
fi
du -shc "$scratch"/packages/*.{tar.zst,deb} "$scratch/unpacked" 2>/dev/null || true
rm -rf "$scratch/unpacked" "$scratch/packages"
echo "installed, packaged and removed $(wc -l <"$scratch/installed") files"
