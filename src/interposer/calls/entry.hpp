// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The functions that replace MPI's. Each passes on to the next in the chain: next.hpp.
#pragma once

#include <sucl/abi/backend.h>

#define SUCL_MPI_FUNCTION extern "C" SUCL_ABI_EXPORT int
