#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# All files of a release, built from the archive of the last commit, in build/release/VERSION:
# the sources, a wheel, a .deb, a .tar.zst, the notes and the checksums.
#
#   release.sh           checks the commit and builds the files
#   release.sh --check   checks alone
#   release.sh --twice   also builds the programs, libraries and modules a second time, in another
#                        folder, and compares the bytes of both
#
# A commit is one to be released where its tree has no changes, and the version in
# include/sucl/version.hpp is that of CHANGELOG.md, with a date, of CITATION.cff and of the recipes.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-}
case $mode in
  '' | --check | --twice) ;;
  *)
    echo "usage: release.sh [--check | --twice]" >&2
    exit 2
    ;;
esac
version=$(sed -n 's/.*SUCL_VERSION_STRING "\(.*\)"/\1/p' include/sucl/version.hpp)

# What is wrong with the commit, a line each: the fact and the cure.
wrong() {
  [[ -z $(git status --porcelain) ]] || echo "the working tree has changes: commit or remove them"
  local date
  date=$(sed -n "s/^## ${version//./\\.}, \(.*\)$/\1/p" CHANGELOG.md)
  if [[ ! $date =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]]; then
    echo "CHANGELOG.md has no '## $version, YYYY-MM-DD': give the version its date"
  elif ! grep -qx "date-released: $date" CITATION.cff; then
    echo "CITATION.cff has no 'date-released: $date', the date in CHANGELOG.md: put it there"
  fi
  grep -qx "version: $version" CITATION.cff || echo "CITATION.cff has another version: make it $version"
  grep -q "^  version: \"$version\"$" packaging/conda/recipe.yaml ||
    echo "packaging/conda/recipe.yaml has another version: make it $version"
  grep -q "version(\"$version\", " packaging/spack/spack_repo/sucl/packages/sucl/package.py ||
    echo "the recipe for Spack has no version $version: add it"
  ! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null ||
    [[ $(git rev-parse "v$version^{commit}") == $(git rev-parse HEAD) ]] ||
    echo "the tag v$version is at another commit: give include/sucl/version.hpp the next version"
}
problems=$(wrong)
if [[ -n $problems ]]; then
  while read -r line; do echo "release: $line" >&2; done <<<"$problems"
  exit 1
fi
echo "release: $version can be released from commit $(git rev-parse --short HEAD)"
[[ $mode != --check ]] || exit 0

root=$PWD
out=$root/build/release/$version
work=$root/build/release/work
rm -rf "$out" "$work"
mkdir -p "$out" "$work/first" "$work/second"
# What writes times writes that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH SUCL_BUILD_REPRODUCIBLE=ON
export SUCL_VENV=${SUCL_VENV:-$root/.venv}

scripts/dist.sh >/dev/null
cp "build/dist/sucl-$version.tar.gz" "$out"
unpacked() {
  tar -C "$work/$1" -xzf "$out/sucl-$version.tar.gz"
  echo "$work/$1/sucl-$version"
}

source=$(unpacked first)
make -C "$source" package
cp "$source"/build/default/packages/*.{deb,tar.zst} "$out"
make -C "$source" wheel
cp "$source"/build/wheels/*.whl "$out"
# The notes are what CHANGELOG.md says of the version.
awk -v heading="## $version," 'index($0, "## ") == 1 { on = index($0, heading) == 1 } on' \
  CHANGELOG.md >"$out/notes.md"
(cd "$out" && sha256sum -- *.tar.gz *.deb *.tar.zst *.whl >SHA256SUMS)

if [[ $mode == --twice ]]; then
  again=$(unpacked second)
  make -C "$again" configure
  cmake --build "$again/build/default" --target installed
  for file in "$source"/build/default/{bin/sucl,lib/libsucl*.so.?.?.?,lib/sucl/*.so}; do
    cmp "$file" "$again${file#"$source"}"
  done
  echo "release: both builds have the same bytes"
fi
rm -rf "$work"
echo "release: build/release/$version has"
(cd "$out" && du -sh -- *)
echo "release: to publish it: git tag -s v$version && git push origin v$version, with notes.md"
