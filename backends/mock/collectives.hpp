// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Collectives by definition: every rank contributes bytes, all ranks see all contributions, and
/// each takes from them what the kind's definition gives it.
#pragma once

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::mock {

/// The operation as one rank of a communicator of `size` sees it.
struct view {
  const sucl_operation* op;
  int rank;
  int size;
};

/// The bytes this rank must show to the others.
std::vector<std::byte> contribution(const view& v);

/// Every rank's contribution: that of rank r starts at data + r * stride and has bytes[r] bytes.
struct gathered {
  const std::byte* data;
  std::uint64_t stride;
  const std::vector<std::uint64_t>& bytes;
};

/// What finish() did.
struct outcome {
  std::string error;          ///< why the contributions do not fit together; empty if they do
  std::byte* last = nullptr;  ///< the last element written on this rank, null if none was
};

/// Writes this rank's result. Nothing is written if the contributions do not fit.
outcome finish(const view& v, const gathered& all);

}  // namespace sucl::mock
