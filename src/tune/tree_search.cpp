// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/tree_search.hpp"

#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"
#include "tune/graph/tree_plan.hpp"
#include "tune/trial.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace sucl::tune {
namespace {

// Messages of the timetables of one search, of one of them, and of the plans that are simulated.
constexpr double all_messages = 2.5e5;
constexpr double max_messages = 4e4;
constexpr double simulated_messages = 12e4;
constexpr int max_trees = 12;
constexpr double tree_ends = 64;  // ranks times trees of a root
constexpr int max_segments = 256;
constexpr double tree_gain = 0.999;    // a time must be so much less to count
constexpr double good_enough = 1.002;  // of the bound
constexpr double slacks[] = {1, 16, 2};

struct foretold {
  tree_recipe how;
  double seconds = 0;
  double messages = 0;
};

class tree_searcher {
 public:
  tree_searcher(const plan::problem& p, const sim::machine& m, const search_options& o)
      : m_problem(p), m_machine(m), m_options(o), m_planner(p, m), m_least(lower_bound(p, m)) {}

  search_result run() {
    const double share = m_options.budget > 0 ? m_options.budget / 1e6 : 1;
    m_left = all_messages * share;
    m_max = max_messages * std::max(1.0, share);
    std::vector<int> numbers;
    double efficiency = 0;
    // Packing takes time in proportion to the square of what there is to pack.
    const int most =
        std::clamp(static_cast<int>(tree_ends * share / m_problem.ranks), 1, max_trees);
    for (int k = 1; k <= most; ++k) {
      const double e = m_planner.efficiency(k);
      if (e <= 1.001 * efficiency) continue;
      efficiency = e;
      numbers.push_back(k);
    }
    for (const bool shallow : {true, false})
      for (const double slack : slacks) deepen(numbers.front(), slack, shallow);
    // More trees fill links better, and cost more.
    for (std::size_t i = numbers.size(); i-- > 1;) deepen(numbers[i], 1, true);
    std::stable_sort(m_list.begin(), m_list.end(),
                     [](const foretold& a, const foretold& b) { return a.seconds < b.seconds; });
    simulate();
    return std::move(m_result);
  }

 private:
  bool good(double seconds) const { return seconds <= good_enough * m_least.seconds; }

  // More segments, as long as that helps.
  void deepen(int trees, double slack, bool shallow) {
    double best = 0;
    for (int segments = 1; segments <= max_segments; segments *= 2) {
      if (!m_list.empty() && good(std::min_element(m_list.begin(), m_list.end(), faster)->seconds))
        return;
      const tree_recipe r{trees, slack, segments, shallow};
      const double messages = m_planner.messages(r);
      if (messages > m_left || messages > m_max) return;
      m_left -= messages;
      ++m_result.candidates;
      const double seconds = m_planner.foretell(r);
      m_list.push_back({r, seconds, messages});
      if (!m_machine.wires.switches.empty()) m_list.push_back({with_pairs(r), seconds, messages});
      if (best > 0 && seconds > tree_gain * best) return;
      best = seconds;
    }
  }
  static tree_recipe with_pairs(tree_recipe r) {
    r.pairs = true;
    return r;
  }
  static bool faster(const foretold& a, const foretold& b) { return a.seconds < b.seconds; }

  void simulate() {
    const auto keep = static_cast<std::size_t>(std::max(1, m_options.keep));
    double left = simulated_messages * std::max(1.0, m_max / max_messages);
    for (const foretold& f : m_list) {
      if (m_result.best.size() >= 1 && f.messages > left) continue;
      left -= f.messages;
      if (m_options.progress) m_options.progress(to_text(f.how));
      auto s = std::make_shared<plan::schedule>(m_planner.make(f.how));
      found one;
      one.how.algorithm = to_text(f.how);
      one.seconds = sim::simulate(*s, m_machine).seconds;
      one.guessed = f.seconds;
      one.instructions = plan::instruction_count(*s);
      one.hash = plan::hash(*s);
      for (const plan::program& r : s->ranks)
        one.scratch_bytes = std::max(one.scratch_bytes, r.scratch_bytes);
      one.made = std::move(s);
      ++m_result.simulated;
      m_result.best.push_back(std::move(one));
      if (m_result.best.size() >= std::max<std::size_t>(keep, 3)) break;
    }
    auto& best = m_result.best;
    std::stable_sort(best.begin(), best.end(),
                     [](const found& a, const found& b) { return a.seconds < b.seconds; });
    if (best.size() > keep) best.resize(keep);
    if (static_cast<double>(best[0].instructions) > m_options.max_verified) return;
    plan::verify_or_fail(*best[0].made);
    best[0].verified = true;
  }

  const plan::problem& m_problem;
  const sim::machine& m_machine;
  const search_options& m_options;
  tree_planner m_planner;
  bound m_least;
  double m_left = 0, m_max = 0;
  std::vector<foretold> m_list;
  search_result m_result;
};

}  // namespace

search_result search_trees(const plan::problem& p, const sim::machine& m, const search_options& o) {
  return tree_searcher(p, m, o).run();
}

}  // namespace sucl::tune
