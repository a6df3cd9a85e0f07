// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Sends and receives. Work group g of a rank moves the pieces of channel g, of all messages at
/// once: it never waits for one while it could go on with another. So, as with collectives, nothing
/// is assumed of how many groups a device runs at once, as long as it starts them in order.
///
/// Before a piece goes its header, two LL lines: label and length of the message. Data of the LL
/// protocol follow it at once; other data are pushed to staging memory and then signalled as ready.
#pragma once

#include "kernels/collective/signal.hpp"
#include "kernels/message/args.hpp"

namespace sucl::kernels {

/// What a work group knows of one queue.
struct message_queue {
  enum class state : std::int32_t { waiting, may_move, over };

  message_part part;
  message_cut cut;
  std::uint64_t index;   ///< of the next piece, in the message
  std::uint64_t number;  ///< of that piece, in the channel
  std::byte* out;
  const std::byte* in;
  state now;

  SUCL_INLINE std::uint64_t begin() const { return index * cut.piece; }
  SUCL_INLINE std::uint64_t length() const {
    const std::uint64_t rest = part.bytes - begin();
    return rest < cut.piece ? rest : cut.piece;
  }
};

/// Memory of a work group. Between two barriers it is either read or written.
struct message_board {
  message_queue queues[max_queues];
  std::uint32_t ends;       ///< a work item has found that the kernel must end
  std::uint32_t cut_short;  ///< while a piece was moved
};

/// In place of the number of freed pieces of channel 0: the receiver has refused what it found.
inline constexpr std::uint64_t refused = ~std::uint64_t{0};

/// Fresh memory has no such flag.
SUCL_INLINE std::uint32_t ll_flag_of(std::uint64_t piece) {
  return static_cast<std::uint32_t>(piece) | 0x80000000u;
}

/// Of parameters that are chosen by address every work item would get a copy.
SUCL_INLINE message_part part_of(const message_args& j, int part) {
  if (j.list) return j.list[part];
  const bool first = part == 0;
  return {first ? j.first.memory : j.second.memory, first ? j.first.bytes : j.second.bytes,
          first ? j.first.peer : j.second.peer,     first ? j.first.label : j.second.label,
          first ? j.first.next : j.second.next,     first ? j.first.sends : j.second.sends};
}

SUCL_INLINE std::uint64_t* count_of(const message_args& j, const message_queue& q, int channel) {
  return q.part.sends ? &j.counts->sent[q.part.peer][channel]
                      : &j.counts->taken[q.part.peer][channel];
}

/// Goes on with the first message from `part` on that has a piece in this channel.
template <class Item>
SUCL_INLINE void next_message(const Item& at, const message_args& j, message_queue& q, int part) {
  const int channel = at.group();
  q.now = message_queue::state::waiting;
  for (; part >= 0; part = q.part.next) {
    q.part = part_of(j, part);
    q.cut = cut_of(j.layout, q.part.bytes);
    q.index = static_cast<std::uint64_t>(channel);
    if (q.index < q.cut.pieces) return;
  }
  q.now = message_queue::state::over;
}

template <class Item>
SUCL_INLINE void open_queue(const Item& at, const message_args& j, message_queue& q, int first) {
  next_message(at, j, q, first);
  q.number = *count_of(j, q, at.group());
  q.out = j.with->out[q.part.peer];
  q.in = j.with->in[q.part.peer];
}

template <class Byte>
SUCL_INLINE auto* buffer_word(Byte* buffer, std::uint64_t offset) {
  if constexpr (std::is_const_v<Byte>)
    return reinterpret_cast<const std::uint64_t*>(buffer + offset);
  else
    return reinterpret_cast<std::uint64_t*>(buffer + offset);
}

/// Reports to the host, and has all kernels of this rank end.
SUCL_INLINE void fail(const message_args& j, message_board& board, int peer, message_fault fault) {
  store_release(reinterpret_cast<std::uint64_t*>(&j.control->failures[peer].fault),
                static_cast<std::uint64_t>(fault));
  *static_cast<volatile std::uint32_t*>(&j.control->abort) = 1;
  board.ends = 1;
}

/// The header of a piece does not match what this rank waits for. That is always seen in channel 0,
/// through which a piece of every message goes; the other groups poll until the kernel is aborted.
SUCL_INLINE void refuse(const message_args& j, message_board& board, const message_queue& q,
                        message_label label, std::uint64_t bytes) {
  auto& f = j.control->failures[q.part.peer];
  f.label = label;
  f.wanted_label = q.part.label;
  f.bytes = bytes;
  f.wanted_bytes = q.part.bytes;
  store_relaxed(buffer_word(q.out, j.layout.freed(0)), refused);
  fail(j, board, q.part.peer, message_fault::mismatch);
}

/// Whether the next piece of a send has a slot; then its header has been sent.
template <class Item>
SUCL_INLINE bool may_send(const Item& at, const message_args& j, message_board& board,
                          const message_queue& q) {
  const int channel = at.group();
  const std::uint64_t freed = load_acquire(buffer_word(q.in, j.layout.freed(channel)));
  if (freed == refused || freed + message_layout::slots < q.number + 1) {
    if (load_relaxed(buffer_word(q.in, j.layout.freed(0))) == refused)
      fail(j, board, q.part.peer, message_fault::refused);
    return false;
  }
  std::byte* header = q.out + j.layout.header(channel, q.number);
  const std::uint32_t flag = ll_flag_of(q.number);
  store_ll(header, q.part.label.word, 0, flag);
  store_ll(header + sizeof(quad), static_cast<std::uint32_t>(q.part.bytes),
           static_cast<std::uint32_t>(q.part.bytes >> 32), flag);
  return true;
}

/// Whether the next piece of a receive is there, or, by the LL protocol, in transfer.
template <class Item>
SUCL_INLINE bool may_receive(const Item& at, const message_args& j, message_board& board,
                             const message_queue& q) {
  const int channel = at.group();
  const std::byte* header = q.in + j.layout.header(channel, q.number);
  const std::uint32_t flag = ll_flag_of(q.number);
  message_label label;
  std::uint32_t unused, low, high;
  if (!load_ll(header, flag, label.word, unused) ||
      !load_ll(header + sizeof(quad), flag, low, high))
    return false;
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  if (!q.part.label.fits(label) || bytes != q.part.bytes) {
    if (channel == 0) refuse(j, board, q, label, bytes);
    return false;
  }
  return q.cut.ll || load_acquire(buffer_word(q.in, j.layout.ready(channel))) > q.number;
}

/// Moves a piece that may move; false if it has to be given up.
template <class Item>
SUCL_INLINE bool move_piece(const Item& at, const message_args& j, const message_queue& q) {
  constexpr std::uint64_t size = sizeof(quad);
  const int channel = at.group();
  const std::uint64_t length = q.length();
  std::byte* user = q.part.memory + q.begin();
  if (!q.cut.ll) {
    const std::uint64_t offset = j.layout.stage(channel, q.number);
    copy(at, q.part.sends ? q.out + offset : user, q.part.sends ? user : q.in + offset, length);
    return true;
  }
  const std::uint64_t offset = j.layout.ll(channel, q.number);
  const std::uint32_t flag = ll_flag_of(q.number);
  const std::uint64_t stride = static_cast<std::uint64_t>(at.threads()) * size;
  bool ok = true;
  for (auto p = static_cast<std::uint64_t>(at.thread()) * size; p < length && ok; p += stride) {
    if (q.part.sends) {
      push_quad<no_row>(q.out + offset, p, load_quad(user + p, length - p), flag);
    } else {
      const quad v = wait_for_quad<no_row>(j, q.in + offset, p, flag, ok);
      if (ok) store_quad(user + p, v, length - p);
    }
  }
  return ok;
}

/// After a barrier: signals the peer that the piece has moved, and goes on to the next.
template <class Item>
SUCL_INLINE void close_piece(const Item& at, const message_args& j, message_queue& q) {
  const int channel = at.group();
  ++q.number;
  if (!q.part.sends)
    store_release(buffer_word(q.out, j.layout.freed(channel)), q.number);
  else if (!q.cut.ll)
    store_release(buffer_word(q.out, j.layout.ready(channel)), q.number);
  q.index += static_cast<std::uint64_t>(j.layout.channels);
  if (q.index >= q.cut.pieces)
    next_message(at, j, q, q.part.next);
  else
    q.now = message_queue::state::waiting;
  if (q.now == message_queue::state::over) *count_of(j, q, channel) = q.number;
}

/// Each work item polls_between after some of the queues.
template <class Item, class Function>
SUCL_INLINE void each_queue(const Item& at, const message_args& j, message_board& board,
                            const Function& f) {
  for (int k = at.thread(); k < j.queues; k += at.threads()) f(board.queues[k], k);
}

/// Polls which pieces may move. A barrier; the board is then the same for all.
template <class Item>
SUCL_INLINE void poll(const Item& at, const message_args& j, message_board& board, bool at_abort) {
  using state = message_queue::state;
  each_queue(at, j, board, [&](message_queue& q, int) {
    if (q.now == state::over) return;
    const bool moves = q.part.sends ? may_send(at, j, board, q) : may_receive(at, j, board, q);
    if (moves) q.now = state::may_move;
  });
  if (at_abort && at.thread() == 0 && *static_cast<const volatile std::uint32_t*>(j.abort) != 0)
    board.ends = 1;
  at.barrier();
}

/// Moves what may move; a barrier. Returns whether there was something, and whether all is over.
/// Sends come first, and wait for no peer: a receiver that has seen the header of LL lines waits
/// for the lines, and two groups that did so before they sent theirs would wait for each other.
struct found {
  bool any = false, over = true;
};
template <class Item>
SUCL_INLINE found move_all(const Item& at, const message_args& j, message_board& board) {
  using state = message_queue::state;
  found f;
  for (const bool sends : {true, false})
    for (int k = 0; k < j.queues; ++k) {
      const message_queue& q = board.queues[k];
      f.over = f.over && q.now == state::over;
      if (q.now != state::may_move || q.part.sends != sends) continue;
      f.any = true;
      if (!move_piece(at, j, q)) board.cut_short = 1;
    }
  at.barrier();
  return f;
}

/// All parts of an operation, in one work group.
template <class Item>
SUCL_INLINE void move_messages(const Item& at, const message_args& j, message_board& board) {
  constexpr unsigned polls_between = 64;
  if (at.thread() == 0) board.ends = board.cut_short = 0;
  each_queue(at, j, board, [&](message_queue& q, int k) { open_queue(at, j, q, k); });
  at.barrier();
  for (unsigned n = 1;; ++n) {
    poll(at, j, board, n % polls_between == 0);
    if (board.ends) return;
    const found f = move_all(at, j, board);
    if (board.cut_short) return;
    if (f.over) break;
    each_queue(at, j, board, [&](message_queue& q, int) {
      if (q.now == message_queue::state::may_move) close_piece(at, j, q);
    });
    if (!f.any) back_off();
  }
  if (j.list && at.thread() == 0) store_relaxed(&j.control->read[at.group()], j.number);
}

}  // namespace sucl::kernels
