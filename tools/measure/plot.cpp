// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "measure/plot.hpp"

#include "launcher/child.hpp"

#include <unistd.h>

#include <cstdlib>

namespace sucl::tools {
namespace {

constexpr std::chrono::seconds limit{120};

std::string interpreter(const environment& env) {
  if (const char* chosen = std::getenv("SUCL_PYTHON"); chosen && *chosen) return chosen;
  return access(env.python.c_str(), X_OK) == 0 ? env.python : "python3";
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) return "it says nothing";
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::string draw(const environment& env, const std::string& json, const std::string& svg) {
  const std::string python = interpreter(env);
  const std::string folder = env.module_folder + "/python";
  const words command{python, "-m", "sucl.plot", json, svg};
  const child_result child = run_child(command, {{}, {{"PYTHONPATH", {folder}}}}, limit);
  if (child.code == 0) return {};
  const std::string reason = child.timed_out
                                 ? "it took longer than " + std::to_string(limit.count()) + " s"
                                 : last_line(child.errors);
  return reason +
         ". The results are safe; draw them later with: PYTHONPATH=" + shell_quoted(folder) + " " +
         shell_quoted(command);
}

}  // namespace sucl::tools
