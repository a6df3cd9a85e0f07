// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether a thread that waits for other ranks goes on waiting.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/export.hpp>

namespace sucl::core {

/// Decides for a thread whether waiting is worth it. A step of set-up does.
class wait_supervisor {
 public:
  /// Success, or the status to return from the wait, whose details are kept. Cheap.
  virtual sucl_status keep_waiting() noexcept = 0;
  /// What was waited for has come.
  virtual void note_progress() noexcept = 0;

 protected:
  ~wait_supervisor() = default;
};

/// Has `s` decide for this thread, until the next call; null: nothing does. Returns what did.
wait_supervisor* supervise_waits(wait_supervisor* s) noexcept;

/// To be called again and again by a thread that waits for other ranks in a step of set-up: success
/// while it is worth it, or the status to return, whose details are kept. Cheap.
SUCL_CORE_API sucl_status keep_waiting() noexcept;
/// What was waited for has come.
SUCL_CORE_API void note_progress() noexcept;

/// Says for a thread of the program whether it wants a call that waits for an operation to be given
/// up, as where a signal has come for the interpreter of another language.
class wait_interrupter {
 public:
  /// Called again and again by the thread while it waits, with no lock held. Once true, it stays so
  /// until the call has returned.
  virtual bool is_interrupted() noexcept = 0;

 protected:
  ~wait_interrupter() = default;
};

/// Has `i` called in waits of this thread, until the next call; null: nothing is. Returns what was.
SUCL_CORE_API wait_interrupter* interrupt_waits(wait_interrupter* i) noexcept;
/// What waits of this thread call; null: nothing.
SUCL_CORE_API wait_interrupter* current_interrupter() noexcept;
/// Throws errc::peer_lost where the program wants the wait given up. What is waited for may go on;
/// where it was a blocking call, the code that has set the interrupter ends the communicator.
SUCL_CORE_API void throw_if_interrupted();

}  // namespace sucl::core
