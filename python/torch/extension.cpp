// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The extension of torch: all its sources as one, and what Python calls of it.
#include "backend.cpp"
#include "gpu.cpp"
#include "groups.cpp"
#include "messages.cpp"
#include "several.cpp"
#include "sparse.cpp"
#include "work.cpp"

#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>
#include <pybind11/functional.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace py = pybind11;

namespace sucl::torch {

/// A pointer that Python keeps: the lock of Python is not held where the object ends, which may
/// wait for threads that want it.
template <class T>
class kept_by_python {
 public:
  using element_type = T;
  kept_by_python() = default;
  kept_by_python(c10::intrusive_ptr<T> p) : m_own(std::move(p)) {}
  explicit kept_by_python(T* p) : m_own(c10::intrusive_ptr<T>::unsafe_steal_from_new(p)) {}
  kept_by_python(const kept_by_python&) = default;
  kept_by_python(kept_by_python&&) noexcept = default;
  kept_by_python& operator=(const kept_by_python&) = default;
  kept_by_python& operator=(kept_by_python&&) noexcept = default;
  ~kept_by_python() {
    if (!m_own || !PyGILState_Check()) return;
    const py::gil_scoped_release released;
    m_own.reset();
  }
  T* get() const { return m_own.get(); }
  T& operator*() const { return *m_own; }
  T* operator->() const { return m_own.get(); }

 private:
  c10::intrusive_ptr<T> m_own;
};

}  // namespace sucl::torch

PYBIND11_DECLARE_HOLDER_TYPE(T, sucl::torch::kept_by_python<T>, true)

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

// Of a function that takes the id and ranks of a group and its timeout in milliseconds, and returns
// the group.
auto maker_of_parts(const py::function& f) {
  const auto held = shared(f);
  return [held](const std::string& id, const std::vector<int>& ranks, milliseconds timeout) {
    const py::gil_scoped_acquire gil;
    return (*held)(id, ranks, timeout.count()).cast<some_backend>();
  };
}

some_backend make(const py::object& capsule, int rank, const std::string& name,
                  const std::string& id, const std::vector<int>& ranks, std::int64_t timeout_ms,
                  bool own_limit, const py::function& ended, const py::function& on_gpu,
                  const py::function& part) {
  const int size = static_cast<int>(ranks.size());
  group_options options{name,
                        id,
                        ranks,
                        milliseconds(timeout_ms),
                        own_limit,
                        callable(ended),
                        maker_of_tracks(on_gpu),
                        maker_of_parts(part)};
  return c10::make_intrusive<backend>(take(capsule), rank, size, std::move(options));
}

void set_timeout(c10d::Backend& group, std::int64_t ms) {
  if (auto* own = dynamic_cast<backend*>(&group)) own->setTimeout(milliseconds(ms));
}

// The ranks of the job that a group has; none for one of another backend.
std::vector<int> ranks_of(const c10d::Backend& group) {
  const auto* own = dynamic_cast<const backend*>(&group);
  return own ? own->ranks_of_job() : std::vector<int>{};
}

// Of the classes, what torch asks of those of its own backends and c10d::Backend has not.
void bind_classes(py::module_& m) {
  using released = py::call_guard<py::gil_scoped_release>;
  py::class_<backend_options, c10d::Backend::Options, kept_by_python<backend_options>>(m, "Options")
      .def("__copy__",
           [](const backend_options& o) { return c10::make_intrusive<backend_options>(o); })
      .def("__deepcopy__", [](const backend_options& o, const py::dict&) {
        return c10::make_intrusive<backend_options>(o);
      });
  py::class_<backend, c10d::Backend, kept_by_python<backend>>(m, "ProcessGroupSucl")
      .def_property_readonly("options", &backend::getBackendOptions)
      .def("get_error", &backend::getError, released())
      .def("_set_default_timeout", &backend::setTimeout, py::arg("timeout"))
      .def("comm_split_count", &backend::splits)
      // Ranks that are in no part have nothing to do.
      .def("perform_nocolor_split", [](backend&, const py::object&) {});
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
  sucl::torch::bind_classes(m);
  m.def("make", &sucl::torch::make);
  m.def("ranks_of", &sucl::torch::ranks_of);
  m.def("set_timeout", &sucl::torch::set_timeout);
  m.def("translate", &sucl::torch::translate);
}
