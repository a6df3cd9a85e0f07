// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/compiled_plans.hpp"

#include "base/error.hpp"
#include "core/exchange/readiness.hpp"

#include <sched.h>

#include <memory>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

constexpr const char* same_everywhere =
    "Compose the same, with the same options and element type, on every rank";

}  // namespace

std::uint64_t compiled_plans::number_next() {
  const auto lock = m_queue.lock();
  const std::uint64_t number = ++m_compiled;
  if (m_context.backends.custom_plans().empty())
    base::fail(
        errc::unavailable,
        "this communicator cannot run compiled plans: " + m_context.backends.custom_plan_obstacle(),
        "`sucl info` lists what each backend needs");
  return number;
}

// The first backend that can run it does, on every rank the same one.
std::unique_ptr<plan_draft> compiled_plans::draft(const compile_request& request,
                                                  built_in_comm** runs) const {
  const auto level = base::determinism_named(m_context.owner->settings().determinism);
  const auto& all = m_context.backends.custom_plans();
  for (auto it = all.begin();; ++it) try {
      *runs = *it;
      return (*it)->draft(request, level);
    } catch (const error& e) {
      if (e.code() != errc::unsupported || it + 1 == all.end()) throw;
    }
}

compiled_facts compiled_plans::compile(std::uint64_t number, const compile_request& request) {
  built_in_comm* runs = nullptr;
  std::unique_ptr<plan_draft> draft;
  readiness mine;
  try {
    draft = this->draft(request, &runs);
  } catch (const error& e) {
    mine.wrong = e.info();
    mine.wrong->operation = "compile";
  }
  if (draft) mine.choice = std::to_string(draft->identity);
  const int other = agree(m_context.oob(), m_context.rank(), m_context.size(), mine,
                          "could not compile the plan", same_everywhere);
  if (other != 0)
    base::fail(errc::mismatch, "ranks 0 and " + std::to_string(other) + " compile different plans",
               same_everywhere);
  runs->allocate_scratch(*draft);
  compiled_facts facts = draft->facts;
  facts.number = number;
  auto lock = m_queue.lock();
  m_queue.await_exit(lock);
  m_queue.throw_if_ended();
  m_context.backends.add_plan(number, *runs, std::move(draft));
  return facts;
}

// Null: there is none.
built_in_comm* compiled_plans::part_runner() const {
  for (built_in_comm* one : m_context.backends.custom_plans())
    if (one->runs_parts()) return one;
  return nullptr;
}

std::unique_ptr<plan_draft> compiled_plans::draft_part(const plan_part& part) const {
  return part_runner()->draft_part(part);
}

std::uint64_t compiled_plans::add_part(std::unique_ptr<plan_draft> draft) {
  auto lock = m_queue.lock();
  m_queue.await_exit(lock);
  m_queue.throw_if_ended();
  const std::uint64_t number = ++m_compiled;
  m_context.backends.add_plan(number, *part_runner(), std::move(draft));
  return number;
}

void compiled_plans::forget(std::uint64_t number) noexcept {
  auto lock = m_queue.lock();
  const auto over = [&] { return m_queue.ended() || m_queue.broken(); };
  while (!over() && m_queue.runs_plan(number)) {
    lock.unlock();
    m_queue.progress();
    sched_yield();
    lock.lock();
  }
  if (!over()) m_context.backends.remove_plan(number);
}

}  // namespace sucl::core
