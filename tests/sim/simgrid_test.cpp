// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The simulator against SimGrid: random plans on random machines agree within 10 %.
#include "cases.hpp"
#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"
#include "simgrid_replay.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <random>

namespace sucl::sim {
namespace {

using plan::schedule;

class dice {
 public:
  explicit dice(unsigned seed) : m_engine(seed) {}
  int one_of(int low, int high) {
    return low + static_cast<int>(m_engine() % static_cast<unsigned>(high - low + 1));
  }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(m_engine()) / 4294967296.0;
  }
  bool often(double part) { return between(0, 1) < part; }

 private:
  std::mt19937 m_engine;  // gives the same numbers everywhere, unlike distributions
};

level random_level(dice& d, std::size_t index, std::int64_t inside) {
  level l;
  l.name = "level" + std::to_string(index);
  l.groups = d.one_of(2, index == 0 ? 6 : 3);
  l.ports = inside > 1 ? d.one_of(1, 2) : 1;
  if (l.ports > 1)
    for (std::int64_t r = 0; r < inside; ++r) l.binding.push_back(d.one_of(0, l.ports - 1));
  if (d.often(0.8)) l.port_bandwidth = d.between(2e9, 30e9);
  if (d.often(0.3)) l.port_both = d.between(3e9, 50e9);
  if (d.often(0.4)) l.link_bandwidth = d.between(5e9, 100e9);
  if (d.often(0.2)) l.fabric_bandwidth = d.between(10e9, 100e9);
  transport t{"any", d.between(0.5e-6, 10e-6), d.between(0, 1e-6), 0};
  if (d.often(0.5)) t.bandwidth = d.between(2e9, 50e9);
  l.transports = {t};
  return l;
}

machine random_machine(dice& d) {
  machine m;
  m.name = "random";
  std::int64_t inside = 1;
  for (int n = d.one_of(1, 3); n > 0; --n) {
    m.levels.insert(m.levels.begin(), random_level(d, static_cast<std::size_t>(n - 1), inside));
    inside *= m.levels.front().groups;
  }
  m.local.launch_overhead = d.between(0, 1e-6);
  if (d.often(0.5)) {
    // Memory is shared by flows of all levels, which must have one latency for SimGrid.
    m.local.bandwidth = d.between(20e9, 100e9);
    m.local.shared_by = d.one_of(1, m.levels.back().groups);
    m.local.launch_latency = m.levels[0].transports[0].latency;
    for (level& l : m.levels) l.transports[0].latency = m.local.launch_latency;
  } else {
    m.local.copy_rate = m.local.reduce_rate = d.between(5e9, 100e9);
    m.local.launch_latency = d.between(1e-6, 10e-6);
  }
  return m;
}

bool uses_peers(const schedule& s) {
  for (const plan::program& p : s.ranks)
    for (const plan::channel& c : p.channels)
      for (const plan::instruction& i : c)
        if (i.op <= plan::opcode::reduce && (plan::is_remote(i.dst) || plan::is_remote(i.src)))
          return true;
  return false;
}

struct trial {
  machine m;
  schedule s;
  std::string words;
};

trial random_trial(unsigned seed) {
  dice d(seed);
  for (;;) {
    trial t;
    t.m = random_machine(d);
    const int ranks = d.one_of(2, static_cast<int>(rank_count(t.m)));
    const auto kinds = plan::cases::kinds();
    const sucl::kind k = kinds[static_cast<std::size_t>(d.one_of(0, int(kinds.size()) - 1))];
    const auto count = static_cast<std::uint64_t>(d.one_of(1, 1 << d.one_of(1, 17)));
    const plan::problem p = plan::cases::make_problem(k, ranks, count, 4, d.one_of(0, ranks - 1));
    const auto algorithms = plan::algorithms_for(k);
    const auto& a = *algorithms[static_cast<std::size_t>(d.one_of(0, int(algorithms.size()) - 1))];
    const auto recipes = plan::cases::recipes(a, p);
    const auto& r = recipes[static_cast<std::size_t>(d.one_of(0, int(recipes.size()) - 1))];
    t.s = plan::build(p, r);
    for (plan::level& l : t.s.levels) l.via = "any";
    t.words = plan::cases::describe(p, r);
    // Kernels weigh memory at their two ends unequally, which SimGrid cannot.
    if (t.m.local.bandwidth > 0 && uses_peers(t.s)) continue;
    if (plan::instruction_count(t.s) == 0) continue;
    return t;
  }
}

// SimGrid runs once in a process, so in a child of its own.
double simgrid_seconds(const trial& t) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    try {
      const double seconds = replay_in_simgrid(t.s, t.m);
      _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
    } catch (const std::exception& e) {
      std::cerr << e.what() << "\n";
      _exit(1);
    }
  }
  close(ends[1]);
  double seconds = -1;
  if (read(ends[0], &seconds, sizeof seconds) != sizeof seconds) seconds = -1;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? seconds : -1;
}

class against_simgrid : public testing::TestWithParam<unsigned> {};

TEST_P(against_simgrid, agrees_within_ten_percent) {
  const trial t = random_trial(GetParam());
  ASSERT_TRUE(plan::verify(t.s));
  const double own = simulate(t.s, t.m).seconds;
  const double theirs = simgrid_seconds(t);
  RecordProperty("deviation_percent", std::to_string((own / theirs - 1) * 100));
  EXPECT_NEAR(own / theirs, 1.0, 0.1)
      << t.words << ": " << own * 1e6 << " us here, " << theirs * 1e6 << " us there\n"
      << to_toml(t.m);
}

INSTANTIATE_TEST_SUITE_P(random, against_simgrid, testing::Range(1u, 101u));

}  // namespace
}  // namespace sucl::sim
