// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/context/communicator_context.hpp"

#include <utility>

namespace sucl::core {
namespace {

scratch_pool pool_of(const device_services& device) {
  return device.allocate ? scratch_pool(device.memory_context, device.allocate, device.free)
                         : scratch_pool();
}

}  // namespace

communicator_context::communicator_context(std::shared_ptr<process_context> of,
                                           sucl_group* its_group, device_services on)
    : owner(std::move(of)), group(its_group), device(std::move(on)), scratch(pool_of(device)) {}

}  // namespace sucl::core
