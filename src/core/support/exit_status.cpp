// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/exit_status.hpp"

#include "base/log.hpp"
#include "core/support/output.hpp"

#include <atomic>
#include <cstdlib>

namespace sucl::core {
namespace {

std::atomic<bool> failed{false};

void end(int status, void*) {
  if (status != 0 || !failed) return;
  hand_over_output();
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

void prepare_exit_status() { [[maybe_unused]] static const int registered = on_exit(end, nullptr); }

void fail_at_exit() noexcept { failed = true; }

void report_at_last(const error_info& info) {
  base::log(base::log_level::error, "runtime",
            "an operation failed, and the program has not asked: ", error(info).what());
  fail_at_exit();
}

}  // namespace sucl::core
