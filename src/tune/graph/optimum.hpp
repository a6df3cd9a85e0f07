// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The fastest that data can spread from ranks to all ranks of a graph, and the cut that limits it.
#pragma once

#include "sim/model/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::tune {

inline std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// The nodes of a graph that planning works on: its ranks first.
struct wiring {
  int ranks = 0;
  int nodes = 0;
  std::vector<sim::link> links;

  /// With every link the other way round: what spreads in it is gathered in the graph itself.
  wiring reversed() const;
};
wiring wiring_of(const sim::machine& m, int ranks);

/// Trees that root at each rank: how many units of data each has for all others.
using roots = std::vector<std::int64_t>;

/// What limits a collective. `inside` are the nodes of one side, which has so many units that all
/// others need.
struct cut {
  std::vector<int> inside;
  std::int64_t units = 0;
  double bandwidth = 0;  ///< of the links that leave it, bytes a second
};

/// What limits how fast each root can send one unit to all ranks: no schedule sends more than
/// bandwidth / units (the cut condition of ForestColl, Zhao and others 2024, after Edmonds 1973;
/// and one reaches it). Found by maximum flows, exactly to a millionth of the bandwidths. Units is
/// 0 where a rank cannot be reached: then `inside` says from where.
cut tightest_cut(const wiring& w, const roots& wanted);

/// What limits how fast `root` can send each other rank a unit of its own: units are the ranks that
/// are not inside. 0 where a rank cannot be reached.
cut tightest_cut_of_scatter(const wiring& w, int root);

/// A capacity for each pair of nodes.
class capacities {
 public:
  explicit capacities(int nodes)
      : m_nodes(nodes), m_all(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(nodes)) {}
  std::int64_t& at(int from, int to) {
    return m_all[static_cast<std::size_t>(from) * static_cast<std::size_t>(m_nodes) +
                 static_cast<std::size_t>(to)];
  }
  std::int64_t at(int from, int to) const {
    return m_all[static_cast<std::size_t>(from) * static_cast<std::size_t>(m_nodes) +
                 static_cast<std::size_t>(to)];
  }
  int nodes() const { return m_nodes; }

 private:
  int m_nodes;
  std::vector<std::int64_t> m_all;
};

/// Units that each link carries in `seconds` if one takes a byte's time of a link of 1 byte a
/// second: whole ones.
capacities units_in(const wiring& w, double seconds);

/// Whether `wanted` trees can be packed: every rank can get all units at once.
bool can_pack(const capacities& c, const roots& wanted);

/// The least time, as of units_in(), in which that many trees can be packed.
double min_time(const wiring& w, const roots& wanted);

}  // namespace sucl::tune
