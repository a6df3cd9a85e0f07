// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the verifier knows of a channel while it executes it.
#pragma once

#include "plan/verify/order.hpp"

#include <cstdint>
#include <vector>

namespace sucl::plan {

/// A transfer that a channel started and has not finished.
struct started {
  symbol value;                 ///< of a receive: what came, written when it is finished
  std::uint32_t published = 0;  ///< of a receive: by its sender; a number of held_snapshots
  bool done = false;
};

/// A channel of a rank in execution.
struct thread_state {
  std::int32_t rank = 0, channel = 0;
  const plan::channel* code = nullptr;
  std::uint32_t pc = 0;
  std::uint32_t finished = 0;    // transfers finished by fences
  std::uint32_t done_until = 0;  // transfers before this are matched
  bool queued = true;
  std::uint32_t fold_sources = 0;     // of the fold that ends before pc; 0: none does
  std::vector<std::uint32_t> posted;  // pc of each transfer, by ticket
  std::vector<started> open;          // from ticket `first_open` on
  std::uint32_t first_open = 0;
  memory::cursor hints[space_count];  // where it was last in each space

  started& transfer(std::uint32_t ticket) { return open[ticket - first_open]; }

  /// A new transfer by the instruction at pc; returns its ticket.
  std::uint32_t post(bool done) {
    posted.push_back(pc);
    open.push_back({{}, 0, done});
    return static_cast<std::uint32_t>(posted.size() - 1);
  }

  /// Frees finished transfers, now and then.
  void close_finished() {
    const std::uint32_t closed = finished - first_open;
    if (closed < open.size() && closed < 64) return;
    open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(closed));
    first_open = finished;
  }
};

}  // namespace sucl::plan
