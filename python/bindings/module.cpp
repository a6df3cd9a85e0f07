// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The module sucl._core: what sucl's Python files are made on.
#include "calls/calls.hpp"
#include "parts.hpp"

#include <sucl/version.hpp>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {
namespace {

enum class form { event, blocking, persistent };

nb::object post(const communicator_handle& c, int how, int what, nb::handle send, nb::handle recv,
                nb::handle arrays, int reduction, nb::handle root, nb::handle source,
                nb::handle tag, nb::handle deps) {
  sweep();
  const auto held = std::make_shared<holdings>();
  const bool starts = static_cast<form>(how) != form::persistent;
  arguments given{what, send, recv, arrays, reduction, 0, 0, 0};
  try {
    given.root = number_of(root, "the root or other rank");
    given.source = number_of(source, "the source");
    given.tag = number_of(tag, "the tag");
  } catch (const error& e) {
    refuse(c, what, {}, e, starts);
  }
  const call made = make_call(c, given, *held, starts);
  const dependencies events = events_from(deps);
  switch (static_cast<form>(how)) {
    case form::blocking:
      wait_without_gil(held, {&c, 1}, [&] { c.run(made, events); });
      return nb::none();
    case form::event: {
      event_handle e = without_gil(held, [&] { return c.submit(made, events); });
      return nb::cast(std::make_shared<pending>(std::move(e), c, held));
    }
    case form::persistent:
      return nb::cast(std::make_shared<repeated>(repeated{c.prepare(made, events), c, held}));
  }
  return nb::none();
}

nb::object start(const repeated& r, nb::handle deps) {
  const dependencies events = events_from(deps);
  event_handle e = without_gil(r.held, [&] { return r.operation.start(events); });
  return nb::cast(std::make_shared<pending>(std::move(e), r.comm, r.held));
}

void run_repeated(const repeated& r, nb::handle deps) {
  const dependencies events = events_from(deps);
  wait_without_gil(r.held, {&r.comm, 1}, [&] { r.operation.run(events); });
}

// The operations go on where a signal interrupts it.
void wait_for_all(const communicator_handle& c) {
  wait_without_gil(nullptr, {}, [&] { c.wait(); });
}

// A capsule as dpctl's: who takes what is in it gives it another name.
template <class Handle>
nb::object capsule_of(const Handle& handle, const char* name) {
  PyObject* made = PyCapsule_New(handle.copy(), name, [](PyObject* capsule) {
    const char* now = PyCapsule_GetName(capsule);
    if (now && std::strncmp(now, "Sycl", 4) == 0)
      Handle::destroy(PyCapsule_GetPointer(capsule, now));
  });
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

nb::object event_capsule(const pending& p) { return capsule_of(p.event(), "SyclEventRef"); }
nb::object queue_capsule(const queue_handle& q) { return capsule_of(q, "SyclQueueRef"); }

nb::list members(const communicator_handle& c) {
  nb::list all;
  for (const member& m : c.members())
    all.append(nb::make_tuple(m.rank, m.node, m.local_rank, m.host, m.process, m.platform,
                              m.implementation, m.sycl_backend, m.device, m.device_memory_on_host,
                              m.native_memory, m.island));
  return all;
}

void bind_operations(nb::module_& m) {
  nb::class_<pending>(m, "Event")
      .def("wait", &pending::wait, "seconds"_a)
      .def("done", &pending::done)
      .def("_get_capsule", &event_capsule);
  nb::class_<repeated>(m, "Persistent")
      .def("start", &start, "deps"_a.none())
      .def("run", &run_repeated, "deps"_a.none());
  nb::class_<queue_handle>(m, "Queue")
      .def("device", &queue_handle::device)
      .def("_get_capsule", &queue_capsule);
  m.def("queue", &queue_from, "object"_a.none());
}

void bind_communicator(nb::module_& m) {
  using released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<communicator_handle>(m, "Communicator")
      .def("post", &post, "form"_a, "kind"_a, "send"_a.none(), "recv"_a.none(), "arrays"_a.none(),
           "op"_a, "root"_a.none(), "source"_a.none(), "tag"_a.none(), "deps"_a.none())
      .def("empty", &communicator_handle::empty)
      .def("rank", &communicator_handle::rank)
      .def("size", &communicator_handle::size)
      .def("members", &members)
      .def("has_queue", &communicator_handle::has_queue)
      .def("queue", &communicator_handle::queue)
      .def("split", &communicator_handle::split, "colour"_a, "key"_a, released())
      .def("dup", &communicator_handle::dup, released())
      .def("shrink", &communicator_handle::shrink, released())
      .def(
          "explain",
          [](const communicator_handle& c, int k, std::size_t bytes, int t, int o) {
            return c.explain(static_cast<kind>(k), bytes, static_cast<type>(t), static_cast<op>(o));
          },
          "kind"_a, "bytes"_a, "type"_a, "op"_a)
      .def(
          "selected_backend",
          [](const communicator_handle& c, int k, std::size_t bytes, int t, int o) {
            return c.selected_backend(static_cast<kind>(k), bytes, static_cast<type>(t),
                                      static_cast<op>(o));
          },
          "kind"_a, "bytes"_a, "type"_a, "op"_a)
      .def("use_tuning", &communicator_handle::use_tuning, "toml"_a, released())
      .def("wait", &wait_for_all)
      .def("check", &communicator_handle::check, released());
}

std::pair<int, std::size_t> element_type(const std::string& dtype) {
  type element = type::bytes;
  std::size_t size = 1;
  type_of_dtype(dtype, element, size);
  return {static_cast<int>(element), size};
}

bool is_defined(int reduction, int element) {
  return defined(static_cast<op>(reduction), static_cast<type>(element));
}

// What SuCL makes of an array: type, bytes of an element, elements, read-only, address.
nb::tuple describe_array(nb::handle array) {
  holdings held;
  const array_view v = view_of(array, "the array", held);
  return nb::make_tuple(name(v.element), v.element_size, v.elements, v.read_only,
                        reinterpret_cast<std::uintptr_t>(v.pointer));
}

void translate_errors(nb::object maker) {
  static PyObject* const make = maker.release().ptr();
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const error& e) {
      const nb::object exception =
          nb::handle(make)(static_cast<int>(e.code()), name(e.code()), e.what(), e.message(),
                           e.hint(), e.operation(), e.backend(), e.native_code(), e.rank());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
}

}  // namespace
}  // namespace sucl::python

NB_MODULE(_core, m) {
  using namespace sucl::python;
  // A process may end while operations are in flight, whose memory is kept for good.
  nb::set_leak_warnings(false);
  m.doc() = "The part of sucl that is not Python; not for programs.";
  m.attr("version") = SUCL_VERSION_STRING;
  m.def("translate_errors", &translate_errors, "maker"_a);
  m.def("element_type", &element_type, "dtype"_a);
  m.def("describe_array", &describe_array, "array"_a);
  m.def("defined", &is_defined, "op"_a, "type"_a);
  find_main_thread();
  bind_operations(m);
  bind_communicator(m);
  bind_runtime(m);
  bind_compositions(m);
  bind_groups(m);
  bind_memory(m);
  bind_neighbors(m);
  bind_partitions(m);
  bind_recordings(m);
  bind_functions(m);
  bind_port(m);
}
