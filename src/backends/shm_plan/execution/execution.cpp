// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/execution/execution.hpp"

#include "core/operation/operation.hpp"

#include <algorithm>
#include <functional>

namespace sucl::core {

sucl_operation simplest(const sucl_operation& o, int size) {
  sucl_operation uniform = o;
  if (o.kind != SUCL_KIND_REDUCE_SCATTER) return uniform;
  const std::uint64_t *first = o.recv_counts, *end = first + size;
  if (std::adjacent_find(first, end, std::not_equal_to<>()) != end) return uniform;
  uniform.kind = SUCL_KIND_REDUCE_SCATTER_BLOCK;
  uniform.count = *first;
  return uniform;
}

void set_memory(execution& e, int rank, int size) {
  const sucl_operation& o = e.what;
  e.send = static_cast<std::byte*>(const_cast<void*>(o.send));
  e.recv = static_cast<std::byte*>(o.recv);
  e.send_counts = o.send_counts;
  e.send_displs = o.send_displs;
  if (o.kind == SUCL_KIND_BARRIER) {  // between nodes it gathers a byte of each rank
    e.own_metadata.resize(1);
    e.all_metadata.resize(static_cast<std::size_t>(size));
    e.send = reinterpret_cast<std::byte*>(e.own_metadata.data());
    e.recv = reinterpret_cast<std::byte*>(e.all_metadata.data());
  }
  if (!(o.flags & SUCL_FLAG_IN_PLACE)) return;
  e.send = e.recv;
  const auto self = static_cast<std::uint64_t>(rank);
  switch (o.kind) {
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_GATHER: e.send += self * o.count * o.element_size; break;
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_GATHERV: e.send += o.recv_displs[self] * o.element_size; break;
    case SUCL_KIND_ALLTOALLV:
      e.send_counts = o.recv_counts;
      e.send_displs = o.recv_displs;
      break;
    default: break;
  }
}

void renew_flags(const shared_memory& memory, int rank, std::uint64_t number, std::uint64_t value) {
  for (std::uint32_t c = 0; c < max_channels; ++c)
    memory.at(memory.slot_of(number), rank, c).store(value, std::memory_order_release);
}

}  // namespace sucl::core
