// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "statistics.hpp"

#include <algorithm>

namespace sucl::bench {

statistics summarise(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  const std::size_t p95 = (95 * n + 99) / 100;  // rounded up, counted from 1
  return {n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2, times[p95 - 1],
          times.front()};
}

}  // namespace sucl::bench
