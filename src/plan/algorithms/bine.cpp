// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/algorithms/collectives.hpp"

namespace sucl::plan {

std::vector<int> bine_order(int ranks, int root) {
  int power = 1;
  while (power <= ranks / 2) power *= 2;
  std::vector<int> order;
  for (int position = 0; position < ranks; ++position) {
    std::int64_t rank = position;
    if (position < power) {
      rank = 0;
      // The distance at which a step of the tree sends is the sum of so many powers of -2.
      for (int bit = power / 2; bit > 0; bit /= 2) {
        std::int64_t distance = 0, term = 1;
        for (int b = bit; b > 0; b /= 2, term *= -2) distance += term;
        if ((position & bit) != 0) rank += rank % 2 == 0 ? distance : -distance;
        rank = (rank % power + power) % power;
      }
    }
    order.push_back(static_cast<int>((rank + root) % ranks));
  }
  return order;
}

}  // namespace sucl::plan
