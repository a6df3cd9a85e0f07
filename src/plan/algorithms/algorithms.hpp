// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// All algorithms that make a schedule, by name, with their parameters.
#pragma once

#include "plan/compose/composition.hpp"
#include "plan/symmetric/symmetric.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sucl::plan {

/// An algorithm and its parameters. A parameter that the algorithm does not take must keep its
/// default. 0 or empty: the algorithm chooses.
struct recipe {
  std::string algorithm;
  std::vector<int> radices;      ///< of exchanges and shifts; of trees the one radix
  int split = -1;                ///< exchanges: how many radices reduce and scatter; -1: all
  int ports = 0;                 ///< messages a rank has in flight at once; 0: all of a step
  int segments = 1;              ///< chains: pieces that follow each other
  int pipeline = 1;              ///< channels, each with its part of the data
  std::vector<int> hierarchy;    ///< factors of the ranks, outermost first
  std::vector<std::string> via;  ///< transport of each level of the hierarchy
  std::vector<int> nodes;        ///< node of each rank, any numbers; empty: all on one
  std::string inner;             ///< pattern inside the groups of a hierarchy
  std::string outer;             ///< pattern across the outermost groups
  int leaders = 0;               ///< ranks of a group that go on to the next level; 0: all
  int stripe = 1;                ///< composed: parts that go through different ranks of a node
  int ring = 1;                  ///< composed: outermost groups that form a ring
  int steps = 1;                 ///< composed: form of the composition, as in compose()
  int fuse = 0;                  ///< composed: messages of at most so many bytes are fused

  int stagger = 0;  ///< 1: channels one after another, as in stagger()

  friend bool operator==(const recipe&, const recipe&) = default;
};

/// As in "exchange(radices=2,2,3;ports=2)": the parameters that differ from their defaults.
std::string to_text(const recipe& r);

/// Reads what to_text() writes. Throws invalid_argument.
recipe recipe_from_text(std::string_view text);

/// An algorithm that a recipe can name.
struct algorithm_info {
  const char* name;
  const char* summary;
  std::vector<sucl::kind> kinds;
  std::vector<const char*> parameters;  ///< names as in recipe
};

/// All algorithms, in a fixed order.
const std::vector<algorithm_info>& algorithms();

/// Those for a kind of collective, in the same order.
std::vector<const algorithm_info*> algorithms_for(sucl::kind k);

/// Why a recipe cannot solve a problem, with the cure; empty if it can.
std::string refusal(const problem& p, const recipe& r);

/// Builds the schedule. Throws what check() throws, invalid_argument where there is a refusal().
/// The schedule is not verified. In-place problems are solved by make_in_place().
schedule build(const problem& p, const recipe& r);

/// Whether a recipe is of a plan that is the same for every rank.
bool is_symmetric(const recipe& r);

/// Builds such a plan for one rank, of which build() makes the schedule of all. Not in place.
symmetric_schedule build_symmetric(const problem& p, const recipe& r);

/// The same for a composition whose outcome is known, with the parameters that "composed" takes,
/// but `steps`.
schedule build(const composition& c, const recipe& r);

}  // namespace sucl::plan
