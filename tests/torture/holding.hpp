// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a process holds: memory, files, threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::torture {

struct holding {
  std::int64_t resident = 0;  ///< bytes of private memory in use
  std::int64_t shared = 0;    ///< bytes of files in /dev/shm and the like that are mapped
  std::int64_t files = 0;     ///< open descriptors
  std::int64_t threads = 0;
  std::int64_t regions = 0;  ///< mapped ones

  static holding now();
  std::string text() const;
};

/// What has grown from the first to the last of the samples that are given: the median of the first
/// and of the last quarter are compared. "" if nothing has; few samples tell nothing, which is a
/// failure.
std::string growth(const std::vector<holding>& samples);

}  // namespace sucl::torture
