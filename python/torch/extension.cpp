// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The extension of torch: all its sources as one, and what Python calls of it.
#include "backend.cpp"
#include "gpu.cpp"
#include "messages.cpp"
#include "several.cpp"
#include "sparse.cpp"
#include "work.cpp"

#include <torch/csrc/utils/pybind.h>

#include <pybind11/functional.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace py = pybind11;

namespace sucl::torch {
namespace {

// Takes the communicator out of its capsule.
sucl_port_handle take(const py::object& capsule) {
  void* inside = PyCapsule_GetPointer(capsule.ptr(), SUCL_PORT_CAPSULE);
  if (!inside) throw py::error_already_set();
  PyCapsule_SetName(capsule.ptr(), "taken");
  return *static_cast<sucl_port_handle*>(inside);
}

// Ends with the lock of Python held, from whichever thread lets go of it.
std::shared_ptr<py::function> shared(const py::function& f) {
  return {new py::function(f), [](py::function* one) {
            const py::gil_scoped_acquire gil;
            delete one;
          }};
}

std::function<void(bool)> callable(const py::function& f) {
  const auto held = shared(f);
  return [held](bool value) {
    const py::gil_scoped_acquire gil;
    (*held)(value);
  };
}

// Of a function that takes the type and number of a device and a peer, and returns the capsule of a
// communicator and its stream's identity.
auto maker_of_tracks(const py::function& f) {
  const auto held = shared(f);
  return [held](c10::Device gpu, int peer) {
    const py::gil_scoped_acquire gil;
    const py::tuple made = (*held)(std::string(c10::DeviceTypeName(gpu.type(), true)),
                                   static_cast<int>(gpu.index()), peer);
    return std::pair(take(made[0]), made[1].cast<std::int64_t>());
  };
}

c10::intrusive_ptr<c10d::Backend> make(const py::object& capsule, int rank, int size,
                                       const std::string& name, std::int64_t timeout_ms,
                                       bool own_limit, const py::function& ended,
                                       const py::function& on_gpu) {
  group_options options{name, milliseconds(timeout_ms), own_limit, callable(ended),
                        maker_of_tracks(on_gpu)};
  return c10::make_intrusive<backend>(take(capsule), rank, size, std::move(options));
}

void set_timeout(c10d::Backend& group, std::int64_t ms) {
  if (auto* own = dynamic_cast<backend*>(&group)) own->setTimeout(milliseconds(ms));
}

// Has Python get exceptions of SuCL's classes.
void translate(const py::object& maker) {
  static PyObject* const make_error = maker.inc_ref().ptr();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const failure& f) {
      const py::object made = py::handle(make_error)(f.code, f.what(), f.fact, f.cure, f.operation,
                                                     f.backend, f.native_code, f.rank);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
    }
  });
}

}  // namespace
}  // namespace sucl::torch

PYBIND11_MODULE(SUCL_TORCH_MODULE, m) {
  py::module_::import("torch.distributed");
  m.def("make", &sucl::torch::make);
  m.def("set_timeout", &sucl::torch::set_timeout);
  m.def("translate", &sucl::torch::translate);
}
