// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Search: the best plan for a collective on a machine.
#pragma once

#include "plan/algorithms/algorithms.hpp"
#include "sim/model/machine.hpp"
#include "tune/cost/bound.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sucl::tune {

/// A plan and its predicted time.
struct found {
  plan::recipe how;
  std::string source;    ///< the publication that has these parameters too; empty: none
  double seconds = 0;    ///< predicted by the simulator
  double estimated = 0;  ///< by rough_estimate()
  std::uint64_t instructions = 0;
  std::uint64_t hash = 0;
  std::uint64_t scratch_bytes = 0;  ///< most of a rank
  bool verified = false;            ///< proved right at this size
  /// The plan itself, where it is made for the links of a graph: then no recipe makes it again.
  std::shared_ptr<const plan::schedule> made;
};

/// The plan that was found.
plan::schedule plan_of(const plan::problem& p, const found& f);

struct search_options {
  int keep = 5;  ///< how many to return
  /// Work of the simulator in all (sim::prediction::work), a measure of time that is the same
  /// everywhere; 0: enough for about a second at 64 ranks and for seconds at thousands.
  double budget = 0;
  /// A best plan of more instructions is returned unverified.
  double max_verified = 6e6;
  int threads = 0;  ///< to simulate in; 0: one a processor. The result does not depend on them
  /// Called with what it is at.
  std::function<void(const std::string&)> progress;
};

struct search_result {
  std::vector<found> best;  ///< by predicted time, the winner first; never empty
  int candidates = 0;       ///< recipes considered
  int simulated = 0;        ///< plans built and simulated
  bound least;              ///< what no plan is faster than
};

/// Sorts the candidates by rough_estimate() and simulates the most promising ones in one channel.
/// What is busiest there says how long the same plan takes in more channels; the best of these
/// forecasts are simulated, and the parameters of the best plans are changed while that helps, as
/// far as the budget goes. A quarter of it more goes into more channels for what promises most in
/// them. Beyond it published parameters that a rough estimate does not rule out are simulated, and
/// then plans of some size that promise to be better still, the shortlist; each until what still
/// has to go through its busiest link shows that it cannot be the best. Deterministic: the same
/// input gives the same result everywhere.
///
/// The best plan was proved right by the verifier, unless it has more than max_verified
/// instructions; so were others that are cheap to prove (found::verified). Throws what
/// plan::check() throws, and invalid_argument where the machine has fewer ranks.
search_result search(const plan::problem& p, const sim::machine& m, const search_options& o = {});

}  // namespace sucl::tune
