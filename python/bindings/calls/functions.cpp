// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Reductions by functions of Python.
#include "calls/calls.hpp"
#include "parts.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {
namespace {

// Has Python see elements of lower ranks, and those of higher ones, which it replaces. What it
// raises outlives Python where SYCL keeps it.
auto fold_by(const nb::object& function, std::size_t element_size) {
  return [held = held_function(function), element_size](const void* lower, void* upper,
                                                        std::size_t count) {
    if (count == 0) return;
    const nb::gil_scoped_acquire gil;
    const auto bytes = static_cast<Py_ssize_t>(count * element_size);
    const auto view = [&](const void* memory, int how) {
      return nb::steal(
          PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(memory)), bytes, how));
    };
    std::string raised;
    try {
      (*held)(view(lower, PyBUF_READ), view(upper, PyBUF_WRITE));
      return;
    } catch (const nb::python_error& e) {
      raised = nb::cast<std::string>(nb::str(e.type().attr("__name__"))) + ": " +
               nb::cast<std::string>(nb::str(e.value()));
    }
    throw std::runtime_error(raised);
  };
}

void check_sizes(const communicator_handle& c, communicator_handle::reduction& r,
                 const array_view& send, const std::optional<array_view>& recv) {
  const bool scatters = r.what == kind::reduce_scatter;
  const bool in_blocks = r.what == kind::reduce_scatter_block;
  if (in_blocks && send.elements != r.counts[0] * static_cast<std::size_t>(c.size()))
    fail(errc::invalid_count,
         "the send array has " + std::to_string(send.elements) + " elements, which are no blocks " +
             "of the receive array's " + std::to_string(r.counts[0]) + " for each of " +
             std::to_string(c.size()) + " ranks",
         "Pass a send array of that size times the number of ranks");
  std::size_t all = 0;
  for (const std::size_t n : r.counts) all += n;
  if (scatters && r.counts.size() != static_cast<std::size_t>(c.size()))
    fail(errc::invalid_count,
         std::to_string(r.counts.size()) + " counts are for " + std::to_string(c.size()) + " ranks",
         "Pass one for each rank");
  if (!in_blocks && all != send.elements)
    fail(errc::invalid_count,
         "the send array has " + std::to_string(send.elements) + " elements, and the counts are " +
             std::to_string(all) + " in all",
         "Pass counts that sum up to its size");
  if (!recv) return;
  if (recv->element != send.element || recv->element_size != send.element_size)
    fail(errc::invalid_type, "the arrays have elements of different types",
         "Pass arrays of one type");
  if (recv->read_only)
    fail(errc::invalid_memory, "the array that receives is read-only",
         "Pass one that may be written, as a copy");
  std::size_t wanted = send.elements;
  if (scatters) wanted = r.counts[static_cast<std::size_t>(c.rank())];
  if (in_blocks) wanted = r.counts[0];
  if (recv->elements != wanted)
    fail(errc::invalid_count,
         "the receive array has " + std::to_string(recv->elements) + " elements, and gets " +
             std::to_string(wanted),
         "Pass one of that size");
}

communicator_handle::reduction reduction_of(const communicator_handle& c, int what, nb::handle send,
                                            nb::handle recv, std::vector<std::size_t> counts,
                                            int root, const nb::object& function, holdings& held) {
  const array_view from = view_of(send, "the send array", held);
  std::optional<array_view> to;
  if (!recv.is_none()) to = view_of(recv, "the receive array", held);
  communicator_handle::reduction r{static_cast<kind>(what),
                                   from.pointer,
                                   to ? to->pointer : nullptr,
                                   std::move(counts),
                                   root,
                                   from.element,
                                   from.element_size,
                                   {}};
  if (r.what == kind::reduce_scatter_block)
    r.counts = {to ? to->elements : 0};
  else if (r.what != kind::reduce_scatter)
    r.counts = {from.elements};
  check_sizes(c, r, from, to);
  if (!to && (r.what != kind::reduce || c.rank() == root))
    fail(errc::invalid_argument, "the receive array is missing", "Pass one");
  r.fold = fold_by(function, from.element_size);
  return r;
}

nb::object reduce_by(const communicator_handle& c, int what, nb::handle send, nb::handle recv,
                     std::vector<std::size_t> counts, int root, const nb::object& function,
                     nb::handle deps, bool blocking) {
  sweep();
  const auto held = std::make_shared<holdings>();
  communicator_handle::reduction r;
  try {
    r = reduction_of(c, what, send, recv, std::move(counts), root, function, *held);
  } catch (const error& e) {
    refuse(c, what, {}, e, true);
  }
  const dependencies events = events_from(deps);
  event_handle e;
  if (blocking)
    wait_without_gil(held, {&c, 1}, [&] { e = c.reduce_by(r, events, true); });
  else
    e = without_gil(held, [&] { return c.reduce_by(r, events, false); });
  {
    const nb::gil_scoped_release released;  // the function may be let go of in another thread
    r.fold = nullptr;
  }
  return nb::cast(std::make_shared<pending>(std::move(e), c, held));
}

// The sum of what `function` writes to its second argument, of what is in the first one.
nb::object sum_scaled(const communicator_handle& c, int what, nb::handle send, nb::handle recv,
                      int root, const nb::object& function, nb::handle deps) {
  sweep();
  const auto held = std::make_shared<holdings>();
  communicator_handle::reduction r;
  try {
    r = reduction_of(c, what, send, recv, {}, root, function, *held);
    if (!defined(op::sum, r.element))
      fail(errc::invalid_type, std::string("op sum is not defined for ") + name(r.element),
           "Pass arrays of numbers");
  } catch (const error& e) {
    refuse(c, what, {}, e, true);
  }
  const dependencies events = events_from(deps);
  event_handle e = without_gil(held, [&] { return c.sum_scaled(r, events); });
  {
    const nb::gil_scoped_release released;
    r.fold = nullptr;
  }
  return nb::cast(std::make_shared<pending>(std::move(e), c, held));
}

// What is wrong with this rank's part of an operation the others get to know where calls are
// validated: they wait in it.
void refuse_for(const communicator_handle& c, int what, const std::string& fact) {
  try {
    fail(errc::invalid_argument, fact, "");
  } catch (const error& e) {
    try {
      refuse(c, what, {}, e, true);
    } catch (const error&) {  // the caller raises its own
    }
  }
}

}  // namespace

void bind_functions(nb::module_& m) {
  m.def("refuse", &refuse_for, "communicator"_a, "kind"_a, "fact"_a);
  m.def("sum_scaled", &sum_scaled, "communicator"_a, "kind"_a, "send"_a, "recv"_a.none(), "root"_a,
        "function"_a, "deps"_a.none());
  m.def("reduce_by", &reduce_by, "communicator"_a, "kind"_a, "send"_a, "recv"_a.none(), "counts"_a,
        "root"_a, "function"_a, "deps"_a.none(), "blocking"_a);
}

}  // namespace sucl::python
