// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the interposer keeps for one MPI communicator.
#pragma once

#include "core/communicator/communicator.hpp"
#include "interposer/arguments/transfer.hpp"
#include "interposer/decision/call_class.hpp"
#include "interposer/decision/outcome.hpp"
#include "interposer/decision/persistent_agreement.hpp"
#include "tune/online/shared_decision.hpp"

#include <sucl/types.hpp>

#include <mpi.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace sucl::interposer {

/// Where one persistent operation runs: such operations are started in any order, which may be
/// another one on each rank, and SuCL keeps to the order of the starts.
struct persistent_slot {
  std::shared_ptr<core::communicator> core;
  tune::shared_decision* decisions = nullptr;  ///< two, that take turns
  std::uint64_t uses = 0;                      ///< so far
  bool busy = false;                           ///< on this rank, as the next one under the lock
  bool orphaned = false;                       ///< the communicator ended while it was busy
  std::unique_ptr<call_class> of_request;
};

/// One MPI communicator. MPI serialises the collectives on it, so nothing here is locked.
struct comm_state {
  MPI_Comm native = MPI_COMM_NULL;
  comm_position at;
  bool suitable = false;  ///< more than one rank, no inter-communicator, and nothing went wrong
  bool oversubscribed = false;  ///< SuCL has as many communicators as it makes
  std::uint64_t calls = 0;      ///< blocking ones so far in which waits_for_all()
  std::uint64_t awaited = 0;    ///< of those, where that is more than `interpose.after`
  double set_up_took = 0;       ///< seconds, of persistent slots as well
  std::shared_ptr<core::communicator> core;
  tune::shared_decisions decisions;
  std::map<std::uint64_t, call_class> classes;
  persistent_agreement prepared;
  int early = 0;    ///< persistent requests made before the set-up
  int refused = 0;  ///< non-blocking and persistent calls, by the library
  int started = 0;  ///< persistent ones by the library, modulo 2^30; under the lock of the requests
  std::vector<std::shared_ptr<persistent_slot>> slots;
  counters_by_kind counts{};
};

/// Whether no rank's call of the kind ends before every rank has made it, whatever the counts.
/// Where a rank may go on, and another one's call was refused, the same call of theirs is not the
/// same one: SuCL's own collectives would meet those of the program.
constexpr bool waits_for_all(sucl_kind called) {
  return called == SUCL_KIND_BARRIER || called == SUCL_KIND_ALLREDUCE ||
         called == SUCL_KIND_ALLGATHER || called == SUCL_KIND_ALLTOALL ||
         called == SUCL_KIND_REDUCE_SCATTER_BLOCK;
}

}  // namespace sucl::interposer
