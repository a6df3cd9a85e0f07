// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/search.hpp"

#include "base/error.hpp"
#include "plan/verify.hpp"
#include "sim/simulate.hpp"
#include "tune/candidates.hpp"
#include "tune/estimate.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace sucl::tune {
namespace {

using plan::recipe;

// How much longer than the best known plan a guess may be to be worth a simulation.
constexpr double hopeless = 6;
constexpr std::size_t least_simulated = 12;
// Work of the simulator for an instruction, if few transfers share a link.
constexpr double costs = 4;
// One plan may take this part of the budget.
constexpr double share = 5;
// What must be simulated may take so many budgets if it promises to be the best, each.
constexpr double generous = 3;
constexpr std::size_t refined = 4;
constexpr int least_kept = 5;
constexpr int most_rounds = 6;

struct guessed {
  recipe how;
  std::string source;
  estimate cost;
};

class searcher {
 public:
  searcher(const plan::problem& p, const sim::machine& m, const search_options& o)
      : m_problem(p), m_machine(m), m_options(o) {
    m_budget = o.budget > 0 ? o.budget : 1.5e6 + 4e3 * p.ranks;
  }

  search_result run() {
    collect();
    // Half of the budget finds good algorithms, half their parameters. What must be simulated comes
    // after the most promising plans, which soon show that it takes longer.
    std::size_t tried = 0;
    for (const guessed& g : m_list) {
      if (++tried > least_simulated && g.cost.seconds > hopeless * best()) break;
      if (m_spent + costs * g.cost.instructions <= m_budget / 2) simulate(g, m_budget / share);
    }
    // What cost too much but promises to be the best may take what is left.
    for (const guessed& g : std::exchange(m_dear, {}))
      if (g.cost.seconds < best() && m_spent < m_budget) again(g, m_budget - m_spent);
    for (const guessed& g : m_list)
      if (must(g)) again(g, g.cost.seconds < best() ? generous * m_budget : m_budget);
    if (m_result.best.empty()) simulate_smallest();
    for (int round = 0; round < most_rounds && refine(); ++round) {
    }
    finish();
    return std::move(m_result);
  }

 private:
  double best() const {
    return m_result.best.empty() ? std::numeric_limits<double>::max() : m_result.best[0].seconds;
  }

  bool must(const guessed& g) const {
    return !g.source.empty() || std::find(m_options.always.begin(), m_options.always.end(),
                                          g.how) != m_options.always.end();
  }

  // All recipes, the most promising ones first. Each gets the pipeline that the guess likes best.
  void collect() {
    for (const recipe& r : m_options.always) note(r, "");
    for (const auto& sets : {hiccl_sets(m_problem, m_machine), ext_mpi_sets(m_problem, m_machine)})
      for (const published& s : sets) {
        const estimate cost = guess(m_problem, s.how, m_machine);
        if (costs * cost.instructions <= generous * m_budget) note(s.how, s.source);
      }
    for (recipe r : candidates(m_problem, m_machine)) {
      ++m_result.candidates;
      recipe top = r;
      double least = guess(m_problem, r, m_machine).seconds;
      for (const int depth : {2, 4, 8, 16, 32, 64}) {
        // Channels that share each link all the time gain little and are costly to simulate.
        r.pipeline = depth;
        r.stagger = 1;
        if (!plan::refusal(m_problem, r).empty()) r.stagger = 0;
        if (!plan::refusal(m_problem, r).empty()) break;
        const estimate cost = guess(m_problem, r, m_machine);
        if (costs * cost.instructions > m_budget / share) break;
        if (cost.seconds < 0.97 * least) {
          top = r;
          least = cost.seconds;
        }
      }
      note(top, "");
    }
    std::stable_sort(m_list.begin(), m_list.end(), [](const guessed& a, const guessed& b) {
      return a.cost.seconds < b.cost.seconds;
    });
  }

  void note(const recipe& r, const std::string& source) {
    if (!m_known.insert(plan::to_text(r)).second) return;
    m_list.push_back({r, source, guess(m_problem, r, m_machine)});
  }

  // Builds and simulates, as long as the plan may still be one of the best; keeps the list of
  // results sorted.
  void simulate(const guessed& g, double work) {
    if (!m_tried.insert(plan::to_text(g.how)).second) return;
    if (m_options.progress) m_options.progress(plan::to_text(g.how));
    const plan::schedule s = plan::build(m_problem, g.how);
    const auto keep = static_cast<std::size_t>(std::max(m_options.keep, least_kept));
    sim::simulate_options limits;
    if (m_result.best.size() >= keep) limits.most_seconds = m_result.best[keep - 1].seconds;
    limits.most_work = static_cast<std::uint64_t>(std::clamp(work, 1.0, 1e18));
    const sim::prediction time = sim::simulate(s, m_machine, limits);
    found f;
    f.how = g.how;
    f.source = g.source;
    f.guessed = g.cost.seconds;
    f.instructions = plan::instruction_count(s);
    m_spent += static_cast<double>(f.instructions + time.work);
    ++m_result.simulated;
    if (time.gave_up) {
      if (time.work > limits.most_work && limits.most_work > 0) m_dear.push_back(g);
      return;
    }
    f.seconds = time.seconds;
    f.hash = plan::hash(s);
    for (const plan::program& p : s.ranks)
      f.scratch_bytes = std::max(f.scratch_bytes, p.scratch_bytes);
    const auto place =
        std::upper_bound(m_result.best.begin(), m_result.best.end(), f,
                         [](const found& a, const found& b) { return a.seconds < b.seconds; });
    m_result.best.insert(place, std::move(f));
  }

  // Where every plan is beyond the budget there must still be an answer.
  void simulate_smallest() {
    const auto least = std::min_element(
        m_list.begin(), m_list.end(),
        [](const auto& a, const auto& b) { return a.cost.instructions < b.cost.instructions; });
    again(*least, std::numeric_limits<double>::max() / 2);
  }

  // Simulates what was given up, with more work.
  void again(const guessed& g, double work) {
    const std::string text = plan::to_text(g.how);
    const bool done = std::any_of(m_result.best.begin(), m_result.best.end(),
                                  [&](const found& f) { return f.how == g.how; });
    if (!done) m_tried.erase(text);
    simulate(g, work);
  }

  // Changes one parameter of each of the best. Returns whether the best one became better.
  bool refine() {
    const double before = best();
    std::vector<recipe> seeds;
    for (const found& f : m_result.best)
      if (seeds.size() < refined) seeds.push_back(f.how);
    for (const recipe& seed : seeds)
      for (const recipe& r : neighbours(seed, m_problem, m_machine)) {
        const estimate cost = guess(m_problem, r, m_machine);
        if (m_spent + costs * cost.instructions <= m_budget)
          simulate({r, "", cost}, m_budget / share);
      }
    return best() < before;
  }

  // Proves what is returned.
  void finish() {
    auto& list = m_result.best;
    if (list.size() > static_cast<std::size_t>(m_options.keep))
      list.resize(static_cast<std::size_t>(m_options.keep));
    for (found& f : list) {
      if (static_cast<double>(f.instructions) > m_options.most_verified) continue;
      if (m_options.progress) m_options.progress("proving " + plan::to_text(f.how));
      plan::verify_or_fail(plan::build(m_problem, f.how));
      f.verified = true;
    }
  }

  const plan::problem& m_problem;
  const sim::machine& m_machine;
  const search_options& m_options;
  double m_budget = 0;
  double m_spent = 0;
  std::vector<guessed> m_dear;  // given up because they cost too much
  std::vector<guessed> m_list;
  std::set<std::string> m_known;
  std::set<std::string> m_tried;
  search_result m_result;
};

}  // namespace

search_result search(const plan::problem& p, const sim::machine& m, const search_options& o) {
  plan::check(p);
  if (p.ranks > sim::rank_count(m))
    base::fail(errc::invalid_argument,
               "the machine " + m.name + " has " + std::to_string(sim::rank_count(m)) +
                   " ranks, but the collective has " + std::to_string(p.ranks),
               "Take fewer ranks, or a larger machine.");
  return searcher(p, m, o).run();
}

}  // namespace sucl::tune
