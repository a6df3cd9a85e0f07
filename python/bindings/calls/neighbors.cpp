// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Neighborhoods: who they are; what they exchange is a group of messages.
#include "arrays/arrays.hpp"
#include "bridge.hpp"
#include "parts.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace sucl::python {

void bind_neighbors(nb::module_& m) {
  using released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<neighborhood_handle>(m, "Neighborhood")
      .def(nb::init<const communicator_handle&, const std::vector<int>&, const std::vector<int>&>(),
           "of"_a, "sources"_a, "destinations"_a, released())
      .def_static("grid", &neighborhood_handle::grid, "of"_a, "extents"_a, "periodic"_a, released())
      .def("sources", &neighborhood_handle::from)
      .def("destinations", &neighborhood_handle::to)
      .def("coordinates", &neighborhood_handle::coordinates)
      .def("comm", &neighborhood_handle::comm);
}

}  // namespace sucl::python
