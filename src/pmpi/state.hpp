// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// SuCL beside a program that knows nothing of it: started with MPI, ended with MPI, one SuCL
/// communicator for each MPI communicator that is used.
#pragma once

#include "pmpi/trial.hpp"
#include "runtime/process.hpp"

#include <mpi.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace sucl::pmpi {

/// What was done with the calls of one kind.
struct tally {
  std::uint64_t served = 0;
  std::uint64_t passed = 0;
  double saved = 0;  ///< seconds, from the medians of the trials
};
using tallies = std::array<tally, SUCL_KIND_COUNT>;

/// One MPI communicator. MPI serialises the collectives on it, so nothing here is locked.
struct partner {
  MPI_Comm native = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  bool suitable = false;    ///< more than one rank, no inter-communicator, and nothing went wrong
  std::uint64_t calls = 0;  ///< collectives so far
  std::shared_ptr<core::communicator> core;
  std::map<std::uint64_t, trial> trials;
  tallies counts;
};

/// The process.
class interposer {
 public:
  /// Null unless SuCL has started, and while SuCL itself calls MPI.
  static interposer* active();

  /// After MPI's initialisation. Collective. Where it fails everything is passed on.
  static void start();
  /// Before MPI's end. Collective.
  static void stop();

  /// Carries an operation, or has `pass` call MPI. The record needs what selection looks at; `fill`
  /// adds the memory, and `finish` takes the result out of it. Returns MPI's code.
  template <class Pass, class Fill, class Finish>
  int carry(MPI_Comm comm, sucl_operation& o, const Pass& pass, const Fill& fill,
            const Finish& finish) {
    partner& p = find(comm);
    trial* t = choose(p, o);
    tally& count = p.counts[static_cast<std::size_t>(o.kind)];
    if (!t || t->next() == way::mpi) {
      ++count.passed;
      return t && !t->decided() ? tried(p, *t, pass) : pass();
    }
    ++count.served;
    const auto serve = [&] {
      fill();
      const int code = run(p, o);
      finish();
      return code;
    };
    if (!t->decided()) return tried(p, *t, serve);
    count.saved += t->saving();
    return serve();
  }
  template <class Pass>
  int carry(MPI_Comm comm, sucl_operation& o, const Pass& pass) {
    return carry(comm, o, pass, [] {}, [] {});
  }

  /// Has `pass` call MPI for what is not offered to SuCL.
  template <class Pass>
  int leave(MPI_Comm comm, sucl_kind kind, const Pass& pass) {
    ++find(comm).counts[static_cast<std::size_t>(kind)].passed;
    return pass();
  }

 private:
  interposer(base::config settings, const sucl_bootstrap& control);
  partner& find(MPI_Comm comm);
  partner& meet(MPI_Comm comm);
  void adopt(partner& p);
  trial* choose(partner& p, const sucl_operation& o);
  static int run(const partner& p, const sucl_operation& o);
  static void agree(const partner& p, trial& t);

  template <class Call>
  static int tried(const partner& p, trial& t, const Call& call) {
    const double begin = PMPI_Wtime();
    const int code = call();
    if (t.note(PMPI_Wtime() - begin)) agree(p, t);
    return code;
  }

  void forget(partner& p);
  void print_summary();
  static int on_free(MPI_Comm comm, int key, void* value, void* self);

  std::shared_ptr<core::process> m_process;
  int m_key = MPI_KEYVAL_INVALID;
  std::mutex m_mutex;  ///< guards what follows
  std::map<partner*, std::unique_ptr<partner>> m_partners;
  tallies m_totals;  ///< of partners that are gone
};

}  // namespace sucl::pmpi
