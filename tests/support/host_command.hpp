// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Commands that run on the host, for every SYCL implementation.
#pragma once

#include <sucl/sycl.hpp>

#include <utility>

namespace sucl::testing {

/// A host task, or where there are none (AdaptiveCpp 24.06) what comes closest to one.
template <class Function>
void host_command(::sycl::handler& h, Function function) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  h.AdaptiveCpp_enqueue_custom_operation(
      [function](::sycl::interop_handle&) mutable { function(); });
#else
  h.host_task(std::move(function));
#endif
}

/// Memory of a one-dimensional buffer in such a command.
template <class T, ::sycl::access_mode Mode>
#ifdef SYCL_IMPLEMENTATION_ACPP
using command_accessor = ::sycl::accessor<T, 1, Mode>;
#else
using command_accessor = ::sycl::accessor<T, 1, Mode, ::sycl::target::host_task>;
#endif

}  // namespace sucl::testing
