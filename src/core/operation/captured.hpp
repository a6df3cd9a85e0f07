// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations whose commands a native graph has.
#pragma once

#include <sucl/abi/backend.h>

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

namespace sucl::core {

struct backend_instance;

/// Two words of a device's memory, which are to be written before a graph is launched.
struct graph_base {
  void* memory = nullptr;
  std::uint64_t values[2] = {};
};

/// What a backend needs to know of the operations that it has put into a graph.
struct captured_kernels {
  std::uint64_t count = 0;      ///< operations that have a number of its own
  bool ends_as_barrier = true;  ///< no rank is done with the last one before all have begun it
};

/// The operations of one communicator that a graph has, in their order.
struct captured_operations {
  struct operation {
    sucl_operation record{};
    std::vector<sucl_operation> parts;
    std::vector<std::uint64_t> arrays;
  };
  std::list<operation> all;
  const backend_instance* kernels = nullptr;  ///< whose kernels are among them; null: none
  captured_kernels of_kernels;
  std::uint64_t changes = 0;  ///< of what decides how operations are executed, at the capture
};

}  // namespace sucl::core
