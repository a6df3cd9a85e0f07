// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The blocking collectives that an MPI program calls, and MPI's begin and end.
#include "interposer/calls/entry.hpp"
#include "interposer/interposer.hpp"
#include "interposer/next.hpp"

using namespace sucl::interposer;

// What libsucl_pmpi.so knows this library's own symbols by.
extern "C" SUCL_ABI_EXPORT const char sucl_pmpi_module[];
const char sucl_pmpi_module[] = SUCL_MPI_FLAVOUR;

namespace {

// MPI returns from empty calls sooner than SuCL could recognise them.
template <class Describe, class Pass>
int move(const device::arguments& held, sucl_kind kind, const side& s, MPI_Op op, int root,
         MPI_Comm comm, const Describe& describe, const Pass& pass) {
  if (s.count == 0) return pass();
  return interposer::blocking(held, {comm, kind, s.count, s.type, op, root}, true, describe, pass);
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Init(int* argc, char*** argv) {
  interposer::before_start();
  const int code = SUCL_NEXT_OR_LIBRARY(Init)(argc, argv);
  if (code == MPI_SUCCESS) interposer::start();
  return code;
}
SUCL_PROFILED(Init, (int* argc, char*** argv), (argc, argv))

SUCL_MPI_FUNCTION MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  interposer::before_start();
  const int code = SUCL_NEXT_OR_LIBRARY(Init_thread)(argc, argv, required, provided);
  if (code == MPI_SUCCESS) interposer::start();
  return code;
}
SUCL_PROFILED(Init_thread, (int* argc, char*** argv, int required, int* provided),
              (argc, argv, required, provided))

SUCL_MPI_FUNCTION MPI_Finalize() {
  interposer::stop();
  return SUCL_NEXT_OR_LIBRARY(Finalize)();
}
SUCL_PROFILED(Finalize, (), ())

SUCL_MPI_FUNCTION MPI_Barrier(MPI_Comm comm) {
  return interposer::blocking(
      {comm, SUCL_KIND_BARRIER, 0, MPI_BYTE, MPI_OP_NULL, 0}, true,
      [](comm_position) { return barrier(); }, [&] { return SUCL_NEXT(Barrier)(comm); });
}

#define SUCL_CALLS "interposer/calls/blocking_counts.hpp"
#include "interposer/calls/widths.hpp"
#undef SUCL_CALLS
