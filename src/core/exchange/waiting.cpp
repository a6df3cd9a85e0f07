// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/waiting.hpp"

#include <utility>

namespace sucl::core {
namespace {

thread_local wait_supervisor* t_supervisor = nullptr;

}  // namespace

wait_supervisor* supervise_waits(wait_supervisor* s) noexcept {
  return std::exchange(t_supervisor, s);
}

sucl_status keep_waiting() noexcept {
  return t_supervisor ? t_supervisor->keep_waiting() : SUCL_SUCCESS;
}

void note_progress() noexcept {
  if (t_supervisor) t_supervisor->note_progress();
}

}  // namespace sucl::core
