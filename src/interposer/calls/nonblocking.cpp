// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The non-blocking collectives that an MPI program calls.
#include "interposer/calls/entry.hpp"
#include "interposer/interposer.hpp"
#include "interposer/next.hpp"

using namespace sucl::interposer;

SUCL_MPI_FUNCTION MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return interposer::started(
      SUCL_KIND_BARRIER, comm, request, [&](comm_position) { return barrier(); },
      [&] { return SUCL_NEXT(Ibarrier)(comm, request); });
}

#define SUCL_CALLS "interposer/calls/nonblocking_counts.hpp"
#include "interposer/calls/widths.hpp"
#undef SUCL_CALLS
