// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a rank prints as errors, for itself.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace sucl_test {

/// What is printed as an error while it lives goes through it.
class printed_errors {
 public:
  printed_errors() : m_real(dup(STDERR_FILENO)) {
    if (pipe(m_pipe) != 0) std::abort();
    dup2(m_pipe[1], STDERR_FILENO);
  }
  ~printed_errors() { dup2(m_real, STDERR_FILENO); }
  /// Returns once `text` has been printed.
  void await(const std::string& text) {
    std::string so_far;
    char part[512];
    while (so_far.find(text) == std::string::npos) {
      const auto n = read(m_pipe[0], part, sizeof part);
      if (n <= 0) std::abort();
      so_far.append(part, static_cast<std::size_t>(n));
      if (write(m_real, part, static_cast<std::size_t>(n)) != n) std::abort();
    }
  }

 private:
  int m_real, m_pipe[2]{};
};

}  // namespace sucl_test
