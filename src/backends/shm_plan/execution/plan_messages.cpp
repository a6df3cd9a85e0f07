// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/execution/plan_messages.hpp"

#include "core/exchange/core_services.hpp"

namespace sucl::core {

plan_messages::~plan_messages() {
  for (const transport& t : m_where.transports) t.via.table->comm_destroy(t.via.comm);
}

void plan_messages::abort() const {
  for (const transport& t : m_where.transports) t.via.table->abort(t.via.comm);
}

void plan_messages::post(const sucl_operation& message, std::uint32_t transport,
                         posted_messages& to) const {
  const auto& on = by(transport);
  sucl_request* request = nullptr;
  const auto status = on.via.table->post(on.via.comm, &message, &request);
  if (status && !is_foreign(status))
    throw_last(status, on.name, "a message of a plan", m_where.rank);
  to.list.push_back({request, transport, status != SUCL_SUCCESS});
}

bool plan_messages::landed(posted_messages::message& m) const {
  if (!m.request) return !m.foreign;
  const transport& on = by(m.transport);
  std::int32_t done = 0;
  if (const auto status = on.via.table->test(on.via.comm, m.request, &done)) {
    if (!is_foreign(status)) throw_last(status, on.name, "a message of a plan", m_where.rank);
    m.request = nullptr;
    m.foreign = true;
    return false;
  }
  return done != 0;
}

bool plan_messages::finish(posted_messages& of, std::uint64_t keep, int spins) const {
  spins /= 16;  // a test costs much more than polling a flag
  for (; of.list.size() - of.head > keep; ++of.head)
    while (!landed(of.list[of.head]))
      if (spins-- <= 0) return false;
  return true;
}

}  // namespace sucl::core
