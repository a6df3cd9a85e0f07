// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The request of a program to compile a plan, and the result.
#pragma once

#include <sucl/composition.hpp>

#include <cstdint>
#include <string>

namespace sucl::core {

/// A composition with the elements that it is for.
struct compile_request {
  const composition& what;
  const compile_options& how;
  type element;
  std::size_t element_size;
};

/// What this rank's program has to know of a plan.
struct compiled_facts {
  std::uint64_t number = 0;
  std::uint64_t send_elements = 0, recv_elements = 0;  ///< that this rank reads and writes
  std::string text;                                    ///< human-readable
};

}  // namespace sucl::core
