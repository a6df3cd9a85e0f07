// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Descriptions of machines: what a simulation and a search need to know of one, as plain data
/// that is read from TOML. docs/design/plans/simulation.md says what each figure means in time.
///
/// Units: seconds, bytes, and bytes per second (files: microseconds and GB/s of 1e9 bytes).
/// A bandwidth of 0 is no limit. Ranks are numbered so that neighbours are near: the innermost
/// groups are consecutive runs of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::sim {

/// A transport for messages between the groups of a level, as in "mpi" or "ipc".
struct transport {
  std::string name;
  double latency = 0;    ///< from the start of a message to its first byte at the other side
  double overhead = 0;   ///< work of a rank for a message that it starts; one after another
  double bandwidth = 0;  ///< what one rank can send, and at once get, by this transport

  friend bool operator==(const transport&, const transport&) = default;
};

/// A level of the machine. A *group* of the level has `groups` *members*, each a group of the next
/// level (of the innermost level: a rank). A message belongs to the outermost level at which its
/// two ranks are in different members.
struct level {
  std::string name;                   ///< of what connects the members, as in "network"
  std::int32_t groups = 1;            ///< members of one group
  std::int32_t ports = 1;             ///< NICs of one member
  std::vector<std::int32_t> binding;  ///< the port that each rank of a member uses
  double port_bandwidth = 0;          ///< of each port, in each direction
  double port_both = 0;               ///< of each port, both directions together
  double link_bandwidth = 0;          ///< between each two members that are wired, each direction
  double fabric_bandwidth = 0;        ///< of all messages within one group of the level together
  std::vector<transport> transports;  ///< never empty; the first moves what is via "any"

  friend bool operator==(const level&, const level&) = default;
};

/// What a rank's own memory and kernels do.
struct memory {
  double bandwidth = 0;        ///< reads and writes together; a copy of n bytes moves 2 n
  std::int32_t shared_by = 1;  ///< consecutive ranks that share this bandwidth
  double copy_rate = 0;        ///< bytes per second that one rank copies
  double reduce_rate = 0;      ///< bytes per second of one input that one rank reduces
  double launch_latency = 0;   ///< from the submission of a copy or reduce to its start
  double launch_overhead = 0;  ///< work of the rank to submit one; one after another

  friend bool operator==(const memory&, const memory&) = default;
};

/// A wire between two nodes of a graph, in one direction. Nodes are the ranks, and after them the
/// switches.
struct link {
  std::int32_t from = 0;
  std::int32_t to = 0;
  double bandwidth = 0;  ///< always a limit
  double latency = 0;    ///< until the first byte is at the other end

  friend bool operator==(const link&, const link&) = default;
};

/// The wires of a machine that is described by them instead of by groups. Messages go through
/// switches, and through no rank: what is not wired so is passed on by the plan.
struct graph {
  std::vector<std::string> switches;  ///< names; switch i is node ranks + i
  std::vector<link> links;

  bool empty() const { return links.empty(); }
  friend bool operator==(const graph&, const graph&) = default;
};

/// A machine.
struct machine {
  std::string name;
  std::string summary;        ///< one line
  std::vector<level> levels;  ///< outermost first, never empty
  memory local;
  graph wires;  ///< where it has links, levels only say how ranks are grouped

  friend bool operator==(const machine&, const machine&) = default;
};

/// What a description may have: more than the largest machine there is has processors.
inline constexpr std::int32_t max_machine_ranks = 1 << 20;
inline constexpr std::size_t max_machine_levels = 16;
inline constexpr std::size_t max_transports = 32;
inline constexpr std::size_t max_switches = 65536;
inline constexpr std::size_t max_links = 1 << 18;
inline constexpr std::size_t max_hops = 6;  ///< links of a message's path

/// The number of ranks: the product of the levels' groups.
std::int64_t rank_count(const machine& m);

/// Ranks in one member of a level: the product of the groups of all levels inside it.
std::int64_t member_ranks(const machine& m, std::size_t level);

/// The level that a message between two different ranks belongs to.
std::size_t common_level(const machine& m, std::int64_t a, std::int64_t b);

/// The factors of a hierarchy of `ranks` ranks that follows the machine, outermost first: levels
/// that so few ranks do not reach are left out, and levels of one member. One factor a level, so
/// that recipe::hierarchy and recipe::via (`vias`) can be filled with them; the product may exceed
/// `ranks` where the last groups are not full. Throws invalid_argument where the machine has fewer
/// ranks.
struct hierarchy {
  std::vector<int> factors;
  std::vector<std::string> vias;    ///< the first transport of each level
  std::vector<std::size_t> levels;  ///< index into machine::levels
};
hierarchy hierarchy_of(const machine& m, std::int64_t ranks);

/// The name of a node of the graph: a rank's number, or a switch's name.
std::string node_name(const machine& m, std::int32_t node);

/// Throws errc::invalid_argument where a figure makes no sense, or is beyond what a simulation can
/// count.
void check(const machine& m);

/// The part of it that is about the number of levels and ranks.
void check_size(const machine& m);

/// Reads a description. `origin` stands before line and column in errors.
/// Throws errc::configuration with file, line, column, and the nearest known key.
machine machine_from_toml(std::string_view text, const std::string& origin);

/// Writes what machine_from_toml() reads to the same figures.
std::string to_toml(const machine& m);

/// A description by path (a name with a '/' or ending in ".toml", or in ".json", for a topology of
/// another project, see topology_json.hpp) or by the name of a shipped one.
/// "this" is the one that write_this_machine() left. Throws errc::configuration (bad file) or
/// errc::invalid_argument (no such machine, with the nearest name).
machine load_machine(const std::string& path_or_name);

/// A description that can be loaded by its name.
struct machine_summary {
  std::string name;
  std::string summary;
  std::string file;
  std::int64_t ranks = 0;
};

/// Those that came with SuCL, by name, and "this" where it was written.
std::vector<machine_summary> shipped_machines();

/// Measures the machine this runs on, as one node of `ranks` processes (0: one a processor) that
/// pass messages through memory: memory bandwidth, rates of copying and reducing, the latency of a
/// flag between two threads. Takes about a second of all its processors.
machine measure_this_machine(int ranks = 0);

/// Where "this" is kept: sucl/machines/this.toml in XDG_CACHE_HOME or ~/.cache.
std::string this_machine_file();

/// Writes `m` there and returns the path. Throws errc::configuration where it cannot.
std::string write_this_machine(const machine& m);

}  // namespace sucl::sim
