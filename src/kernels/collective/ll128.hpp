// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Exchanges by the LL128 protocol: lines of 128 bytes that eight neighbouring work items store at
/// once, of which only the last 8 bytes are a flag. The work items of a warp act together. Where
/// there are no warps, each work item stores a line alone, the flag last.
#pragma once

#include "kernels/collective/fold.hpp"
#include "kernels/collective/signal.hpp"

namespace sucl::kernels {

/// Calls `f(line)` for the lines of so many bytes that this work item has a part in; in a warp as
/// often for all.
template <class Item, class Function>
SUCL_INLINE void each_line(const Item& at, std::uint64_t bytes, const Function& f) {
  constexpr unsigned parts = Item::warp == 1 ? 1 : ll128_parts;
  constexpr unsigned lines = Item::warp / parts;  // of a warp
  const auto item = static_cast<std::uint64_t>(at.group()) * static_cast<unsigned>(at.threads()) +
                    static_cast<unsigned>(at.thread());
  const std::uint64_t stride =
      static_cast<std::uint64_t>(at.groups()) * static_cast<unsigned>(at.threads()) / parts;
  const std::uint64_t all = (bytes + ll128_data - 1) / ll128_data;
  for (std::uint64_t first = item / (parts * lines) * lines; first < all; first += stride)
    f(first + item / parts % lines);
}

/// Calls `f(part)` for the parts of a line that are this work item's.
template <class Item, class Function>
SUCL_INLINE void each_part(const Item& at, const Function& f) {
  if constexpr (Item::warp == 1) {
    for (int part = 0; part < ll128_parts; ++part) f(part);
  } else {
    f(at.thread() % ll128_parts);
  }
}

/// A part of a line: where in the data it is, and how much of that is data.
struct ll128_part {
  std::uint64_t start, valid;
  bool last;
  constexpr ll128_part(std::uint64_t line, int part, std::uint64_t bytes)
      : start(line * ll128_data + static_cast<unsigned>(part) * sizeof(quad)),
        valid(start >= bytes ? 0 : bytes - start),
        last(part == ll128_parts - 1) {
    const std::uint64_t most = last ? sizeof(quad) / 2 : sizeof(quad);
    valid = valid < most ? valid : most;
  }
};

template <class Item>
SUCL_INLINE void push_part(const Item& at, const collective_args& j, std::byte* lines,
                           std::uint64_t line, int part, quad v) {
  std::byte* to = lines + line * ll128_line + static_cast<unsigned>(part) * sizeof v;
  if (part == ll128_parts - 1) {
    v.word[2] = static_cast<std::uint32_t>(j.epoch);
    v.word[3] = static_cast<std::uint32_t>(j.epoch >> 32);
  }
  if constexpr (Item::warp > 1) {
    at.converge();
    store_volatile(to, v);
  } else if (part < ll128_parts - 1) {
    store_volatile(to, v);
  } else {
    auto* words = reinterpret_cast<std::uint64_t*>(to);
    store_relaxed(words, v.word[0] | std::uint64_t{v.word[1]} << 32);
    store_release(words + 1, j.epoch);
  }
}

/// Waits for the line; clears `ok`, for the whole warp, if all must end.
template <class Item>
SUCL_INLINE quad take_part(const Item& at, const collective_args& j, const std::byte* lines,
                           std::uint64_t line, int part, bool& ok) {
  const std::byte* from = lines + line * ll128_line;
  const std::byte* at_part = from + static_cast<unsigned>(part) * sizeof(quad);
  if constexpr (Item::warp == 1) {
    const auto* flag = reinterpret_cast<const std::uint64_t*>(from + ll128_data);
    ok = ok && wait_for(j, [&] { return load_acquire(flag) == j.epoch; });
    return load_volatile(at_part);
  } else {
    constexpr unsigned polls_between = 1024;
    for (unsigned n = 1;; ++n) {
      const quad v = load_volatile(at_part);
      const bool there =
          part < ll128_parts - 1 || (v.word[2] == static_cast<std::uint32_t>(j.epoch) &&
                                     v.word[3] == static_cast<std::uint32_t>(j.epoch >> 32));
      if (at.all_of_warp(there)) return v;
      if (n % polls_between != 0) continue;
      ok = at.all_of_warp(*static_cast<const volatile std::uint32_t*>(j.abort) == 0);
      if (!ok) return v;
    }
  }
}

/// As exchange_ll().
template <class Amounts, class Item, class Folder>
SUCL_INLINE void exchange_ll128(const Item& at, const exchange_args<Amounts>& j,
                                const memory_pair& m, const Folder& folder) {
  bool ok = begin(at, j);
  if (j.await && !at.together(ok)) return;
  for (int k = 1; k < j.ranks; ++k) {
    const int q = peer(j, k);
    const std::uint64_t bytes = j.send.bytes(q);
    const std::byte* from = m.send + j.send.at(q);
    std::byte* lines = buffer_to(j, q) + ll128_at(j);
    each_line(at, bytes, [&](std::uint64_t line) {
      each_part(at, [&](int part) {
        const ll128_part w(line, part, bytes);
        push_part(at, j, lines, line, part, load_words(from + w.start, w.valid));
      });
    });
  }
  const std::byte* own = m.send + j.send.at(j.rank);
  if constexpr (Folder::combines) {
    std::byte* to = m.recv + j.recv.at(j.rank);
    each_line(at, j.fold_bytes, [&](std::uint64_t line) {
      each_part(at, [&](int part) {
        if (!ok) return;
        const ll128_part w(line, part, j.fold_bytes);
        quad result[1];
        folder(result, j.folded_ranks, j.divisor, [&](int s, int) {
          return s == j.rank ? load_words(own + w.start, w.valid)
                             : take_part(at, j, buffer_from(j, s) + ll128_at(j), line, part, ok);
        });
        if (ok) store_words(to + w.start, result[0], w.valid);
      });
    });
  } else {
    for (int k = 0; k < j.ranks; ++k) {
      const int s = peer(j, k);
      const std::uint64_t bytes = s == j.rank ? j.own_bytes : j.recv.bytes(s);
      std::byte* to = m.recv + j.recv.at(s);
      if (s == j.rank && to == own) continue;
      each_line(at, bytes, [&](std::uint64_t line) {
        each_part(at, [&](int part) {
          if (!ok) return;
          const ll128_part w(line, part, bytes);
          const quad v = s == j.rank
                             ? load_words(own + w.start, w.valid)
                             : take_part(at, j, buffer_from(j, s) + ll128_at(j), line, part, ok);
          if (ok) store_words(to + w.start, v, w.valid);
        });
      });
    }
  }
}

}  // namespace sucl::kernels
