#!/bin/sh
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0

# bare_rank.sh PROGRAM WORDS...: runs it, rank 1 without any environment.
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then exec env -i "$@"; fi
exec "$@"
