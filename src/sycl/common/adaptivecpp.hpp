// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the commands of AdaptiveCpp have in common. Only for that implementation.
#pragma once

#include "sycl/common/implementation.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

namespace sucl::sycl_layer {

/// AdaptiveCpp collects commands until a thread waits; this starts them.
inline void flush() {
  ::hipsycl::rt::runtime_keep_alive_token runtime;
  runtime.get()->dag().flush_async();
}

/// Whether every part of the program submits instantly, so that nothing is collected that a command
/// of this library on the same in-order queue could overtake.
bool program_submits_instantly();

/// While one lives, the calling thread takes for enqueued what the program has had collected: for
/// the operations of a group, before which that was done once. This library's own commands on
/// in-order queues are enqueued by the call that submits them.
class collected_is_enqueued {
 public:
  collected_is_enqueued() { ++depth(); }
  ~collected_is_enqueued() { --depth(); }
  collected_is_enqueued(const collected_is_enqueued&) = delete;
  collected_is_enqueued& operator=(const collected_is_enqueued&) = delete;

  static bool holds() { return depth() > 0; }

 private:
  static int& depth() {
    static thread_local int scopes = 0;
    return scopes;
  }
};

/// As flush(), and returns when everything collected so far is enqueued on its device.
inline void flush_and_enqueue() {
  if (collected_is_enqueued::holds()) return;
  ::hipsycl::rt::runtime_keep_alive_token runtime;
  runtime.get()->dag().flush_sync();
}

/// Waits for the copies within the host's memory that come before a command of a GPU's queue: for
/// all of an in-order queue, and for those among `deps`. AdaptiveCpp 24.06 executes them beside the
/// queue, and takes their events for ones of the device.
void wait_for_host_copies(const ::sycl::queue& queue, const std::vector<::sycl::event>& deps);

/// All of a buffer, in the form in which AdaptiveCpp keeps account of it. Version 24.06 takes the
/// range of an accessor for elements of the type and extents that the buffer was made with, also
/// where it was reinterpreted, and writes beyond its tables if they are more.
struct whole {
  ::sycl::buffer<std::byte, 3> bytes;
  ::sycl::range<3> range;  ///< of an accessor to it

  explicit whole(const ::sycl::buffer<std::byte, 1>& of) : whole(of, extents_of(of)) {}

 private:
  whole(const ::sycl::buffer<std::byte, 1>& of, const ::sycl::range<3>& extents)
      : bytes(of.reinterpret<std::byte, 3>(
            ::sycl::range<3>(extents[0], extents[1], of.size() / (extents[0] * extents[1])))),
        range(extents) {}
  static ::sycl::range<3> extents_of(const ::sycl::buffer<std::byte, 1>& of) {
    const auto n = ::sycl::detail::extract_buffer_data_region(of)->get_num_elements();
    return {n[0], n[1], n[2]};
  }
};

/// Accessors of one command. AdaptiveCpp searches for them in the bytes of the command's function
/// object, so they have to lie in it; it warns of those that do not, as those of large groups.
struct held_buffers {
  using reader = ::sycl::accessor<std::byte, 3, ::sycl::access_mode::read>;
  using writer = ::sycl::accessor<std::byte, 3, ::sycl::access_mode::read_write>;
  std::optional<reader> reads[2];
  std::optional<writer> writes[2];

  held_buffers(const std::vector<buffer_use>& buffers, ::sycl::handler& h) {
    std::size_t r = 0, w = 0;
    for (const buffer_use& use : buffers) {
      whole all(use.buffer);
      if (use.writes && w < 2)
        writes[w++].emplace(all.bytes, h, all.range);
      else if (use.writes)
        writer(all.bytes, h, all.range);
      else if (r < 2)
        reads[r++].emplace(all.bytes, h, all.range);
      else
        reader(all.bytes, h, all.range);
    }
  }
};

/// Where the memory of buffers is, without handles of them: a command may be kept for long.
class buffer_memory {
 public:
  buffer_memory(const std::vector<buffer_use>& buffers, const ::sycl::device& where)
      : m_where(where.AdaptiveCpp_device_id()) {
    for (const auto& use : buffers)
      m_parts.push_back({use.operand, ::sycl::detail::extract_buffer_data_region(use.buffer)});
  }
  /// Writes the addresses into an operation. Only in a command that has accessors to the buffers.
  void set(core::op_request& n) const {
    for (const auto& part : m_parts)
      set_addresses(n.record, n.parts, part.operand, part.region->get_memory(m_where));
  }

 private:
  struct part {
    buffer_operand operand;
    std::shared_ptr<::hipsycl::rt::buffer_data_region> region;
  };
  ::hipsycl::rt::device_id m_where;
  std::vector<part> m_parts;
};

/// The stream of a command on a CUDA or HIP device.
inline void* stream_of(::sycl::interop_handle& handle) {
#if defined(SYCL_EXT_HIPSYCL_BACKEND_CUDA)
  return handle.get_native_queue<::sycl::backend::cuda>();
#elif defined(SYCL_EXT_HIPSYCL_BACKEND_HIP)
  return handle.get_native_queue<::sycl::backend::hip>();
#else
  (void)handle;
  return nullptr;
#endif
}

}  // namespace sucl::sycl_layer
#endif
