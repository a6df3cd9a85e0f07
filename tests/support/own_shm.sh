#!/bin/sh
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Runs a command with an empty /dev/shm of its own, so that what it finds there is its own:
#
#   own_shm.sh COMMAND ARGUMENTS...
#
# SUCL_TEST_OWN_SHM=1 says so to the command; where the user may not mount, it runs without.
set -eu
flags=--mount
[ "$(id -u)" = 0 ] || flags="--mount --map-root-user"
mount='mount -t tmpfs -o mode=1777 none /dev/shm'
# shellcheck disable=SC2086  # several flags
if unshare $flags sh -c "$mount" 2>/dev/null; then
  exec unshare $flags sh -c "$mount"' && SUCL_TEST_OWN_SHM=1 exec "$@"' sh "$@"
fi
exec "$@"
