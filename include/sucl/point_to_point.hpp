// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Send and receive, for the facades that offer them.
#pragma once

#include <sucl/detail/request.hpp>

#include <vector>

namespace sucl::detail {

/// Sends and receives. `Derived` has `Result submit(request&, const std::vector<sycl::event>&)`.
///
/// A message matches the first receive of its communicator that names its source and tag and is
/// not matched yet; both sides name the same element type and exactly the same count. Otherwise the
/// receive fails, with errc::mismatch for another type, or a count of elements of another size, and
/// errc::invalid_count for another count, and the communicator goes on. Elements of types that SuCL
/// does not know match all of their size; of messages that MPI or a vendor's library executes only
/// the length is compared. Tags are 0 to 32766. A message to or from no_rank moves nothing, and is
/// done when its `deps` are.
template <class Derived, class Result>
class point_to_point {
 public:
  using events = std::vector<::sycl::event>;

  /// Sends `count` elements to rank `peer`. The memory may be reused when the call is done, which
  /// does not mean that the peer has them.
  template <class T>
  Result send(const T* data, std::size_t count, int peer, int tag = 0, const events& deps = {}) {
    return go(message<T>(kind::send, count, peer, tag), erase_pointer(data), {}, deps);
  }

  /// Receives exactly `count` elements from rank `peer`.
  template <class T>
  Result recv(T* data, std::size_t count, int peer, int tag = 0, const events& deps = {}) {
    static_assert(!std::is_const_v<T>, "memory that receives is not constant");
    return go(message<T>(kind::recv, count, peer, tag), {}, erase_pointer(data), deps);
  }

  /// Sends the elements of a buffer, a block or a range of elements to rank `peer`.
  template <class Memory, class = std::enable_if_t<is_memory<Memory>>>
  Result send(const Memory& data, int peer, int tag = 0, const events& deps = {}) {
    auto from = erase(data);
    const auto n = from.elements();
    return go(message<element_of<Memory>>(kind::send, n, peer, tag), std::move(from), {}, deps);
  }

  /// Receives into all elements of a buffer, a block or a range of elements from rank `peer`.
  template <class Memory, class = std::enable_if_t<can_receive<Memory>()>>
  Result recv(Memory&& data, int peer, int tag = 0, const events& deps = {}) {
    auto to = erase(data);
    const auto n = to.elements();
    return go(message<element_of<Memory>>(kind::recv, n, peer, tag), {}, std::move(to), deps);
  }

  /// Sends to rank `to` and receives from rank `from` at once, with one tag for both; the two
  /// memories must not overlap.
  template <class T>
  Result sendrecv(const T* send, std::size_t send_count, int to, T* recv, std::size_t recv_count,
                  int from, int tag = 0, const events& deps = {}) {
    auto r = message<T>(kind::sendrecv, send_count, to, tag);
    r.record.recv_count = recv_count;
    r.record.source = from;
    return go(std::move(r), erase_pointer(send), erase_pointer(recv), deps);
  }

  /// The same for buffers, blocks and ranges of elements.
  template <class Send, class Recv,
            class = std::enable_if_t<is_memory<Send> && can_receive<Recv>()>>
  Result sendrecv(const Send& send, int to, Recv&& recv, int from, int tag = 0,
                  const events& deps = {}) {
    static_assert(std::is_same_v<std::remove_cv_t<element_of<Send>>, element_of<Recv>>,
                  "both sides of sendrecv have one element type");
    static_assert(is_range<Send> == is_range<Recv>, "two buffers, or two ranges of elements");
    auto s = erase(send);
    auto d = erase(recv);
    auto r = message<element_of<Recv>>(kind::sendrecv, s.elements(), to, tag);
    r.record.recv_count = d.elements();
    r.record.source = from;
    return go(std::move(r), std::move(s), std::move(d), deps);
  }

 protected:
  Result go(request&& r, operand&& send, operand&& recv, const events& deps) {
    r.send = std::move(send);
    r.recv = std::move(recv);
    return static_cast<Derived*>(this)->submit(r, deps);
  }

 private:
  template <class T>
  static request message(kind k, std::size_t count, int peer, int tag) {
    auto r = make_request<T>(k, count, op::none, peer);
    r.record.tag = tag;
    return r;
  }
};

}  // namespace sucl::detail
