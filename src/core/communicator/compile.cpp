// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans that programs compile.
#include "base/error.hpp"
#include "core/communicator/communicator.hpp"
#include "core/exchange/readiness.hpp"
#include "core/failure/setup_steps.hpp"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <string>

namespace sucl::core {
namespace {

constexpr const char* same_everywhere =
    "Compose the same, with the same options and element type, on every rank";

}  // namespace

// Before calls that block every rank has arrived, or the watchdog says who has not.
void communicator::meet() {
  if (m_job->settings().watchdog.timeout.count() == 0) return;
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
  built_in_comm* const plans = m_backends.custom_plans();
  if (!plans)
    base::fail(errc::unavailable,
               "this communicator cannot run compiled plans: " + m_backends.custom_plan_obstacle(),
               "`sucl info` lists what each backend needs");
  lock.unlock();
  meet();
  std::unique_ptr<plan_draft> draft;
  readiness mine;
  try {
    draft = plans->draft(request, base::determinism_named(m_job->settings().determinism));
  } catch (const error& e) {
    mine.wrong = e.info();
    mine.wrong->operation = "compile";
  }
  if (draft) mine.choice = std::to_string(draft->identity);
  const int other = agree({m_job->control(), m_group}, rank(), size(), mine,
                          "could not compile the plan", same_everywhere);
  if (other != 0)
    base::fail(errc::mismatch, "ranks 0 and " + std::to_string(other) + " compile different plans",
               same_everywhere);
  plans->allocate_scratch(*draft);
  compiled_facts facts = draft->facts;
  facts.number = number;
  lock.lock();
  wait_for_direct(lock);
  plans->add_plan(number, std::move(draft));
  return facts;
}

void communicator::forget_compiled(std::uint64_t number) noexcept {
  std::unique_lock lock(m_mutex);
  const auto runs_it = [&](const op_request* n) {
    return n->record.kind == compiled_plan_kind && n->record.plan == number;
  };
  const auto in_use = [&] {
    return m_direct || std::any_of(m_waiting.begin(), m_waiting.end(), runs_it) ||
           std::any_of(m_flight.begin(), m_flight.end(), runs_it);
  };
  while (!m_ended && !m_failures.broken() && in_use()) {
    lock.unlock();
    progress();
    sched_yield();
    lock.lock();
  }
  built_in_comm* const plans = m_backends.custom_plans();
  if (!m_ended && !m_failures.broken() && plans) plans->remove_plan(number);
}

}  // namespace sucl::core
