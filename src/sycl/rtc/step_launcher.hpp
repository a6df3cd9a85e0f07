// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Starts the steps of operations of two levels on queues.
#pragma once

#include "backends/hierarchical/backend.hpp"
#include "sycl/common/implementation.hpp"

#include <memory>
#include <vector>

namespace sucl::sycl_layer {

/// For a device with native streams. The communicators of the steps share the device, and so its
/// tracker: steps come one after the other, and behind the operations of the whole communicator.
class step_launcher final : public core::hierarchical_queue {
 public:
  explicit step_launcher(device& on) : m_device(on) {}

  std::shared_ptr<void> attach(std::shared_ptr<core::communicator> part) override;
  void start(void* attached, const sucl_operation& record,
             const std::vector<core::step_operand>& operands, void* target) override;

 private:
  device& m_device;
};

}  // namespace sucl::sycl_layer
