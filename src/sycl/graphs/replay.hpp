// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A recorded operation, and its execution by the host tasks of a graph.
#pragma once

#include "sycl/common/resolve.hpp"
#include "sycl/completion/host_task.hpp"

#ifndef SYCL_IMPLEMENTATION_ACPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace sucl::sycl_layer {

/// The order of the operations of one communicator in one graph. Edges of the graph keep it within
/// a replay; two replays that overlap break it.
class replay_order {
 public:
  /// The operation at this position begins. False: it is not its turn.
  bool begin(std::uint32_t position) {
    if (m_busy.exchange(true, std::memory_order_acquire)) return false;
    if (position == 0 || position == m_next) return true;
    m_busy.store(false, std::memory_order_release);
    return false;
  }
  void end(std::uint32_t position) {
    m_next = position + 1;
    m_busy.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> m_busy{false};
  std::uint32_t m_next = 0;
};

/// An operation of a graph, which host tasks of the graph share. It keeps neither its communicator,
/// which may end before the graph, nor its buffers: the accessors of host tasks do.
struct recorded_operation {
  recorded_operation(communicator_state& of, const resolved& call, const ::sycl::queue& on);
  recorded_operation(const recorded_operation&) = delete;
  recorded_operation& operator=(const recorded_operation&) = delete;

  std::weak_ptr<communicator_state> state;
  ::sycl::queue queue;  ///< whose handler gets failures where the program ends without asking
  sucl_operation record{};
  std::vector<sucl_operation> parts;
  std::vector<std::uint64_t> arrays;
  core::layouts layout;
  std::shared_ptr<replay_order> order;
  std::uint32_t position = 0;  ///< in that order
  bool is_recorded = false;
  std::uint64_t changes = 0;  ///< of the communicator, until when its memory is there
  core::ticket pending;       ///< between issue() and await()
};

/// One after another in one host task. None but the first uses buffers.
using steps = std::vector<std::shared_ptr<recorded_operation>>;

// What host tasks do. They throw the first failure, for SYCL to hand over, when they have done all.

/// Issues each and returns when it is done.
void run(const steps& all, const host_buffers& memory);
/// Issues it.
void issue(recorded_operation& o, const host_buffers& memory);
/// Returns when it is done; at once where issue() has thrown.
void await(recorded_operation& o);

}  // namespace sucl::sycl_layer
#endif
