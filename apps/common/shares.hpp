// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How an application shares its work among ranks of unlike speed, from its command line.
#pragma once

#include "common/context.hpp"
#include "common/program/command_line.hpp"

#include <sucl/sucl.hpp>

#include <algorithm>
#include <chrono>
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
  int slow_from = 0;  ///< the iterations before its device slows down

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
        "Let a rank compute everything FACTOR times, after N iterations, to try --balance",
        "RANK:FACTOR[:N]");
  }

  /// Those to begin with, one a rank.
  std::vector<double> speeds_of(int ranks) const {
    if (speeds.empty()) return std::vector<double>(static_cast<std::size_t>(ranks), 1.0);
    if (speeds.size() != static_cast<std::size_t>(ranks))
      throw usage_error("--speeds: " + std::to_string(speeds.size()) + " speeds for " +
                        std::to_string(ranks) + " ranks. Give one a rank");
    return speeds;
  }
  /// How often a rank computes everything after so many iterations.
  int turns_of(int rank, int iterations) const {
    return rank == slow_rank && iterations >= slow_from ? slow_turns : 1;
  }

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
    std::istringstream list(text);
    char colon = 0, second = ':';
    const bool both = static_cast<bool>(list >> slow_rank >> colon >> slow_turns);
    const bool begins = both && (list.peek() == EOF || list >> second >> slow_from);
    if (!begins || colon != ':' || second != ':' || slow_rank < 0 || slow_turns < 1 ||
        slow_turns > 1000 || slow_from < 0 || list.peek() != EOF)
      throw usage_error("--slow: '" + text +
                        "' is no rank and factor from 1 to 1000, as 1:4, or with a number of "
                        "iterations, as 1:4:100");
  }
};

/// A solver whose work moves between ranks. `Solver` has step(), an iteration; measure(), which
/// gives the seconds of its own work and changes nothing; compute_times(n), after which it computes
/// everything n times; and go_on(other), which takes the state of one with other shares;
/// `make(shares)` makes one. Collective.
template <class Solver, class Balancer>
class balanced {
 public:
  using maker = std::function<std::unique_ptr<Solver>(const Balancer&)>;

  balanced(context& c, Balancer start, share_options how, maker make)
      : m_context(&c),
        m_balancer(std::move(start)),
        m_how(std::move(how)),
        m_make(std::move(make)) {
    renew();
  }

  Solver& solver() { return *m_solver; }
  const Balancer& balancer() const { return m_balancer; }
  /// The number of iterations before each time that work was moved.
  const std::vector<int>& moves() const { return m_moves; }

  /// Before the work begins: measures, and shares anew. The first time warms up.
  void probe() {
    (void)m_solver->measure();
    double least = m_solver->measure();
    for (int n = 0; n < 4; ++n) least = std::min(least, m_solver->measure());
    // A balancer waits for a second opinion.
    (void)m_balancer.update(m_context->world(), least);
    if (!m_balancer.update(m_context->world(), least)) return;
    renew();
    m_moves.push_back(0);
  }

  /// The seconds that moving it has taken.
  double seconds_of_moves() const { return m_moving; }

  /// An iteration. Now and then its computing is timed, and work may move after it: a device that
  /// slows down is relieved within ten iterations.
  void step() {
    if (m_steps++ == m_how.slow_from) m_solver->compute_times(turns());
    if (m_how.how != balance::dynamic || ++m_since < m_wait) return m_solver->step();
    const double seconds = m_context->time_computing([this] { m_solver->step(); });
    const bool moves = m_balancer.update(m_context->world(), seconds, std::exchange(m_since, 0));
    m_wait = 1;
    if (!m_balancer.awaits_confirmation()) {
      m_interval = std::min(2 * m_interval, longest_interval);
      m_wait = m_interval;
    }
    if (!moves) return;
    const auto began = std::chrono::steady_clock::now();
    {
      const auto before = std::move(m_solver);
      renew();
      m_solver->go_on(*before);
    }
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    m_balancer.note_move(m_context->world(), took);
    m_moving += took;
    m_moves.push_back(m_steps);
  }

 private:
  // While computing is timed nothing overlaps with it, so not in every iteration, but soon at the
  // start, as the first shares may be far off. The first iteration finds memory that has not been
  // used.
  static constexpr int first_interval = 2, longest_interval = 8;

  int turns() const { return m_how.turns_of(m_context->rank(), m_steps); }
  void renew() {
    m_solver = m_make(m_balancer);
    m_solver->compute_times(turns());
  }

  context* m_context;
  Balancer m_balancer;
  share_options m_how;
  maker m_make;
  std::unique_ptr<Solver> m_solver;
  int m_interval = first_interval, m_wait = first_interval, m_since = 0, m_steps = 0;
  double m_moving = 0;
  std::vector<int> m_moves;
};

}  // namespace apps
