// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The sum of a plan's stages on a machine.
#pragma once

#include "sim/model/machine.hpp"
#include "tune/cost/estimate.hpp"

#include <string>
#include <vector>

namespace sucl::tune {

/// A stage: some steps that are alike, one after another.
struct stage {
  std::size_t level = 0;  ///< of the machine
  std::string via;        ///< transport; empty or "any": the level's first
  double steps = 1;
  double messages = 1;  ///< that a busy rank sends in a step
  double bytes = 0;     ///< of a message
  double active = 1;    ///< busy ranks in a member of the level
  double reduced = 0;   ///< bytes that a busy rank reduces in a step, after the messages
  double load = -1;     ///< steps that meet at one port; -1: all of them
  double ranks = 0;     ///< that take part, of all
  bool peer = false;    ///< reads and writes the peers' memory, with flags
};

/// Adds up stages.
class stage_sum {
 public:
  explicit stage_sum(const sim::machine& m) : m_machine(m), m_load(m.levels.size() + 1) {}

  const sim::machine& machine() const { return m_machine; }
  void add(const stage& s);
  /// Copies of a rank's own data, in `parts` by each of the ranks.
  void add_copy(double bytes, double ranks, double parts = 1);

  /// All stages in `channels` channels, each with its part of the data.
  estimate total(int channels) const;

 private:
  const sim::machine& m_machine;
  double m_latency = 0;        // of all stages in order
  double m_overhead = 0;       // work of a rank that does not depend on bytes
  double m_work = 0;           // of all stages in order
  std::vector<double> m_load;  // of the busiest part of each level; last: of the kernels
  double m_instructions = 0;
};

}  // namespace sucl::tune
