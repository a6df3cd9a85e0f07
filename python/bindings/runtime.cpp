// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The start and the end of SuCL: by the environment, by an id, a store of Python, or mpi4py.
#include "calls/calls.hpp"
#include "parts.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {

// Calls of the store come from the thread that has let go of the GIL to join.
rendezvous_store store_of(const nb::object& object) {
  rendezvous_store store;
  store.put = [object](const std::string& key, const std::string& value) {
    const nb::gil_scoped_acquire gil;
    object.attr("put")(key, nb::bytes(value.data(), value.size()));
  };
  store.get = [object](const std::string& key) {
    const nb::gil_scoped_acquire gil;
    const nb::object value = object.attr("get")(key);
    if (!nb::isinstance<nb::bytes>(value))
      fail(errc::invalid_argument, "the store's get() has returned no bytes",
           "Return the bytes that put() was given");
    const auto bytes = nb::borrow<nb::bytes>(value);
    return std::string(bytes.c_str(), bytes.size());
  };
  store.wait = [object](const std::string& key, std::chrono::milliseconds limit) {
    const nb::gil_scoped_acquire gil;
    const nb::object came = object.attr("wait")(key, static_cast<double>(limit.count()) / 1000);
    if (!nb::isinstance<nb::bool_>(came))
      fail(errc::invalid_argument,
           "the store's wait() has returned " + nb::cast<std::string>(nb::repr(came)),
           "Return True once the key is there, and False when the time is over");
    return nb::cast<bool>(came);
  };
  return store;
}

namespace {

std::pair<runtime_handle, std::vector<std::string>> start_runtime(
    std::vector<std::string> arguments) {
  runtime_handle made = [&] {
    const nb::gil_scoped_release released;
    return runtime_handle::start(arguments);
  }();
  return {std::move(made), std::move(arguments)};
}

runtime_handle join_by_id(const std::string& id, int rank, int size) {
  const nb::gil_scoped_release released;
  return runtime_handle::join(unique_id::from_string(id), rank, size);
}

runtime_handle join_by_store(const nb::object& object, int rank, int size) {
  const rendezvous_store store = store_of(object);  // ends with the GIL held
  const nb::gil_scoped_release released;
  return runtime_handle::join(store, rank, size);
}

void grow(const runtime_handle& r, const communicator_handle& members, const std::string& id,
          int joiners) {
  const nb::gil_scoped_release released;
  r.grow(members, unique_id::from_string(id), joiners);
}

runtime_handle from_mpi(std::uintptr_t comm, std::size_t bytes) {
  const nb::gil_scoped_release released;
  return runtime_handle::from_mpi(reinterpret_cast<const void*>(comm), bytes);
}

communicator_handle world(const runtime_handle& r, nb::handle queue) {
  const auto on = queue_from(queue);
  const nb::gil_scoped_release released;
  return r.world(on ? on->get() : nullptr);
}

std::vector<std::shared_ptr<queue_handle>> queues_from(nb::handle queues) {
  std::vector<std::shared_ptr<queue_handle>> all;
  for (nb::handle one : nb::iter(queues)) {
    all.push_back(queue_from(one));
    if (!all.back())
      fail(errc::invalid_argument, "one of the queues is None", "Name a device, or pass a queue");
  }
  return all;
}

std::vector<communicator_handle> worlds(const runtime_handle& r, nb::handle queues) {
  const auto all = queues_from(queues);
  const nb::gil_scoped_release released;
  return r.worlds(all);
}

communicator_handle adopt(const runtime_handle& r, std::uintptr_t comm, std::size_t bytes,
                          nb::handle queue) {
  const auto on = queue_from(queue);
  const nb::gil_scoped_release released;
  return r.adopt(reinterpret_cast<const void*>(comm), bytes, on ? on->get() : nullptr);
}

std::vector<communicator_handle> adopt_queues(const runtime_handle& r, std::uintptr_t comm,
                                              std::size_t bytes, nb::handle queues) {
  const auto all = queues_from(queues);
  const nb::gil_scoped_release released;
  return r.adopt(reinterpret_cast<const void*>(comm), bytes, all);
}

std::string make_id(const std::string& network, std::uint16_t port) {
  const nb::gil_scoped_release released;
  return unique_id::make(network, port).to_string();
}

}  // namespace

void bind_runtime(nb::module_& m) {
  nb::class_<runtime_handle>(m, "Runtime")
      .def("rank", &runtime_handle::rank)
      .def("size", &runtime_handle::size)
      .def("control_plane", &runtime_handle::control_plane)
      .def("world", &world, "queue"_a.none())
      .def("worlds", &worlds, "queues"_a)
      .def("adopt", &adopt, "comm"_a, "bytes"_a, "queue"_a.none())
      .def("adopt_queues", &adopt_queues, "comm"_a, "bytes"_a, "queues"_a)
      .def("grow", &grow, "members"_a, "id"_a, "joiners"_a)
      .def("abandon", &runtime_handle::abandon, nb::call_guard<nb::gil_scoped_release>())
      .def("shut_down", &runtime_handle::shut_down, nb::call_guard<nb::gil_scoped_release>());
  m.def("start", &start_runtime, "arguments"_a);
  m.def("join_by_id", &join_by_id, "id"_a, "rank"_a, "size"_a);
  m.def("join_by_store", &join_by_store, "store"_a, "rank"_a, "size"_a);
  m.def("from_mpi", &from_mpi, "comm"_a, "bytes"_a);
  m.def("make_id", &make_id, "network"_a, "port"_a);
}

}  // namespace sucl::python
