// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans that programs compile.
#include "backends/shm_plan/backend.hpp"
#include "backends/shm_plan/custom_plan.hpp"
#include "base/error.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/setup_steps.hpp"
#include "process/process.hpp"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <string>

namespace sucl::core {
namespace {

// "ok" and what must be the same on every rank, or what is wrong.
std::string vote_of(const draft_plan& d) { return "ok " + std::to_string(d.identity); }

// Throws what any rank has to say against the plan, on every rank.
void agree(const std::vector<std::string>& votes, const std::optional<error_info>& mine) {
  if (mine) throw error(*mine);
  for (std::size_t r = 0; r < votes.size(); ++r)
    if (votes[r].rfind("ok ", 0) != 0)
      base::fail(errc::invalid_argument,
                 "rank " + std::to_string(r) + " could not compile the plan: " + votes[r],
                 "Compose the same, with the same options, on every rank");
  const auto other =
      std::find_if(votes.begin(), votes.end(), [&](const std::string& v) { return v != votes[0]; });
  if (other != votes.end())
    base::fail(errc::mismatch,
               "ranks 0 and " + std::to_string(other - votes.begin()) + " compile different plans",
               "Compose the same, with the same options and element type, on every rank");
}

}  // namespace

// Before calls that block everybody has arrived, or the watchdog says who has not.
void communicator::meet() {
  if (m_process->settings().watchdog.timeout.count() == 0) return;
  const setup_pause watched;
  sucl_operation arrival{};
  arrival.struct_size = sizeof arrival;
  arrival.kind = SUCL_KIND_BARRIER;
  run(arrival, {});
}

compiled_facts communicator::compile(const compile_request& request) {
  check();
  std::unique_lock lock(m_mutex);
  const std::uint64_t number = ++m_compiled;
  const backend_comm plans = m_backends.plans(), memory_provider = m_backends.memory_provider();
  if (!plans.table)
    base::fail(errc::unavailable, "plans cannot run here: " + m_backends.why_no_plans(),
               "`sucl info` lists what each backend needs");
  lock.unlock();
  meet();
  draft_plan draft;
  std::unique_ptr<compiled_code> code;
  std::optional<error_info> problem;
  try {
    draft = compile_here(request, plan_placement(plans),
                         base::determinism_named(m_process->settings().determinism));
    code = code_of(draft, request, plan_placement(plans));
  } catch (const error& e) {
    problem = e.info();
    problem->operation = "compile";
    problem->rank = rank();
  }
  const auto votes = exchange({m_process->control(), m_group}, size(),
                              problem ? problem->message : vote_of(draft));
  agree(votes, problem);
  provide_scratch(memory_provider, rank(), size(), *code);
  lock.lock();
  wait_for_direct(lock);
  add_compiled(plans, number, std::move(code));
  draft.facts.number = number;
  return draft.facts;
}

void communicator::forget_compiled(std::uint64_t number) noexcept {
  std::unique_lock lock(m_mutex);
  const auto runs_it = [&](const op_request* n) {
    return n->record.kind == compiled_plan_kind && n->record.remote_region == number;
  };
  const auto in_use = [&] {
    return m_direct || std::any_of(m_waiting.begin(), m_waiting.end(), runs_it) ||
           std::any_of(m_flight.begin(), m_flight.end(), runs_it);
  };
  while (!m_ended && !m_broken && in_use()) {
    lock.unlock();
    progress();
    sched_yield();
    lock.lock();
  }
  if (!m_ended && !m_broken && m_backends.plans().table)
    remove_compiled(m_backends.plans(), number);
}

}  // namespace sucl::core
