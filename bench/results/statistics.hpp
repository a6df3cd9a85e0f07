// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What many measured times come to.
#pragma once

#include <string>
#include <vector>

namespace sucl::bench {

/// Microseconds.
struct statistics {
  double median = 0;
  double p95 = 0;
  double min = 0;
};

/// Of numbers in any order; of none, all zero. The 95th percentile is the least number that at
/// least 95% of them do not exceed.
statistics summarise(std::vector<double> times);

/// What came of one implementation.
struct outcome {
  std::string name;
  /// blocking or event; "stream" where calls were timed back to back, "device" where the device's
  /// clock did it.
  std::string form;
  int iterations = 0;
  statistics time;    ///< of the slowest rank in each iteration
  bool valid = true;  ///< on every rank
};

}  // namespace sucl::bench
