// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Memory that ranks share, and memory of devices that is mapped into the others.
#include "calls/calls.hpp"
#include "parts.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <cstddef>
#include <cstdint>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {
namespace {

std::uintptr_t allocate(const communicator_handle& c, std::size_t bytes) {
  const nb::gil_scoped_release released;
  return reinterpret_cast<std::uintptr_t>(c.allocate(bytes));
}

void deallocate(const communicator_handle& c, std::uintptr_t address) {
  const nb::gil_scoped_release released;
  c.deallocate(reinterpret_cast<void*>(address));
}

/// An array that is mapped, if `active`, and kept; for good where it is let go of while it is, as
/// other ranks may still write there.
struct registered {
  registered(const communicator_handle& c, std::shared_ptr<holdings> h)
      : comm(c), held(std::move(h)) {}
  ~registered() {
    if (active) keep_for_good(held);
  }
  registered(const registered&) = delete;
  registered& operator=(const registered&) = delete;

  communicator_handle comm;
  std::shared_ptr<holdings> held;
  void* memory = nullptr;
  bool active = false;
};

// What is wrong with this rank's array the others get to know: they wait in the call.
array_view view_for_all(const communicator_handle& c, nb::handle array, holdings& held) {
  array_view view;
  if (array.is_none()) return view;
  try {
    view = view_of(array, "the array", held);
    if (view.elements == 0) view.pointer = nullptr;
  } catch (const error&) {
    try {
      const nb::gil_scoped_release released;
      (void)c.register_memory(nullptr, 1);
    } catch (const error&) {  // the first one says more
    }
    throw;
  }
  return view;
}

std::shared_ptr<registered> register_memory(const communicator_handle& c, nb::handle array) {
  auto made = std::make_shared<registered>(c, std::make_shared<holdings>());
  const array_view view = view_for_all(c, array, *made->held);
  made->memory = view.pointer;
  made->active = without_gil(made->held, [&] {
    return c.register_memory(view.pointer, view.pointer ? view.elements * view.element_size : 0);
  });
  return made;
}

void deregister_memory(registered& r) {
  if (r.active) {
    without_gil(r.held, [&] { r.comm.deregister_memory(r.memory); });
    r.active = false;
  }
  r.held.reset();
}

}  // namespace

void bind_memory(nb::module_& m) {
  nb::class_<registered>(m, "Registration")
      .def("active", [](const registered& r) { return r.active; })
      .def("deregister", &deregister_memory);
  m.def("allocate", &allocate, "communicator"_a, "bytes"_a);
  m.def("deallocate", &deallocate, "communicator"_a, "address"_a);
  m.def("register_memory", &register_memory, "communicator"_a, "array"_a.none());
}

}  // namespace sucl::python
