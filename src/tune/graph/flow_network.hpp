// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Maximum flows of whole numbers (Dinic 1970).
#pragma once

#include <cstdint>
#include <vector>

namespace sucl::tune {

/// A capacity that no cut of least capacity has.
inline constexpr std::int64_t unlimited_flow = std::int64_t{1} << 50;

class flow_network {
 public:
  explicit flow_network(int nodes) : m_out(static_cast<std::size_t>(nodes)) {}

  /// Returns the number of the arc.
  int add(int from, int to, std::int64_t capacity);
  int add_node();
  void set(int arc, std::int64_t capacity) {
    m_arcs[static_cast<std::size_t>(arc) * 2].capacity = capacity;
  }

  /// The most that flows from one node to the other, or `enough` if it is more.
  std::int64_t flow(int from, int to, std::int64_t enough);

  /// Whether a node is on the side of the source of the minimum cut that the last flow found, which
  /// was not enough.
  bool on_source_side(int node) const { return m_level[static_cast<std::size_t>(node)] >= 0; }

 private:
  struct arc {
    int to = 0;
    std::int64_t capacity = 0;
    std::int64_t left = 0;
  };
  bool find_levels(int from, int to);
  std::int64_t push(int node, int to, std::int64_t most);

  std::vector<arc> m_arcs;  // each followed by its opposite
  std::vector<std::vector<int>> m_out;
  std::vector<int> m_level, m_queue;
  std::vector<std::size_t> m_next;
};

}  // namespace sucl::tune
