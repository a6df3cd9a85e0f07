// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/execution/plan_messages.hpp"

#include "core/exchange/core_services.hpp"

namespace sucl::core {

plan_messages::~plan_messages() {
  for (const transport& t : m_transports) t.via.table->comm_destroy(t.via.comm);
}

void plan_messages::abort() const {
  for (const transport& t : m_transports) t.via.table->abort(t.via.comm);
}

void plan_messages::post(const sucl_operation& message, std::uint32_t transport,
                         posted_messages& to) const {
  const auto& by = m_transports[transport];
  sucl_request* request = nullptr;
  if (const auto status = by.via.table->post(by.via.comm, &message, &request))
    throw_last(status, by.name, "a message of a plan", m_rank);
  to.list.push_back({request, transport});
}

bool plan_messages::landed(const posted_messages::message& m) const {
  if (!m.request) return true;
  const transport& by = m_transports[m.transport];
  std::int32_t done = 0;
  if (const auto status = by.via.table->test(by.via.comm, m.request, &done))
    throw_last(status, by.name, "a message of a plan", m_rank);
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
