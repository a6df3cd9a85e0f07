// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "pmpi/packed.hpp"

namespace sucl::pmpi {

void packed::pack(int block, char* to) const {
  int at = 0;
  PMPI_Pack(place(block), m_elements, m_type, to, static_cast<int>(block_bytes()), &at,
            MPI_COMM_SELF);
}

void packed::unpack(int block, const char* from) const {
  int at = 0;
  PMPI_Unpack(from, static_cast<int>(block_bytes()), &at, place(block), m_elements, m_type,
              MPI_COMM_SELF);
}

void packed::load(int first, int last) {
  if (m_copy.empty()) return;
  for (int b = first; b < last; ++b) pack(b, m_copy.data() + in_copy(b));
}

void packed::store() const {
  if (m_copy.empty()) return;
  for (int b = 0; b < m_blocks; ++b) unpack(b, m_copy.data() + in_copy(b));
}

}  // namespace sucl::pmpi
