// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Machines and plans written by hand, for the tests of the simulator.
#pragma once

#include "plan/serialization/text.hpp"
#include "sim/model/machine.hpp"

#include <string>
#include <vector>

namespace sucl::sim {

constexpr double us = 1e-6;

// Nodes of `inner` ranks. Network: 2 us, 10 GB/s a port; inside: 1 us, no limit.
inline machine two_levels(int nodes, int inner) {
  machine m;
  m.name = "test";
  m.levels.resize(2);
  m.levels[0].name = "network";
  m.levels[0].groups = nodes;
  m.levels[0].port_bandwidth = 10e9;
  m.levels[0].transports = {{"mpi", 2 * us, 0, 0}};
  m.levels[1].name = "node";
  m.levels[1].groups = inner;
  m.levels[1].transports = {{"ipc", 1 * us, 0, 0}};
  return m;
}

// A plan whose ranks have 100 kB of each space; a program is what follows "channel 0".
inline plan::schedule plan_of(const std::vector<std::string>& programs) {
  const std::string ranks = std::to_string(programs.size());
  std::string text = "sucl-plan 1\ncollective allreduce ranks " + ranks +
                     " element 4 counts 25000\nalgorithm test\nlevel 0 all via any\n";
  for (std::size_t r = 0; r < programs.size(); ++r)
    text += "rank " + std::to_string(r) + " scratch 1000000\nchannel 0\n" + programs[r];
  return plan::from_text(text);
}

inline std::string send(int to, int bytes = 100000) {
  return "send " + std::to_string(to) + " send+0 " + std::to_string(bytes) + "\n";
}
inline std::string receive(int from, int offset = 0, int bytes = 100000) {
  return "receive " + std::to_string(from) + " scratch+" + std::to_string(offset) + " " +
         std::to_string(bytes) + "\n";
}

}  // namespace sucl::sim
