// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the parts of a communicator have in common.
#pragma once

#include "core/context/device_services.hpp"
#include "core/control/process_context.hpp"
#include "core/exchange/core_services.hpp"
#include "core/exchange/topology.hpp"
#include "core/record/flight_recorder.hpp"
#include "core/selection/backend_set.hpp"
#include "core/staging/scratch_pool.hpp"
#include "core/staging/staged_operation.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace sucl::core {

/// A communicator as its parts see it: its job, its ranks, its device and its backends. Filled in
/// while the communicator is made. Afterwards only `backends`, `scratch` and `record` change; a
/// thread needs the mutex of the communicator's issue_queue to use them. Outlives all parts.
struct communicator_context {
  communicator_context(std::shared_ptr<process_context> of, sucl_group* its_group,
                       device_services on);

  std::shared_ptr<process_context> owner;
  sucl_group* group;
  device_services device;
  topology where;
  std::uint64_t id = 0;
  std::string label;  ///< for messages
  staging stages;
  scratch_pool scratch;
  backend_set backends;
  record_writer record;  ///< what is called, for when something fails

  int rank() const { return where.rank; }
  int size() const { return static_cast<int>(where.members.size()); }
  /// For exchanges of set-up, which match by their order.
  sucl_oob oob() const { return {owner->control(), group}; }
  /// Whether the watchdog supervises waiting ranks, so that none may block in a backend.
  bool watched() const { return owner->settings().watchdog.timeout.count() > 0; }
};

}  // namespace sucl::core
