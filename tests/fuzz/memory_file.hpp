// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An input as a file, for readers that take the name of one.
#pragma once

#include "fuzz/target.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace sucl::fuzz {

/// A file in memory with a path.
class memory_file {
 public:
  explicit memory_file(std::string_view text) : m_descriptor(memfd_create("input", MFD_CLOEXEC)) {
    require(m_descriptor >= 0 &&
                write(m_descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
            "there is a file");
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() { close(m_descriptor); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(m_descriptor); }

 private:
  int m_descriptor;
};

}  // namespace sucl::fuzz
