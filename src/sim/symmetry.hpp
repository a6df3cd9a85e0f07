// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranks that do the same at the same times, of which one is enough to simulate.
#pragma once

#include "plan/ir/schedule.hpp"
#include "sim/routes.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace sucl::sim {

/// The classes of ranks, and of limits, that nothing tells apart: the coarsest equitable partition,
/// found by colour refinement (Weisfeiler and Leman 1968; Paige and Tarjan 1987). Two ranks of a
/// class have the same instructions with peers of the same classes at the same positions, through
/// limits of the same classes; two limits of a class carry as much of each class. So whatever
/// happens to one happens to all of them, in the same step. Colours are 64-bit hashes.
class symmetry {
 public:
  /// `apart`: every rank is a class of its own, though others do the same.
  symmetry(const plan::schedule& s, const routes& all_routes, bool apart);
  /// All of so many ranks are alike, and what they go through is what rank 0 goes through.
  symmetry(std::int32_t ranks, const routes& all_routes);

  /// The first rank of the class, and how many the class has.
  std::int32_t first_of(std::int32_t rank) const { return m_first[index(rank)]; }
  std::int32_t size_of(std::int32_t rank) const { return m_size[index(rank)]; }

  /// The first limit of the class, and what of it a byte takes that each rank of the class of
  /// `rank` moves through one limit of that class.
  std::uint32_t first_limit(std::uint32_t limit) const { return m_first_limit[limit]; }
  double times(std::int32_t rank, std::uint32_t limit) const {
    return static_cast<double>(size_of(rank)) / m_limit_size[limit];
  }

  /// What lies between `from` and `to` lies between these two as well, of whom the first is the
  /// first of its class.
  std::pair<std::int32_t, std::int32_t> pair_of(std::int32_t from, std::int32_t to) const;

 private:
  // A rank that another one names, and its position among all that it names.
  struct peer {
    std::int32_t rank = 0;
    std::int32_t position = 0;
  };
  // What a rank has to do with others, each in the order in which its program comes to them.
  struct relations {
    std::vector<std::int32_t> peers;
    std::vector<peer> sorted;  // the same, by rank
    std::vector<std::uint32_t> route_numbers;
  };

  static std::size_t index(std::int32_t rank) { return static_cast<std::size_t>(rank); }
  void read(const plan::schedule& s, const routes& all_routes);
  std::uint64_t read_program(const plan::program& p, std::size_t& instruction,
                             const routes& all_routes, relations& of);
  std::int32_t position_of(std::int32_t rank, std::int32_t peer) const;
  void refine(const routes& all_routes);
  void refine_once(const routes& all_routes);

  std::vector<relations> m_relations;          // by rank
  std::vector<std::uint64_t> m_colours;        // by rank
  std::vector<std::uint64_t> m_limit_colours;  // by limit
  std::vector<std::int32_t> m_position;     // by rank: its position among the peers of the one read
  std::vector<std::uint32_t> m_route_slot;  // by route
  std::vector<std::int32_t> m_first, m_size;
  std::vector<std::uint32_t> m_first_limit, m_limit_size;
};

}  // namespace sucl::sim
