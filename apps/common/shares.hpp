// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How an application shares its work among ranks of unlike speed, from its command line.
#pragma once

#include "common/program/command_line.hpp"

#include <sucl/sucl.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace apps {

enum class balance {
  off,     ///< shares stay as they are
  probe,   ///< speeds are measured before the work begins
  dynamic  ///< and while it goes on
};

struct share_options {
  balance how = balance::off;
  std::vector<double> speeds;  ///< given by hand; empty: all alike
  int slow_rank = -1;          ///< works as if its device were so many times slower
  int slow_turns = 1;

  void define(command_line& line) {
    line.add_choice(
        "--balance", how,
        {{"off", balance::off}, {"probe", balance::probe}, {"dynamic", balance::dynamic}},
        "Share work by speed: off, probe (measured once), dynamic (off)");
    line.add_read(
        "--speeds", [this](const std::string& t) { read_speeds(t); },
        "Speeds of the ranks to begin with, as in 3,1 (all alike)", "X,...");
    line.add_read(
        "--slow", [this](const std::string& t) { read_slow(t); },
        "Let a rank compute everything FACTOR times, to try --balance", "RANK:FACTOR");
  }

  /// Those to begin with, one a rank.
  std::vector<double> speeds_of(int ranks) const {
    if (speeds.empty()) return std::vector<double>(static_cast<std::size_t>(ranks), 1.0);
    if (speeds.size() != static_cast<std::size_t>(ranks))
      throw usage_error("--speeds: " + std::to_string(speeds.size()) + " speeds for " +
                        std::to_string(ranks) + " ranks. Give one a rank");
    return speeds;
  }
  int turns_of(int rank) const { return rank == slow_rank ? slow_turns : 1; }

 private:
  void read_speeds(const std::string& text) {
    speeds.clear();
    std::istringstream list(text);
    double speed = 0;
    char comma = ',';
    while (comma == ',' && list >> speed && speed > 0) {
      speeds.push_back(speed);
      if (!(list >> comma)) return;
    }
    throw usage_error("--speeds: '" + text + "' is no list of positive numbers, as 3,1");
  }
  void read_slow(const std::string& text) {
    std::istringstream pair(text);
    char colon = 0;
    if (!(pair >> slow_rank >> colon >> slow_turns) || colon != ':' || slow_rank < 0 ||
        slow_turns < 1 || slow_turns > 1000 || pair.peek() != EOF)
      throw usage_error("--slow: '" + text + "' is no rank and factor from 1 to 1000, as 1:4");
  }
};

/// A solver whose work moves between ranks. `Solver` has measure(), which gives the seconds of its
/// own work, and go_on(other), which takes the state of one with other shares; `make(shares)` makes
/// one. Collective.
template <class Solver, class Balancer>
class balanced {
 public:
  using maker = std::function<std::unique_ptr<Solver>(const Balancer&)>;

  balanced(sucl::communicator& all, Balancer start, balance how, maker make)
      : m_all(&all),
        m_balancer(std::move(start)),
        m_is_dynamic(how == balance::dynamic),
        m_make(std::move(make)),
        m_solver(m_make(m_balancer)) {}

  Solver& solver() { return *m_solver; }
  const Balancer& balancer() const { return m_balancer; }
  /// How often work was moved.
  int moves() const { return m_moves; }

  /// Before the work begins: measures, and shares anew. The first time warms up.
  void probe() {
    (void)m_solver->measure();
    double least = m_solver->measure();
    for (int n = 0; n < 4; ++n) least = std::min(least, m_solver->measure());
    // A balancer waits for a second opinion.
    (void)m_balancer.update(*m_all, least);
    if (!m_balancer.update(*m_all, least)) return;
    m_solver = m_make(m_balancer);
    ++m_moves;
  }

  /// After an iteration: now and then a measurement, after which work may move.
  void after_step() {
    constexpr int interval = 10;
    if (!m_is_dynamic || ++m_steps % interval != 0) return;
    if (!m_balancer.update(*m_all, m_solver->measure())) return;
    auto next = m_make(m_balancer);
    next->go_on(*m_solver);
    m_solver = std::move(next);
    ++m_moves;
  }

 private:
  sucl::communicator* m_all;
  Balancer m_balancer;
  bool m_is_dynamic;
  maker m_make;
  std::unique_ptr<Solver> m_solver;
  int m_steps = 0, m_moves = 0;
};

}  // namespace apps
