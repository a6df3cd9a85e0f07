// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which elements of an array are sent. No SYCL.
#pragma once

#include <cstddef>
#include <vector>

namespace apps {

/// `count` elements of an array from `offset` on, from or to a rank.
struct piece {
  int peer = 0;
  std::size_t offset = 0;
  std::size_t count = 0;
  int tag = 0;
};

/// Which pieces a rank sends and receives at once.
struct pattern {
  std::vector<piece> out;
  std::vector<piece> in;
  bool empty() const { return out.empty() && in.empty(); }
};

}  // namespace apps
