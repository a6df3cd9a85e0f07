// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which library executes the calls of one class: whether SuCL offers to, and what a measurement
/// has decided.
#pragma once

#include "core/communicator/communicator.hpp"
#include "interposer/arguments/transfer.hpp"
#include "interposer/decision/ab_measurement.hpp"
#include "tune/online/shared_decision.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>

namespace sucl::interposer {

/// How a collective was called. MPI does not match different forms, so they are tried apart.
enum class form { blocking, started, persistent };

/// The calls of one class on one communicator: the same form, kind, type, op, and size up to a
/// factor of two.
struct call_class {
  explicit call_class(const ab_measurement& by) : tuner(by) {}

  ab_measurement tuner;
  bool offered = false;                     ///< SuCL would not leave it to MPI itself
  tune::shared_decision* shared = nullptr;  ///< where ranks agree that may not wait for each other
  tune::shared_decisions later;             ///< those of the next measurements
  std::uint64_t key = 0;
  int ranks = 1;
  double margin = 0.97;           ///< SuCL has to be faster by
  bool reviewed = false;          ///< measured again from time to time
  std::uint64_t left = 0;         ///< calls until the next measurement; 0: there is none
  std::uint64_t interval = 1000;  ///< from the one before to that

  /// Counts a call after the decision, which may have been made in a bad moment: true if this one
  /// begins a new measurement. At longer and longer intervals, so that trials stay a small part.
  bool review() {
    if (left == 0 || --left > 0) return false;
    if (shared && !take_next()) return false;
    tuner.again();
    return true;
  }
  /// The call was none.
  void take_back() {
    if (left > 0) ++left;
  }
  /// Whether the next call is part of a measurement.
  bool wants_measurement() const { return left == 1 || !tuner.decided(); }
  void decide(choice w, const std::array<double, 2>& slowest) {
    tuner.decide(w, slowest);
    if (!reviewed) return;
    left = interval;
    interval *= 8;
  }

  /// Has ranks agree without waiting for each other, by a decision in memory that they share. False
  /// if there is none left.
  bool share(const tune::shared_decisions& from, std::uint64_t of) {
    later = from;
    key = of;
    return take_next();
  }

  /// The choice of a call. Under the lock of the requests, unless it is a blocking one.
  choice start();
  /// The time of such a call. Under the same lock. True if the ranks are to decide_on() the class.
  bool note(std::uint64_t number, double seconds);
  /// Decides together with the other ranks, which wait for each other in this. By SuCL itself,
  /// which finds, and throws, that a rank is elsewhere: in a collective of the program's on the
  /// same communicator of MPI's that rank would take this for its part.
  void decide_on(core::communicator& comm);

 private:
  // Of each measurement a decision of its own.
  bool take_next() {
    constexpr std::uint64_t measurement = std::uint64_t{1} << 50;  // bits that class_key() leaves
    tune::shared_decision* const next = later.find(key);
    if (next) shared = next;
    key += measurement;
    return next;
  }
};

/// The key of the class that a call of `bytes` belongs to.
std::uint64_t class_key(const transfer& t, form f, std::uint64_t bytes);
/// The class of a call on one of SuCL's communicators, before any call of it has been made.
call_class make_class(const base::config& settings, core::communicator& on, const transfer& t,
                      form f);

}  // namespace sucl::interposer
