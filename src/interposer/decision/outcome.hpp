// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which library executed a program's calls, and why.
#pragma once

#include <sucl/abi/backend.h>

#include <array>
#include <cstdint>

namespace sucl::interposer {

/// The outcome of a call: SuCL executed it, or why it was passed on.
enum class outcome {
  served,
  tried,             ///< MPI's turn in a measurement
  slower,            ///< MPI is faster, or selected
  early,             ///< before SuCL set itself up for the communicator
  unsupported_comm,  ///< a communicator that SuCL does not serve
  oversubscribed,    ///< no room for one communicator or one request more
  unknown,           ///< a type, an op or a form that SuCL does not support
  count
};

/// The calls of one kind.
struct counters {
  std::array<std::uint64_t, static_cast<std::size_t>(outcome::count)> calls{};
  std::uint64_t on_devices = 0;  ///< of the calls, on ranks whose buffers are a device's
  double saved = 0;              ///< seconds, from the medians of the trials
  void operator+=(const counters& other);
};
using counters_by_kind = std::array<counters, SUCL_KIND_COUNT>;

}  // namespace sucl::interposer
