// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The persistent collectives: prepared once, then started by MPI_Start.
#include "interposer/calls/entry.hpp"
#include "interposer/interposer.hpp"
#include "interposer/next.hpp"

using namespace sucl::interposer;

SUCL_MPI_FUNCTION MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return interposer::persistent(
      SUCL_KIND_BARRIER, comm, request, [&](comm_position) { return barrier(); },
      [&] { return SUCL_NEXT(Barrier_init)(comm, info, request); });
}

#define SUCL_CALLS "interposer/calls/persistent_counts.hpp"
#include "interposer/calls/widths.hpp"
#undef SUCL_CALLS
