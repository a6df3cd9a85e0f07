// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Measuring the implementations of one testbed side by side.
#pragma once

#include "bench/baselines/baseline.hpp"
#include "bench/baselines/flag_exchange.hpp"
#include "bench/operations/problem.hpp"
#include "bench/operations/testbed.hpp"
#include "bench/results/statistics.hpp"
#include "options.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sucl::bench {

/// What ranks do together outside of what is measured.
class together {
 public:
  /// Through raw MPI, or without it through a communicator of the library.
  together(const baseline* raw, communicator comm);
  /// By bare flags where the ranks share memory: they leave a barrier of MPI at different times, on
  /// some libraries by several small messages.
  void barrier();
  /// The largest of each number over the ranks.
  void max(std::vector<double>& numbers);
  bool anywhere(bool here);  ///< whether it is so on some rank
  /// The least that the ranks can do to signal each other; null where they share no memory.
  flag_exchange* flags() { return m_flags.get(); }

 private:
  const baseline* m_raw;
  communicator m_comm;
  std::unique_ptr<flag_exchange> m_flags;
};

/// Measures all implementations of a testbed. Collective. Each iteration begins with a barrier and
/// counts as long as the slowest rank took. Implementations take turns in rounds, so that whatever
/// drifts hits all alike. Every result is compared with the reference before and after it is
/// measured; `report` gets the differences on this rank.
std::vector<outcome> measure(const testbed& bed, const problem& p, const options& wanted,
                             together& ranks,
                             const std::function<void(const std::string&)>& report);

/// The median of one thing that needs no other rank, in microseconds.
statistics time_alone(const std::function<void()>& run, int iterations);

}  // namespace sucl::bench
