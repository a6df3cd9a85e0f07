// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/search.hpp"

#include "base/error.hpp"
#include "base/threads/concurrently.hpp"
#include "plan/ir/builder.hpp"
#include "plan/verify/verify.hpp"
#include "tune/candidates.hpp"
#include "tune/digit_search.hpp"
#include "tune/evaluation.hpp"
#include "tune/family.hpp"
#include "tune/graph/tree_plan.hpp"
#include "tune/tree_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace sucl::tune {
namespace {

using plan::recipe;

constexpr double unlimited = std::numeric_limits<double>::max();

// How much longer than the best forecast a rough estimate may be to be worth a simulation.
constexpr double hopeless = 6;
constexpr std::size_t min_simulated = 12;
// Work of the simulator for an instruction, if few transfers share a link.
constexpr double costs = 4;
// The first simulation of a plan may take this part of the budget.
constexpr double share = 8;
// How much more than expected a plan may cost, as it does where its channels drift apart.
constexpr double max_overrun = 4;
// What is left for changes of other parameters than the number of channels.
constexpr double reserve = 0.15;
// A forecast or a plan must be so much better to count.
constexpr double better = 0.995;
constexpr std::size_t refined = 4;
constexpr int min_kept = 5;
// Instructions of plans that are proved beside the best one.
constexpr double max_others_verified = 5e4;
// Plans simulated at once, whatever the number of threads.
constexpr std::size_t trial_batch = 8;
constexpr int depths[] = {2, 4, 8, 16, 32, 64, 128};
constexpr int first_channels = 4;
constexpr int max_rounds = 12;
// Work for a start, and for each rank.
constexpr double budget = 0.8e6;
constexpr double budget_of_rank = 4e3;
// A shortlisted recipe has at most so many instructions, and so many for each rank; and at most so
// many times more channels than were simulated, of which there must be so many.
constexpr double largest_shortlisted = 2.2e5;
constexpr double largest_of_rank = 800;
// Parts of the budget for all shortlist, for one of them, and for changes of the best one.
constexpr double share_of_shortlist = 1.5;
constexpr double costliest_shortlisted = 1.2;
constexpr double polishing = 1;
constexpr std::size_t shortlist_batch = 2;
// About what can be built and proved in two seconds and 1 GiB.
constexpr double provable = 4e6;
constexpr int farthest = 8;
constexpr int min_fitted = 4;
constexpr double near_fit = 0.1;
// What a rough estimate may overrate a time.
constexpr double doubt = 1.3;
// Budget for more channels of the best plans, on top.
constexpr double beyond = 0.25;

class searcher {
 public:
  searcher(const plan::problem& p, const sim::machine& m, const search_options& o)
      : m_problem(p), m_machine(m), m_options(o) {
    m_budget = o.budget > 0 ? o.budget : own_budget();
  }

  search_result run() {
    collect();
    simulate_families();
    deepen();
    if (m_result.best.empty()) simulate_smallest();
    for (int round = 0; round < max_rounds && refine(); ++round) {
    }
    reach();
    finish();
    return std::move(m_result);
  }

 private:
  double best() const { return m_result.best.empty() ? unlimited : m_result.best[0].seconds; }

  // All recipes, the most promising ones first.
  void collect() {
    std::set<std::array<double, 5>> seen;
    for (const recipe& r : candidates(m_problem, m_machine)) {
      ++m_result.candidates;
      family f{r, rough_estimate(m_problem, r, m_machine)};
      // Recipes of equal estimates do the same under different names, but for a tree's other edges.
      const estimate& e = f.cost;
      const double other_edges = r.algorithm == "bine" ? 1 : 0;
      if (!seen.insert({e.seconds, e.instructions, e.latency, e.overhead, other_edges}).second)
        continue;
      f.forecast = e.seconds;
      for (const int depth : depths)
        if (can_take(r, depth))
          f.forecast = std::min(
              f.forecast, rough_estimate(m_problem, in_channels(r, depth), m_machine).seconds);
      m_families.push_back(std::move(f));
    }
    std::stable_sort(m_families.begin(), m_families.end(),
                     [](const family& a, const family& b) { return a.forecast < b.forecast; });
  }

  // Channels that share each link all the time gain little, so they are staggered where they can
  // be.
  recipe in_channels(recipe r, int channels) const {
    r.pipeline = channels;
    r.stagger = channels > 1 ? 1 : 0;
    if (!plan::refusal(m_problem, r).empty()) r.stagger = 0;
    return r;
  }
  bool can_take(const recipe& r, int channels) const {
    return plan::refusal(m_problem, in_channels(r, channels)).empty();
  }

  // Simulates in one channel, as far as half of the budget goes, and foresees the rest.
  void simulate_families() {
    std::map<std::string, double> too_many;  // instructions, by algorithm
    double least = unlimited;
    std::size_t last = m_families.size();
    for (std::size_t next = 0; next < last;) {
      std::vector<family*> chosen;
      std::vector<evaluation> evaluations;
      for (double planned = 0; next < last && evaluations.size() < trial_batch; ++next) {
        family& f = m_families[next];
        if (next >= min_simulated && f.forecast > hopeless * least) {
          last = next;
          break;
        }
        const double work = costs * f.cost.instructions;
        if (work > m_budget / share || m_spent + planned + work > m_budget / 2) continue;
        const auto most = too_many.find(f.how.algorithm);
        if (most != too_many.end() && f.cost.instructions >= most->second) continue;
        planned += work;
        chosen.push_back(&f);
        evaluations.push_back({f.how, m_budget / share, max_seconds(hopeless * best())});
      }
      const std::vector<known> seen = simulate(evaluations);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i].gave_up && seen[i].work > m_budget / share)
          too_many[chosen[i]->how.algorithm] = chosen[i]->cost.instructions;
        if (seen[i].gave_up) continue;
        begin(*chosen[i], seen[i]);
        least = std::min(least, chosen[i]->forecast);
      }
    }
    std::erase_if(m_families, [](const family& f) { return f.channels == 0; });
  }

  // What one channel says about a family.
  void begin(family& f, const known& alone) const {
    f.channels = 1;
    f.seconds = f.alone = alone.seconds;
    f.work = alone.work;
    f.instructions = alone.instructions;
    f.busiest = alone.busiest;
    const double fixed = f.busiest + f.cost.latency;
    predict(f, fixed, std::max(0.0, f.alone - fixed));
  }

  // The best number of channels, if they divide `rest` and not `fixed` (HiCCL's formulas (1) and
  // (2), for any plan), and a rank can do its work for all of them in the time.
  void predict(family& f, double fixed, double rest) const {
    f.fixed = fixed;
    f.rest = rest;
    int first = 0;
    f.forecast = f.seconds;
    f.next = 0;
    for (const int depth : depths) {
      if (depth <= f.channels || !can_take(f.how, depth)) continue;
      if (first == 0 || (f.channels == 1 && depth <= first_channels)) first = depth;
      const double deep = in_depth(f, depth);
      if (deep >= better * f.forecast) continue;
      f.forecast = deep;
      f.next = std::min(first, depth);
    }
  }

  static double in_depth(const family& f, int depth) {
    return std::max(f.fixed + f.rest / depth, f.cost.latency + f.cost.overhead * depth);
  }

  // The most promising family that costs no more than this; null if there is none.
  family* next_family(double max_work) {
    family* most = nullptr;
    for (family& f : m_families)
      if (f.next > 0 && f.forecast < better * best() && work_of_next(f) <= max_work &&
          !outdone(f) && (!most || f.forecast < most->forecast))
        most = &f;
    return most;
  }

  // Whether another family was faster with as many channels, and promises as much: by its forecast,
  // and by the work of its busiest part, which no number of channels makes shorter.
  bool outdone(const family& f) const {
    const auto known = m_leaders.find(f.channels);
    if (known == m_leaders.end()) return false;
    const family& leader = known->second;
    return leader.seconds < f.seconds && 0.98 * leader.forecast < f.forecast &&
           better * leader.busiest < f.busiest;
  }

  static double work_of_next(const family& f) { return f.work * f.next / f.channels; }

  // Simulates the most promising families in more channels, those that cost little first.
  void deepen() {
    for (double allowed = m_budget / 256; m_spent + allowed < (1 - reserve) * m_budget;
         allowed *= 2)
      while (family* first = next_family(allowed)) {
        std::vector<family*> chosen;
        std::vector<evaluation> evaluations;
        double left = (1 - reserve) * m_budget - m_spent;
        if (work_of_next(*first) > left) return;
        for (family* f = first; f && evaluations.size() < trial_batch / 2;
             f = next_family(allowed)) {
          const double work = work_of_next(*f);
          if (work > left) break;
          const recipe deep = in_channels(f->how, std::exchange(f->next, 0));
          // Those that took the same time in one channel are alike.
          if (f->channels == 1 && !m_deepened.emplace(f->alone, f->busiest).second) continue;
          chosen.push_back(f);
          evaluations.push_back({deep, std::min(left, max_overrun * work), 0});
          left -= work;
        }
        const std::vector<known> seen = simulate(evaluations);
        for (std::size_t i = 0; i < seen.size(); ++i)
          fit(*chosen[i], evaluations[i].how.pipeline, seen[i]);
      }
  }

  // Fits a family's time again to what more channels take. Returns whether it got faster.
  bool fit(family& f, int channels, const known& deep) {
    if (deep.gave_up || deep.seconds >= better * f.seconds) return false;
    // A new fit through the last two numbers of channels.
    const double rest = (f.seconds - deep.seconds) / (1.0 / f.channels - 1.0 / channels);
    f.moved = f.fitted ? std::abs(rest - f.rest) / rest : 1;
    f.fitted = true;
    f.channels = channels;
    f.seconds = deep.seconds;
    f.work = deep.work;
    f.instructions = deep.instructions;
    const double fixed = std::max(f.seconds - rest / channels, f.busiest);
    // What few channels leave idle many may fill, so a first fit counts as half of the truth.
    predict(f, f.moved < near_fit ? fixed : (fixed + f.busiest) / 2, rest);
    const auto [leader, first] = m_leaders.emplace(channels, f);
    if (!first && f.seconds < leader->second.seconds) leader->second = f;
    return true;
  }

  // More channels for what promises most in them, as long as that is worth it: each simulation
  // corrects a fit. What costs too much is predicted.
  void reach() {
    m_max_work = (1 + beyond) * m_budget;
    for (prediction next = most_promising(); next.from; next = most_promising()) {
      family& f = *next.from;
      const double most = std::min(m_max_work - m_spent, max_overrun * work_of(next));
      const known deep = simulate({{in_channels(f.how, next.channels), most, 0}})[0];
      if (fit(f, next.channels, deep)) continue;
      if (deep.gave_up) {
        f.over_budget = true;
        continue;
      }
      f.fixed = f.seconds;  // more channels do not make it faster
      f.rest = 0;
    }
    decide();
    simulate_shortlist(published_shortlist(), unlimited, unlimited);
    polish();
  }

  // The best one with one parameter changed, as long as that helps. Most are given up early.
  void polish() {
    double left = polishing * m_budget;
    for (double before = unlimited; best() < before && left > 0;) {
      before = best();
      const found seed = m_result.best[0];
      std::vector<recipe> fresh;
      const double work = m_known[plan::to_text(seed.how)].work / seed.how.pipeline;
      for (const recipe& r : neighbours(seed.how, m_problem, m_machine))
        if (!m_known.contains(plan::to_text(r)) && work * r.pipeline <= left &&
            static_cast<double>(seed.instructions) / seed.how.pipeline * r.pipeline <=
                max_instructions())
          fresh.push_back(r);
      std::stable_sort(fresh.begin(), fresh.end(), in_fewer_channels);
      left -= simulate_shortlist(fresh, left, costliest_shortlisted * m_budget);
    }
  }

  // A few at a time, each as far as it may be the best, until this much work is done in all or for
  // one of them. Returns it.
  double simulate_shortlist(const std::vector<recipe>& list, double max_work, double costliest) {
    double done = 0;
    for (std::size_t next = 0; next < list.size() && done < max_work;) {
      std::vector<evaluation> evaluations;
      const int channels = list[next].pipeline;
      for (; next < list.size() && evaluations.size() < shortlist_batch &&
             list[next].pipeline == channels;
           ++next)
        evaluations.push_back(
            {list[next], std::min(max_work - done, costliest), max_seconds(best())});
      for (const known& k : simulate(evaluations)) done += k.work;
    }
    return done;
  }

  // A family, and the number of channels to simulate next.
  struct prediction {
    family* from = nullptr;
    int channels = 0;
  };

  // Channels drift apart, so the work grows faster than their number.
  static double work_of(const prediction& p) {
    const double times = static_cast<double>(p.channels) / p.from->channels;
    return p.from->work * times * std::sqrt(times);
  }

  // Whose best number of channels promises the shortest time, clearly better than the best so far.
  // On the way there the number of channels doubles, as a fit is right nearby.
  prediction most_promising() {
    prediction most;
    double least = better * best();
    for (family& f : m_families) {
      prediction next{&f, 0};
      if (f.over_budget) continue;
      for (const int depth : depths) {
        if (depth <= f.channels || !can_take(f.how, depth)) continue;
        if (next.channels == 0) next.channels = depth;
        const double seconds = in_depth(f, depth);
        if (seconds >= least) continue;
        if (m_spent + work_of(next) > m_max_work) break;
        most = next;
        least = seconds;
      }
    }
    return most;
  }

  // What fits promise beyond the budget, which they know to some hundredths: the shortlist are
  // simulated at full size.
  void decide() {
    const std::vector<predicted> list = best_predicted();
    // Each in as many channels as promise most, then in half as many, which a fit may underrate.
    std::vector<recipe> shortlist;
    for (const int part : {1, 2})
      for (const predicted& p : list)
        shortlist.push_back(in_channels(p.how, p.how.pipeline / part));
    simulate_shortlist(shortlist, share_of_shortlist * m_budget, costliest_shortlisted * m_budget);
  }

  // The best number of channels of each family that a simulation of them may confirm.
  std::vector<predicted> best_predicted() const {
    std::vector<predicted> list;
    for (const family& f : m_families) {
      if (f.channels < min_fitted) continue;
      predicted most{{}, better * best()};
      for (const int depth : depths) {
        const double seconds = in_depth(f, depth);
        const double instructions = f.instructions / f.channels * depth;
        if (depth <= f.channels || depth > farthest * f.channels || seconds >= most.seconds ||
            instructions > max_instructions() ||
            f.work / f.channels * depth > costliest_shortlisted * m_budget ||
            !can_take(f.how, depth))
          continue;
        most = {in_channels(f.how, depth), seconds};
      }
      if (!most.how.algorithm.empty()) list.push_back(std::move(most));
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const predicted& a, const predicted& b) { return a.seconds < b.seconds; });
    return list;
  }

  // Published parameters, those in few channels first, without large plans that are hopeless by a
  // rough estimate and those that are too large to be proved in seconds.
  std::vector<recipe> published_shortlist() const {
    std::vector<recipe> list;
    for (const auto& sets : {hiccl_sets(m_problem, m_machine), ext_mpi_sets(m_problem, m_machine)})
      for (const published& s : sets) {
        const estimate e = rough_estimate(m_problem, s.how, m_machine);
        const bool hopeful = e.seconds < doubt * best() && e.instructions < provable;
        if (hopeful || e.instructions < max_instructions()) list.push_back(s.how);
      }
    std::stable_sort(list.begin(), list.end(), in_fewer_channels);
    return list;
  }

  static bool in_fewer_channels(const recipe& a, const recipe& b) {
    return a.pipeline < b.pipeline;
  }

  double max_instructions() const {
    return (largest_shortlisted + largest_of_rank * m_problem.ranks) * m_budget / own_budget();
  }
  double own_budget() const { return budget + budget_of_rank * m_problem.ranks; }

  // The time that a plan must not take to be among the best.
  double worst_kept() const {
    const auto keep = static_cast<std::size_t>(std::max(m_options.keep, min_kept));
    return m_result.best.size() >= keep ? m_result.best[keep - 1].seconds : 0;
  }

  static double max_seconds(double seconds) { return seconds < unlimited ? seconds : 0; }

  // Builds and simulates what is not known yet, side by side; keeps the list of results sorted.
  std::vector<known> simulate(const std::vector<evaluation>& list) {
    std::vector<evaluation> fresh;
    for (const evaluation& t : list) {
      const auto before = m_known.find(plan::to_text(t.how));
      if (before != m_known.end() && !before->second.cut_short(t.max_work)) continue;
      if (cannot_win(t)) {
        m_known[plan::to_text(t.how)].allowed = t.max_work;
        continue;
      }
      if (m_options.progress) m_options.progress(plan::to_text(t.how));
      fresh.push_back(t);
      fresh.back().keep_below_seconds = best();
    }
    std::vector<outcome> done = run_all(m_problem, m_machine, fresh, m_hashes, m_options.threads);
    for (std::size_t i = 0; i < done.size(); ++i) record(fresh[i], std::move(done[i]));
    std::vector<known> all;
    for (const evaluation& t : list) all.push_back(m_known[plan::to_text(t.how)]);
    return all;
  }

  // A recipe in one channel: those that this is equal for move the same bytes through the same
  // limits.
  static std::string alone(recipe r) {
    r.pipeline = 1;
    r.stagger = 0;
    return plan::to_text(r);
  }
  bool cannot_win(const evaluation& t) const {
    const auto known = m_min.find(alone(t.how));
    return known != m_min.end() && t.max_seconds > 0 && known->second > t.max_seconds;
  }

  void record(const evaluation& t, outcome o) {
    const recipe& r = t.how;
    known& k = m_known[plan::to_text(r)];
    k.allowed = t.max_work;
    k.instructions = static_cast<double>(o.instructions);
    if (o.too_large) k.work = m_budget;
    if (o.too_large || o.seen || m_hashes.contains(o.hash)) return;
    if (!o.time.gave_up) m_hashes.insert(o.hash);
    m_min[alone(r)] = o.time.min_seconds;
    k.work = static_cast<double>(o.instructions + o.time.work);
    k.seconds = o.time.seconds;
    k.gave_up = o.time.gave_up;
    for (const sim::usage& u : o.time.uses) k.busiest = std::max(k.busiest, u.bytes / u.capacity);
    m_spent += k.work;
    ++m_result.simulated;
    if (k.gave_up) return;
    if (k.seconds < best()) m_best_plan = std::move(o.plan);
    found f;
    f.how = r;
    f.seconds = o.time.seconds;
    f.estimated = rough_estimate(m_problem, r, m_machine).seconds;
    f.instructions = o.instructions;
    f.hash = o.hash;
    f.scratch_bytes = o.scratch_bytes;
    const auto at =
        std::upper_bound(m_result.best.begin(), m_result.best.end(), f,
                         [](const found& a, const found& b) { return a.seconds < b.seconds; });
    m_result.best.insert(at, std::move(f));
  }

  // Where every plan is beyond the budget there must still be an answer.
  void simulate_smallest() {
    recipe smallest;
    estimate least;
    least.instructions = unlimited;
    for (const recipe& r : candidates(m_problem, m_machine))
      if (const estimate e = rough_estimate(m_problem, r, m_machine);
          e.instructions < least.instructions) {
        smallest = r;
        least = e;
      }
    m_known.clear();
    m_hashes.clear();
    // A rough estimate may be somewhat wrong.
    if (least.instructions < 2.0 * plan::max_instructions) simulate({{smallest, unlimited, 0}});
    if (m_result.best.empty())
      base::fail(errc::out_of_memory,
                 std::string("every plan of ") + sucl::name(m_problem.kind) + " for " +
                     std::to_string(m_problem.ranks) + " ranks has more than " +
                     std::to_string(plan::max_instructions / 1'000'000) + " million instructions",
                 "Take fewer ranks.");
  }

  // Changes one parameter of each of the best. Returns whether the best one became better.
  bool refine() {
    const double before = best();
    for (const recipe& seed : seeds()) {
      const double work = m_known[plan::to_text(seed)].work / seed.pipeline;
      std::vector<evaluation> evaluations;
      double left = m_budget - m_spent;
      for (const recipe& r : neighbours(seed, m_problem, m_machine)) {
        if (m_known.contains(plan::to_text(r)) || work * r.pipeline > left) continue;
        evaluations.push_back({r, left, worst_kept()});
        left -= work * r.pipeline;
      }
      simulate(evaluations);
    }
    return best() < before;
  }

  std::vector<recipe> seeds() const {
    std::vector<recipe> list;
    double last = 0;
    for (const found& f : m_result.best) {
      if (list.size() == refined) break;
      if (f.seconds != last) list.push_back(f.how);  // plans of equal times are alike
      last = f.seconds;
    }
    return list;
  }

  // Proves the best one and others that cost little, and names their publications.
  void finish() {
    auto& list = m_result.best;
    if (list.size() > static_cast<std::size_t>(m_options.keep))
      list.resize(static_cast<std::size_t>(m_options.keep));
    double left = m_options.max_verified;
    std::vector<found*> proved;
    for (found& f : list) {
      for (const auto& sets :
           {hiccl_sets(m_problem, m_machine), ext_mpi_sets(m_problem, m_machine)})
        for (const published& s : sets)
          if (s.how == f.how) f.source = s.source;
      const auto instructions = static_cast<double>(f.instructions);
      if (instructions > left) continue;
      left = std::min(left, max_others_verified) - (&f == &list.front() ? 0 : instructions);
      if (m_options.progress) m_options.progress("proving " + plan::to_text(f.how));
      proved.push_back(&f);
    }
    base::parallel_for(proved.size(), m_options.threads, [&](std::size_t i) {
      const bool kept = proved[i] == &list.front();
      plan::verify_or_fail(kept ? m_best_plan : plan::build(m_problem, proved[i]->how));
      proved[i]->verified = true;
    });
  }

  const plan::problem& m_problem;
  const sim::machine& m_machine;
  const search_options& m_options;
  double m_budget = 0;
  double m_spent = 0;
  double m_max_work = 0;  // that may be spent in the end
  std::vector<family> m_families;
  std::map<int, family> m_leaders;  // the fastest by number of channels
  std::set<std::pair<double, double>> m_deepened;
  std::set<std::uint64_t> m_hashes;
  std::map<std::string, double> m_min;  // seconds that a recipe takes at least, see alone()
  plan::schedule m_best_plan;
  std::map<std::string, known> m_known;  // by recipe
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
  search_result result = takes_trees(p, m)    ? search_trees(p, m, o)
                         : takes_digits(p, m) ? search_digits(p, m, o)
                                              : searcher(p, m, o).run();
  result.least = lower_bound(p, m);
  return result;
}

plan::schedule plan_of(const plan::problem& p, const found& f) {
  return f.made ? *f.made : plan::build(p, f.how);
}

}  // namespace sucl::tune
