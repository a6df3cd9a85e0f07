// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The communication of the applications, in the three variants.
#pragma once

#include "common/context.hpp"
#include "common/pattern.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace apps {

/// Ranks that communicate, in the variant of the run.
class team {
 public:
  team() = default;
  /// All ranks, or those with the same colour. Collective over all.
  explicit team(context& c, int colour = 0);

  int rank() const { return m_comm.rank(); }
  int size() const { return m_comm.size(); }

  /// Zeroed memory for messages of this team. In SuCL's variant it is memory that the other ranks
  /// reach, so that messages need fewer copies, where kernels can use that too. Where the host
  /// executes messages of a GPU, and for MPI, which may not know the device's memory, kernels pack
  /// and unpack in memory of the host. Collective over the team.
  template <class T>
  array<T> message_memory(std::size_t size);

  /// Sends and receives pieces of `send` and `recv` after `deps`. The event means done. The MPI
  /// variants have no events: they wait, communicate, and return a complete one.
  template <class T>
  sycl::event exchange(const array<T>& send, const array<T>& recv, const pattern& p,
                       const events& deps);

 private:
  /// Whether the host executes messages of a GPU, on any rank. Collective.
  bool by_host(std::size_t bytes) const;
  template <class T>
  void exchange_by_mpi(const T* send, T* recv, const pattern& p) const;

  context* m_context = nullptr;
  sucl::communicator m_comm;
  mpi_team m_mpi;
};

/// The sum of the elements of an array over the ranks, in place, set up once.
class reduction {
 public:
  /// `values` is shared memory.
  reduction(context& c, const array<double>& values);
  /// After `deps`; the event as in team::exchange.
  sycl::event start(const events& deps);
  /// It was recorded when it was started last, and this is the replay that executes it.
  void follow(const sycl::event& replay) { m_done = replay; }
  /// Sums that another reduction has had. It begins after all that was started.
  void put(const std::vector<double>& sums);
  /// The sum of an element, after start() or put(); waits for it.
  double value(std::size_t i);

 private:
  context* m_context;
  array<double> m_values;
  sycl::event m_done;
  sucl::persistent m_plan;
  mpi_team m_mpi;
  std::vector<double> m_seen;  ///< what a host accessor has shown
};

template <class T>
array<T> team::message_memory(std::size_t size) {
  if (m_context->uses_mpi() || by_host(size * sizeof(T)))
    return {*m_context, size, reachable_by::host};
  auto& queue = m_context->queue();
  T* memory = m_comm.allocate<T>(size == 0 ? 1 : size);
  int usable = sycl::get_pointer_type(memory, queue.get_context()) != sycl::usm::alloc::unknown ||
               queue.get_device().has(sycl::aspect::usm_system_allocations);
  m_comm.blocking().allreduce(&usable, 1, sucl::op::min);
  if (usable) return {*m_context, {memory, [comm = m_comm](T*) {}}, size};  // ends with `comm`
  m_comm.deallocate(memory);
  return {*m_context, size};
}

template <class T>
void team::exchange_by_mpi(const T* send, T* recv, const pattern& p) const {
  const auto messages = [](T* memory, const std::vector<piece>& pieces) {
    std::vector<mpi_message> all;
    for (const piece& x : pieces) all.push_back({x.peer, x.tag, memory + x.offset, x.count});
    return all;
  };
  m_mpi.exchange(static_cast<sucl_type>(sucl::type_of_v<T>), messages(const_cast<T*>(send), p.out),
                 messages(recv, p.in));
}

template <class T>
sycl::event team::exchange(const array<T>& send, const array<T>& recv, const pattern& p,
                           const events& deps) {
  if (p.empty()) return {};
  if (m_context->wanted().kind == variant::host_accessor) {
    auto from = send.buffer();
    auto to = recv.buffer();
    sycl::host_accessor outgoing{from, sycl::read_only};
    sycl::host_accessor incoming{to, sycl::write_only, sycl::no_init};
    exchange_by_mpi(&outgoing[0], &incoming[0], p);
    return {};
  }
  if (m_context->wanted().kind == variant::usm) {
    for (auto e : deps) e.wait();
    exchange_by_mpi(send.pointer(), recv.pointer(), p);
    return {};
  }
  sucl::group messages{m_comm};
  for (const piece& x : p.in) messages.recv(recv.pointer() + x.offset, x.count, x.peer, x.tag);
  for (const piece& x : p.out)
    messages.send(static_cast<const T*>(send.pointer() + x.offset), x.count, x.peer, x.tag);
  if (!m_context->is_blocking()) return messages.submit(deps);
  messages.run(deps);
  return {};
}

}  // namespace apps
