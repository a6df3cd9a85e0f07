// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace sucl::conformance {

runner run_small(int element);
runner run_integers(int element);
runner run_reals(int element);
runner run_pairs(int element);
runner run_opaque(int element);
runner run_tiny(int element);

runner runner_of(int element) {
  for (const auto find : {run_small, run_integers, run_reals, run_pairs, run_opaque, run_tiny})
    if (const runner found = find(element)) return found;
  throw std::logic_error("no such element type");
}

namespace {

constexpr std::size_t alignment = 64;

std::byte* allocate(memory m, std::size_t bytes, comm_and_queue& where) {
  void* data = nullptr;
  const ::sycl::queue* queue = where.queue ? &*where.queue : nullptr;
  // Whole units, at least one: some implementations allocate nothing else.
  bytes = (bytes / alignment + 1) * alignment;
  if (m == device_memory) data = ::sycl::aligned_alloc_device(alignment, bytes, *queue);
  if (m == host_memory) data = ::sycl::aligned_alloc_host(alignment, bytes, *queue);
  if (m == shared_memory) data = ::sycl::aligned_alloc_shared(alignment, bytes, *queue);
  if (m == system_memory) data = std::aligned_alloc(alignment, bytes);
  if (m == symmetric_memory) {
    where.comm.blocking().allreduce(&bytes, 1, op::max);
    data = where.comm.allocate<std::byte>(bytes);
  }
  if (data == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}

}  // namespace

storage::storage(memory m, std::size_t bytes, comm_and_queue& where)
    : m_where(where),
      m_queue(where.queue),
      m_symmetric(m == symmetric_memory),
      m_usm(m != system_memory && !m_symmetric),
      m_bytes(bytes),
      m_data(allocate(m, bytes, where)) {}

storage::~storage() {
  if (m_symmetric)
    m_where.comm.deallocate(m_data);
  else if (m_usm)
    ::sycl::free(m_data, *m_queue);
  else
    std::free(m_data);
}

::sycl::event storage::copy(void* to, const void* from, std::size_t bytes,
                            const std::vector<::sycl::event>& deps) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  // Version 24.06 takes copies within the host's memory out of the order of a GPU's queue.
  const auto kind = m_usm ? ::sycl::get_pointer_type(m_data, m_queue->get_context())
                          : ::sycl::usm::alloc::unknown;
  const bool on_host = kind == ::sycl::usm::alloc::host || kind == ::sycl::usm::alloc::unknown;
  if (m_queue && on_host && m_queue->get_device().is_gpu()) {
    for (auto e : deps) e.wait();
    m_queue->wait();
    std::memcpy(to, from, bytes);
    return {};
  }
#endif
  if (m_queue) return m_queue->memcpy(to, from, bytes, deps);
  std::memcpy(to, from, bytes);
  return {};
}

::sycl::event storage::write(const std::vector<std::byte>& from,
                             const std::vector<::sycl::event>& deps) {
  return copy(m_data, from.data(), from.size(), deps);
}

::sycl::event storage::read(std::vector<std::byte>& to, const std::vector<::sycl::event>& deps) {
  to.resize(m_bytes);
  return copy(to.data(), m_data, m_bytes, deps);
}

}  // namespace sucl::conformance
