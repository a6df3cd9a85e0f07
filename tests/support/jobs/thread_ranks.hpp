// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranks as threads of one process: a control plane for tests that need no MPI.
#pragma once

#include "core/exchange/core_services.hpp"

#include <functional>

namespace sucl::testing {

/// Runs `body(info)` on one thread for each of `size` ranks and waits for all. `info` describes a
/// communicator of these ranks on one node, with an out-of-band channel of its own. A test that
/// fails on one rank must not leave the others waiting: check, do not return early.
void run_ranks(int size, const std::function<void(const sucl_comm_info& info)>& body);

/// Runs `body(control, rank)` on one thread for each rank. `control` is a whole control plane, for
/// core::process::start; only these threads may ask it for the world.
void run_processes(int size, const std::function<void(const sucl_bootstrap&, int rank)>& body);

}  // namespace sucl::testing
