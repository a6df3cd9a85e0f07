// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One operation on this rank: its memory, its calls, and whether it gave what it ought to.
#pragma once

#include "board.hpp"
#include "pool.hpp"

#include <functional>
#include <memory_resource>

namespace sucl::torture {

using events = std::vector<::sycl::event>;

/// What memory holds.
using image = std::pmr::vector<std::byte>;

/// Gives the same few addresses again and again. Intel's OpenCL runtime keeps a note of each one
/// that a queue ever copied from or to and that is not USM, as long as the context lives.
std::pmr::memory_resource* image_memory();

/// A kind whose result is the same on every rank.
bool is_shared(kind k);

class trial {
 public:
  trial(pool& all, party& p, const operation& o);

  /// Writes the inputs, and a filling everywhere else.
  void fill();
  /// The same by commands of the queue; needs one.
  events fill_on_queue();

  void run();                        ///< blocking
  events start(const events& deps);  ///< asynchronous
  std::vector<sucl::persistent> make_persistent();
  /// On memory of the operation, by whatever `call` does with it.
  void run_by(const std::function<void(const std::byte* send, std::byte* recv)>& call);

  /// Reads what is there now. The second form is by commands of the queue, after `deps`.
  void read();
  events read_on_queue(const events& deps);

  /// What is wrong with what was read, or "".
  std::string verify() const;
  /// The hash of a result that is the same on every rank.
  std::uint64_t hash() const;

  /// Other values on the same memory.
  void use_key(std::uint64_t key) { m_operation.key = key; }
  const operation& what() const { return m_operation; }

 private:
  struct side {
    std::size_t elements = 0;
    conformance::layout layout;  ///< of a buffer
    std::byte* data = nullptr;   ///< or where its first element is
    std::optional<::sycl::buffer<std::byte, 1>> buffer;
    image before{image_memory()}, after{image_memory()};  ///< with what is around the elements
  };
  void allocate(side& s, std::size_t elements, bool received);
  std::size_t position(const side& s, std::size_t element) const;
  std::vector<std::byte> dense(const side& s, std::size_t at, std::size_t count) const;
  void make_image();
  void write(side& s);
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  bool has_host_address() const;
  bool is_copied_by_host() const;
  bool buffers_take_turns() const;
  bool one_after_the_other() const;
  detail::operand operand_of(const side& s) const;
  std::vector<detail::request> requests(bool blocks);
  detail::request request(kind k);
  detail::request message(kind k, const conformance::message& m, int tag);
  group group_of_messages();

  pool& m_pool;
  party& m_party;
  operation m_operation;
  conformance::flow m_flow;
  conformance::memory m_memory;
  side m_send, m_recv;
};

}  // namespace sucl::torture
