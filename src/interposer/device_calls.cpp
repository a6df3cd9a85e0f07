// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Which calls have their memory of devices exchanged, and what is told of failures.
#include "interposer/interposer.hpp"

#include <new>
#include <optional>

namespace sucl::interposer::device {

bool arguments::begin(MPI_Comm comm, comm_position& at) {
  if (!interposer::active() || comm == MPI_COMM_NULL) return false;
  int between = 0;
  if (PMPI_Comm_test_inter(comm, &between) != MPI_SUCCESS || between) return false;
  PMPI_Comm_rank(comm, &at.rank);
  PMPI_Comm_size(comm, &at.size);
  return true;
}

void arguments::guard(MPI_Comm comm, void (*each)(void*, comm_position), void* self,
                      comm_position at) {
  std::optional<error> failed;
  try {
    const own_call inside;
    each(self, at);
    return;
  } catch (const error& e) {
    failed = e;
  } catch (const std::bad_alloc&) {
    failed = error({errc::out_of_memory, "no host memory for a buffer on a device",
                    "Use types and buffers that span less memory.", "", "interposer"});
  }
  if (m_staged) set(false);
  m_staged.reset();
  m_code = code_of(*failed);
  report(*failed, comm);
}

}  // namespace sucl::interposer::device
