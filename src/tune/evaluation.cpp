// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/evaluation.hpp"

#include "base/error.hpp"
#include "base/threads/concurrently.hpp"

#include <algorithm>
#include <utility>

namespace sucl::tune {
namespace {

outcome run_one(const plan::problem& p, const sim::machine& m, const evaluation& t,
                const std::set<std::uint64_t>& seen) {
  outcome o;
  plan::schedule s;
  try {
    s = plan::build(p, t.how);
  } catch (const error& e) {
    if (e.code() != errc::out_of_memory) throw;
    o.too_large = true;
    return o;
  }
  o.instructions = plan::instruction_count(s);
  o.hash = plan::hash(s);
  o.seen = seen.contains(o.hash);
  if (o.seen) return o;
  for (const plan::program& r : s.ranks)
    o.scratch_bytes = std::max(o.scratch_bytes, r.scratch_bytes);
  sim::simulate_options limits;
  limits.max_seconds = t.max_seconds;
  limits.max_work = static_cast<std::uint64_t>(std::clamp(t.max_work, 1.0, 1e18));
  limits.usage = t.how.pipeline == 1;
  o.time = sim::simulate(s, m, limits);
  if (!o.time.gave_up && o.time.seconds < t.keep_below_seconds) o.plan = std::move(s);
  return o;
}

}  // namespace

std::vector<outcome> run_all(const plan::problem& p, const sim::machine& m,
                             const std::vector<evaluation>& evaluations,
                             const std::set<std::uint64_t>& seen, int threads) {
  std::vector<outcome> all(evaluations.size());
  base::parallel_for(evaluations.size(), threads,
                     [&](std::size_t i) { all[i] = run_one(p, m, evaluations[i], seen); });
  return all;
}

}  // namespace sucl::tune
