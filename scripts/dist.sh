#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# The sources of the last commit as build/dist/sucl-VERSION.tar.gz, with its checksum. Nothing of the
# time or the machine is in it: every clone gives the same
# bytes of the same commit, with the same gzip.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(git show HEAD:include/sucl/version.hpp | sed -n 's/.*SUCL_VERSION_STRING "\(.*\)"/\1/p')
name=sucl-$version
if ! git diff --quiet HEAD; then
  echo "dist: the working tree has changes that are not committed; they are left out" >&2
fi
mkdir -p build/dist
TZ=UTC git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -9n \
  >"build/dist/$name.tar.gz"
(cd build/dist && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256")
