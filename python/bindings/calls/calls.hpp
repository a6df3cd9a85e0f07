// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Calls of Python as calls of SuCL.
#pragma once

#include "arrays/arrays.hpp"
#include "bridge.hpp"

#include <nanobind/nanobind.h>

#include <memory>

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

  [[nodiscard]] bool done() const { return m_event.done(); }
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

/// Lets go of memory of operations that are done meanwhile.
void sweep();

/// Runs `body` without the GIL. After an operation was given up its memory is kept for good.
template <class Body>
auto without_gil(const std::shared_ptr<holdings>& held, Body&& body);
void keep_for_good(const std::shared_ptr<holdings>& held);

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
