// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that are issued together: messages of one communicator, or any of several ones.
#include "calls/calls.hpp"
#include "parts.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {
namespace {

bool is_message(int what) {
  const auto k = static_cast<kind>(what);
  return k == kind::send || k == kind::recv || k == kind::sendrecv;
}

/// A group, and what keeps the memory of its operations.
struct together {
  /// An operation: messages of a communicator are one.
  struct operation {
    communicator_handle on;
    bool messages;
  };
  std::optional<communicator_handle> comm;  ///< of whose messages it is
  group_handle group;
  std::vector<operation> operations;
  std::shared_ptr<holdings> held = std::make_shared<holdings>();

  together() = default;
  explicit together(const communicator_handle& c) : comm(c), group(c) {}

  void note(const communicator_handle& on, bool message) {
    const auto same = [&](const operation& o) { return o.messages && o.on.is_same(on); };
    if (message && std::any_of(operations.begin(), operations.end(), same)) return;
    operations.push_back({on, message});
  }
  std::shared_ptr<holdings> take() { return std::exchange(held, std::make_shared<holdings>()); }
  // The communicator of the only operation; null where there are none or several.
  [[nodiscard]] const communicator_handle* only() const {
    if (operations.size() == 1) return &operations[0].on;
    return operations.empty() && comm ? &*comm : nullptr;
  }
};

const communicator_handle& own(const together& g) {
  if (!g.comm)
    fail(errc::invalid_argument, "the group is of several communicators, and none was named",
         "Say of which one: group.on(comm).send(...)");
  return *g.comm;
}

void add(together& g, int what, nb::handle send, nb::handle recv, nb::handle root,
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
  g.group.add(make_call(own(g), given, *g.held, false));
  g.note(*g.comm, true);
}

// An operation of any kind, of a communicator that one of several is.
void add_on(together& g, const communicator_handle& on, int what, nb::handle send, nb::handle recv,
            nb::handle arrays, int reduction, nb::handle root, nb::handle source, nb::handle tag) {
  const arguments given{what,
                        send,
                        recv,
                        arrays,
                        reduction,
                        number_of(root, "the root or other rank"),
                        number_of(source, "the source"),
                        number_of(tag, "the tag")};
  g.group.add(on, make_call(on, given, *g.held, false));
  g.note(on, is_message(what));
}

// A message of `count` elements from `start` on.
void add_part(together& g, bool sends, nb::handle array, int peer, int tag, std::size_t start,
              std::size_t count) {
  const nb::object nothing = nb::none();
  const int what = static_cast<int>(sends ? kind::send : kind::recv);
  call c = make_call(own(g),
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
  g.note(*g.comm, true);
}

nb::object submit(together& g, nb::handle deps) {
  sweep();
  const dependencies events = events_from(deps);
  if (!g.only())
    fail(errc::invalid_argument,
         "the group has " + std::to_string(g.operations.size()) +
             " operations, which are no single one: collectives, or several communicators",
         "Call submit_each(), which returns an event of each, or run()");
  const communicator_handle on = *g.only();
  g.operations.clear();
  const auto held = g.take();
  event_handle e = without_gil(held, [&] { return g.group.submit(events); });
  return nb::cast(std::make_shared<pending>(std::move(e), on, held));
}

nb::list submit_each(together& g, nb::handle deps) {
  sweep();
  const dependencies events = events_from(deps);
  auto operations = std::exchange(g.operations, {});
  if (operations.empty() && g.comm) operations.push_back({*g.comm, true});
  const auto held = g.take();
  std::vector<event_handle> done;
  try {
    done = without_gil(held, [&] { return g.group.submit_each(events); });
  } catch (...) {
    if (operations.size() > 1) keep_for_good(held);  // some may be in flight
    throw;
  }
  nb::list all;
  for (std::size_t i = 0; i < done.size(); ++i)
    all.append(nb::cast(std::make_shared<pending>(std::move(done[i]), operations.at(i).on, held)));
  return all;
}

void run(together& g, nb::handle deps) {
  const dependencies events = events_from(deps);
  const bool several = g.operations.size() > 1;
  std::vector<communicator_handle> all;
  for (auto& one : std::exchange(g.operations, {})) all.push_back(std::move(one.on));
  const auto held = g.take();
  try {
    wait_without_gil(held, all, [&] { g.group.run(events); });
  } catch (...) {
    if (several) keep_for_good(held);
    throw;
  }
}

}  // namespace

void bind_groups(nb::module_& m) {
  nb::class_<together>(m, "Group")
      .def(nb::init<>())
      .def(nb::init<const communicator_handle&>(), "communicator"_a)
      .def("add", &add, "kind"_a, "send"_a.none(), "recv"_a.none(), "root"_a.none(),
           "source"_a.none(), "tag"_a.none())
      .def("add_on", &add_on, "communicator"_a, "kind"_a, "send"_a.none(), "recv"_a.none(),
           "arrays"_a.none(), "op"_a, "root"_a.none(), "source"_a.none(), "tag"_a.none())
      .def("add_part", &add_part, "sends"_a, "array"_a, "peer"_a, "tag"_a, "start"_a, "count"_a)
      .def("submit", &submit, "deps"_a.none())
      .def("submit_each", &submit_each, "deps"_a.none())
      .def("run", &run, "deps"_a.none());
}

}  // namespace sucl::python
