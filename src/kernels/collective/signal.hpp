// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How work groups of different ranks synchronise. Work group g of a rank deals with work groups g
/// of its peers only, so nothing is assumed of how many of them a device runs at once.
///
/// `Item` describes a work item: thread(), threads(), group(), groups(), barrier() of the
/// work group, and together(ok): a barrier that returns whether all are ok.
#pragma once

#include "kernels/collective/args.hpp"
#include "kernels/collective/memory.hpp"

#include <type_traits>

namespace sucl::kernels {

/// The memory of an operation on this rank.
struct memory_pair {
  const std::byte* send;
  std::byte* recv;
};

template <class Byte>
SUCL_INLINE auto* flag_of(Byte* buffer, flag f, int group) {
  const auto index = static_cast<std::uint64_t>(f) * max_groups + static_cast<unsigned>(group);
  if constexpr (std::is_const_v<Byte>)
    return reinterpret_cast<const std::uint64_t*>(buffer) + index;
  else
    return reinterpret_cast<std::uint64_t*>(buffer) + index;
}

constexpr std::uint64_t step_of(const collective_args& j, std::uint64_t step) {
  return j.epoch * max_steps + step;
}

/// Polls until `there()`; false if all must end.
template <class Job, class There>
SUCL_INLINE bool wait_for(const Job& j, const There& there) {
  for (unsigned n = 1;; ++n) {
    if (there()) return true;
    if (n % polls_between_aborts == 0 && *static_cast<const volatile std::uint32_t*>(j.abort) != 0)
      return false;
    if (n % 64 == 0) back_off();
  }
}

SUCL_INLINE bool wait_for_flag(const collective_args& j, const std::uint64_t* at,
                               std::uint64_t wanted) {
  return wait_for(j, [&]() SUCL_FLAT { return load_acquire(at) >= wanted; });
}

/// Where a quad of data lies in LL lines: its second line `Row` bytes behind the first. With the
/// quads of a row of neighbouring work items together, each of their stores fills whole cache
/// lines.
template <std::uint64_t Row>
constexpr std::uint64_t ll_offset(std::uint64_t at) {
  return at / Row * 2 * Row + at % Row;
}
inline constexpr std::uint64_t no_row = sizeof(quad);

/// Stores a quad in two LL lines; `at` is where it is in the data.
template <std::uint64_t Row>
SUCL_INLINE void push_quad(std::byte* lines, std::uint64_t at, const quad& v, std::uint32_t flag) {
  std::byte* line = lines + ll_offset<Row>(at);
  store_ll(line, v.word[0], v.word[1], flag);
  store_ll(line + Row, v.word[2], v.word[3], flag);
}

/// Waits for it; clears `ok` if all must end.
template <std::uint64_t Row, class Job>
SUCL_INLINE quad wait_for_quad(const Job& j, const std::byte* lines, std::uint64_t at,
                               std::uint32_t flag, bool& ok) {
  const std::byte* line = lines + ll_offset<Row>(at);
  quad q{};
  ok = ok && wait_for(j, [&]() SUCL_FLAT {
         const bool first = load_ll(line, flag, q.word[0], q.word[1]);
         const bool second = load_ll(line + Row, flag, q.word[2], q.word[3]);
         return first && second;
       });
  return q;
}

/// The same for several at once, those that are wanted: `lines(i)` is where they are.
template <std::uint64_t Row, int Few, class Job, class Wanted, class Lines>
SUCL_INLINE void wait_for_quads(const Job& j, const Wanted& wanted, const Lines& lines,
                                std::uint64_t at, std::uint32_t flag, quad (&got)[Few], bool& ok) {
  quad first[Few]{}, second[Few]{};
  ok = ok && wait_for(j, [&]() SUCL_FLAT {
         SUCL_UNROLL
         for (int i = 0; i < Few; ++i)
           if (wanted(i)) {
             const std::byte* line = lines(i) + ll_offset<Row>(at);
             first[i] = load_volatile(line);
             second[i] = load_volatile(line + Row);
           }
         bool all = true;
         SUCL_UNROLL
         for (int i = 0; i < Few; ++i)
           all = all && (!wanted(i) || (first[i].word[1] == flag && first[i].word[3] == flag &&
                                        second[i].word[1] == flag && second[i].word[3] == flag));
         return all;
       });
  SUCL_UNROLL
  for (int i = 0; i < Few; ++i)
    got[i] = {first[i].word[0], first[i].word[2], second[i].word[0], second[i].word[2]};
}

/// The k-th peer after this rank.
SUCL_INLINE int peer(const collective_args& j, int k) {
  const int q = j.rank + k;
  return q >= j.ranks ? q - j.ranks : q;
}

/// How far behind this rank a peer is, from 1 on.
SUCL_INLINE int distance(const collective_args& j, int q) {
  return q > j.rank ? q - j.rank : q - j.rank + j.ranks;
}

/// The buffer to a peer and from it. `Few`: of how many peers a work item deals with at once; with
/// one there are no others, as everything that a kernel executes has to be loaded at first.
template <int Few = at_once>
SUCL_INLINE std::byte* buffer_to(const collective_args& j, int q) {
  if constexpr (Few == 1) return j.pair_out;
  std::byte* buffer = j.near_out.at(distance(j, q));
  if (j.ranks > max_near_ranks) buffer = j.with->out[q];
  return buffer;
}
template <int Few = at_once>
SUCL_INLINE const std::byte* buffer_from(const collective_args& j, int q) {
  if constexpr (Few == 1) return j.pair_in;
  const std::byte* buffer = j.near_in.at(distance(j, q));
  if (j.ranks > max_near_ranks) buffer = j.with->in[q];
  return buffer;
}

/// Calls `f(k)` for every so many of the peers after this rank, from k = 1 on.
template <int Few, class Function>
SUCL_INLINE void each_few(const collective_args& j, const Function& f) {
  if constexpr (Few == 1)
    f(1);
  else
    for (int k = 1; k < j.ranks; k += Few) f(k);
}

/// Calls `f(q)` for every peer, each in one work item of the group.
template <class Item, class Function>
SUCL_INLINE void each_peer(const Item& at, const collective_args& j, const Function& f) {
  for (int q = at.thread(); q < j.ranks; q += at.threads())
    if (q != j.rank) f(q);
}

/// The half of the LL lines, LL128 lines and staging memory that this operation uses.
SUCL_INLINE std::uint64_t ll_at(const collective_args& j) {
  return flags_bytes + (j.epoch & 1) * 2 * j.ll;
}
SUCL_INLINE std::uint64_t ll128_at(const collective_args& j) {
  return flags_bytes + 4 * j.ll + (j.epoch & 1) * j.ll128;
}
SUCL_INLINE std::uint64_t stage_at(const collective_args& j) {
  return flags_bytes + 4 * j.ll + 2 * j.ll128 + (j.epoch & 1) * j.stage;
}

/// Gives a captured kernel its epoch in this replay.
SUCL_INLINE void count_from_base(collective_args& j) {
  const std::uint64_t base = j.base->epoch;
  if (j.await == await_of_base)
    j.await = j.base->await;
  else if (j.await)
    j.await += base;
  j.epoch += base;
}

/// What has to be before this rank writes: peers are done with the half that it is going to use.
/// Peers signal that their last kernel has ended when they begin the next.
template <int Few = at_once, class Item>
SUCL_INLINE bool begin(const Item& at, const collective_args& j) {
  if (j.signals_start && at.group() == 0)
    each_peer(at, j, [&](int q) SUCL_FLAT {
      store_relaxed(flag_of(buffer_to<Few>(j, q), flag::begun, 0), j.epoch);
    });
  if (!j.await) return true;
  // What follows are stores, which no device does before it knows that it is to do them.
  bool ok = true;
  each_few<Few>(j, [&](int k) SUCL_FLAT {
    ok = ok && wait_for(j, [&]() SUCL_FLAT {
           std::uint64_t begun[Few];
           SUCL_UNROLL
           for (int i = 0; i < Few; ++i)
             begun[i] =
                 k + i < j.ranks
                     ? load_relaxed(flag_of(buffer_from<Few>(j, peer(j, k + i)), flag::begun, 0))
                     : j.await;
           bool all = true;
           SUCL_UNROLL
           for (int i = 0; i < Few; ++i) all = all && begun[i] >= j.await;
           return all;
         });
  });
  return ok;
}

/// Signals the wanted ranks that this group has done a step; after a barrier.
template <class Item, class Wanted>
SUCL_INLINE void signal_peers(const Item& at, const collective_args& j, flag f, std::uint64_t step,
                              const Wanted& wanted) {
  at.barrier();
  each_peer(at, j, [&](int q) SUCL_FLAT {
    if (wanted(q)) store_release(flag_of(buffer_to(j, q), f, at.group()), step_of(j, step));
  });
}

/// Waits for the wanted ranks' signals; false if all must end. A barrier.
template <class Item, class Wanted>
SUCL_INLINE bool wait_peers(const Item& at, const collective_args& j, flag f, std::uint64_t step,
                            const Wanted& wanted) {
  bool ok = true;
  each_peer(at, j, [&](int q) SUCL_FLAT {
    if (wanted(q))
      ok = wait_for_flag(j, flag_of(buffer_from(j, q), f, at.group()), step_of(j, step)) && ok;
  });
  return at.together(ok);
}

/// Copies with several loads in flight.
template <class Item>
SUCL_INLINE void copy(const Item& at, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  constexpr int batch = 4;
  constexpr std::uint64_t size = sizeof(quad);
  const std::uint64_t stride = static_cast<std::uint64_t>(at.threads()) * size;
  std::uint64_t p = static_cast<std::uint64_t>(at.thread()) * size;
  const bool aligned =
      ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % size) == 0;
  if (aligned) {
    const std::uint64_t whole = bytes / size * size;
    for (; p < whole; p += batch * stride) {
      quad q[batch];
      for (int i = 0; i < batch; ++i)
        if (const auto at_i = p + static_cast<unsigned>(i) * stride; at_i < whole)
          q[i] = load_whole(from + at_i);
      for (int i = 0; i < batch; ++i)
        if (const auto at_i = p + static_cast<unsigned>(i) * stride; at_i < whole)
          store_whole(to + at_i, q[i]);
    }
    p = whole + static_cast<std::uint64_t>(at.thread()) * size;
  }
  for (; p < bytes; p += stride) store_quad(to + p, load_quad(from + p, bytes - p), bytes - p);
}

/// Where the data of a reduction is and where its result goes. Looked up once: what an address
/// takes to find would otherwise be paid for every 16 bytes.
struct fold_memory {
  const std::byte* from[max_ranks];
  std::byte* to[max_ranks];
  int sources = 0, targets = 0;

  void add_source(const std::byte* p) { from[sources++] = p; }
  void add_target(std::byte* p) { to[targets++] = p; }
  bool aligned() const {
    std::uintptr_t all = 0;
    for (int s = 0; s < sources; ++s) all |= reinterpret_cast<std::uintptr_t>(from[s]);
    for (int t = 0; t < targets; ++t) all |= reinterpret_cast<std::uintptr_t>(to[t]);
    return all % sizeof(quad) == 0;
  }
};

/// Combines the quads below `whole` in batches, all of whose loads are in flight at once.
/// `source(s)` is where source s begins.
template <class Folder, class Source>
SUCL_INLINE void fold_batches(const Folder& folder, int sources, int divisor, std::uint64_t p,
                              std::uint64_t stride, std::uint64_t whole, const fold_memory& m,
                              const Source& source) {
  constexpr int batch = Folder::batch;
  for (; p < whole; p += batch * stride) {
    quad result[batch];
    folder(result, sources, divisor, [&](int s, int i) SUCL_FLAT {
      const std::uint64_t at_i = p + static_cast<unsigned>(i) * stride;
      return at_i < whole ? load_whole(source(s) + at_i) : quad{};
    });
    for (int t = 0; t < m.targets; ++t)
      for (int i = 0; i < batch; ++i)
        if (const auto at_i = p + static_cast<unsigned>(i) * stride; at_i < whole)
          store_whole(m.to[t] + at_i, result[i]);
  }
}

/// Combines `bytes` bytes of several sources and gives the result to all targets.
template <class Item, class Folder>
SUCL_INLINE void fold(const Item& at, const collective_args& j, const Folder& folder,
                      std::uint64_t bytes, const fold_memory& m) {
  const std::uint64_t stride = static_cast<std::uint64_t>(at.threads()) * sizeof(quad);
  std::uint64_t p = static_cast<std::uint64_t>(at.thread()) * sizeof(quad);
  if constexpr (Folder::batch > 1) {
    if (m.aligned()) {
      const std::uint64_t whole = bytes / sizeof(quad) * sizeof(quad);
      if (m.sources == 2) {  // addresses that stay in registers
        const std::byte *first = m.from[0], *second = m.from[1];
        fold_batches(folder, 2, j.divisor, p, stride, whole, m,
                     [=](int s) SUCL_FLAT { return s == 0 ? first : second; });
      } else {
        fold_batches(folder, m.sources, j.divisor, p, stride, whole, m,
                     [&](int s) SUCL_FLAT { return m.from[s]; });
      }
      p += whole;
    }
  }
  for (; p < bytes; p += stride) {
    quad result[1];
    folder(result, m.sources, j.divisor,
           [&](int s, int) SUCL_FLAT { return load_quad(m.from[s] + p, bytes - p); });
    for (int t = 0; t < m.targets; ++t) store_quad(m.to[t] + p, result[0], bytes - p);
  }
}

}  // namespace sucl::kernels
