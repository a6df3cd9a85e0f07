// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/digit_search.hpp"

#include "base/error.hpp"
#include "base/threads/concurrently.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "sim/simulate.hpp"
#include "tune/evaluation.hpp"
#include "tune/rank_hierarchy.hpp"

#include <algorithm>
#include <utility>

namespace sucl::tune {
namespace {

using plan::recipe;

// The best so many in one channel are tried in more.
constexpr std::size_t deepened = 8;
constexpr int max_channels = 256;
// A plan that takes so many times longer than the best is given up, in one channel and in more.
constexpr double too_slow_alone = 6, too_slow = 1.2;

// The machine's groups, the outermost ones as digits of these radices, which ranks alike allow.
std::vector<rank_hierarchy> digit_hierarchies(const plan::problem& p, const sim::machine& m) {
  std::vector<rank_hierarchy> list = rank_hierarchies(m, p.ranks);
  const rank_hierarchy own = machine_hierarchy(m, p.ranks);
  const int nodes = own.factors.front();
  for (const rank_hierarchy& base : {own, with_one_inner(own)})
    for (const int radix : {2, 3, 4, 8, 16, 32, 64}) {
      std::vector<int> outer = factors_up_to(nodes, radix);
      if (outer.empty() || outer.front() > 64) continue;
      list.push_back(with_outer(base, outer));
      std::reverse(outer.begin(), outer.end());
      list.push_back(with_outer(base, outer));
    }
  std::vector<rank_hierarchy> alike;
  for (const rank_hierarchy& s : list) {
    rank_hierarchy kept;
    for (std::size_t i = 0; i < s.factors.size(); ++i) {
      if (s.factors[i] < 2) continue;
      kept.factors.push_back(s.factors[i]);
      kept.vias.push_back(s.vias[i]);
    }
    if (!kept.factors.empty() && std::find(alike.begin(), alike.end(), kept) == alike.end() &&
        sim::refusal(plan::digits(kept.factors), m).empty())
      alike.push_back(std::move(kept));
  }
  return alike;
}

std::vector<recipe> digit_recipes(const plan::problem& p, const sim::machine& m) {
  std::vector<recipe> list;
  for (const rank_hierarchy& s : digit_hierarchies(p, m)) {
    recipe r;
    r.hierarchy = s.factors;
    r.via = s.vias;
    for (const char* name : {"digits", "packed_digits"}) {
      r.algorithm = name;
      const int splits = p.kind == kind::allreduce ? static_cast<int>(s.factors.size()) : -1;
      for (r.split = std::min(splits, 0); r.split <= splits; ++r.split)
        if (plan::refusal(p, r).empty()) list.push_back(r);
    }
  }
  return list;
}

class digit_searcher {
 public:
  digit_searcher(const plan::problem& p, const sim::machine& m, const search_options& o)
      : m_problem(p), m_machine(m), m_options(o) {}

  search_result run() {
    const std::vector<recipe> all = digit_recipes(m_problem, m_machine);
    m_result.candidates = static_cast<int>(all.size());
    simulate(all, too_slow_alone);
    deepen();
    auto& best = m_result.best;
    if (best.size() > static_cast<std::size_t>(m_options.keep))
      best.resize(static_cast<std::size_t>(m_options.keep));
    if (m_options.progress) m_options.progress("proving " + plan::to_text(best[0].how));
    const plan::verdict v = plan::prove(plan::build_symmetric(m_problem, best[0].how));
    if (!v) base::fail(errc::internal, "the plan that was found is wrong: " + v.message, "");
    best[0].verified = true;
    return std::move(m_result);
  }

 private:
  // Doubles the channels of the best ones as long as that makes them faster.
  void deepen() {
    std::vector<found> seeds = m_result.best;
    if (seeds.size() > deepened) seeds.resize(deepened);
    for (int channels = 2; channels <= max_channels && !seeds.empty(); channels *= 2) {
      std::vector<recipe> list;
      for (const found& f : seeds) {
        recipe r = f.how;
        r.pipeline = channels;
        r.stagger = 1;
        if (plan::refusal(m_problem, r).empty()) list.push_back(r);
      }
      const std::vector<found> deep = simulate(list, too_slow);
      std::erase_if(seeds, [&](found& seed) {
        bool faster = false;
        for (const found& f : deep) {
          recipe shallow = f.how;
          shallow.pipeline = seed.how.pipeline;
          shallow.stagger = seed.how.stagger;
          if (shallow != seed.how || f.seconds >= seed.seconds) continue;
          faster = true;
          seed.seconds = f.seconds;
        }
        return !faster;
      });
    }
  }

  // Those that are not given up; they are among the best from then on.
  std::vector<found> simulate(const std::vector<recipe>& list, double slower) {
    std::vector<found> all(list.size());
    const double limit = m_result.best.empty() ? 0 : slower * m_result.best[0].seconds;
    base::parallel_for(list.size(), m_options.threads, [&](std::size_t i) {
      const plan::symmetric_schedule s = plan::build_symmetric(m_problem, list[i]);
      sim::simulate_options options;
      options.max_seconds = limit;
      const sim::prediction time = sim::simulate(s, m_machine, options);
      if (time.gave_up) return;
      all[i].how = list[i];
      all[i].seconds = all[i].estimated = time.seconds;
      all[i].instructions = plan::instruction_count(s);
      all[i].hash = plan::hash(s);
      all[i].scratch_bytes = s.scratch_bytes;
    });
    m_result.simulated += static_cast<int>(list.size());
    std::erase_if(all, [](const found& f) { return f.seconds == 0; });
    auto& best = m_result.best;
    best.insert(best.end(), all.begin(), all.end());
    std::stable_sort(best.begin(), best.end(),
                     [](const found& a, const found& b) { return a.seconds < b.seconds; });
    return all;
  }

  const plan::problem& m_problem;
  const sim::machine& m_machine;
  const search_options& m_options;
  search_result m_result;
};

}  // namespace

bool takes_digits(const plan::problem& p, const sim::machine& m) {
  return p.ranks >= min_ranks_alike && m.wires.empty() && !digit_recipes(p, m).empty();
}

search_result search_digits(const plan::problem& p, const sim::machine& m,
                            const search_options& o) {
  return digit_searcher(p, m, o).run();
}

}  // namespace sucl::tune
