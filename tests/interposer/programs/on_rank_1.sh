#!/bin/sh
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
# on_rank_1.sh LIBRARY|NAME=VALUE COMMAND...: rank 1 has the library loaded before the program, or the
# variable.
what=$1
shift
case $what in
  /*) what=LD_PRELOAD="$LD_PRELOAD:$what" ;;
esac
[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" != 1 ] || export "${what?}"
exec "$@"
