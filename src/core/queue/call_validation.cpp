// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/queue/call_validation.hpp"

#include "core/operation/operation.hpp"

namespace sucl::core {

bool call_validation::compare(op_request& n, int rank, std::uint64_t& arrived) {
  if (!m_validator->busy()) {
    arrived = n.turn;
    m_validator->start(n.record, n.failure ? &*n.failure : nullptr);
  }
  if (!m_validator->test()) return false;
  if (m_validator->failure()) {
    n.failure = *m_validator->failure();
    n.failure->operation = describe(n.record);
    n.failure->rank = rank;
  }
  return true;
}

}  // namespace sucl::core
