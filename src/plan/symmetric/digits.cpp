// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/symmetric/digits.hpp"

#include <utility>

namespace sucl::plan {

digits::digits(std::vector<int> radices) : m_radix(std::move(radices)), m_stride(m_radix.size()) {
  for (std::size_t d = m_radix.size(); d-- > 0; m_ranks *= m_radix[d]) m_stride[d] = m_ranks;
}

int digits::add(int a, int b) const {
  int sum = 0;
  for (std::size_t d = 0; d < m_radix.size(); ++d) {
    const int x = a / m_stride[d] % m_radix[d] + b / m_stride[d] % m_radix[d];
    sum += (x < m_radix[d] ? x : x - m_radix[d]) * m_stride[d];
  }
  return sum;
}

int digits::negate(int a) const {
  int result = 0;
  for (std::size_t d = 0; d < m_radix.size(); ++d)
    result += (m_radix[d] - a / m_stride[d] % m_radix[d]) % m_radix[d] * m_stride[d];
  return result;
}

int digits::without(int rank, std::uint64_t mask) const {
  for (std::size_t d = 0; mask != 0 && d < m_radix.size(); ++d, mask >>= 1)
    if ((mask & 1) != 0) rank -= rank / m_stride[d] % m_radix[d] * m_stride[d];
  return rank;
}

}  // namespace sucl::plan
