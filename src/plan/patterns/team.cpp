// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/patterns/team.hpp"

namespace sucl::plan {

void take_input(builder& b, team& t, address from, std::uint64_t bytes) {
  if (!b.in_place()) return t.from.assign(t.ranks.size(), from);
  for (std::size_t m = 0; m < t.ranks.size(); ++m) b.copy(t.ranks[m], t.base[m], from, bytes);
}

std::vector<address> own_chunks(const team& t, const ends& cuts) {
  std::vector<address> out;
  for (std::size_t m = 0; m < t.base.size(); ++m) out.push_back(t.base[m] + cuts[m]);
  return out;
}

}  // namespace sucl::plan
