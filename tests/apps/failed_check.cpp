// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// An application whose only check fails, to see that it says so and with which exit code it ends.
#include "common/program/application.hpp"

#include <limits>

namespace {

struct settings : apps::settings {
  double value = std::numeric_limits<double>::quiet_NaN();
  void define(apps::command_line& line) override {
    line.add("--value", value, "What is compared with 1", "X");
  }
};

apps::outcome run(apps::context&, const settings& wanted) {
  apps::outcome o;
  o.check("value", wanted.value, 1);
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_application(argc, argv, "failed_check", "Fails its check.", run);
}
