// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Calls of Python as calls of SuCL.
#pragma once

#include "arrays/arrays.hpp"
#include "bridge.hpp"
#include "core/exchange/waiting.hpp"

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sucl::python {

/// What keeps the memory of operations that are recorded.
using recorded_holdings = std::vector<std::shared_ptr<holdings>>;

/// While it is there, what this thread issues is recorded, and kept by `into`.
class recording {
 public:
  explicit recording(recorded_holdings& into);
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;
  ~recording();

 private:
  recorded_holdings* m_before;
};

/// An operation in flight, with what keeps its memory. Where Python lets go of it first, the memory
/// is kept until the operation is done. What is recorded cannot be waited for.
class pending {
 public:
  pending(event_handle e, communicator_handle c, std::shared_ptr<holdings> held);
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  ~pending();

  [[nodiscard]] bool done() const;
  /// Returns when the operation is done, or after so many seconds, with whether it is. Negative:
  /// without end. Throws what failed.
  bool wait(double seconds);
  [[nodiscard]] const event_handle& event() const { return m_event; }

 private:
  event_handle m_event;
  communicator_handle m_communicator;
  std::shared_ptr<holdings> m_held;
  bool m_is_recorded;
};

/// Arguments of a call as Python has them.
struct arguments {
  int what;                     ///< a kind
  nanobind::handle send, recv;  ///< arrays, or None
  nanobind::handle arrays;      ///< None, or counts and displacements to send and to receive
  int reduction, root, source, tag;
};

/// An integer of Python or numpy as one of SuCL, or errc::invalid_argument. `what`: its name.
int number_of(nanobind::handle value, const char* what);

/// Throws what is wrong with a call, of which `part` is known, and with `started`, as the call
/// would be by now, tells the other ranks.
[[noreturn]] void refuse(const communicator_handle& c, int kind, const call& part, const error& e,
                         bool started);

/// The call, whose arrays are held. Throws what is wrong with them, and with `started`, as the call
/// would be by now, tells the other ranks.
call make_call(const communicator_handle& c, const arguments& a, holdings& held, bool started);

/// The events that sucl.Event and dpctl's SyclEvent are.
dependencies events_from(nanobind::handle deps);

/// A function of Python that any thread may call, with the GIL, and let go of.
std::shared_ptr<nanobind::object> held_function(const nanobind::object& function);

/// Notes which thread is Python's main one. Before the first call.
void find_main_thread();

/// Lets go of memory of operations that are done meanwhile.
void sweep();

/// A signal has interrupted calls of these communicators, whose memory is in use for good.
void give_up(const std::shared_ptr<holdings>& held, std::span<const communicator_handle> calls,
             const std::string& raised);

/// Runs `body` without the GIL. After an operation was given up its memory is kept for good.
template <class Body>
auto without_gil(const std::shared_ptr<holdings>& held, Body&& body);
void keep_for_good(const std::shared_ptr<holdings>& held);

/// While it lives, what waits in a call of the main thread without the GIL lets Python handle
/// signals now and then, and is given up where that raises. Other threads handle none, and must not
/// take the GIL when the program ends.
class signal_check final : private core::wait_interrupter {
 public:
  signal_check();
  ~signal_check();
  signal_check(const signal_check&) = delete;
  signal_check& operator=(const signal_check&) = delete;

  [[nodiscard]] bool has_raised() const { return m_raised.has_value(); }
  /// What was raised. With the GIL.
  [[noreturn]] void rethrow();
  /// Its type. With the GIL.
  [[nodiscard]] std::string type() const;

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds between{50};

  bool is_interrupted() noexcept override;

  bool m_checks;
  core::wait_interrupter* m_outer = nullptr;
  clock::time_point m_next;
  std::optional<nanobind::python_error> m_raised;
};

/// Runs `body`, which waits, without the GIL. Where what handles a signal raises meanwhile, the
/// wait is given up. What `body` calls on the communicators of `calls` cannot be done then, so that
/// they end on all ranks.
template <class Body>
void wait_without_gil(const std::shared_ptr<holdings>& held,
                      std::span<const communicator_handle> calls, Body&& body) {
  signal_check signals;
  try {
    without_gil(held, std::forward<Body>(body));
  } catch (const error&) {
    if (!signals.has_raised()) throw;
    give_up(held, calls, signals.type());
    signals.rethrow();
  }
}

template <class Body>
auto without_gil(const std::shared_ptr<holdings>& held, Body&& body) {
  try {
    const nanobind::gil_scoped_release released;
    return body();
  } catch (const error& e) {
    if (e.code() == errc::timeout || e.code() == errc::peer_lost) keep_for_good(held);
    throw;
  }
}

}  // namespace sucl::python
