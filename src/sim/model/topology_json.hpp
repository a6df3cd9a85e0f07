// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Machines from the topologies of other projects, as JSON.
#pragma once

#include "sim/model/machine.hpp"

#include <string>
#include <string_view>

namespace sucl::sim {

/// Reads a graph in one of these forms, which it knows by their keys:
/// - ForestColl's, as networkx writes it (`node_link_data`): "nodes" with an "id", "links" or
///   "edges" with "source", "target" and "capacity" in GB/s, one direction each. The nodes of
///   "compute_nodes" are ranks, else those whose id has the part "GPU".
/// - TE-CCL's, as `vars()` of a topology has it: "capacity", a matrix of chunks a second, in GB of
///   "chunk_size"; "alpha", a matrix of seconds; "switch_indices".
/// - InfraGraph's infrastructure: "devices", "instances", "edges", "links". Components whose choice
///   is "xpu" are ranks.
/// Ranks are numbered in the order of the file. A node that is no rank and joins only two others is
/// the link between them, and one that leads nowhere is left out. Throws errc::configuration.
machine machine_from_json(std::string_view text, const std::string& origin);

}  // namespace sucl::sim
