// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether what an operation writes is still in a cache when it is read.
#pragma once

#include <sucl/abi/backend.h>

#include <cstdint>
#include <string>

namespace sucl::core {

/// A cache and how many processors share it.
struct shared_cache {
  std::uint64_t bytes = 0;
  int processors = 1;

  /// What each of so many ranks has of it, if they are as near to each other as can be.
  std::uint64_t share(int ranks) const {
    const int sharing = ranks < processors ? ranks : processors;
    return bytes / static_cast<std::uint64_t>(sharing > 0 ? sharing : 1);
  }
};

/// The last cache before the memory, as the system describes that of its first processor; where it
/// does not, one of 32 MiB that 8 processors share.
shared_cache last_cache();

/// The same from a folder of descriptions, one folder `index0`, `index1` ... for each cache.
shared_cache last_cache_of(const std::string& folder);

/// The bytes of input and output that each rank has in an operation, in the mean. Of blocks whose
/// lengths not every rank knows, all count as `o.count` elements.
std::uint64_t bytes_touched(const sucl_operation& o, int ranks) noexcept;

}  // namespace sucl::core
