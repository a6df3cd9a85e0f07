// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The ranks of a communicator: their processes, hosts and devices.
#pragma once

#include "core/exchange/core_services.hpp"

#include <sucl/member.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// The record of a rank when a communicator is created.
struct self_description {
  std::string platform = "host";
  std::string implementation;
  std::string sycl_backend;
  std::string device;
  bool device_memory_on_host = true;
  std::string declared_node;  ///< that the configuration puts this process on; empty: none
  std::string declared_island;
  std::uint64_t job = 0;  ///< job::key()
  int world_rank = 0;     ///< rank of the process in the job
  std::string settings;   ///< those that must be the same on every rank, one a line
  /// Why this rank cannot take part: then no rank makes the communicator.
  std::optional<error_info> failure;
};

/// The ranks of a communicator.
struct topology {
  std::vector<member> members;
  std::vector<int> node_of;  ///< one entry a rank
  int rank = 0;
  int nodes = 1;
  std::vector<int> island_of;  ///< one entry a rank
  int islands = 1;
  int local_size = 1;
  bool device_memory_everywhere_on_host = true;
  std::vector<int> world_ranks;  ///< of the processes in the job, one entry a rank
  int processors_per_rank = 0;   ///< of the machine with the fewest
  /// On some machine the ranks have fewer processors than they are.
  bool oversubscribed() const { return processors_per_rank == 0; }

  /// Some node has several islands: what is between them goes through memory of the host.
  bool mixed() const { return islands > nodes; }
};

/// Exchanges descriptions. Ranks of one host and process namespace form a node, but for those that
/// the configuration puts on different ones. Ranks of a node form an island if one backend reaches
/// the memory of their devices: all whose memory the host reads, and those of one platform.
/// Collective; the same error on every rank if configurations, versions of SuCL or numbers in
/// memory differ.
topology discover(const sucl_oob& oob, int rank, int size, const self_description& self);

/// The node on which a configuration of these sizes (base::config::nodes) puts a rank of the job;
/// empty if it says nothing.
std::string declared_node(const std::vector<std::uint64_t>& sizes, int world_rank);

/// The same of islands (base::config::islands).
std::string declared_island(const std::vector<std::string>& names, int world_rank);

/// How this process has numbers in memory, as "little-endian, long of 8 bytes".
std::string number_representation();

/// Compares settings that must be the same on every rank, "key = value", one a line. Collective;
/// errc::configuration on every rank, with the ranks, the key and both values, if they are not.
void compare_settings(const sucl_oob& oob, int size, const std::string& mine);

/// Exchanges one text of each rank. Collective.
std::vector<std::string> exchange(const sucl_oob& oob, int size, const std::string& mine);

}  // namespace sucl::core
