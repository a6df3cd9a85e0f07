# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Runs a command, and ends the script that sources this if it fails; status 77 is a skip.
stage() {
  local began=$SECONDS status=0
  printf '\n== %s\n' "$*"
  "$@" || status=$?
  case $status in
    0) printf '== passed in %d s: %s\n' $((SECONDS - began)) "$*" ;;
    77) printf '== SKIPPED: %s\n' "$*" ;;
    *)
      printf '== FAILED after %d s: %s\n' $((SECONDS - began)) "$*" >&2
      exit 1
      ;;
  esac
}
