// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/execution/long_pieces.hpp"

#include "backends/shm_plan/plans/program.hpp"

#include <cstring>

namespace sucl::core {

void long_pieces::copy(std::byte* to, const std::byte* from, std::uint64_t bytes,
                       bool nontemporal) const {
  m_helpers->share_out(bytes, part, [&](std::uint64_t begin, std::uint64_t n) noexcept {
    if (nontemporal)
      copy_nontemporal(to + begin, from + begin, n);
    else
      std::memcpy(to + begin, from + begin, n);
  });
}

void long_pieces::fold(fold_function function, std::uint64_t element_size, std::byte* to,
                       const void* const* from, std::size_t sources, std::uint64_t count,
                       int divisor, bool nontemporal) const {
  const std::uint64_t elements = part / element_size;
  m_helpers->share_out(count, elements, [&](std::uint64_t begin, std::uint64_t n) noexcept {
    const std::uint64_t at = begin * element_size;
    const void* here[max_sources];
    for (std::size_t s = 0; s < sources; ++s) here[s] = static_cast<const std::byte*>(from[s]) + at;
    if (nontemporal)
      fold_nontemporal(function, element_size, to + at, here, sources, n, divisor);
    else
      function(to + at, here, sources, n, divisor);
  });
}

}  // namespace sucl::core
