// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/rtc/step_launcher.hpp"

#include "sycl/common/state.hpp"

#include <utility>

namespace sucl::sycl_layer {
namespace {

using area = core::step_memory::area;

// The buffers of the operation that a step uses, as it uses them. It may not overwrite all of one.
std::vector<buffer_use> buffers_of(const core::hierarchical_step& step,
                                   const std::vector<buffer_use>& all, std::uint64_t element_size) {
  std::vector<buffer_use> used;
  const auto add = [&](const core::step_memory& memory, bool is_send) {
    for (buffer_use use : all) {
      if (memory.where != (use.operand.is_send ? area::send : area::recv)) continue;
      use.writes = !is_send;
      use.discards = false;
      use.operand = {0, is_send, use.operand.start + memory.at * element_size};
      used.push_back(std::move(use));
    }
  };
  add(step.from, true);
  add(step.to, false);
  return used;
}

}  // namespace

std::shared_ptr<void> step_launcher::attach(std::shared_ptr<core::communicator> part) {
  return std::make_shared<communicator_state>(m_device.shared_from_this(), std::move(part));
}

void step_launcher::start(void* attached, const sucl_operation& record,
                          const core::hierarchical_step& step, void* target) {
  auto& state = *static_cast<communicator_state*>(attached);
  auto& t = *static_cast<launch_target*>(target);
  t.done = sycl_layer::start(state, t.queue, record, {},
                             buffers_of(step, t.buffers, record.element_size), t.deps);
  t.deps = {t.done};
}

}  // namespace sucl::sycl_layer
