// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The phases of a recursive exchange: the pairs of ranks, and the chunks that they exchange.
#pragma once

#include <vector>

namespace sucl::plan {

/// One phase of a recursive exchange: members whose numbers differ only in this digit meet.
struct phase {
  int factor;
  int stride;

  int digit(int member) const { return member / stride % factor; }
  /// The partner of `member` that is `k` digits further.
  int partner(int member, int k) const {
    return member + ((digit(member) + k) % factor - digit(member)) * stride;
  }
};

/// A run of chunks.
struct window {
  int first, count;

  /// Part `digit` of `factor` equal parts.
  window part(int digit, int factor) const {
    return {first + digit * (count / factor), count / factor};
  }
};

/// The phases for these radices, beginning with the farthest or with the nearest members.
inline std::vector<phase> phases(const std::vector<int>& radices, bool far_first, int members) {
  std::vector<phase> list;
  int stride = far_first ? members : 1;
  for (const int f : radices) {
    if (far_first) stride /= f;
    list.push_back({f, stride});
    if (!far_first) stride *= f;
  }
  return list;
}

/// The chunks that a member works on before each phase, and after the last.
inline std::vector<window> windows(const std::vector<phase>& list, int member, int chunks) {
  std::vector<window> all{{0, chunks}};
  for (const phase& p : list) all.push_back(all.back().part(p.digit(member), p.factor));
  return all;
}

}  // namespace sucl::plan
