// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include <sucl/partition.hpp>

#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace sucl {
namespace {

// Speeds and sums of few of them stay finite and above 0, however short or long a time is.
double speed_of(std::size_t work, double seconds) {
  using limits = std::numeric_limits<double>;
  return std::clamp(static_cast<double>(work) / seconds, limits::min(), limits::max() / 4);
}

std::string call_of(double steps) {
  if (steps == 0) return "note_move(), or update() with 0 steps";
  return "update() with " + std::to_string(static_cast<std::int64_t>(steps)) + " steps";
}

double slowest(const partition& p, const std::vector<double>& speeds) {
  double most = 0;
  for (int r = 0; r < p.ranks(); ++r)
    if (p.count(r) > 0)
      most = std::max(most, static_cast<double>(p.count(r)) / speeds[static_cast<std::size_t>(r)]);
  return most;
}

}  // namespace

namespace detail {

std::vector<double> agreed_times(const std::vector<double>& times_and_steps) {
  std::vector<double> times;
  for (std::size_t i = 0; i + 1 < times_and_steps.size(); i += 2) {
    times.push_back(times_and_steps[i]);
    if (times_and_steps[i + 1] != times_and_steps[1])
      base::fail(errc::mismatch,
                 "rank 0 has called the balancer's " + call_of(times_and_steps[1]) + ", rank " +
                     std::to_string(i / 2) + " " + call_of(times_and_steps[i + 1]),
                 "Call the same on every rank, with the same number of steps");
  }
  return times;
}

measured_speeds::measured_speeds(int ranks, const balance_options& how)
    : m_how(how),
      m_speeds(static_cast<std::size_t>(ranks)),
      m_surprised(static_cast<std::size_t>(ranks)) {
  const bool right = how.smoothing > 0 && how.smoothing <= 1 && how.threshold >= 0 &&
                     how.threshold < 1 && how.confirmations >= 1 && how.unit >= 1;
  if (!right || ranks < 1)
    base::fail(
        errc::invalid_argument, "these options of a balancer, or its partition, make no sense",
        "smoothing is in (0, 1], threshold in [0, 1), confirmations and unit are 1 or more, and "
        "the partition has a rank");
}

std::vector<double> measured_speeds::complete() const {
  double sum = 0;
  std::size_t known = 0;
  for (const double s : m_speeds) {
    sum += s;
    known += s > 0;
  }
  std::vector<double> all = m_speeds;
  for (double& s : all)
    if (!(s > 0))
      s = known ? std::min(sum / static_cast<double>(known),
                           *std::max_element(m_speeds.begin(), m_speeds.end()))
                : 1;
  return all;
}

void measured_speeds::check(const std::vector<double>& seconds, int steps) const {
  if (seconds.size() != m_speeds.size())
    base::fail(
        errc::invalid_count,
        std::to_string(seconds.size()) + " times for " + std::to_string(m_speeds.size()) + " ranks",
        "Give the time of every rank, in order");
  for (std::size_t r = 0; r < seconds.size(); ++r)
    if (!(seconds[r] >= 0) || !std::isfinite(seconds[r]))
      base::fail(errc::invalid_argument,
                 "the time of rank " + std::to_string(r) + " is " + std::to_string(seconds[r]),
                 "Measure with a clock that is steady");
  if (steps < 1)
    base::fail(errc::invalid_argument, std::to_string(steps) + " steps since the last update",
               "Pass how many there have been, the measured one included");
}

void measured_speeds::note(const std::vector<double>& seconds, const counts& work) {
  m_surprises = 0;
  for (std::size_t r = 0; r < seconds.size(); ++r) {
    if (work[r] == 0 || !(seconds[r] > 0)) continue;  // nothing to learn
    const double measured = speed_of(work[r], seconds[r]), before = m_speeds[r];
    const bool far = before > 0 && (measured > 1.5 * before || before > 1.5 * measured);
    const bool changed = before == 0 || (far && m_surprised[r]);
    m_speeds[r] = changed ? measured : m_how.smoothing * measured + (1 - m_how.smoothing) * before;
    m_changed = m_changed || (far && changed);
    m_surprised[r] = far && !changed;
    m_surprises += m_surprised[r];
  }
}

bool measured_speeds::is_worth_it(double now, double then, int steps) {
  m_since += steps;
  const bool agrees = then < now * (1 - m_how.threshold);
  m_agreeing = agrees ? std::min(m_agreeing, m_how.confirmations - 1) + 1 : 0;
  m_lost = agrees ? m_lost + (now - then) * steps : 0;
  m_changed = m_changed && agrees;
  // A rank that has become another speed is taken to stay so for as long as the shares have.
  const double lost = m_changed ? (now - then) * static_cast<double>(m_since) : m_lost;
  if (m_agreeing < m_how.confirmations || lost < m_cost) return false;
  m_agreeing = 0;
  m_since = 0;
  m_lost = 0;
  m_changed = false;
  return true;
}

void measured_speeds::note_move(const std::vector<double>& seconds) {
  check(seconds, 1);
  m_cost = *std::max_element(seconds.begin(), seconds.end());
}

}  // namespace detail

balancer::balancer(partition start, const balance_options& how)
    : m_current(std::move(start)), m_speeds(m_current.ranks(), how) {}

void balancer::note_move(const std::vector<double>& seconds) { m_speeds.note_move(seconds); }

bool balancer::update(const std::vector<double>& seconds, int steps) {
  m_speeds.check(seconds, steps);
  m_speeds.note(seconds, m_current.counts_of_ranks());
  const auto speeds = m_speeds.complete();
  const balance_options& how = m_speeds.options();
  auto next = partition::by_speed(m_current.size(), speeds, how.unit, how.least);
  if (!m_speeds.is_worth_it(slowest(m_current, speeds), slowest(next, speeds), steps)) return false;
  m_current = std::move(next);
  return true;
}

}  // namespace sucl
