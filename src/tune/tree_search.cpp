// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/tree_search.hpp"

#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"
#include "tune/evaluation.hpp"
#include "tune/graph/tree_plan.hpp"

#include <algorithm>
#include <utility>

namespace sucl::tune {
namespace {

using tree_type = tree_recipe::tree_type;
using link_order = tree_recipe::order;

// Messages of the timetables of one search, of one of them, and of the plans that are simulated.
constexpr double all_messages = 3.6e5;
constexpr double max_messages = 1.5e5;
constexpr double simulated_messages = 1.6e5;
// Trees in all that are balanced at once, and what it takes: messages for each pair and tree.
constexpr double tree_ends = 448;
constexpr double balancing = 2;
constexpr int max_trees = 28;
constexpr int max_segments = 256;
constexpr int max_simulated = 10;
constexpr int max_worse = 2;               // numbers of segments in a row that do not help
constexpr double shared_messages = 3.3e4;  // of a plan whose messages share links
constexpr double enough_trees = 0.995;     // of the optimum
constexpr double dear_if_short = 2;        // timetables of short messages say less
constexpr double short_messages = 1e5;     // of a plan that take twice as long as is predicted
constexpr double tree_gain = 0.999;        // a time must be so much less to count
constexpr double good_enough = 1.002;      // of the bound
constexpr double near_bound = 1.02;        // of the bound
constexpr double close_enough = 1.01;      // of the bound: no other trees are tried,
constexpr double few_messages = 3e4;       // and no plan of more messages
constexpr double on_time = 1.003;          // of the timetable
constexpr double tree_depths[] = {0.5, 0.1, 1};

struct prediction {
  tree_recipe how;
  double seconds = 0;
  double messages = 0;
  double expected = 0;  // to take: more where messages are short
};

class tree_searcher {
 public:
  tree_searcher(const plan::problem& p, const sim::machine& m, const search_options& o)
      : m_problem(p), m_machine(m), m_options(o), m_planner(p, m), m_least(lower_bound(p, m)) {}

  search_result run() {
    const double share = m_options.budget > 0 ? m_options.budget / 1e6 : 1;
    m_left = all_messages * share;
    m_max = max_messages * std::max(1.0, share);
    const std::vector<int> most = numbers(share);
    const bool are_long =
        m_planner.long_messages({tree_type::balanced, most.front(), 0, 1, link_order::strict});
    if (are_long) balance(most.front());
    for (const tree_type s : {tree_type::shallow, tree_type::early})
      if (!is_close()) deepen({s, 1, 0, 1, link_order::strict});
    if (!are_long) balance(most.front());
    for (std::size_t i = 1; i < most.size(); ++i) balance(most[i]);
    std::stable_sort(m_list.begin(), m_list.end(), faster);
    simulate();
    return std::move(m_result);
  }

 private:
  bool good(double seconds) const { return seconds <= good_enough * m_least.seconds; }
  bool is_close() const {
    return m_best_prediction > 0 && m_best_prediction <= close_enough * m_least.seconds;
  }
  static bool faster(const prediction& a, const prediction& b) { return a.expected < b.expected; }

  // As few trees as nearly reach the optimum, as these fill links best, and one, two and four:
  // first if messages would be short.
  std::vector<int> numbers(double share) {
    const int most =
        std::clamp(static_cast<int>(tree_ends * share / m_problem.ranks), 1, max_trees);
    if (m_planner.has_paths()) return {1, 2, 4, 8, 16};
    int best = 1;
    double efficiency = 0;
    for (int k = 1; k <= most && efficiency < enough_trees; ++k) {
      const double e = m_planner.efficiency(k);
      if (e <= efficiency / tree_gain) continue;
      best = k;
      efficiency = e;
    }
    std::vector<int> all;
    for (const int k : {1, 2, 4})
      if (k != best && k <= most) all.push_back(k);
    const bool first =
        m_planner.long_messages({tree_type::balanced, best, 0, 4, link_order::strict});
    all.insert(first ? all.begin() : all.end(), best);
    return all;
  }

  void balance(int trees) {
    const double least = m_least.seconds / m_planner.efficiency(trees);
    for (const double depth : tree_depths) {
      if (is_close() || (m_best_prediction > 0 && least >= m_best_prediction)) return;
      const double cost = balancing * trees * m_planner.tree_count() * m_problem.ranks;
      if (cost > m_left) return;
      m_left -= cost;
      deepen({tree_type::balanced, trees, depth, 1, link_order::strict});
    }
  }

  // More segments, as long as that helps and their links may be faster than what is there.
  void deepen(tree_recipe r) {
    double best = 0;
    for (int worse = 0; worse < max_worse && r.segments <= max_segments; r.segments = next(r)) {
      const double messages = m_planner.messages(r);
      if (messages > m_left || messages > m_max || (is_close() && messages > few_messages)) return;
      if (m_best_prediction > 0 &&
          (good(m_best_prediction) || m_planner.busiest(r) >= m_best_prediction))
        return;
      const bool reliable = m_planner.long_messages(r);
      m_left -= reliable ? messages : dear_if_short * messages;
      ++m_result.candidates;
      const double seconds = m_planner.predicted_seconds(r);
      m_list.push_back({r, seconds, messages, seconds});
      if (reliable)
        m_best_prediction = m_best_prediction > 0 ? std::min(m_best_prediction, seconds) : seconds;
      else
        m_list.back().expected *= 1 + messages / short_messages;
      worse = best > 0 && seconds > tree_gain * best ? worse + 1 : 0;
      best = best > 0 ? std::min(best, seconds) : seconds;
    }
  }
  // Twice as many where messages are long, and the most that there may be; else 1, 2, 4, 6, 8, 12,
  // 16 and so on.
  int next(const tree_recipe& r) {
    const int s = r.segments;
    if (m_planner.long_messages(r)) {
      const int most = static_cast<int>(m_max / m_planner.messages(r) * s);
      return 2 * s > most && most > s ? most : 2 * s;
    }
    int power = 1;
    while (2 * power <= s) power *= 2;
    return s + (s < 4 ? power : power / 2);
  }

  void simulate() {
    m_to_simulate = simulated_messages * std::max(1.0, m_max / max_messages);
    try_one(m_list.front(), link_order::strict);
    if (!m_machine.wires.switches.empty() && m_best > near_bound * m_least.seconds) share_links();
    for (const prediction& f : m_list) {
      if (f.seconds >= m_best) continue;
      if (m_result.simulated >= max_simulated) break;
      // What is shorter than its latency may do better where ranks do not keep to the timetable.
      for (const link_order by : {link_order::strict, link_order::links, link_order::pairs})
        if (m_best > on_time * f.seconds && (by != link_order::strict || &f != &m_list.front()))
          try_one(f, by);
    }
    finish();
  }

  // Messages of which many share a switch do not need a timetable.
  void share_links() {
    for (const auto& [trees, depth] : {std::pair{2, 0.5}, {4, 1.0}}) {
      tree_recipe r{tree_type::balanced, trees, depth, 16, link_order::pairs};
      while (r.segments > 1 && m_planner.messages(r) > shared_messages) r.segments /= 2;
      try_one({r, 0, m_planner.messages(r), 0}, link_order::pairs);
    }
  }

  void try_one(const prediction& f, link_order by) {
    if (m_best > 0 && (f.messages > m_to_simulate || good(m_best))) return;
    m_to_simulate -= f.messages;
    simulate(f, by);
    const double seconds = m_result.best.back().seconds;
    m_best = m_best > 0 ? std::min(m_best, seconds) : seconds;
  }

  void finish() {
    auto& best = m_result.best;
    std::stable_sort(best.begin(), best.end(),
                     [](const found& a, const found& b) { return a.seconds < b.seconds; });
    const auto keep = static_cast<std::size_t>(std::max(1, m_options.keep));
    if (best.size() > keep) best.resize(keep);
    if (static_cast<double>(best[0].instructions) > m_options.max_verified) return;
    plan::verify_or_fail(*best[0].made);
    best[0].verified = true;
  }

  void simulate(prediction f, link_order by) {
    f.how.by = by;
    if (m_options.progress) m_options.progress(to_text(f.how));
    auto s = std::make_shared<plan::schedule>(m_planner.make(f.how));
    found one;
    one.how.algorithm = to_text(f.how);
    one.seconds = sim::simulate(*s, m_machine).seconds;
    one.estimated = f.seconds;
    one.instructions = plan::instruction_count(*s);
    one.hash = plan::hash(*s);
    for (const plan::program& r : s->ranks)
      one.scratch_bytes = std::max(one.scratch_bytes, r.scratch_bytes);
    one.made = std::move(s);
    ++m_result.simulated;
    m_result.best.push_back(std::move(one));
  }

  const plan::problem& m_problem;
  const sim::machine& m_machine;
  const search_options& m_options;
  tree_planner m_planner;
  bound m_least;
  double m_left = 0, m_max = 0, m_to_simulate = 0;  // messages
  double m_best = 0, m_best_prediction = 0;         // seconds
  std::vector<prediction> m_list;
  search_result m_result;
};

}  // namespace

search_result search_trees(const plan::problem& p, const sim::machine& m, const search_options& o) {
  return tree_searcher(p, m, o).run();
}

}  // namespace sucl::tune
