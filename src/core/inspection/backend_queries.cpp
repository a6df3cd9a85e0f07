// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/inspection/backend_queries.hpp"

#include "core/operation/operation.hpp"

namespace sucl::core {

std::string backend_queries::explain(kind k, std::uint64_t bytes, type t, op o) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_shut_down();
  return m_context.backends.explain(example(k, bytes, t, o), bytes);
}

std::string backend_queries::name_by_event(kind k, std::uint64_t bytes, type t, op o) {
  return name_of(example(k, bytes, t, o), false);
}

// An example of an operation of this rank, on device memory where the device has its own.
sucl_operation backend_queries::example(kind k, std::uint64_t bytes, type t, op o) const {
  sucl_operation record = example_of(k, bytes, t, o);
  check_names(record);
  const member& here = m_context.where.members[static_cast<std::size_t>(m_context.rank())];
  record.send_memory = record.recv_memory =
      here.device_memory_on_host ? SUCL_MEMORY_SYSTEM : SUCL_MEMORY_DEVICE;
  return record;
}

std::string backend_queries::name_of(const sucl_operation& record, bool blocking) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_shut_down();
  return m_context.backends.choose(record, blocking).name;
}

bool backend_queries::any_thread_executes(const sucl_operation& record, bool blocking) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_shut_down();
  return m_context.backends.choose(record, blocking).traits.any_thread;
}

std::string backend_queries::plan_obstacle(const tune::table_row& row,
                                           const sucl_operation& record) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_shut_down();
  const auto& plans = m_context.backends.custom_plans();
  if (plans.empty()) return m_context.backends.custom_plan_obstacle();
  std::string obstacle;
  for (auto it = plans.begin(); it != plans.end() && obstacle.empty(); ++it)
    obstacle = (*it)->obstacle(row, record);
  return obstacle;
}

std::uint64_t backend_queries::calls_over() const { return m_context.backends.calls_over(); }

bool backend_queries::differs_within(std::uint64_t calls) const {
  const auto lock = m_queue.lock();
  return m_queue.ended() || m_context.backends.differs_within(calls);
}

}  // namespace sucl::core
