// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The frame of an application's main(): command line, errors, the report and the exit code.
#pragma once

#include "common/context.hpp"
#include "common/program/command_line.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>

namespace apps {

/// What an application has found out.
struct outcome {
  double seconds = 0;  ///< of all iterations, on the slowest rank
  int iterations = 0;
  phase_times phases{};  ///< of one iteration
  bool passed = true;
  nlohmann::ordered_json details;  ///< on rank 0: sizes and results, printed and written
  /// Notes a check, with what was compared: "analytic field: off by 1e-6, at most 1e-4".
  void check(const std::string& what, double value, double limit);
};

/// What an application's command line says; each adds its own options.
struct settings {
  options common;
  virtual ~settings() = default;
  virtual void define(command_line& line) = 0;
  /// Throws usage_error.
  virtual void validate() {}
};

/// Runs an application. Returns main's exit code: 1 if a check or the run failed, 2 for what cannot
/// be run.
int run_application(int argc, char** argv, const std::string& name, const std::string& summary,
                    settings& wanted, const std::function<outcome(context&)>& body);

/// The same, with the settings made here.
template <class Settings>
int run_application(int argc, char** argv, const std::string& name, const std::string& summary,
                    outcome (*body)(context&, const Settings&)) {
  Settings wanted;
  return run_application(argc, argv, name, summary, wanted,
                         [&](context& c) { return body(c, wanted); });
}

}  // namespace apps
