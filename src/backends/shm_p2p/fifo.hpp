// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The memory that messages from one rank to another go through: a ring of envelopes, with
/// short messages behind them, replies in the other direction, and chunks for the data of long
/// ones. One thread at each end, of any process that has the memory mapped.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sucl::core {

/// The envelope of a message, at the start of a cell of the ring. The flag of the cell equals the
/// number of the cell once all of it is there.
struct envelope {
  std::uint64_t bytes = 0;
  std::int32_t tag = 0;
  bool rendezvous = false;         ///< a rendezvous_request follows instead of the data
  std::uint8_t type = 0;           ///< sucl_type of the elements,
  std::uint16_t element_size = 0;  ///< and their size in its low bits
};
static_assert(sizeof(envelope) == 16);

/// Ready to send (RTS): announces a message that is too long for the ring.
struct rendezvous_request {
  std::uint64_t serial = 0;   ///< among those of its FIFO, from 1
  std::uint64_t address = 0;  ///< of the data in the sender's process
  std::uint64_t region = 0;   ///< number of the memory that all ranks reach; 0: in none
  std::uint64_t offset = 0;   ///< in the sender's part of it
};

/// The receiver's answer to a rendezvous request: clear to send (CTS), finished (FIN), or that its
/// receive is for something else.
struct rendezvous_reply {
  enum class act : std::uint64_t {
    send = 1,    ///< send the data through the chunks, in the order of these replies
    write = 2,   ///< write it to memory that both reach, and fill an empty chunk
    finish = 3,  ///< the receiver has the data
    refuse = 4   ///< it does not want the data
  };
  act what = act::send;
  std::uint64_t serial = 0;
  std::uint64_t region = 0, offset = 0;                 ///< write: where to
  std::uint64_t bytes = 0, element_size = 0, type = 0;  ///< refuse: of the receive
};

/// The layout of a FIFO. Each line has one writer.
struct fifo_layout {
  static constexpr std::uint64_t line = 64;
  static constexpr std::uint64_t freed = 0;           ///< cells of the ring, by the receiver
  static constexpr std::uint64_t taken = 1 * line;    ///< chunks, by the receiver
  static constexpr std::uint64_t filled = 2 * line;   ///< chunks, by the sender
  static constexpr std::uint64_t seen = 3 * line;     ///< replies, by the sender
  static constexpr std::uint64_t replies = 4 * line;  ///< by the receiver
  static constexpr std::uint64_t reply_count = 32;
  static constexpr std::uint64_t ring = 4096;
  static constexpr std::uint64_t cells = 1024;  ///< of the ring, a line each
  static constexpr std::uint64_t chunks = ring + cells * line;
  static constexpr std::uint64_t chunk_count = 8;
  static constexpr std::uint64_t chunk_bytes = std::uint64_t{32} << 10;
  static constexpr std::uint64_t bytes = chunks + chunk_count * chunk_bytes;

  /// Bytes of a cell before the data.
  static constexpr std::uint64_t head = sizeof(std::uint64_t) + sizeof(envelope);
  /// Cells that a message with so many bytes in the ring takes.
  static constexpr std::uint64_t cells_of(std::uint64_t data) {
    return (head + data + line - 1) / line;
  }
  /// The longest message that goes through the ring.
  static constexpr std::uint64_t short_bytes = std::uint64_t{8} << 10;
};
static_assert(fifo_layout::cells_of(fifo_layout::short_bytes) < fifo_layout::cells / 4);
static_assert(fifo_layout::head + sizeof(rendezvous_request) <= fifo_layout::line);
static_assert(sizeof(std::uint64_t) + sizeof(rendezvous_reply) <= fifo_layout::line);
static_assert(fifo_layout::replies + fifo_layout::reply_count * fifo_layout::line <=
              fifo_layout::ring);

namespace fifo_detail {

using word = std::atomic_ref<std::uint64_t>;
inline word at(std::byte* base, std::uint64_t offset) {
  return word(*reinterpret_cast<std::uint64_t*>(base + offset));
}

}  // namespace fifo_detail

/// The sender's end of a FIFO.
class fifo_sender {
 public:
  fifo_sender() = default;
  explicit fifo_sender(std::byte* base) : m_base(base) {}

  /// Writes an envelope and `bytes` bytes after it; false where the ring has no room.
  bool put(const envelope& e, const void* data, std::uint64_t bytes);
  /// The next reply, if there is one.
  bool next(rendezvous_reply& o);
  /// An empty chunk, or null; filled() makes it one for the receiver.
  std::byte* empty_chunk();
  void filled() {
    fifo_detail::at(m_base, layout::filled).store(++m_filled, std::memory_order_release);
  }

 private:
  using layout = fifo_layout;
  std::byte* m_base = nullptr;
  std::uint64_t m_written = 0, m_freed = 0;  // cells
  std::uint64_t m_seen = 0;                  // replies
  std::uint64_t m_filled = 0, m_taken = 0;   // chunks
};

/// The receiver's end.
class fifo_receiver {
 public:
  fifo_receiver() = default;
  explicit fifo_receiver(std::byte* base) : m_base(base) {}

  /// The envelope of the next message; false if there is none.
  bool peek(envelope& e) const;
  /// Copies `bytes` bytes of what follows it.
  void read(void* to, std::uint64_t bytes) const;
  /// Goes on to the next message. `bytes` follow the envelope.
  void pop(std::uint64_t bytes);
  /// Replies to a rendezvous request; false where there is no room.
  bool reply(const rendezvous_reply& o);
  /// The next full chunk, or null; taken() returns it to the sender.
  const std::byte* full_chunk();
  void taken() {
    fifo_detail::at(m_base, layout::taken).store(++m_taken, std::memory_order_release);
  }

 private:
  using layout = fifo_layout;
  std::byte* m_base = nullptr;
  std::uint64_t m_read = 0, m_freed = 0;    // cells
  std::uint64_t m_given = 0, m_seen = 0;    // replies
  std::uint64_t m_filled = 0, m_taken = 0;  // chunks
};

}  // namespace sucl::core
