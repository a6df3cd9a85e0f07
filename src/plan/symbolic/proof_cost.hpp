// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a proof costs: a small plan may take the time of its square, and as much memory.
#pragma once

#include <cstdint>
#include <limits>

namespace sucl::plan {

/// What a proof may cost. A step takes some tens of ns.
struct proof_limits {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t steps = none;
  std::uint64_t bytes = none;  ///< of memory beyond the plan
};

/// Counts; throws sucl::error when more is taken than the limits allow.
class proof_cost {
 public:
  explicit proof_cost(proof_limits limits) : m_limits(limits) {}

  void take_steps(std::uint64_t n) {
    m_steps += n;
    if (m_steps > m_limits.steps) refuse_steps();
  }
  void take_bytes(std::uint64_t n) {
    m_bytes += n;
    if (m_bytes > m_limits.bytes) refuse_bytes();
  }
  void give_bytes(std::uint64_t n) noexcept { m_bytes -= n; }

  std::uint64_t steps() const noexcept { return m_steps; }

 private:
  [[noreturn]] void refuse_steps() const;
  [[noreturn]] void refuse_bytes() const;

  proof_limits m_limits;
  std::uint64_t m_steps = 0;
  std::uint64_t m_bytes = 0;
};

}  // namespace sucl::plan
