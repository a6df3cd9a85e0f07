// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Groups, compositions and their plans, and memory that ranks share.
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

/// Messages that are issued together.
struct messages {
  communicator_handle comm;
  group_handle group;
  std::shared_ptr<holdings> held = std::make_shared<holdings>();

  explicit messages(const communicator_handle& c) : comm(c), group(c) {}
  std::shared_ptr<holdings> take() { return std::exchange(held, std::make_shared<holdings>()); }
};

void add(messages& g, int what, nb::handle send, nb::handle recv, nb::handle root,
         nb::handle source, nb::handle tag) {
  const nb::object nothing = nb::none();
  const arguments given{what,
                        send,
                        recv,
                        nothing,
                        0,
                        number_of(root, "the other rank"),
                        number_of(source, "the source"),
                        number_of(tag, "the tag")};
  g.group.add(make_call(g.comm, given, *g.held, false));
}

// A message of `count` elements from `start` on.
void add_part(messages& g, bool sends, nb::handle array, int peer, int tag, std::size_t start,
              std::size_t count) {
  const nb::object nothing = nb::none();
  const int what = static_cast<int>(sends ? kind::send : kind::recv);
  call c = make_call(g.comm,
                     {what, sends ? array : nb::handle(nothing),
                      sends ? nb::handle(nothing) : array, nothing, 0, peer, peer, tag},
                     *g.held, false);
  operand& memory = sends ? c.send : c.recv;
  if (start > memory.elements || count > memory.elements - start)
    fail(errc::invalid_count,
         "elements " + std::to_string(start) + " to " + std::to_string(start + count) + " of " +
             (sends ? "the send array" : "the receive array") + " are asked for, which has " +
             std::to_string(memory.elements),
         "Pass an array with a block for each neighbor");
  memory.pointer = static_cast<char*>(memory.pointer) + start * c.record.element_size;
  memory.elements = count;
  c.record.count = c.record.recv_count = count;
  g.group.add(c);
}

nb::object submit(messages& g, nb::handle deps) {
  sweep();
  const dependencies events = events_from(deps);
  const auto held = g.take();
  event_handle e = without_gil(held, [&] { return g.group.submit(events); });
  return nb::cast(std::make_shared<pending>(std::move(e), g.comm, held));
}

void run(messages& g, nb::handle deps) {
  const dependencies events = events_from(deps);
  const auto held = g.take();
  without_gil(held, [&] { g.group.run(events); });
}

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
  without_gil(held, [&] { p.handle.run(from, to, events); });
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

std::uintptr_t allocate(const communicator_handle& c, std::size_t bytes) {
  const nb::gil_scoped_release released;
  return reinterpret_cast<std::uintptr_t>(c.allocate(bytes));
}

void deallocate(const communicator_handle& c, std::uintptr_t address) {
  const nb::gil_scoped_release released;
  c.deallocate(reinterpret_cast<void*>(address));
}

}  // namespace

void bind_compositions(nb::module_& m) {
  nb::class_<messages>(m, "Group")
      .def(nb::init<const communicator_handle&>(), "communicator"_a)
      .def("add", &add, "kind"_a, "send"_a.none(), "recv"_a.none(), "root"_a.none(),
           "source"_a.none(), "tag"_a.none())
      .def("add_part", &add_part, "sends"_a, "array"_a, "peer"_a, "tag"_a, "start"_a, "count"_a)
      .def("submit", &submit, "deps"_a.none())
      .def("run", &run, "deps"_a.none());
  nb::class_<plan>(m, "Plan")
      .def("start", &start_plan, "send"_a.none(), "recv"_a.none(), "deps"_a.none())
      .def("run", &run_plan, "send"_a.none(), "recv"_a.none(), "deps"_a.none())
      .def("send_size", [](const plan& p) { return p.handle.send_size(); })
      .def("recv_size", [](const plan& p) { return p.handle.recv_size(); })
      .def("explain", [](const plan& p) { return p.handle.explain(); });
  m.def("compile", &compile, "communicator"_a, "ranks"_a, "primitives"_a, "hierarchy"_a, "via"_a,
        "parts"_a, "element"_a);
  m.def("allocate", &allocate, "communicator"_a, "bytes"_a);
  m.def("deallocate", &deallocate, "communicator"_a, "address"_a);
}

}  // namespace sucl::python
