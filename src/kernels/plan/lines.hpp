// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Messages of plans by the LL128 protocol. The slot of one has its lines, each work group's runs
/// of bytes in rows of their own, so that both ends find them by themselves.
#pragma once

#include "kernels/collective/ll128.hpp"
#include "kernels/plan/args.hpp"

namespace sucl::kernels {

/// Calls `f(begin, length, number)` for each run of bytes of this group in a range of a space;
/// `begin` is counted from that of the range, and `number` says which it is of all groups' runs.
template <class Item, class Function>
SUCL_INLINE void each_stripe(const Item& at, const plan_args& j, std::uint64_t offset,
                             std::uint64_t bytes, const Function& f) {
  const std::uint64_t low = j.stripe * static_cast<unsigned>(at.group());
  const std::uint64_t high = low + j.stripe < j.period ? low + j.stripe : j.period;
  const std::uint64_t end = offset + bytes;
  auto number = static_cast<std::uint64_t>(at.group());
  for (std::uint64_t base = offset / j.period * j.period; base < end; base += j.period) {
    const std::uint64_t from = base + low > offset ? base + low : offset;
    const std::uint64_t to = base + high < end ? base + high : end;
    if (from < to) f(from - offset, to - from, number);
    number += static_cast<unsigned>(at.groups());
  }
}

SUCL_INLINE std::byte* address_of(const plan_args& j, const memory_pair& m, const plan_operand& o) {
  switch (o.where) {
    case plan_space::send: return const_cast<std::byte*>(m.send) + o.offset;
    case plan_space::recv: return m.recv + o.offset;
    case plan_space::scratch: return j.scratch + o.offset;
    default: return j.memory[j.rank] + j.slots + o.offset;
  }
}

/// The first line of a run in which this work item has a part.
template <class Item>
SUCL_INLINE std::uint64_t first_line(const Item& at) {
  constexpr unsigned parts = Item::warp == 1 ? 1 : ll128_parts;
  return static_cast<unsigned>(at.thread()) / parts;
}

/// Calls `f(line, part)` for the parts of lines of so many bytes that this work item has among
/// those of its group; in a warp as often for all, so that whole rows are gone through.
template <class Item, class Function>
SUCL_INLINE void each_line_part(const Item& at, std::uint64_t bytes, const Function& f) {
  constexpr unsigned parts = Item::warp == 1 ? 1 : ll128_parts;
  const std::uint64_t stride = static_cast<unsigned>(at.threads()) / parts;
  for (std::uint64_t line = first_line(at); in_lines<Item>(line, bytes); line += stride)
    each_part(at, [&](int part) SUCL_FLAT { f(line, part); });
}

template <class Item>
SUCL_INLINE void push_lines(const Item& at, const plan_args& j, const plan_step& s,
                            const std::byte* from, std::byte* slot) {
  each_stripe(at, j, s.at.offset, s.bytes,
              [&](std::uint64_t begin, std::uint64_t length, std::uint64_t number) SUCL_FLAT {
                std::byte* lines = slot + lines_of_run(begin, number);
                each_line_part(at, length, [&](std::uint64_t line, int part) SUCL_FLAT {
                  const ll128_part w(line, part, length);
                  push_part(at, j, lines, line, part, load_words(from + begin + w.start, w.valid));
                });
              });
}

/// Whether the first lines are there that this work item takes: then the rest is in flight.
template <class Item>
SUCL_INLINE bool have_begun(const Item& at, const plan_args& j, const plan_step& s,
                            const std::byte* slot) {
  bool there = true;
  each_stripe(
      at, j, s.at.offset, s.bytes,
      [&](std::uint64_t begin, std::uint64_t length, std::uint64_t number) SUCL_FLAT {
        const std::uint64_t line = first_line(at);
        if (line * ll128_data >= length) return;
        const std::byte* flag = slot + lines_of_run(begin, number) + line * ll128_line + ll128_data;
        there = there && load_relaxed(reinterpret_cast<const std::uint64_t*>(flag)) == j.epoch;
      });
  return there;
}

/// Waits for a part of a line; clears `ok`, for the whole warp, if all must end.
template <class Item>
SUCL_INLINE quad take_part(const Item& at, const plan_args& j, const std::byte* lines,
                           std::uint64_t line, int part, bool& ok) {
  quad v[1]{};
  if (ok)
    take_parts(
        at, j, [](int) SUCL_FLAT { return true; }, [&](int) SUCL_FLAT { return lines; }, line, part,
        v, ok);
  return v[0];
}

/// False if all must end.
template <class Item>
SUCL_INLINE bool take_lines(const Item& at, const plan_args& j, const plan_step& s,
                            const std::byte* slot, std::byte* to) {
  bool ok = true;
  each_stripe(at, j, s.at.offset, s.bytes,
              [&](std::uint64_t begin, std::uint64_t length, std::uint64_t number) SUCL_FLAT {
                const std::byte* lines = slot + lines_of_run(begin, number);
                each_line_part(at, length, [&](std::uint64_t line, int part) SUCL_FLAT {
                  const quad v = take_part(at, j, lines, line, part, ok);
                  const ll128_part w(line, part, length);
                  if (ok) store_words(to + begin + w.start, v, w.valid);
                });
              });
  return ok;
}

/// A fold some of whose sources are messages in lines, each as long as the result. False if all
/// must end.
template <class Item, class Folder>
SUCL_INLINE bool fold_lines(const Item& at, const plan_args& j, const memory_pair& m,
                            const Folder& folder, const plan_step& s) {
  std::byte* to = address_of(j, m, s.at);
  bool ok = true;
  each_stripe(at, j, s.at.offset, s.bytes,
              [&](std::uint64_t begin, std::uint64_t length, std::uint64_t number) SUCL_FLAT {
                each_line_part(at, length, [&](std::uint64_t line, int part) SUCL_FLAT {
                  const ll128_part w(line, part, length);
                  quad result[1];
                  folder(result, static_cast<int>(s.sources), j.divisor, [&](int i, int) SUCL_FLAT {
                    const plan_operand o = j.operands[s.first + static_cast<unsigned>(i)];
                    const std::byte* from = address_of(j, m, o);
                    if (o.where != plan_space::lines)
                      return load_words(from + begin + w.start, w.valid);
                    return take_part(at, j, from + lines_of_run(begin, number), line, part, ok);
                  });
                  if (ok) store_words(to + begin + w.start, result[0], w.valid);
                });
              });
  return ok;
}

}  // namespace sucl::kernels
