// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The interpreter of plans. Each work group goes through all channels of its rank, on its own
/// bytes. It leaves a channel that waits for a message and goes on with the next, so that nothing
/// is assumed of how many groups a device runs at once, as long as it starts them in order.
#pragma once

#include "kernels/collective/fold.hpp"
#include "kernels/collective/signal.hpp"
#include "kernels/plan/args.hpp"
#include "kernels/plan/lines.hpp"

namespace sucl::kernels {

/// This group's flag of a message, in its receiver's memory.
template <class Item>
SUCL_INLINE std::uint64_t* flag_of(const Item& at, std::byte* memory, const plan_step& s) {
  return reinterpret_cast<std::uint64_t*>(memory) + s.flag * static_cast<unsigned>(at.groups()) +
         static_cast<unsigned>(at.group());
}

/// What became of a step.
enum class plan_outcome { done, waits, ends };

template <class Item, class Folder>
SUCL_INLINE plan_outcome fold_step(const Item& at, const plan_args& j, const memory_pair& m,
                                   const Folder& folder, const plan_step& s) {
  at.barrier();
  if (s.how == plan_protocol::ll128)
    return at.together(fold_lines(at, j, m, folder, s)) ? plan_outcome::done : plan_outcome::ends;
  std::byte* to = address_of(j, m, s.at);
  if (s.sources == 1) {
    const std::byte* from = address_of(j, m, j.operands[s.first]);
    if (from == to) return plan_outcome::done;
    each_stripe(at, j, s.at.offset, s.bytes,
                [&](std::uint64_t begin, std::uint64_t length, std::uint64_t)
                    SUCL_FLAT { copy(at, to + begin, from + begin, length); });
    return plan_outcome::done;
  }
  if constexpr (Folder::combines)
    each_stripe(at, j, s.at.offset, s.bytes,
                [&](std::uint64_t begin, std::uint64_t length, std::uint64_t) SUCL_FLAT {
                  fold_memory memory;
                  for (std::uint32_t i = 0; i < s.sources; ++i)
                    memory.add_source(address_of(j, m, j.operands[s.first + i]) + begin);
                  memory.add_target(to + begin);
                  fold(at, j, folder, length, memory);
                });
  return plan_outcome::done;
}

template <class Item>
SUCL_INLINE void send_step(const Item& at, const plan_args& j, const memory_pair& m,
                           const plan_step& s) {
  at.barrier();
  const std::byte* from = address_of(j, m, s.at);
  std::byte* memory = j.memory[s.peer];
  std::byte* to = memory + j.slots + s.slot;
  if (s.how == plan_protocol::ll128) return push_lines(at, j, s, from, to);
  if (s.how == plan_protocol::bulk) {
    each_stripe(at, j, s.at.offset, s.bytes,
                [&](std::uint64_t begin, std::uint64_t length, std::uint64_t)
                    SUCL_FLAT { copy(at, to + begin, from + begin, length); });
    at.barrier();
    if (at.thread() == 0) store_release(flag_of(at, memory, s), step_of(j, s.value));
    return;
  }
  const auto flag = static_cast<std::uint32_t>(j.epoch);
  const std::uint64_t stride = static_cast<std::uint64_t>(at.threads()) * sizeof(quad);
  each_stripe(at, j, s.at.offset, s.bytes,
              [&](std::uint64_t begin, std::uint64_t length, std::uint64_t) SUCL_FLAT {
                for (std::uint64_t p = static_cast<std::uint64_t>(at.thread()) * sizeof(quad);
                     p < length; p += stride)
                  push_quad<ll_row>(to, begin + p, load_quad(from + begin + p, length - p), flag);
              });
}

/// Whether the first lines are there that this work item takes: then the rest is in flight.
template <class Item>
SUCL_INLINE bool has_begun(const Item& at, const plan_args& j, const plan_step& s,
                           const std::byte* lines) {
  const auto flag = static_cast<std::uint32_t>(j.epoch);
  const std::uint64_t mine = static_cast<std::uint64_t>(at.thread()) * sizeof(quad);
  bool there = true;
  each_stripe(at, j, s.at.offset, s.bytes,
              [&](std::uint64_t begin, std::uint64_t length, std::uint64_t) SUCL_FLAT {
                std::uint32_t a = 0, b = 0;
                if (mine < length)
                  there = there && load_ll(lines + ll_offset<ll_row>(begin + mine), flag, a, b);
              });
  return there;
}

template <class Item>
SUCL_INLINE plan_outcome take_ll(const Item& at, const plan_args& j, const plan_step& s,
                                 const std::byte* lines, std::byte* to) {
  if (!at.together(has_begun(at, j, s, lines))) return plan_outcome::waits;
  const auto flag = static_cast<std::uint32_t>(j.epoch);
  const std::uint64_t stride = static_cast<std::uint64_t>(at.threads()) * sizeof(quad);
  bool ok = true;
  each_stripe(at, j, s.at.offset, s.bytes,
              [&](std::uint64_t begin, std::uint64_t length, std::uint64_t) SUCL_FLAT {
                for (std::uint64_t p = static_cast<std::uint64_t>(at.thread()) * sizeof(quad);
                     p < length && ok; p += stride) {
                  const quad v = wait_for_quad<ll_row>(j, lines, begin + p, flag, ok);
                  if (ok) store_quad(to + begin + p, v, length - p);
                }
              });
  return at.together(ok) ? plan_outcome::done : plan_outcome::ends;
}

template <class Item>
SUCL_INLINE plan_outcome take_step(const Item& at, const plan_args& j, const memory_pair& m,
                                   const plan_step& s) {
  std::byte* memory = j.memory[j.rank];
  const std::byte* from = memory + j.slots + s.slot;
  std::byte* to = address_of(j, m, s.at);
  if (s.how == plan_protocol::ll) return take_ll(at, j, s, from, to);
  if (s.how == plan_protocol::ll128) {
    if (!at.together(have_begun(at, j, s, from))) return plan_outcome::waits;
    if (s.stays_in_slot) return plan_outcome::done;
    return at.together(take_lines(at, j, s, from, to)) ? plan_outcome::done : plan_outcome::ends;
  }
  bool there = true;
  if (at.thread() == 0) there = load_acquire(flag_of(at, memory, s)) >= step_of(j, s.value);
  if (!at.together(there)) return plan_outcome::waits;
  if (!s.stays_in_slot)
    each_stripe(at, j, s.at.offset, s.bytes,
                [&](std::uint64_t begin, std::uint64_t length, std::uint64_t)
                    SUCL_FLAT { copy(at, to + begin, from + begin, length); });
  return plan_outcome::done;
}

/// Executes a wave of this rank's part of a plan, once.
template <class Item, class Folder>
SUCL_INLINE void run_plan(const Item& at, const plan_args& j, const memory_pair& m,
                          const Folder& folder) {
  constexpr unsigned rounds_between = 256;
  if (!j.continues && !at.together(begin(at, j))) return;
  std::uint32_t next[max_plan_channels];
  const std::uint32_t* ends = j.bounds + j.channels;
  for (int c = 0; c < j.channels; ++c) next[c] = j.bounds[c];
  bool over = false;
  for (unsigned round = 1; !over; ++round) {
    over = true;
    bool moved = false;
    for (int c = 0; c < j.channels; ++c) {
      while (next[c] < ends[c]) {
        const plan_step s = j.steps[next[c]];
        plan_outcome outcome = plan_outcome::done;
        if (s.what == plan_action::fold)
          outcome = fold_step(at, j, m, folder, s);
        else if (s.what == plan_action::send)
          send_step(at, j, m, s);
        else if (s.what == plan_action::take)
          outcome = take_step(at, j, m, s);
        else if (next[s.peer] < s.value)
          outcome = plan_outcome::waits;
        if (outcome == plan_outcome::ends) return;
        if (outcome == plan_outcome::waits) break;
        ++next[c];
        moved = true;
      }
      over = over && next[c] == ends[c];
    }
    if (over || moved) continue;
    back_off();
    if (round % rounds_between != 0) continue;
    const bool ends = at.thread() == 0 && *static_cast<const volatile std::uint32_t*>(j.abort) != 0;
    if (!at.together(!ends)) return;
  }
}

}  // namespace sucl::kernels
