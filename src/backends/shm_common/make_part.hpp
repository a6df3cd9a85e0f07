// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The making of a backend that works in memory that the ranks of a node share.
#pragma once

#include "backends/shm_common/placement.hpp"
#include "core/selection/backend_creation.hpp"

#include <sucl/error.hpp>

#include <string>
#include <utility>

namespace sucl::core {

/// Makes the transports between nodes, agrees on reads, and has `make(placement, reads)` make this
/// rank's part. Its table is null where that cannot be, and `*why` says why; also without memory,
/// because MPI supports everything that these backends do. Collective.
template <class Make>
backend_comm make_shared_part(backend_creation& c, std::string* why, const Make& make) {
  placement where{c.rank(),         c.size(), c.where.node_of, {}, c.where.oversubscribed(),
                  c.around.compared};
  *why = c.make_transports(where.transports);
  if (!why->empty()) return {};
  const bool reads = c.reads();
  try {
    return make(std::move(where), reads);
  } catch (const error& e) {
    *why = e.info().message;
    return {};
  }
}

}  // namespace sucl::core
