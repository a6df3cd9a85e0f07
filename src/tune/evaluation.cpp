// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/evaluation.hpp"

#include "base/error.hpp"
#include "base/system/blocked_signals.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
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

void side_by_side(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  const std::size_t most = threads > 0 ? static_cast<std::size_t>(threads)
                                       : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> helpers;
  try {
    const base::blocked_signals blocked;
    while (helpers.size() + 1 < std::min(most, count)) helpers.emplace_back(take);
  } catch (const std::system_error&) {  // no more threads: those that there are do the work
  }
  take();
  for (std::thread& t : helpers) t.join();
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

std::vector<outcome> run_all(const plan::problem& p, const sim::machine& m,
                             const std::vector<evaluation>& evaluations,
                             const std::set<std::uint64_t>& seen, int threads) {
  std::vector<outcome> all(evaluations.size());
  side_by_side(evaluations.size(), threads,
               [&](std::size_t i) { all[i] = run_one(p, m, evaluations[i], seen); });
  return all;
}

}  // namespace sucl::tune
