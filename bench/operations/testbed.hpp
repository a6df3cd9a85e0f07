// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The memory of one measurement, and the implementations that work on it.
#pragma once

#include "bench/baselines/bare_nccl.hpp"
#include "bench/baselines/baseline.hpp"
#include "bench/device/device_clock.hpp"
#include "bench/options.hpp"
#include "problem.hpp"

#include <sucl/communicator.hpp>

#include <functional>
#include <string>
#include <vector>

namespace sucl::bench {

/// One way to do it.
struct implementation {
  std::string name;           ///< sucl, mpi, host-accessor or nccl
  std::string form;           ///< blocking, event, persistent, replay or starts
  std::function<void()> run;  ///< returns when the result is there
  /// Starts one more, and returns when all that were started are done; null where it cannot be
  /// started without waiting.
  std::function<void()> start;
  std::function<void()> finish;
  /// Of the stream that start() puts all of the work on, if it does.
  device_clock* clock = nullptr;
  /// Called before its turns, on every rank; null: nothing is to do.
  std::function<void()> choose = nullptr;
  int operations = 1;  ///< that run() executes
};

/// Memory, and what works on it. Both are used by all implementations, so that they are measured on
/// the same pages.
struct testbed {
  std::function<void(const std::vector<std::byte>&)> write_send;
  std::function<void(const std::vector<std::byte>&)> write_recv;
  std::function<std::vector<std::byte>()> read_recv;
  std::vector<implementation> implementations;
};

/// What measurements need of the process.
struct bench_context {
  communicator comm;
  const baseline* raw = nullptr;  ///< null: no comparisons with MPI
  bare_nccl* bare = nullptr;      ///< null: no comparisons with bare NCCL
  const options* wanted = nullptr;
  device_clock* queue_clock = nullptr;  ///< of the communicator's queue
  device_clock* bare_clock = nullptr;   ///< of bare NCCL's stream
};

testbed make_usm_testbed(const bench_context& at, const problem& p, memory where);
testbed make_buffer_testbed(const bench_context& at, const problem& p);

}  // namespace sucl::bench
