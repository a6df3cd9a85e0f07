// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What search knows of a recipe before, and after, it is simulated.
#pragma once

#include "tune/cost/estimate.hpp"

namespace sucl::tune {

using plan::recipe;

/// A recipe in any number of channels.
struct family {
  recipe how;               // in one
  estimate cost;            // in one
  double forecast = 0;      // seconds in the best number of channels, as far as is known
  int next = 0;             // number of channels to simulate; 0: no more
  int channels = 0;         // last simulated number; 0: none
  double seconds = 0;       // with it
  double work = 0;          // of simulating it
  double instructions = 0;  // of it
  double alone = 0;         // seconds in one channel
  double busiest = 0;       // seconds that its busiest part works
  double fixed = 0;         // seconds that channels do not divide, and those that they do
  double rest = 0;
  bool fitted = false;       // both come from two numbers of channels
  double moved = 1;          // how much the fit changed by the last number of channels, of 1
  bool over_budget = false;  // to be simulated in more channels within the budget
};

/// What a fit says about a recipe that was not simulated.
struct predicted {
  recipe how;
  double seconds = 0;
};

/// What simulating a recipe said.
struct known {
  double work = 0;  // that it cost
  double instructions = 0;
  double seconds = 0;
  double busiest = 0;  // seconds that the busiest part works, in one channel
  double allowed = 0;  // work
  bool gave_up = true;

  // Whether it gave up for work, and this much may say more.
  bool cut_short(double max_work) const {
    return gave_up && work > allowed && max_work > 1.5 * allowed;
  }
};

}  // namespace sucl::tune
