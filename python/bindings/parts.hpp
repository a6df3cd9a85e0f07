// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The parts of the module that have a source each.
#pragma once

#include "arrays/arrays.hpp"
#include "bridge.hpp"

#include <nanobind/nanobind.h>

#include <memory>

namespace sucl::python {

/// A persistent operation, with what keeps its memory.
struct repeated {
  persistent_handle operation;
  communicator_handle comm;
  std::shared_ptr<holdings> held;
};

/// The functions of a store of Python's. Ends with the GIL held.
rendezvous_store store_of(const nanobind::object& object);

void bind_runtime(nanobind::module_& m);
void bind_port(nanobind::module_& m);
void bind_compositions(nanobind::module_& m);
void bind_groups(nanobind::module_& m);
void bind_memory(nanobind::module_& m);
void bind_neighbors(nanobind::module_& m);
void bind_partitions(nanobind::module_& m);
void bind_recordings(nanobind::module_& m);
void bind_functions(nanobind::module_& m);

}  // namespace sucl::python
