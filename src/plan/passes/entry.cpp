// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace sucl::plan {

schedule enter_together(schedule s) {
  // Signals that are left out: from, to, flag. Those of a flag are all in one channel, and so are
  // its waits, so the first waits belong to them.
  std::map<std::tuple<std::int32_t, std::int32_t, std::uint64_t>, std::size_t> left_out;
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (channel& c : s.ranks[r].channels) {
      const auto end = std::find_if_not(
          c.begin(), c.end(), [](const instruction& i) { return i.op == opcode::signal; });
      for (auto i = c.begin(); i != end; ++i)
        ++left_out[{static_cast<std::int32_t>(r), i->peer, i->dst_offset}];
      c.erase(c.begin(), end);
    }
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (channel& c : s.ranks[r].channels)
      std::erase_if(c, [&](const instruction& i) {
        if (i.op != opcode::wait) return false;
        const auto known = left_out.find({i.peer, static_cast<std::int32_t>(r), i.dst_offset});
        if (known == left_out.end() || known->second == 0) return false;
        --known->second;
        return true;
      });
  return s;
}

}  // namespace sucl::plan
