// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The compiled plans of a communicator that its kernels execute.
#pragma once

#include "backends/composed/composed.hpp"
#include "backends/device_kernels/memory/peer_buffers.hpp"
#include "backends/device_kernels/plans/device_plan.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sucl::core {

/// A plan, with its memory once that is there.
struct stored_plan {
  device_plan code;
  sucl_type type = SUCL_TYPE_BYTES;
  sucl_op op = SUCL_OP_NONE;
  std::shared_ptr<const reached_memory> memory;
  std::shared_ptr<void> text;  ///< steps, operands and ends, in memory of the device
  std::shared_ptr<void> scratch;
  std::uint64_t runs = 0;
};

/// One thread at a time, but for allocate(), of which there is one at a time.
class plan_store {
 public:
  /// Both must outlive this object.
  plan_store(kernel_device& device, peer_buffers& memory) : m_device(device), m_memory(memory) {}

  /// Gives a plan its memory. Collective; throws on every rank.
  void allocate(stored_plan& plan, int size, const sucl_oob& oob);
  void add(std::uint64_t number, std::unique_ptr<stored_plan> plan);
  /// Forgets it. Kernels may still run it: its memory stays until another plan is made.
  void remove(std::uint64_t number);

  /// The next run of a plan, but for what is the same for all kernels. Throws errc::shut_down where
  /// it is not known.
  plan_launch next_run(const sucl_operation& o);

 private:
  void copy_in(stored_plan& plan) const;

  kernel_device& m_device;
  peer_buffers& m_memory;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<stored_plan>>> m_plans;
  std::mutex m_mutex;  ///< guards what follows
  std::vector<std::unique_ptr<stored_plan>> m_forgotten;
};

}  // namespace sucl::core
