// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which bytes of memory MPI's types describe.
#pragma once

#include "interposer/device/driver.hpp"

#include <mpi.h>

#include <vector>

namespace sucl::interposer::device {

/// Adds what `elements` of a type at `displacement` bytes are, and nothing between. Nothing is
/// added for what the library would refuse.
void add_rows(std::vector<rows>& to, std::ptrdiff_t displacement, std::int64_t elements,
              MPI_Datatype type);

}  // namespace sucl::interposer::device
