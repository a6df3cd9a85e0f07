// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What of a machine limits a message or a kernel.
#pragma once

#include "sim/flows.hpp"
#include "sim/model/paths.hpp"
#include "sim/simulate.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sucl::sim {

class symmetry;

/// The limits of a machine, made when something first goes through them.
class limits {
 public:
  limits(const machine& m, std::int32_t ranks, flows& f);

  /// `times` bytes of the rank's memory for each byte of the flow.
  void add_memory(demands& d, std::int32_t rank, double times);
  /// The rank's kernels; `rate` is how fast they are at this work.
  void add_kernel(demands& d, std::int32_t rank, double rate);
  /// The path of a message, without the memory at its ends.
  void add_message(demands& d, std::int32_t from, std::int32_t to, std::size_t level,
                   std::size_t transport);

  /// The same where the machine is a graph: what the links of a path limit.
  void add_path(demands& d, const path& through);

  /// From now on the use of another rank's memory, transports and ports is counted for the rank
  /// that represents all.
  void merge_alike() { m_one = true; }
  /// How many there are like this one, if all ranks are alike.
  std::uint32_t alike(std::uint32_t limit) const;

  std::size_t count() const { return m_uses.size(); }
  /// A hash of the class of a limit: of what it is, not of its rank.
  std::uint64_t class_of(std::uint32_t limit) const;

  /// Those that anything went through; what a limit took is what the first one like it took.
  std::vector<usage> uses(const symmetry& like) const;

 private:
  struct table {
    usage::part what;
    std::uint8_t level = 0, transport = 0;
    std::int64_t ports = 1;
    double capacity = 0;
    std::uint64_t all_ports = 0;     // members times ports
    std::vector<std::uint32_t> ids;  // by member and port, once one is used; 0: none yet
    std::unordered_map<std::uint64_t, std::uint32_t> sparse;  // instead, where there are too many

    std::uint32_t& at(std::int64_t member, std::int64_t port);
  };
  struct level_tables {
    std::vector<table> rank_out, rank_in;  // by transport
    table port_out, port_in, port_both, fabric;
    std::int64_t member = 1, group = 1;  // ranks
  };

  table make(usage::part what, std::int64_t members, std::int64_t ports, double capacity,
             std::size_t level = 0, std::size_t transport = 0) const;
  std::uint32_t id(table& t, std::int64_t member, std::int64_t port = 0);
  std::uint32_t link(std::size_t level, std::int64_t from, std::int64_t to);
  std::uint32_t remember(const usage& u);

  std::int64_t port_of(std::size_t level, std::int64_t rank) const;

  const machine& m_machine;
  const std::int32_t m_ranks;
  bool m_one = false;
  flows& m_flows;
  table m_memory, m_kernels;
  std::vector<level_tables> m_levels;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> m_links;  // by level
  std::vector<std::uint32_t> m_wires;  // by link of a graph; 0: not used yet
  std::vector<usage> m_uses;           // by limit
};

}  // namespace sucl::sim
