// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/backend.hpp"

#include "backends/shm_plan/execution/executor.hpp"
#include "base/config/determinism.hpp"
#include "base/narrow.hpp"
#include "core/exchange/core_services.hpp"

#include <new>

namespace sucl::core {
namespace {

executor& of(sucl_backend_comm* comm) { return *reinterpret_cast<executor*>(comm); }
execution* of(sucl_request* request) { return reinterpret_cast<execution*>(request); }

// Gives a request back that is done, and reports how it failed, if it did.
void conclude(executor& r, execution* e) {
  r.recycle(e);
  if (e->failure) throw error(*e->failure);
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  return guarded([&] {
    executor& r = of(comm);
    execution* e = r.start(*o);
    if (o->flags & SUCL_FLAG_MAY_BLOCK)
      r.finish(e);
    else
      r.progress(0);
    *request = nullptr;
    if (e->done())
      conclude(r, e);
    else
      *request = reinterpret_cast<sucl_request*>(e);
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  return guarded([&] {
    executor& r = of(comm);
    execution* e = of(request);
    if (!e->done()) r.progress(0);
    *done = e->done();
    if (*done) conclude(r, e);
  });
}

void answer_query(const sucl_query& q, bool several_nodes, bool ordered, sucl_capability* answer) {
  ordered = ordered && base::order_matters(q.kind, q.type, q.op);
  answer->supported = plans_support(q.kind, several_nodes, ordered) &&
                      q.memory != SUCL_MEMORY_DEVICE &&
                      (!reduces(static_cast<kind>(q.kind)) || find_fold(q.type, q.op));
  answer->flags = 0;
  answer->max_count = 0;
}

sucl_status query(sucl_state*, const sucl_query* q, sucl_capability* answer) {
  answer_query(*q, false, false, answer);
  return SUCL_SUCCESS;
}

// Between nodes contributions are combined more than once: what must be rounded once is widened, or
// divided at the end, by the caller.
template <bool Ordered>
sucl_status query_between_nodes(sucl_state*, const sucl_query* q, sucl_capability* answer) {
  answer_query(*q, true, Ordered, answer);
  const bool rounds = q->op == SUCL_OP_AVG || base::is_narrow_float(q->type);
  if (reduces(static_cast<kind>(q->kind)) && rounds) answer->supported = 0;
  return SUCL_SUCCESS;
}

template <class Query>
sucl_backend make_table(Query query) {
  return table_of<executor>(plan_backend_name,
                            "SuCL's own plans through memory that the ranks of a node share", query,
                            post, test);
}

const sucl_backend& between_nodes(bool ordered) noexcept {
  static const sucl_backend any = make_table(query_between_nodes<false>);
  static const sucl_backend in_order = make_table(query_between_nodes<true>);
  return ordered ? in_order : any;
}

}  // namespace

const sucl_backend& plan_backend() noexcept {
  static const sucl_backend table = make_table(query);
  return table;
}

sucl_region make_mapped(const backend_comm& memory_provider, int rank, std::uint64_t bytes) {
  sucl_region region{};
  region.struct_size = sizeof region;
  if (const auto status =
          memory_provider.table->memory_create(memory_provider.comm, bytes, &region))
    throw_last(status, memory_provider.table->name, "allocate", rank);
  return region;
}

void add_mapped(const backend_comm& plans, const sucl_region& region, std::uint64_t number,
                std::uint64_t sequence) {
  of(plans.comm).mapped().add({region, number}, sequence);
}

bool remove_mapped(const backend_comm& plans, void* base, std::uint64_t sequence,
                   sucl_region* region) {
  mapped_memory m;
  if (!of(plans.comm).mapped().remove(base, sequence, m)) return false;
  *region = m.region;
  return true;
}

backend_comm make_plan_comm(const backend_comm& memory, placement where, std::string* obstacle,
                            const tune::table* tuned, bool ordered) {
  if (where.size > max_plan_ranks) {
    *obstacle = "it is for up to " + std::to_string(max_plan_ranks) + " ranks";
    for (const transport& t : where.transports) t.via.table->comm_destroy(t.via.comm);
    return {};
  }
  const bool several = where.several_nodes();
  // Messages between nodes take longer than copies within one: larger slices make up for it.
  sharing how;
  if (several) how.slot_bytes = std::uint64_t{1} << 20;
  // Ranks that share processors share those' own caches, where little scratch stays. Of many ranks
  // long rings are more than the shared cache holds, and nothing is known of what they gain.
  constexpr int max_with_long_ring = 16;
  how.long_ring = !where.oversubscribed && where.size <= max_with_long_ring;
  auto rows = tuning_of(tuned, where);
  auto made = std::make_unique<executor>(memory, std::move(where), how, std::move(rows));
  if (!made->memory().complete()) {
    *obstacle = "some ranks of a node share no memory";
    return {};
  }
  if (ordered) made->plans().fold_in_order();
  return {several ? &between_nodes(ordered) : &plan_backend(), nullptr,
          reinterpret_cast<sucl_backend_comm*>(made.release())};
}

const placement& plan_placement(const backend_comm& plans) { return of(plans.comm).where(); }

void provide_scratch(const backend_comm& memory_provider, int rank, int size, compiled_code& code) {
  const std::uint64_t bytes = (code.code.scratch_bytes + 63) / 64 * 64;
  if (bytes == 0) return;
  code.memory_provider = memory_provider;
  code.region = make_mapped(memory_provider, rank, bytes * compiled_code::copies);
  for (std::size_t c = 0; c < compiled_code::copies; ++c)
    for (int r = 0; r < size; ++r) {
      auto* part = static_cast<std::byte*>(code.region.peers[r]);
      code.scratch[c].push_back(part ? part + c * bytes : nullptr);
    }
}

void add_compiled(const backend_comm& plans, std::uint64_t number,
                  std::unique_ptr<compiled_code> code) {
  of(plans.comm).add(number, std::move(code));
}

void remove_compiled(const backend_comm& plans, std::uint64_t number) {
  of(plans.comm).remove_compiled(number);
}

const call_board& board_of(const backend_comm& plans) { return of(plans.comm).board(); }

bool meets_alarm(const backend_comm& plans) { return of(plans.comm).meets_alarm(); }

std::uint64_t calls_over(const backend_comm& plans) { return of(plans.comm).calls_over(); }

bool converged(const backend_comm& plans) {
  const executor& r = of(plans.comm);
  return r.board().alarmed() || r.all_have_followed();
}

std::shared_ptr<prepared_run> prepare_run(const backend_comm& plans, const sucl_operation& o) {
  return plans.table == &plan_backend() ? of(plans.comm).prepare(o) : nullptr;
}

bool run_at_once(const backend_comm& plans, const prepared_run& p) {
  return of(plans.comm).run_at_once(p);
}

void allow_reads(const backend_comm& plans) { of(plans.comm).plans().allow_reads(); }

void retune(const backend_comm& plans, const tune::table* tuned) {
  of(plans.comm).plans().use(tuned);
}

std::string describe_plan(const backend_comm& plans, const sucl_operation& o) {
  return of(plans.comm).plans().describe(o);
}

std::string plan_obstacle(const backend_comm& plans, const tune::table_row& row,
                          const sucl_operation& o) {
  return of(plans.comm).plans().obstacle(row, o);
}

}  // namespace sucl::core
