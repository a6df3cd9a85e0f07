// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What the core knows of the backend of plans.
#include "backends/shm_common/make_part.hpp"
#include "backends/shm_plan/backend.hpp"
#include "backends/shm_plan/plans/custom_plan.hpp"
#include "base/error.hpp"
#include "core/host_ops/helper_threads.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/backend_creation.hpp"
#include "core/selection/settings.hpp"

#include <algorithm>
#include <atomic>
#include <climits>

namespace sucl::core {
namespace {

using base::range;

// Message sizes for which plans are faster than MPI. On one node plans mostly copy ordinary memory
// twice, and libraries whose blocking calls copy once are ahead in between. Between nodes plans
// have fewer messages, because nodes combine and share; where each pair has data of its own that
// only pays for small blocks, and for large ones the copies on the way are all that is left of it.
std::vector<range> sizes_for_plans(sucl_kind what, const selection_scope& scope) {
  constexpr std::uint64_t most = range{}.high;
  const bool pairs =
      what == SUCL_KIND_ALLTOALL || what == SUCL_KIND_GATHER || what == SUCL_KIND_SCATTER;
  if (scope.nodes > 1) return pairs ? std::vector<range>{{0, 32u << 10}} : std::vector<range>{{}};
  if (what == SUCL_KIND_BROADCAST && !scope.reads && !scope.mixed)
    return {{0, 32u << 10}, {8u << 20, most}};
  return {{}};
}

// Processors of this machine for each rank. A communicator knows its own ranks alone, so the fewest
// that one of this process has had, of which the world is the first.
int processors_per_rank(const backend_creation& c) {
  static std::atomic<int> fewest{INT_MAX};
  const int now = c.where.processors_per_rank;
  int known = fewest.load();
  while (now < known && !fewest.compare_exchange_weak(known, now)) {
  }
  return std::min(now, known);
}

// How many threads of this rank share a long copy. By default at most half of the processors that
// it has, as its device computes meanwhile, and no more than a memory needs.
int threads_of(const backend_creation& c) {
  constexpr int enough = 4;
  std::uint64_t threads = 0;
  for (const auto& [key, value] : c.entry_of(plan_backend_name)->settings) {
    const backend_setting one(plan_backend_name, key, value);
    if (key != "threads") one.refuse_key("It knows threads, a number");
    threads = one.number({0, helper_threads::max});
  }
  const int by_default = std::clamp(processors_per_rank(c) / 2, 1, enough);
  return threads > 0 ? static_cast<int>(threads) : by_default;
}

struct own_draft final : plan_draft {
  std::unique_ptr<compiled_code> code;
};

class plan_comm final : public built_in_comm {
 public:
  plan_comm(const backend_comm& plans, const backend_comm& memory_provider)
      : m_plans(plans), m_memory_provider(memory_provider) {}

  std::string describe(const sucl_operation& o) override { return describe_plan(m_plans, o); }
  void retune(const tune::table* tuned) override { core::retune(m_plans, tuned); }
  const call_board* board() const override { return &board_of(m_plans); }
  bool meets_alarm() const override { return core::meets_alarm(m_plans); }
  std::uint64_t calls_over() const override { return core::calls_over(m_plans); }
  bool ends_in_order() const override { return true; }
  bool followed() const override { return converged(m_plans); }

  std::shared_ptr<prepared_run> prepare(const sucl_operation& o) override {
    return prepare_run(m_plans, o);
  }
  bool run(const prepared_run& p) override { return run_at_once(m_plans, p); }

  bool keeps_shared_memory() const override { return true; }
  void add_memory(const sucl_region& region, std::uint64_t number,
                  std::uint64_t sequence) override {
    add_mapped(m_plans, region, number, sequence);
  }
  bool remove_memory(void* base, std::uint64_t sequence, sucl_region* region) override {
    return remove_mapped(m_plans, base, sequence, region);
  }

  bool runs_custom_plans() const override { return true; }
  std::unique_ptr<plan_draft> draft(const compile_request& r, base::determinism level) override {
    auto made = std::make_unique<own_draft>();
    const draft_plan d = compile_here(r, plan_placement(m_plans), level);
    made->code = code_of(d, r, plan_placement(m_plans));
    made->facts = d.facts;
    made->identity = d.identity;
    return made;
  }
  void allocate_scratch(plan_draft& d) override {
    const placement& where = plan_placement(m_plans);
    provide_scratch(m_memory_provider, where.rank, where.size, *static_cast<own_draft&>(d).code);
  }
  void add_plan(std::uint64_t number, std::unique_ptr<plan_draft> d) override {
    add_compiled(m_plans, number, std::move(static_cast<own_draft&>(*d).code));
  }
  void remove_plan(std::uint64_t number) override { remove_compiled(m_plans, number); }
  std::string obstacle(const tune::table_row& row, const sucl_operation& o) override {
    return plan_obstacle(m_plans, row, o);
  }

 private:
  backend_comm m_plans, m_memory_provider;
};

class plan_built_in_backend final : public built_in_backend {
 public:
  const char* name() const override { return plan_backend_name; }
  const sucl_backend& table() const override { return plan_backend(); }
  bool uses_memory_provider() const override { return true; }
  bool runs_custom_plans() const override { return true; }

  std::string obstacle(backend_creation& c) const override { return c.no_shared_memory(); }
  // No other backend executes a compiled plan, so that one is staged as a whole.
  std::string obstacle_but_for_plans(backend_creation& c) const override {
    return c.no_host_memory();
  }

  backend_instance create(backend_creation& c, std::string* why) const override {
    backend_instance made;
    const int threads = threads_of(c);
    made.via = make_shared_part(c, why, [&](placement where, bool reads) {
      where.threads = threads;
      const backend_comm plans =
          make_plan_comm(c.memory_provider, std::move(where), why, c.around.tuned, c.strict());
      if (plans.table && reads) allow_reads(plans);
      return plans;
    });
    if (!made.via.table) return made;
    made.own = std::make_unique<plan_comm>(made.via, c.memory_provider);
    made.traits.needs_progress = made.traits.spins = true;
    made.traits.any_thread = c.where.nodes == 1;
    made.traits.ends_on_mismatch = made.traits.folds_alike = true;
    return made;
  }

  // Where MPI would be next, because no rule selects another.
  void add_candidates(candidate_list& list, sucl_kind what, candidate_position at) const override {
    if (what > SUCL_KIND_EXSCAN) return;
    std::string ruled_out = list.other_platform();
    if (at == candidate_position::last)
      return list.add(selection_stage::last_resort, {}, every_memory, std::move(ruled_out));
    if (at != candidate_position::before_default || !list.mpi_is_default()) return;
    // This instance runs only compiled plans, which no other backend runs.
    if (ruled_out.empty() && list.scope().nodes > 1 && list.scope().nodes == list.scope().ranks)
      ruled_out = "every rank is alone on its node";
    const std::vector<range> sizes = sizes_for_plans(what, list.scope());
    const std::uint32_t memory = list.scope().mixed ? every_memory : host_memory;
    for (const range& bytes : sizes) list.add(selection_stage::built_in, bytes, memory, ruled_out);
    if (sizes.size() == 1 || list.scope().nodes > 1) return;
    // For non-blocking calls libraries use other algorithms, which are slower.
    list.add(selection_stage::built_in, {}, memory, ruled_out, tune::call_form::event);
  }

  std::string reason(const selection_scope& scope) const override {
    return scope.nodes > 1 ? "nodes combine and share what they send"
                           : "faster than MPI within a node";
  }
};

}  // namespace

const built_in_backend& plan_built_in() {
  static const plan_built_in_backend it;
  return it;
}

}  // namespace sucl::core
