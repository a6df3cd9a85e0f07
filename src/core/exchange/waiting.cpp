// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/waiting.hpp"

#include "base/error.hpp"

#include <utility>

namespace sucl::core {
namespace {

thread_local wait_supervisor* t_supervisor = nullptr;
thread_local wait_interrupter* t_interrupter = nullptr;

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

wait_interrupter* interrupt_waits(wait_interrupter* i) noexcept {
  return std::exchange(t_interrupter, i);
}

wait_interrupter* current_interrupter() noexcept { return t_interrupter; }

void throw_if_interrupted() {
  if (t_interrupter && t_interrupter->is_interrupted())
    base::fail(errc::peer_lost, "the program has interrupted a call that waited",
               "Make the communicator again, or leave out of it what has given up: shrink()");
}

}  // namespace sucl::core
