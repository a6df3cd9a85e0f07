// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plain MPI, for the variants that the applications are compared with.
#pragma once

#include "bench/baselines/raw_mpi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace apps {

/// A message of an exchange: `count` elements from or to `memory`.
struct mpi_message {
  int peer = 0;
  int tag = 0;
  void* memory = nullptr;
  std::size_t count = 0;
};

/// An MPI communicator and blocking calls on it. The library is the one that the job runs on: the
/// calls come from SuCL's module for it, so that one program works with every MPI.
class mpi_team {
 public:
  /// Refers to nothing.
  mpi_team() = default;
  /// The ranks of the job with the same colour. Collective over the job; SuCL's runtime is there.
  explicit mpi_team(int colour);

  explicit operator bool() const { return m_comm != nullptr; }

  /// Receives and sends elements of `type`, all at once.
  void exchange(sucl_type type, const std::vector<mpi_message>& out,
                const std::vector<mpi_message>& in) const;

  /// MPI_Allreduce of sums, in place.
  void sum(double* values, std::size_t count) const;

 private:
  sucl_raw_call call(sucl_kind kind, sucl_type type) const;
  void resolve(sucl_raw_call& call) const;
  void run(sucl_raw_call& call) const;

  const sucl_raw_mpi* m_table = nullptr;
  const void* m_comm = nullptr;
};

}  // namespace apps
