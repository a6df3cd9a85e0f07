// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Exchanges by the LL128 protocol: lines of 128 bytes that eight neighbouring work items store at
/// once, of which only the last 8 bytes are a flag. The work items of a warp act together. Where
/// there are no warps, each work item stores a line alone, the flag last.
#pragma once

#include "kernels/collective/exchange.hpp"

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

/// Whether the warp of this line has lines of so many bytes; the same for the whole warp.
template <class Item>
SUCL_INLINE bool in_lines(std::uint64_t line, std::uint64_t bytes) {
  constexpr unsigned lines = Item::warp == 1 ? 1 : Item::warp / ll128_parts;
  return line / lines * lines * ll128_data < bytes;
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

/// Waits for the lines of several ranks at once, those that are wanted; clears `ok`, for the whole
/// warp, if all must end. `lines(i)` is where they are.
template <int Few, class Item, class Wanted, class Lines>
SUCL_INLINE void take_parts(const Item& at, const collective_args& j, const Wanted& wanted,
                            const Lines& lines, std::uint64_t line, int part, quad (&v)[Few],
                            bool& ok) {
  if constexpr (Item::warp == 1) {
    for (int i = 0; i < Few; ++i)
      if (wanted(i)) {
        const std::byte* from = lines(i) + line * ll128_line;
        const auto* flag = reinterpret_cast<const std::uint64_t*>(from + ll128_data);
        ok = ok && wait_for(j, [&]() SUCL_FLAT { return load_acquire(flag) == j.epoch; });
        v[i] = load_volatile(from + static_cast<unsigned>(part) * sizeof(quad));
      }
  } else {
    const std::uint64_t offset = line * ll128_line + static_cast<unsigned>(part) * sizeof(quad);
    for (unsigned n = 1;; ++n) {
      SUCL_UNROLL
      for (int i = 0; i < Few; ++i)
        if (wanted(i)) v[i] = load_volatile(lines(i) + offset);
      bool there = true;
      SUCL_UNROLL
      for (int i = 0; i < Few; ++i)
        there = there && (!wanted(i) || part < ll128_parts - 1 ||
                          (v[i].word[2] == static_cast<std::uint32_t>(j.epoch) &&
                           v[i].word[3] == static_cast<std::uint32_t>(j.epoch >> 32)));
      if (at.all_of_warp(there)) return;
      if (n % polls_between_aborts != 0) continue;
      ok = at.all_of_warp(*static_cast<const volatile std::uint32_t*>(j.abort) == 0);
      if (!ok) return;
    }
  }
}

template <int Few, class Amounts, class Item>
SUCL_INLINE void push_ll128(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m) {
  each_line(at, largest(j, j.send), [&](std::uint64_t line) SUCL_FLAT {
    each_part(at, [&](int part) SUCL_FLAT {
      each_few<Few>(j, [&](int k) SUCL_FLAT {
        const auto sent = [&](int i) SUCL_FLAT {
          return k + i < j.ranks && in_lines<Item>(line, j.send.bytes(peer(j, k + i)));
        };
        quad v[Few]{};
        SUCL_UNROLL
        for (int i = 0; i < Few; ++i)
          if (sent(i)) {
            const int q = peer(j, k + i);
            const ll128_part w(line, part, j.send.bytes(q));
            v[i] = load_words(m.send + j.send.at(q) + w.start, w.valid);
          }
        SUCL_UNROLL
        for (int i = 0; i < Few; ++i)
          if (sent(i))
            push_part(at, j, buffer_to<Few>(j, peer(j, k + i)) + ll128_at(j), line, part, v[i]);
      });
    });
  });
}

/// As take_ll(); the lines begin `offset` bytes into the buffers.
template <int Few, class Amounts, class Item>
SUCL_INLINE void take_ll128(const Item& at, const exchange_args<Amounts>& j, const memory_pair& m,
                            std::uint64_t offset, bool& ok) {
  each_line(at, largest(j, j.recv), [&](std::uint64_t line) SUCL_FLAT {
    each_part(at, [&](int part) SUCL_FLAT {
      each_few<Few>(j, [&](int k) SUCL_FLAT {
        if (!ok) return;
        const auto wanted = [&](int i) SUCL_FLAT {
          return k + i < j.ranks && in_lines<Item>(line, j.recv.bytes(peer(j, k + i)));
        };
        const auto lines = [&](int i)
                               SUCL_FLAT { return buffer_from<Few>(j, peer(j, k + i)) + offset; };
        quad v[Few]{};
        take_parts(at, j, wanted, lines, line, part, v, ok);
        SUCL_UNROLL
        for (int i = 0; i < Few; ++i)
          if (ok && wanted(i)) {
            const int s = peer(j, k + i);
            const ll128_part w(line, part, j.recv.bytes(s));
            store_words(m.recv + j.recv.at(s) + w.start, v[i], w.valid);
          }
      });
    });
  });
}

/// By LL128, a part of what sources send.
template <int Few, class Item, class Folder>
SUCL_INLINE quad fold_ll128(const Item& at, const collective_args& j, const Folder& folder,
                            const quad& own, std::uint64_t line, int part, bool& ok) {
  return fold_arriving<Few>(
      j, folder, own, [&](const auto& source, const auto& wanted, quad(&got)[Few]) SUCL_FLAT {
        if (ok)
          take_parts(
              at, j, wanted,
              [&](int i) SUCL_FLAT { return buffer_from<Few>(j, source(i)) + ll128_at(j); }, line,
              part, got, ok);
      });
}

/// As exchange_ll().
template <int Few, class Amounts, class Item, class Folder>
SUCL_INLINE void exchange_ll128(const Item& at, const exchange_args<Amounts>& j,
                                const memory_pair& m, const Folder& folder) {
  bool ok = begin<Few>(at, j);
  if (j.await && !at.together(ok)) return;
  push_ll128<Few>(at, j, m);
  if constexpr (Folder::combines) {
    const std::byte* own = m.send + j.send.at(j.rank);
    std::byte* to = m.recv + j.recv.at(j.rank);
    each_line(at, j.fold_bytes, [&](std::uint64_t line) SUCL_FLAT {
      each_part(at, [&](int part) SUCL_FLAT {
        if (!ok) return;
        const ll128_part w(line, part, j.fold_bytes);
        const quad result =
            fold_ll128<Few>(at, j, folder, load_words(own + w.start, w.valid), line, part, ok);
        if (ok) store_words(to + w.start, result, w.valid);
      });
    });
  } else {
    copy_own(at, j, m);
    take_ll128<Few>(at, j, m, ll128_at(j), ok);
  }
}

}  // namespace sucl::kernels
