// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Allreduce, reduce and broadcast of large messages: every owner of a slice gets it from all that
/// have data, combines it and gives it to all that want it, so that each link moves the same. With
/// one source this is a scatter and an allgather, with one target a reduce_scatter and a gather
/// (Rabenseifner; van de Geijn).
#pragma once

#include "kernels/collective/pairs.hpp"

namespace sucl::kernels {

/// Which ranks have data, which want it, and which owns a slice.
struct parties {
  const collective_args& j;
  bool has(int rank) const { return j.source < 0 || j.source == rank; }
  bool wants(int rank) const { return j.target < 0 ? rank != j.source : rank == j.target; }
  bool rooted() const { return j.source >= 0 || j.target >= 0; }
  int owners() const { return slice_owners(j.ranks, rooted()); }
  /// The number of a rank's slice. A root that owns none comes last: owners().
  int slice_of(int rank) const {
    if (owners() == j.ranks) return rank;
    const int root = j.source >= 0 ? j.source : j.target;
    const int behind = rank - root - 1;
    return behind < 0 ? behind + j.ranks : behind;
  }
};

/// The slices of a message that is cut as a whole, as what goes to or comes from each rank.
struct whole_slices {
  parties roles;
  std::uint64_t slice, all;

  std::uint64_t at(int rank) const { return slice * static_cast<unsigned>(roles.slice_of(rank)); }
  std::uint64_t bytes(int rank) const {
    const std::uint64_t b = at(rank);
    return b >= all ? 0 : all - b < slice ? all - b : slice;
  }
  /// Where the combined slice lies in a buffer, which from or to a root has one slice only.
  std::uint64_t second() const { return roles.owners() == roles.j.ranks ? slice : 0; }
};

/// Rounds of a work group. In each, every owner has a slice of at most `slot` bytes.
struct rounds {
  static constexpr std::uint64_t slots = 2;  // of each of the two phases
  parties roles;
  std::uint64_t slot, group, groups, owners, bytes;

  template <class Item>
  rounds(const Item& at, const collective_args& j)
      : roles{j},
        slot(j.slot),
        group(static_cast<unsigned>(at.group())),
        groups(static_cast<unsigned>(at.groups())),
        owners(static_cast<unsigned>(roles.owners())),
        bytes(j.bytes) {}
  std::uint64_t count() const {
    const std::uint64_t all = (bytes + slot * owners - 1) / (slot * owners);
    return all <= group ? 0 : (all - group + groups - 1) / groups;
  }
  std::uint64_t begin(std::uint64_t round, int rank) const {
    return ((round * groups + group) * owners + static_cast<unsigned>(roles.slice_of(rank))) * slot;
  }
  std::uint64_t length(std::uint64_t round, int rank) const {
    const std::uint64_t b = begin(round, rank);
    if (static_cast<unsigned>(roles.slice_of(rank)) >= owners || b >= bytes) return 0;
    return bytes - b < slot ? bytes - b : slot;
  }
  std::uint64_t offset(std::uint64_t round, std::uint64_t phase) const {
    return ((group * 2 + phase) * slots + round % slots) * slot;
  }
};

/// First phase: this rank's data to whose slice it is.
template <class Item>
SUCL_INLINE bool push_slices(const Item& at, const collective_args& j, const memory_pair& m,
                             const rounds& cut, std::uint64_t round) {
  const parties roles{j};
  if (!roles.has(j.rank)) return true;
  const auto has = [&](int q) SUCL_FLAT { return cut.length(round, q) != 0; };
  if (round >= rounds::slots && !wait_peers(at, j, flag::freed, round + 1 - rounds::slots, has))
    return false;
  for (int k = 1; k < j.ranks; ++k) {
    const int q = peer(j, k);
    copy(at, buffer_to(j, q) + stage_at(j) + cut.offset(round, 0), m.send + cut.begin(round, q),
         cut.length(round, q));
  }
  signal_peers(at, j, flag::ready, round + 1, has);
  return true;
}

/// Combines this rank's slice, and second phase: to all that want it.
template <class Item, class Folder>
SUCL_INLINE bool fold_slice(const Item& at, const collective_args& j, const memory_pair& m,
                            const rounds& cut, const Folder& folder, std::uint64_t round) {
  const parties roles{j};
  const std::uint64_t length = cut.length(round, j.rank), begin = cut.begin(round, j.rank);
  if (length == 0) return true;
  const std::uint64_t first = stage_at(j) + cut.offset(round, 0);
  const std::uint64_t second = stage_at(j) + cut.offset(round, 1);
  const auto has = [&](int s) SUCL_FLAT { return roles.has(s); };
  const auto wants = [&](int q) SUCL_FLAT { return roles.wants(q); };
  if (!wait_peers(at, j, flag::ready, round + 1, has)) return false;
  if (round >= rounds::slots &&
      !wait_peers(at, j, flag::freed_later, round + 1 - rounds::slots, wants))
    return false;
  fold_memory memory;
  for (int s = 0; s < j.folded_ranks; ++s) {
    const int from = j.source < 0 ? s : j.source;
    memory.add_source(from == j.rank ? m.send + begin : buffer_from(j, from) + first);
  }
  for (int k = 1; k < j.ranks; ++k) {
    const int to = peer(j, k);
    if (roles.wants(to)) memory.add_target(buffer_to(j, to) + second);
  }
  if (roles.wants(j.rank)) memory.add_target(m.recv + begin);
  fold(at, j, folder, length, memory);
  signal_peers(at, j, flag::ready_later, round + 1, wants);
  each_peer(at, j, [&](int s) SUCL_FLAT {
    if (roles.has(s))
      store_release(flag_of(buffer_to(j, s), flag::freed, at.group()), step_of(j, round + 1));
  });
  return true;
}

/// The others' slices.
template <class Item>
SUCL_INLINE bool take_slices(const Item& at, const collective_args& j, const memory_pair& m,
                             const rounds& cut, std::uint64_t round) {
  if (!parties{j}.wants(j.rank)) return true;
  const auto has = [&](int s) SUCL_FLAT { return cut.length(round, s) != 0; };
  if (!wait_peers(at, j, flag::ready_later, round + 1, has)) return false;
  for (int k = 1; k < j.ranks; ++k) {
    const int s = peer(j, k);
    copy(at, m.recv + cut.begin(round, s), buffer_from(j, s) + stage_at(j) + cut.offset(round, 1),
         cut.length(round, s));
  }
  signal_peers(at, j, flag::freed_later, round + 1, has);
  return true;
}

template <class Item, class Folder>
SUCL_INLINE void two_shot_staged(const Item& at, const collective_args& j, const memory_pair& m,
                                 const Folder& folder) {
  const rounds cut(at, j);
  const std::uint64_t most = cut.count();
  for (std::uint64_t round = 0; round <= most; ++round) {
    if (round < most && !push_slices(at, j, m, cut, round)) return;
    if (round == 0) continue;
    if (!fold_slice(at, j, m, cut, folder, round - 1)) return;
    if (!take_slices(at, j, m, cut, round - 1)) return;
  }
}

/// By the LL protocol: a work item waits for no more than the 16 bytes that it works on. What is
/// written in place was sent before by the same work item.
template <class Item, class Folder>
SUCL_INLINE void two_shot_ll(const Item& at, const collective_args& j, const memory_pair& m,
                             const Folder& folder) {
  const parties roles{j};
  const whole_slices cut{roles, ll_slice(j.bytes, roles.owners()), j.bytes};
  const auto flag = static_cast<std::uint32_t>(j.epoch);
  const quads mine(at);
  bool ok = begin(at, j);
  if (!ok) return;
  if (roles.has(j.rank)) push_ll<at_once>(at, exchange_args<whole_slices>{j, cut, cut}, m);
  const std::uint64_t own = cut.bytes(j.rank), own_start = cut.at(j.rank);
  for (std::uint64_t p = mine.first; p < own && ok; p += mine.stride) {
    const bool has = roles.has(j.rank);
    const quad result = fold_ll<at_once>(
        j, folder, has ? load_quad(m.send + own_start + p, own - p) : quad{}, p, ok);
    if (!ok) return;
    for (int k = 1; k < j.ranks; ++k) {
      const int q = peer(j, k);
      if (roles.wants(q))
        push_quad<ll_row>(buffer_to(j, q) + ll_at(j), cut.second() + p, result, flag);
    }
    if (roles.wants(j.rank)) store_quad(m.recv + own_start + p, result, own - p);
  }
  if (roles.wants(j.rank))
    take_ll<at_once>(at, exchange_args<whole_slices>{j, cut, cut}, m, cut.second(), ok);
}

/// By the LL128 protocol: a warp waits for no more than the lines that it works on, so a slice is
/// on its way to the others while the rest of it still comes.
template <class Item, class Folder>
SUCL_INLINE void two_shot_ll128(const Item& at, const collective_args& j, const memory_pair& m,
                                const Folder& folder) {
  const parties roles{j};
  const whole_slices cut{roles, ll128_slice(j.bytes, roles.owners()), j.bytes};
  const std::uint64_t second = ll128_at(j) + cut.second() / ll128_data * ll128_line;
  bool ok = begin(at, j);
  if (j.await && !at.together(ok)) return;
  if (roles.has(j.rank)) push_ll128<at_once>(at, exchange_args<whole_slices>{j, cut, cut}, m);
  const std::uint64_t own = cut.bytes(j.rank), own_start = cut.at(j.rank);
  each_line(at, own, [&](std::uint64_t line) SUCL_FLAT {
    each_part(at, [&](int part) SUCL_FLAT {
      if (!ok) return;
      const ll128_part w(line, part, own);
      const bool has = roles.has(j.rank);
      const quad result = fold_ll128<at_once>(
          at, j, folder, has ? load_words(m.send + own_start + w.start, w.valid) : quad{}, line,
          part, ok);
      if (!ok) return;
      for (int k = 1; k < j.ranks; ++k) {
        const int q = peer(j, k);
        if (roles.wants(q)) push_part(at, j, buffer_to(j, q) + second, line, part, result);
      }
      if (roles.wants(j.rank)) store_words(m.recv + own_start + w.start, result, w.valid);
    });
  });
  if (roles.wants(j.rank))
    take_ll128<at_once>(at, exchange_args<whole_slices>{j, cut, cut}, m, second, ok);
}

/// A broadcast between the ranks' own memory: each takes its slice from the source and gives it to
/// the others, which it takes in rotated order, so that not all of them load the same link at once.
template <class Item>
SUCL_INLINE void two_shot_direct(const Item& at, const collective_args& j, const memory_pair& m) {
  constexpr std::uint64_t unit = 128;
  const parties roles{j};
  const auto owners = static_cast<std::uint64_t>(roles.owners());
  const whole_slices cut{roles, ((j.bytes + owners - 1) / owners + unit - 1) / unit * unit,
                         j.bytes};
  const share mine(at, cut.bytes(j.rank));
  const std::uint64_t begin = cut.at(j.rank) + mine.begin;
  const bool own = j.source == j.rank;
  fold_memory memory;
  memory.add_source((own ? m.send : mapped_memory(at, j, j.source, side::send)) + begin);
  for (int k = 1; k < j.ranks; ++k) {
    const int to = peer(j, k);
    if (to != j.source) memory.add_target(mapped_memory(at, j, to, side::recv) + begin);
  }
  if (!own) memory.add_target(m.recv + begin);
  fold(at, j, fold_nothing{}, mine.length, memory);
  leave(at, j);
}

/// Runs an operation whose protocol is known when the kernel is compiled: a kernel for all
/// protocols would need the registers of each. `MayBeDirect` is that of the arguments.
template <protocol How, bool MayBeDirect, class Amounts, class Item, class Folder>
SUCL_INLINE void run_protocol(const Item& at, const exchange_args<Amounts>& what,
                              const memory_pair& m, const Folder& folder) {
  exchange_args<Amounts> j = what;
  if (j.base) count_from_base(j);
  if constexpr (How == protocol::ll) {
    if (j.ranks == 2)
      exchange_ll<1>(at, j, m, folder);
    else
      exchange_ll<at_once>(at, j, m, folder);
  } else if constexpr (How == protocol::ll128) {
    if (j.ranks == 2)
      exchange_ll128<1>(at, j, m, folder);
    else
      exchange_ll128<at_once>(at, j, m, folder);
  } else if constexpr (How == protocol::ll_two_shot) {
    two_shot_ll(at, j, m, folder);
  } else if constexpr (How == protocol::ll128_two_shot) {
    two_shot_ll128(at, j, m, folder);
  } else {
    if (!at.together(begin(at, j))) return;
    if constexpr (MayBeDirect) {
      bool direct = false;
      if (!compare_keys(at, j, &direct)) return;
      if constexpr (How == protocol::two_shot) {
        if (direct) return two_shot_direct(at, j, m);
      } else {
        if (direct) return exchange_direct(at, j, m);
      }
    }
    if constexpr (How == protocol::two_shot)
      two_shot_staged(at, j, m, folder);
    else if constexpr (!std::is_same_v<Amounts, alike> && !Folder::combines)
      exchange_pairs(at, j, m, folder);
    else
      exchange_staged(at, j, m, folder);
  }
}

/// Calls `use` with the protocol and whether it may be direct, as constants. Only what is moved and
/// not listed may be.
template <class Folder, class Amounts, class Use>
auto with_protocol(const exchange_args<Amounts>& j, const Use& use) {
  using ll = std::integral_constant<protocol, protocol::ll>;
  using staged = std::integral_constant<protocol, protocol::staged>;
  using two_shot = std::integral_constant<protocol, protocol::two_shot>;
  using ll_two_shot = std::integral_constant<protocol, protocol::ll_two_shot>;
  using ll128 = std::integral_constant<protocol, protocol::ll128>;
  using ll128_two_shot = std::integral_constant<protocol, protocol::ll128_two_shot>;
  using no = std::false_type;
  using yes = std::true_type;
  if (j.how == protocol::ll) return use(ll{}, no{});
  if (j.how == protocol::ll128) return use(ll128{}, no{});
  if constexpr (std::is_same_v<Amounts, alike>) {
    if constexpr (!Folder::combines) {
      if (j.may_be_direct && j.how == protocol::two_shot) return use(two_shot{}, yes{});
      if (j.may_be_direct) return use(staged{}, yes{});
    }
    if (j.how == protocol::two_shot) return use(two_shot{}, no{});
    if (j.how == protocol::ll_two_shot) return use(ll_two_shot{}, no{});
    if (j.how == protocol::ll128_two_shot) return use(ll128_two_shot{}, no{});
  }
  return use(staged{}, no{});
}

}  // namespace sucl::kernels
