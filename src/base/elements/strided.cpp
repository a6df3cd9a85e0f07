// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/elements/strided.hpp"

#include <cstring>

namespace sucl::base {

void pack(const strided& block, void* dense, const void* array, std::uint64_t first,
          std::uint64_t n) {
  const std::uint64_t size = block.element_size;
  auto* to = static_cast<unsigned char*>(dense);
  const auto* from = static_cast<const unsigned char*>(array);
  block.for_each_run(first, n, [&](std::uint64_t at, std::uint64_t index, std::uint64_t length) {
    std::memcpy(to + (index - first) * size, from + at * size, length * size);
  });
}

void unpack(const strided& block, void* array, const void* dense, std::uint64_t first,
            std::uint64_t n) {
  const std::uint64_t size = block.element_size;
  auto* to = static_cast<unsigned char*>(array);
  const auto* from = static_cast<const unsigned char*>(dense);
  block.for_each_run(first, n, [&](std::uint64_t at, std::uint64_t index, std::uint64_t length) {
    std::memcpy(to + at * size, from + (index - first) * size, length * size);
  });
}

}  // namespace sucl::base
