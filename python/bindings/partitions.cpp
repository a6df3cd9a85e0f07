// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Shares of work, and what decides about them.
#include "parts.hpp"

#include <sucl/partition.hpp>

#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {
namespace {

using extents = std::array<std::size_t, 3>;
using grid = std::array<int, 3>;

template <class Balancer>
nb::class_<Balancer> bind_balancer(nb::module_& m, const char* name) {
  return nb::class_<Balancer>(m, name)
      .def("current", [](const Balancer& b) { return b.current(); })
      .def("speeds", [](const Balancer& b) { return b.speeds(); })
      .def("awaits_confirmation", &Balancer::awaits_confirmation)
      .def(
          "update",
          [](Balancer& b, const std::vector<double>& seconds, int steps) {
            return b.update(seconds, steps);
          },
          "seconds"_a, "steps"_a)
      .def(
          "note_move", [](Balancer& b, const std::vector<double>& s) { b.note_move(s); },
          "seconds"_a);
}

}  // namespace

void bind_partitions(nb::module_& m) {
  nb::class_<partition>(m, "Partition")
      .def(nb::init<std::size_t, int>(), "size"_a, "ranks"_a)
      .def(nb::init<counts>(), "counts"_a)
      .def_static("by_speed", &partition::by_speed, "size"_a, "speeds"_a, "unit"_a, "least"_a)
      .def("ranks", &partition::ranks)
      .def("size", &partition::size)
      .def("count", &partition::count, "rank"_a)
      .def("begin", &partition::begin, "rank"_a)
      .def("owner", &partition::owner, "element"_a)
      .def("counts", &partition::counts_of_ranks)
      .def("displacements", &partition::displacements)
      .def("is_equal", [](const partition& a, const partition& b) { return a == b; });
  m.def("agreed_times", &detail::agreed_times, "times_and_steps"_a);
  nb::class_<migration>(m, "Migration")
      .def(nb::init<const partition&, const partition&, int>(), "before"_a, "after"_a, "rank"_a)
      .def_ro("send_counts", &migration::send_counts)
      .def_ro("send_displs", &migration::send_displs)
      .def_ro("recv_counts", &migration::recv_counts)
      .def_ro("recv_displs", &migration::recv_displs)
      .def_ro("moved", &migration::moved);
  nb::class_<box_partition>(m, "BoxPartition")
      .def_static("by_speed", &box_partition::by_speed, "cells"_a, "grid"_a, "speeds"_a, "least"_a)
      .def("along", [](const box_partition& b) { return b.along; });
  nb::class_<balance_options>(m, "BalanceOptions")
      .def(
          "__init__",
          [](balance_options* made, double smoothing, double threshold, int confirmations,
             std::size_t unit, std::size_t least) {
            new (made) balance_options{smoothing, threshold, confirmations, unit, least};
          },
          "smoothing"_a, "threshold"_a, "confirmations"_a, "unit"_a, "least"_a);
  bind_balancer<balancer>(m, "Balancer")
      .def(nb::init<partition, const balance_options&>(), "start"_a, "options"_a);
  bind_balancer<box_balancer>(m, "BoxBalancer")
      .def(nb::init<const extents&, const grid&, const std::vector<double>&,
                    const balance_options&>(),
           "cells"_a, "grid"_a, "speeds"_a, "options"_a);
}

}  // namespace sucl::python
