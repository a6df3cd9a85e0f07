// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The erased form in which every call reaches the library: one record and its memory.
#pragma once

#include <sucl/memory.hpp>
#include <sucl/types.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::detail {

using sucl::counts;

/// One call. Lives on the caller's stack: the library copies what it keeps.
struct request {
  sucl_operation record{};
  const counts* send_counts = nullptr;  ///< one entry a rank; null: the kind has none
  const counts* send_displs = nullptr;
  const counts* recv_counts = nullptr;
  const counts* recv_displs = nullptr;
  operand send;
  operand recv;
  const ::sycl::queue* queue = nullptr;         ///< null: the communicator's own
  const std::vector<request>* parts = nullptr;  ///< of a group
};

/// A record with everything but the memory.
template <class T>
request make_request(kind k, std::size_t count, op o = op::none, int root = 0) {
  request r;
  r.record.struct_size = sizeof(sucl_operation);
  r.record.kind = static_cast<sucl_kind>(k);
  r.record.type = static_cast<sucl_type>(type_of_v<T>);
  r.record.op = static_cast<sucl_op>(o);
  r.record.element_size = sizeof(T);
  r.record.count = count;
  r.record.recv_count = count;
  r.record.root = root;
  r.record.source = root;
  return r;
}

}  // namespace sucl::detail
