// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Numbers of ranks as digits of mixed radix, and the translations that add to them digit by digit.
#pragma once

#include <cstdint>
#include <vector>

namespace sucl::plan {

/// The group of translations: digits are added each by itself, modulo its radix. It takes each rank
/// to each other rank in exactly one way, so that a translation is named by where it takes rank 0.
class digits {
 public:
  /// Radices of 2 and more, of the outermost digit first; their product is the number of ranks.
  explicit digits(std::vector<int> radices);

  int count() const { return static_cast<int>(m_radix.size()); }
  int radix(int d) const { return m_radix[static_cast<std::size_t>(d)]; }
  /// The number of the rank whose digit `d` is 1 and whose others are 0.
  int stride(int d) const { return m_stride[static_cast<std::size_t>(d)]; }
  int ranks() const { return m_ranks; }

  int digit(int rank, int d) const { return rank / stride(d) % radix(d); }
  int add(int a, int b) const;
  int negate(int a) const;
  int subtract(int a, int b) const { return add(a, negate(b)); }

  /// A rank with those digits 0 whose bits are set in `mask`.
  int without(int rank, std::uint64_t mask) const;

  friend bool operator==(const digits&, const digits&) = default;

 private:
  std::vector<int> m_radix, m_stride;
  int m_ranks = 1;
};

}  // namespace sucl::plan
