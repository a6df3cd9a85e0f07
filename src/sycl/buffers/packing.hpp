// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Blocks of buffers that do not lie together, on the device: packed by a kernel before the
/// operation and unpacked by one after it.
#pragma once

#include "sycl/common/implementation.hpp"

#include <mutex>
#include <optional>
#include <vector>

namespace sucl::sycl_layer {

/// Memory of the device for what is packed, one operation after the other. Grows, and never
/// shrinks.
class packed_memory {
 public:
  explicit packed_memory(const ::sycl::queue& of) : m_queue(of) {}
  ~packed_memory();
  packed_memory(const packed_memory&) = delete;
  packed_memory& operator=(const packed_memory&) = delete;

  /// At least so many bytes, the same as in the call before if that had as many. Only with `mutex`
  /// held, until the operation is submitted. Throws out_of_memory.
  std::byte* take(std::size_t bytes);
  std::mutex mutex;

 private:
  ::sycl::queue m_queue;
  std::vector<std::byte*> m_blocks;  ///< all but the last may still be in use
  std::size_t m_bytes = 0;           ///< of the last
};

/// As start(), for an operation on blocks that this library's kernels execute once it is packed;
/// nothing for any other.
std::optional<::sycl::event> start_packed(communicator_state& state, ::sycl::queue& queue,
                                          const sucl_operation& record, const core::layouts& layout,
                                          const std::vector<buffer_use>& buffers,
                                          const std::vector<::sycl::event>& deps);

}  // namespace sucl::sycl_layer
