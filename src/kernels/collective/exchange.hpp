// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations in which every rank gives a part of its memory to each peer and moves or combines
/// what it gets: all collectives but those for which two_shot.hpp is faster.
#pragma once

#include "kernels/collective/fold.hpp"
#include "kernels/collective/signal.hpp"

namespace sucl::kernels {

// ---- LL: the data is there as soon as its flag is seen, and no work item waits for another

/// What a work item does of a message: every so many quads.
struct quads {
  std::uint64_t first, stride;
  template <class Item>
  explicit quads(const Item& at)
      : first(static_cast<std::uint64_t>(at.group() * at.threads() + at.thread()) * sizeof(quad)),
        stride(static_cast<std::uint64_t>(at.groups() * at.threads()) * sizeof(quad)) {}
};

/// The most that this rank exchanges with a peer.
template <class Amounts>
SUCL_INLINE std::uint64_t largest(const collective_args& j, const Amounts& amounts) {
  std::uint64_t most = 0;
  for (int k = 1; k < j.ranks; ++k) {
    const std::uint64_t bytes = amounts.bytes(peer(j, k));
    most = bytes > most ? bytes : most;
  }
  return most;
}

template <int Few, class Amounts, class Item>
SUCL_INLINE void push_ll(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m) {
  const auto flag = static_cast<std::uint32_t>(j.epoch);
  const quads mine(at);
  const std::uint64_t most = largest(j, j.send);
  for (std::uint64_t p = mine.first; p < most; p += mine.stride)
    each_few<Few>(j, [&](int k) SUCL_FLAT {
      const auto sent = [&](int i) SUCL_FLAT {
        return k + i < j.ranks && p < j.send.bytes(peer(j, k + i));
      };
      quad v[Few]{};
      SUCL_UNROLL
      for (int i = 0; i < Few; ++i)
        if (sent(i)) {
          const int q = peer(j, k + i);
          v[i] = load_quad(m.send + j.send.at(q) + p, j.send.bytes(q) - p);
        }
      SUCL_UNROLL
      for (int i = 0; i < Few; ++i)
        if (sent(i)) push_quad<ll_row>(buffer_to<Few>(j, peer(j, k + i)) + ll_at(j), p, v[i], flag);
    });
}

/// What this rank has for itself.
template <class Amounts, class Item>
SUCL_INLINE void copy_own(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m) {
  const quads mine(at);
  const std::byte* from = m.send + j.send.at(j.rank);
  std::byte* to = m.recv + j.recv.at(j.rank);
  if (to == from) return;
  for (std::uint64_t p = mine.first; p < j.own_bytes; p += mine.stride)
    store_quad(to + p, load_quad(from + p, j.own_bytes - p), j.own_bytes - p);
}

/// What peers have sent, of which the lines begin where those of `offset` bytes of data end.
template <int Few, class Amounts, class Item>
SUCL_INLINE void take_ll(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m,
                         std::uint64_t offset, bool& ok) {
  const auto flag = static_cast<std::uint32_t>(j.epoch);
  const quads mine(at);
  const std::uint64_t most = largest(j, j.recv);
  for (std::uint64_t p = mine.first; p < most && ok; p += mine.stride)
    each_few<Few>(j, [&](int k) SUCL_FLAT {
      const auto wanted = [&](int i) SUCL_FLAT {
        return k + i < j.ranks && p < j.recv.bytes(peer(j, k + i));
      };
      const auto lines = [&](int i)
                             SUCL_FLAT { return buffer_from<Few>(j, peer(j, k + i)) + ll_at(j); };
      quad v[Few]{};
      wait_for_quads<ll_row>(j, wanted, lines, offset + p, flag, v, ok);
      SUCL_UNROLL
      for (int i = 0; i < Few; ++i)
        if (ok && wanted(i)) {
          const int s = peer(j, k + i);
          store_quad(m.recv + j.recv.at(s) + p, v[i], j.recv.bytes(s) - p);
        }
    });
}

/// Combines what this rank has, `own`, with what arrives: `wait(source, wanted, got)` gets those of
/// `Few` sources that are wanted, `source(i)` being the rank.
template <int Few, class Folder, class Wait>
SUCL_INLINE quad fold_arriving(const collective_args& j, const Folder& folder, const quad& own,
                               const Wait& wait) {
  quad result[1];
  quad got[Few]{};
  folder(result, j.folded_ranks, j.divisor, [&](int s, int) SUCL_FLAT {
    if (s % Few == 0) {
      const auto source = [&](int i) SUCL_FLAT { return j.source < 0 ? s + i : j.source; };
      wait(
          source, [&](int i) SUCL_FLAT { return s + i < j.folded_ranks && source(i) != j.rank; },
          got);
      SUCL_UNROLL
      for (int i = 0; i < Few; ++i)
        if (source(i) == j.rank) got[i] = own;
    }
    if constexpr (Few == 1) {
      return got[0];
    } else {
      static_assert(Few == 4);
      quad q;
      SUCL_UNROLL
      for (int w = 0; w < 4; ++w)
        q.word[w] = value_list<std::uint32_t, Few>{{{got[0].word[w]}, {got[1].word[w]}},
                                                   {{got[2].word[w]}, {got[3].word[w]}}}
                        .at(s % Few);
      return q;
    }
  });
  return result[0];
}

/// By LL, the quad at `p` of what sources send.
template <int Few, class Folder>
SUCL_INLINE quad fold_ll(const collective_args& j, const Folder& folder, const quad& own,
                         std::uint64_t p, bool& ok) {
  return fold_arriving<Few>(
      j, folder, own, [&](const auto& source, const auto& wanted, quad(&got)[Few]) SUCL_FLAT {
        wait_for_quads<ll_row>(
            j, wanted, [&](int i) SUCL_FLAT { return buffer_from<Few>(j, source(i)) + ll_at(j); },
            p, static_cast<std::uint32_t>(j.epoch), got, ok);
      });
}

template <int Few, class Amounts, class Item, class Folder>
SUCL_INLINE void exchange_ll(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m,
                             const Folder& folder) {
  bool ok = begin<Few>(at, j);
  if (!ok) return;
  push_ll<Few>(at, j, m);
  if constexpr (Folder::combines) {
    const quads mine(at);
    const std::byte* own = m.send + j.send.at(j.rank);
    for (std::uint64_t p = mine.first; p < j.fold_bytes && ok; p += mine.stride) {
      const quad result = fold_ll<Few>(j, folder, load_quad(own + p, j.fold_bytes - p), p, ok);
      if (ok) store_quad(m.recv + j.recv.at(j.rank) + p, result, j.fold_bytes - p);
    }
  } else {
    copy_own(at, j, m);
    take_ll<Few>(at, j, m, 0, ok);
  }
}

// ---- in pieces, through staging memory

/// What one work group does of a message: pieces of the size of a slot, in turns with the others.
struct pieces {
  static constexpr std::uint64_t slots = 4;
  std::uint64_t slot;  ///< bytes
  std::uint64_t group, groups;

  template <class Item>
  pieces(const Item& at, const collective_args& j)
      : slot(j.slot),
        group(static_cast<unsigned>(at.group())),
        groups(static_cast<unsigned>(at.groups())) {}

  /// Of a message of so many bytes.
  const pieces& of(std::uint64_t) const { return *this; }
  std::uint64_t begin(std::uint64_t step) const { return (step * groups + group) * slot; }
  std::uint64_t length(std::uint64_t step, std::uint64_t bytes) const {
    const std::uint64_t b = begin(step);
    return b >= bytes ? 0 : bytes - b < slot ? bytes - b : slot;
  }
  /// Steps that a message of so many bytes takes.
  std::uint64_t steps(std::uint64_t bytes) const {
    const std::uint64_t all = (bytes + slot - 1) / slot;
    return all <= group ? 0 : (all - group + groups - 1) / groups;
  }
  /// Where the piece of a step lies in staging memory.
  std::uint64_t offset(std::uint64_t step) const { return (group * slots + step % slots) * slot; }
};

/// The same where messages are cut by their own sizes.
struct pieces_by_size : pieces {
  int ranks;

  template <class Item>
  pieces_by_size(const Item& at, const collective_args& j) : pieces(at, j), ranks(j.ranks) {}

  SUCL_INLINE pieces of(std::uint64_t bytes) const {
    const staged_cut cut = cut_for_staging(bytes, groups, slot, ranks);
    pieces p = *this;
    p.slot = cut.slot;
    p.groups = cut.groups;
    return p;
  }
};

template <class Amounts, class Item, class Pieces>
SUCL_INLINE bool push_piece(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m,
                            const Pieces& cuts, std::uint64_t step) {
  const auto has = [&](int q) SUCL_FLAT {
    return cuts.of(j.send.bytes(q)).length(step, j.send.bytes(q)) != 0;
  };
  if (step >= pieces::slots && !wait_peers(at, j, flag::freed, step + 1 - pieces::slots, has))
    return false;
  bool any = false;
  for (int k = 1; k < j.ranks; ++k) {
    const int q = peer(j, k);
    if (!has(q)) continue;
    any = true;
    const pieces cut = cuts.of(j.send.bytes(q));
    copy(at, buffer_to(j, q) + stage_at(j) + cut.offset(step),
         m.send + j.send.at(q) + cut.begin(step), cut.length(step, j.send.bytes(q)));
  }
  if (any) signal_peers(at, j, flag::ready, step + 1, has);
  return true;
}

template <class Amounts, class Item, class Pieces, class Folder>
SUCL_INLINE bool take_piece(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m,
                            const Pieces& cuts, const Folder& folder, std::uint64_t step) {
  const auto has = [&](int s) SUCL_FLAT {
    return cuts.of(j.recv.bytes(s)).length(step, j.recv.bytes(s)) != 0;
  };
  if (!wait_peers(at, j, flag::ready, step + 1, has)) return false;
  if constexpr (Folder::combines) {
    const pieces cut = cuts.of(j.fold_bytes);
    const std::uint64_t begin = cut.begin(step), stage = stage_at(j) + cut.offset(step);
    const std::byte* own = m.send + j.send.at(j.rank);
    std::byte* to = m.recv + j.recv.at(j.rank) + begin;
    fold_memory memory;
    for (int s = 0; s < j.folded_ranks; ++s)
      memory.add_source(s == j.rank ? own + begin : buffer_from(j, s) + stage);
    memory.add_target(to);
    fold(at, j, folder, cut.length(step, j.fold_bytes), memory);
  } else {
    for (int k = 1; k < j.ranks; ++k) {
      const int s = peer(j, k);
      const pieces cut = cuts.of(j.recv.bytes(s));
      copy(at, m.recv + j.recv.at(s) + cut.begin(step),
           buffer_from(j, s) + stage_at(j) + cut.offset(step), cut.length(step, j.recv.bytes(s)));
    }
  }
  // Only where the slot is used once more.
  signal_peers(at, j, flag::freed, step + 1, [&](int s) SUCL_FLAT {
    return cuts.of(j.recv.bytes(s)).length(step + pieces::slots, j.recv.bytes(s)) != 0;
  });
  return true;
}

template <class Pieces = pieces, class Amounts, class Item, class Folder>
SUCL_INLINE void exchange_staged(const Item& at, const exchange_args<Amounts>& j,
                                 const memory_pair& m, const Folder& folder) {
  const Pieces cuts(at, j);
  std::uint64_t most = cuts.of(j.fold_bytes).steps(j.fold_bytes);
  const auto reach = [&](std::uint64_t bytes) SUCL_FLAT {
    const std::uint64_t steps = cuts.of(bytes).steps(bytes);
    most = steps > most ? steps : most;
  };
  for (int q = 0; q < j.ranks; ++q) {
    reach(j.send.bytes(q));
    reach(j.recv.bytes(q));
  }
  const pieces own = cuts.of(j.own_bytes);
  // Half of the groups copy what the rank has for itself before they give to peers and half after,
  // so that the links and the device's own memory are at work at once.
  const bool own_first = at.group() % 2 != 0;
  const auto copy_own_piece = [&](std::uint64_t step) SUCL_FLAT {
    const std::byte* from = m.send + j.send.at(j.rank);
    std::byte* to = m.recv + j.recv.at(j.rank);
    if (to != from)
      copy(at, to + own.begin(step), from + own.begin(step), own.length(step, j.own_bytes));
  };
  // A piece is in transfer while the one before it is worked on.
  for (std::uint64_t step = 0; step <= most; ++step) {
    if constexpr (!Folder::combines)
      if (own_first && step < most) copy_own_piece(step);
    if (step < most && !push_piece(at, j, m, cuts, step)) return;
    if constexpr (!Folder::combines)
      if (!own_first && step < most) copy_own_piece(step);
    if (step > 0 && !take_piece(at, j, m, cuts, folder, step - 1)) return;
  }
}

// ---- directly, where all of the memory is mapped

enum class side : std::uint64_t { send, recv };

/// A peer may be in the next operation already, so there are two of each of these flags.
constexpr flag key_flag(const collective_args& j, side s) {
  return static_cast<flag>(static_cast<std::uint64_t>(flag::keys) + 2 * (j.epoch & 1) +
                           static_cast<std::uint64_t>(s));
}

/// Exchanges the addresses of this rank's memory and of the peers'; false if all must end.
/// `*all` says whether all of it is mapped, the same on every rank.
template <class Item>
SUCL_INLINE bool compare_keys(const Item& at, const collective_args& j, bool* all) {
  each_peer(at, j, [&](int q) SUCL_FLAT {
    store_relaxed(flag_of(buffer_to(j, q), key_flag(j, side::send), at.group()), j.send_key);
    store_relaxed(flag_of(buffer_to(j, q), key_flag(j, side::recv), at.group()), j.recv_key);
    store_release(flag_of(buffer_to(j, q), flag::entered, at.group()), step_of(j, 1));
  });
  const auto all_ranks = [](int) { return true; };
  if (!wait_peers(at, j, flag::entered, 1, all_ranks)) return false;
  bool mapped = j.send_key != 0 && j.recv_key != 0;
  each_peer(at, j, [&](int q) SUCL_FLAT {
    mapped = mapped &&
             load_relaxed(flag_of(buffer_from(j, q), key_flag(j, side::send), at.group())) != 0 &&
             load_relaxed(flag_of(buffer_from(j, q), key_flag(j, side::recv), at.group())) != 0;
  });
  *all = at.together(mapped);
  return true;
}

/// A peer's memory.
template <class Item>
SUCL_INLINE std::byte* mapped_memory(const Item& at, const collective_args& j, int q, side s) {
  const std::uint64_t k = load_relaxed(flag_of(buffer_from(j, q), key_flag(j, s), at.group()));
  return const_cast<std::byte*>(j.mapped[((k >> 48) - 1) * max_ranks + static_cast<unsigned>(q)]) +
         (k & 0xffffffffffffu);
}

/// Returns when no peer works on this rank's memory any more, and all that it gets is there.
template <class Item>
SUCL_INLINE void leave(const Item& at, const collective_args& j) {
  constexpr std::uint64_t last = max_steps - 1;
  const auto all_ranks = [](int) { return true; };
  signal_peers(at, j, flag::ready, last, all_ranks);
  wait_peers(at, j, flag::ready, last, all_ranks);
}

/// The part of `bytes` that a group works on.
struct share {
  std::uint64_t begin, length;
  template <class Item>
  share(const Item& at, std::uint64_t bytes) {
    constexpr std::uint64_t unit = 128;
    const auto groups = static_cast<std::uint64_t>(at.groups());
    const std::uint64_t each = ((bytes + groups - 1) / groups + unit - 1) / unit * unit;
    begin = each * static_cast<unsigned>(at.group());
    length = begin >= bytes ? 0 : bytes - begin < each ? bytes - begin : each;
  }
};

/// Pushes to where peers want it. Groups begin with different peers, so that links and this
/// device's own memory are at work at once.
template <class Amounts, class Item>
SUCL_INLINE void exchange_direct(const Item& at, const exchange_args<Amounts>& j,
                                 const memory_pair& m) {
  for (int k = 0; k < j.ranks; ++k) {
    const int q = (j.rank + k + at.group()) % j.ranks;
    const share mine(at, j.send.bytes(q));
    const std::byte* from = m.send + j.send.at(q) + mine.begin;
    std::byte* to =
        q == j.rank ? m.recv + j.recv.at(q) : mapped_memory(at, j, q, side::recv) + j.peer_at;
    if (to + mine.begin != from) copy(at, to + mine.begin, from, mine.length);
  }
  leave(at, j);
}

}  // namespace sucl::kernels
