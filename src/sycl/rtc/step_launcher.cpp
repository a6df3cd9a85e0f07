// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/rtc/step_launcher.hpp"

#include "sycl/common/state.hpp"

#include <utility>

namespace sucl::sycl_layer {
namespace {

using area = core::step_memory::area;

// The buffers of the operation that a step uses, as it uses them. It may not overwrite all of one.
std::vector<buffer_use> buffers_of(const std::vector<core::step_operand>& operands,
                                   const std::vector<buffer_use>& all) {
  std::vector<buffer_use> used;
  for (const core::step_operand& o : operands)
    for (buffer_use use : all) {
      if (o.where != (use.operand.is_send ? area::send : area::recv)) continue;
      use.writes = !o.sends;
      use.discards = false;
      use.operand = {o.part, o.sends, use.operand.start + o.start};
      used.push_back(std::move(use));
    }
  return used;
}

}  // namespace

std::shared_ptr<void> step_launcher::attach(std::shared_ptr<core::communicator> part) {
  return std::make_shared<communicator_state>(m_device.shared_from_this(), std::move(part));
}

void step_launcher::start(void* attached, const sucl_operation& record,
                          const std::vector<core::step_operand>& operands, void* target) {
  auto& state = *static_cast<communicator_state*>(attached);
  auto& t = *static_cast<launch_target*>(target);
  t.done = sycl_layer::start(state, t.queue, record, {}, buffers_of(operands, t.buffers), t.deps);
  t.deps = {t.done};
}

}  // namespace sucl::sycl_layer
