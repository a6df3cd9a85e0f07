// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// `sucl info --topology`: the ranks of a job, their devices, islands and nodes, and what is
/// between them.
#pragma once

#include <sucl/member.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sucl::tools {

struct topology_options {
  std::string device;  ///< "cpu", "gpu", "all" (each of them a rank), ""
  bool measure = false;
  bool as_json = false;
  std::string svg;  ///< file
};

/// What messages between two ranks go by.
struct topology_link {
  int from = 0, to = 0;
  std::string by;                          ///< backend
  std::string how;                         ///< as "shared memory"
  std::optional<double> seconds;           ///< of a short message, one way
  std::optional<double> bytes_per_second;  ///< of a long one, one way
};

/// An operation, the backend that executes it, and communicator.explain().
struct topology_operation {
  std::string what, by, explanation;
};

struct topology_report {
  std::string control_plane;
  int rank = 0;  ///< the first one of this process
  std::vector<member> ranks;
  /// What executes collectives of the ranks of each island; "": one rank.
  std::vector<std::string> within;
  bool every_pair = true;  ///< else `links` are those of one pair of each two islands
  std::vector<topology_link> links;
  std::vector<topology_operation> operations;
};

/// Message sizes that are measured.
inline constexpr std::size_t short_message = 8, long_message = std::size_t{4} << 20;

/// Which pairs of ranks stand for all: each pair of a few ranks, otherwise two of each island, and
/// one of each two islands, up to some hundred.
std::vector<std::pair<int, int>> topology_pairs(const std::vector<member>& ranks);
inline constexpr std::size_t max_ranks_in_pairs = 8;

/// How the ranks reach each other where `by` executes messages. `transport` takes over what `by`
/// sends to other nodes, if it is not itself.
std::string how_reached(const member& a, const member& b, const std::string& by,
                        const std::string& transport);

/// Starts the runtime, finds out, and measures if that is wanted. Collective over the job.
topology_report gather_topology(const topology_options& wanted, bool in_job);

/// Links between the same two islands (or in one), in the same way, as one.
struct link_class {
  std::string between;  ///< as "island 0 - island 1"
  int one = 0, other = 0;
  const topology_link* first = nullptr;
  std::size_t pairs = 0;
  std::string ranks;    ///< as "0-2 1-2"
  std::string seconds;  ///< as "0.4 us" or "0.4 to 1.2 us"; "" if it was not measured
  std::string rate;
};
std::vector<link_class> classes_of(const topology_report& report);

std::string topology_text(const topology_report& report);
nlohmann::ordered_json topology_json(const topology_report& report);
/// SVG. Throws invalid_argument where there are too many nodes.
std::string draw_topology(const topology_report& report);

/// The whole command; returns the exit code.
int show_topology(const topology_options& wanted);

}  // namespace sucl::tools
