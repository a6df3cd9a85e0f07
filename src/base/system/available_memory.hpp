// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How much memory a process may still take into use. The system gives out addresses for more than
/// it has, and ends the processes that write to what is not there.
#pragma once

#include <sucl/export.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace sucl::base {

/// In bytes: what the machine has, with swap, and what the limits of the control groups of this
/// process leave. The largest number where the system does not say. `root`: of a tree with other
/// files than those of the system, or empty.
SUCL_CORE_API std::uint64_t available_memory(const std::string& root = "");

/// Memory that was allocated in this process. What it has not written to yet is still counted as
/// available. Any thread.
class SUCL_CORE_API allocated_memory {
 public:
  void add(const void* base, std::uint64_t bytes);
  void remove(const void* base);
  /// Bytes of it that have no pages yet, about.
  std::uint64_t untouched() const;

  /// That of the process.
  static allocated_memory& of_process();

 private:
  struct range {
    const void* base;
    std::uint64_t bytes;
  };
  mutable std::mutex m_mutex;
  std::vector<range> m_ranges;
};

}  // namespace sucl::base
