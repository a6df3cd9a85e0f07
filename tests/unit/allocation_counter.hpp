// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// For programs that link allocation_counter.cpp.
#pragma once

namespace sucl::test {

/// How often operator new was called in this process.
long allocations() noexcept;

}  // namespace sucl::test
