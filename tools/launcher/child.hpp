// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Short programs whose output is wanted.
#pragma once

#include "environment.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace sucl::tools {

/// How a child ended.
struct child_result {
  int code = 0;        ///< exit code; 128 + number if a signal ended it
  std::string output;  ///< what it wrote to standard output
  std::string errors;  ///< and to standard error
  bool timed_out = false;
};

/// Runs a program with the variables changed, and ends it after `limit`. A program that cannot be
/// started has code 127, and the reason in `errors`.
child_result run_child(const words& command, const variable_changes& variables,
                       std::chrono::seconds limit);

}  // namespace sucl::tools
