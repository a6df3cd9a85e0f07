// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Compositions and their plans.
#include "calls/calls.hpp"
#include "parts.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {
namespace {

/// A plan, with the communicator that it is of.
struct plan {
  plan_handle handle;
  communicator_handle comm;
};

// The address of one side; null where it is None.
void* side(const plan& p, nb::handle array, bool written, std::size_t needed,
           const std::shared_ptr<holdings>& held) {
  if (array.is_none()) return nullptr;
  const char* what = written ? "the receive array" : "the send array";
  const array_view v = view_of(array, what, *held);
  if (v.element != p.handle.element() || v.element_size != p.handle.element_size())
    fail(errc::invalid_type,
         std::string(what) + " has elements of " + name(v.element) + ", the plan is for " +
             name(p.handle.element()),
         "Pass an array of the type that the plan was compiled for");
  if (v.elements < needed)
    fail(errc::invalid_count,
         std::string(what) + " has " + std::to_string(v.elements) + " elements, the plan uses " +
             std::to_string(needed),
         "Pass an array of at least so many: plan.send_size and plan.recv_size");
  if (written && v.read_only)
    fail(errc::invalid_memory, "the array that receives is read-only",
         "Pass one that may be written, as a copy");
  return v.pointer;
}

nb::object start_plan(const plan& p, nb::handle send, nb::handle recv, nb::handle deps) {
  sweep();
  const auto held = std::make_shared<holdings>();
  void* from = side(p, send, false, p.handle.send_size(), held);
  void* to = side(p, recv, true, p.handle.recv_size(), held);
  const dependencies events = events_from(deps);
  event_handle e = without_gil(held, [&] { return p.handle.start(from, to, events); });
  return nb::cast(std::make_shared<pending>(std::move(e), p.comm, held));
}

void run_plan(const plan& p, nb::handle send, nb::handle recv, nb::handle deps) {
  const auto held = std::make_shared<holdings>();
  void* from = side(p, send, false, p.handle.send_size(), held);
  void* to = side(p, recv, true, p.handle.recv_size(), held);
  const dependencies events = events_from(deps);
  wait_without_gil(held, {&p.comm, 1}, [&] { p.handle.run(from, to, events); });
}

// A primitive of Python: kind, (memory, offset, count) twice, root, ranks, op.
using slice_parts = std::tuple<int, std::size_t, std::size_t>;
using primitive = std::tuple<int, slice_parts, slice_parts, int, std::vector<int>, int>;

slice slice_of(const slice_parts& s) {
  return {static_cast<slice::memory>(std::get<0>(s)), std::get<1>(s), std::get<2>(s)};
}

plan compile(const communicator_handle& c, int ranks, const std::vector<primitive>& primitives,
             const std::vector<int>& hierarchy, const std::vector<std::string>& via,
             const std::tuple<int, int, int>& parts, const std::pair<int, std::size_t>& element) {
  composition made(ranks);
  for (const auto& [what, from, to, root, list, reduction] : primitives) {
    switch (static_cast<kind>(what)) {
      case kind::broadcast: made.multicast(slice_of(from), slice_of(to), root, list); break;
      case kind::reduce:
        made.reduction(slice_of(from), slice_of(to), list, root, static_cast<op>(reduction));
        break;
      default: made.fence();
    }
  }
  compile_options options;
  options.hierarchy = hierarchy;
  options.via = via;
  std::tie(options.stripe, options.ring, options.pipeline) = parts;
  const nb::gil_scoped_release released;
  return {c.compile(made, options, static_cast<type>(element.first), element.second), c};
}

}  // namespace

void bind_compositions(nb::module_& m) {
  nb::class_<plan>(m, "Plan")
      .def("start", &start_plan, "send"_a.none(), "recv"_a.none(), "deps"_a.none())
      .def("run", &run_plan, "send"_a.none(), "recv"_a.none(), "deps"_a.none())
      .def("send_size", [](const plan& p) { return p.handle.send_size(); })
      .def("recv_size", [](const plan& p) { return p.handle.recv_size(); })
      .def("explain", [](const plan& p) { return p.handle.explain(); });
  m.def("compile", &compile, "communicator"_a, "ranks"_a, "primitives"_a, "hierarchy"_a, "via"_a,
        "parts"_a, "element"_a);
}

}  // namespace sucl::python
