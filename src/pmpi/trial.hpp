// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which of two ways to go: both are tried, then the faster is taken.
#pragma once

#include <array>
#include <cstdint>

namespace sucl::pmpi {

enum class way { mpi, sucl };

/// One kind of call on one communicator. Every rank makes the same calls in the same order, so
/// every rank has the same state.
class trial {
 public:
  static constexpr int most_rounds = 16;

  /// With `rounds` of 0 the answer is `untried` from the start.
  trial(int rounds, way untried);

  bool decided() const { return m_decided; }
  /// The way of the next call. Before the decision the two take turns.
  way next() const { return m_decided ? m_way : m_calls % 2 == 0 ? way::sucl : way::mpi; }

  /// Notes the time of an undecided call. True if the trial is complete: now the ranks have to
  /// agree, and call decide().
  bool note(double seconds);
  /// Median times of this rank, SuCL's and MPI's. The first call of each is left out.
  std::array<double, 2> medians() const;
  /// The same on every rank.
  void decide(const std::array<double, 2>& slowest);

  /// Seconds that each call takes less than MPI's, as far as is known.
  double saving() const { return m_saving; }

 private:
  int m_rounds;
  int m_calls = 0;
  bool m_decided;
  way m_way;
  double m_saving = 0;
  std::array<std::array<double, most_rounds>, 2> m_times{};
};

}  // namespace sucl::pmpi
