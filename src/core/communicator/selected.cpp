// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Which backend an operation would go to, and why.
#include "core/communicator/communicator.hpp"

namespace sucl::core {

std::string communicator::explain(kind k, std::uint64_t bytes, type t, op o) {
  std::lock_guard lock(m_mutex);
  throw_if_shut_down();
  return m_backends.explain(example(k, bytes, t, o), bytes);
}

std::string communicator::selected_backend_by_event(kind k, std::uint64_t bytes, type t, op o) {
  return selected_backend_of(example(k, bytes, t, o), false);
}

// On memory of the device, where that is not the host's.
sucl_operation communicator::example(kind k, std::uint64_t bytes, type t, op o) const {
  sucl_operation record = example_of(k, bytes, t, o);
  const bool on_host = m_topology.members[static_cast<std::size_t>(rank())].device_memory_on_host;
  record.send_memory = record.recv_memory = on_host ? SUCL_MEMORY_SYSTEM : SUCL_MEMORY_DEVICE;
  return record;
}

std::string communicator::selected_backend_of(const sucl_operation& record, bool blocking) {
  std::lock_guard lock(m_mutex);
  throw_if_shut_down();
  return m_backends.choose(record, blocking).name;
}

bool communicator::any_thread_executes(const sucl_operation& record, bool blocking) {
  std::lock_guard lock(m_mutex);
  throw_if_shut_down();
  return m_backends.choose(record, blocking).traits.any_thread;
}

std::string communicator::plan_obstacle(const tune::table_row& row, const sucl_operation& record) {
  std::lock_guard lock(m_mutex);
  throw_if_shut_down();
  built_in_comm* plans = m_backends.custom_plans();
  return plans ? plans->obstacle(row, record) : m_backends.custom_plan_obstacle();
}

}  // namespace sucl::core
