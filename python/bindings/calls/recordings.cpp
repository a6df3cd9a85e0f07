// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Functions of Python whose operations are recorded, and replayed.
#include "calls/calls.hpp"
#include "parts.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <functional>
#include <memory>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {
namespace {

/// A recording, and what keeps the memory of its operations.
struct replayed {
  executable_handle executable;
  communicator_handle comm;
  std::shared_ptr<recorded_holdings> kept;
};

// Any thread may let go of it.
std::shared_ptr<recorded_holdings> new_holdings() {
  return {new recorded_holdings, [](recorded_holdings* one) {
            if (!Py_IsInitialized()) return;
            const nb::gil_scoped_acquire gil;
            delete one;
          }};
}

// Calls `function` while what it issues is recorded. Where there is no graph each replay does, and
// what the one before has kept is held by its operations as long as these are in flight.
std::function<void()> recorded(const nb::object& function,
                               const std::shared_ptr<recorded_holdings>& kept) {
  return [held = held_function(function), kept] {
    const nb::gil_scoped_acquire gil;
    const recorded_holdings before = std::exchange(*kept, {});
    const recording now(*kept);
    (*held)();
  };
}

void check_callable(nb::handle function) {
  if (PyCallable_Check(function.ptr()) == 0)
    fail(errc::invalid_argument,
         "what is to be recorded is a " + nb::cast<std::string>(nb::type_name(function.type())) +
             ", which cannot be called",
         "Pass a function without arguments that starts operations");
}

std::shared_ptr<replayed> record(const communicator_handle& c, nb::handle queue,
                                 const nb::object& function) {
  check_callable(function);
  const auto on = queue_from(queue);
  auto kept = new_holdings();
  auto calls = recorded(function, kept);
  executable_handle made = [&] {
    const nb::gil_scoped_release released;
    return c.record(on ? on->get() : nullptr, std::move(calls));
  }();
  return std::make_shared<replayed>(replayed{std::move(made), c, std::move(kept)});
}

void update(replayed& r, const nb::object& function) {
  check_callable(function);
  auto kept = new_holdings();
  auto calls = recorded(function, kept);
  {
    const nb::gil_scoped_release released;
    r.executable.update(std::move(calls));
  }
  r.kept = std::move(kept);
}

nb::object replay(const std::shared_ptr<replayed>& r, nb::handle deps) {
  sweep();
  const dependencies events = events_from(deps);
  const auto held = std::make_shared<holdings>();
  held->hold(nb::cast(r));
  event_handle e = without_gil(held, [&] { return r->executable.replay(events); });
  return nb::cast(std::make_shared<pending>(std::move(e), r->comm, held));
}

}  // namespace

void bind_recordings(nb::module_& m) {
  nb::class_<replayed>(m, "Executable")
      .def("replay", &replay, "deps"_a.none())
      .def("update", &update, "function"_a.none())
      .def("is_graph", [](const replayed& r) { return r.executable.is_graph(); });
  m.def("record", &record, "communicator"_a, "queue"_a.none(), "function"_a.none());
}

}  // namespace sucl::python
