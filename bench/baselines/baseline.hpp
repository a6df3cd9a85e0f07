// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Raw MPI: what SuCL is compared with, and the clock's barrier.
#pragma once

#include "bench/operations/problem.hpp"
#include "raw_mpi.h"

#include "base/system/library.hpp"

#include <sucl/abi/bootstrap.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sucl::bench {

/// One raw MPI call with everything it refers to.
struct raw_call {
  sucl_raw_call record{};
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> displs;
  sucl_raw_function function = nullptr;
};

/// The raw MPI module of a flavour, on a communicator of its own. Made after the runtime, which
/// initialises MPI, and destroyed before it.
class baseline {
 public:
  /// Collective. Throws sucl::error if a module is missing.
  explicit baseline(const std::string& flavour);
  ~baseline();
  baseline(const baseline&) = delete;
  baseline& operator=(const baseline&) = delete;

  /// The call for a problem; nothing if MPI has none: an op, a type or a size that it lacks.
  std::optional<raw_call> prepare(const problem& p, const void* send, void* recv) const;

  /// The memory of a call is elsewhere now.
  static void move(raw_call& call, const void* send, void* recv);

  /// Makes the call; throws if MPI reports an error.
  static void run(const raw_call& call);

  void barrier() const;
  /// The largest of each number over the ranks.
  void max(std::vector<double>& numbers) const;

 private:
  base::library m_library;
  const sucl_raw_mpi* m_table = nullptr;
  const sucl_bootstrap* m_control = nullptr;
  sucl_group* m_group = nullptr;
  const void* m_native = nullptr;
};

}  // namespace sucl::bench
