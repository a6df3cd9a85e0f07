# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# To be sourced first of all: starts the script again in a mount namespace of its own, with the same
# arguments. Where this user can have none it ends with status 77.
if [[ ${SUCL_TEST_HIDDEN:-} != 1 ]]; then
  options=(--mount)
  [[ $(id -u) = 0 ]] || options+=(--map-root-user)
  if ! unshare "${options[@]}" true 2>/dev/null; then
    echo "skipped: there are no mount namespaces for this user"
    exit 77
  fi
  exec env SUCL_TEST_HIDDEN=1 unshare "${options[@]}" "$0" "$@"
fi
