// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Long work says on a terminal what it is at.
#pragma once

#include <chrono>
#include <string>

namespace sucl::tools {

/// One line on standard error that changes, if that is a terminal; it goes when the object does.
/// Short work shows nothing.
class progress {
 public:
  explicit progress(std::string what);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// What it is at now. Cheap: most calls write nothing.
  void at(const std::string& detail) const;

 private:
  using clock = std::chrono::steady_clock;

  std::string m_what;
  bool m_terminal;
  clock::time_point m_start = clock::now();
  mutable clock::time_point m_written;
  mutable bool m_shown = false;
};

}  // namespace sucl::tools
