// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <cstddef>

namespace sucl::plan {
namespace {

// The first flag: larger than those of algorithms, which count channels.
constexpr std::uint64_t first_flag = std::uint64_t{1} << 32;

// A stage is what a fence finishes, if it finishes anything.
std::size_t stages(const channel& c) {
  std::size_t count = 0;
  bool begun = false;
  for (const instruction& i : c) {
    if (i.op == opcode::fence && begun) ++count;
    begun = is_posted(i.op) || (begun && i.op != opcode::fence);
  }
  return count;
}

instruction to_self(opcode op, int rank, std::uint64_t flag, std::uint8_t level) {
  instruction i;
  i.op = op;
  i.level = level;
  i.peer = rank;
  i.dst_offset = flag;
  return i;
}

// Each stage waits for that of the channel before, and lets the channel after it go on.
channel staggered(const channel& c, int rank, std::uint64_t number, bool first, bool last) {
  channel result;
  result.reserve(c.size() + 2 * stages(c));
  bool begun = false;
  for (const instruction& i : c) {
    if (!begun && is_posted(i.op)) {
      if (!first) result.push_back(to_self(opcode::wait, rank, first_flag + number, i.level));
      begun = true;
    }
    result.push_back(i);
    if (i.op != opcode::fence || !begun) continue;
    if (!last) result.push_back(to_self(opcode::signal, rank, first_flag + number + 1, i.level));
    begun = false;
  }
  return result;
}

}  // namespace

schedule stagger(schedule s) {
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    std::vector<channel>& channels = s.ranks[r].channels;
    // Channels that are not alike have no stages in common.
    const bool alike = std::all_of(channels.begin(), channels.end(), [&](const channel& c) {
      return stages(c) == stages(channels.front());
    });
    if (!alike || channels.size() < 2 || stages(channels.front()) == 0) continue;
    for (std::size_t c = 0; c < channels.size(); ++c)
      channels[c] =
          staggered(channels[c], static_cast<int>(r), c, c == 0, c + 1 == channels.size());
  }
  return s;
}

}  // namespace sucl::plan
