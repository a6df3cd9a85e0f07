// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/staging/staged_operation.hpp"

#include "base/error.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"
#include "core/staging/slice.hpp"
#include "core/support/backoff.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

enum class phase { idle, loading, loaded, posted, landed, storing };

// A slice in progress; of a group that is posted as one, a slice of each message.
struct slot {
  phase now = phase::idle;
  std::vector<slice> slices;
  sucl_operation operation{};
  std::vector<sucl_operation> parts;
  sucl_request* request = nullptr;
  copies pending;
};

slice cut(const task& of, std::uint64_t index) {
  const std::uint64_t length = of.how->slice_elements;
  slice s;
  s.of = &of;
  s.first = index * length;
  s.last = s.first + length;
  return s;
}

}  // namespace

// Slices are loaded and posted in the order of the tasks, and executed and stored in any.
struct staged_operation::state {
  sucl_operation operation;
  staging_plan how;
  backend_comm below;
  const device_copier* copier;
  scratch_pool* pool;
  std::vector<task> tasks{};
  bool together = false;  // all tasks are posted as one group
  std::vector<slot> slots{};
  std::uint64_t total = 0;
  std::uint64_t loads = 0;  // begun
  std::uint64_t posted = 0;
  std::uint64_t finished = 0;
  std::size_t next_task = 0;  // the slice to load next
  std::uint64_t next_index = 0;

  void make_tasks();
  void load(slot& s);
  void post(slot& s);
  void progress(slot& s);
  slot& at(std::uint64_t n) { return slots[n % slots.size()]; }
  void check(sucl_status status) const;
};

void staged_operation::state::make_tasks() {
  if (how.as_messages)
    tasks = make_messages(operation, how);
  else
    tasks.push_back(make_task(operation, how));
  bool single = true;
  for (const task& t : tasks) {
    total += t.slices;
    single = single && t.slices == 1;
  }
  together = how.groups && single && tasks.size() > 1;
  if (together) total = 1;
  // Slices of a collective wait for its other ranks, which have arrived or will arrive. Messages
  // must all be posted without waiting for peers: two ranks may both send before they receive.
  const bool wait = !is_message(operation.kind) && !how.as_messages;
  slots.resize(wait ? std::min<std::uint64_t>(static_cast<std::uint64_t>(how.depth), total)
                    : total);
}

void staged_operation::state::check(sucl_status status) const {
  if (status == SUCL_SUCCESS) return;
  throw_last(status, below.table->name,
             std::string(name(static_cast<kind>(operation.kind))) + " #" +
                 std::to_string(operation.sequence),
             how.rank);
}

void staged_operation::state::load(slot& s) {
  s.slices.clear();
  if (together) {
    for (const task& t : tasks) s.slices.push_back(cut(t, 0));
  } else {
    if (next_index == tasks[next_task].slices) {
      ++next_task;
      next_index = 0;
    }
    s.slices.push_back(cut(tasks[next_task], next_index++));
  }
  s.now = phase::loading;
  for (slice& part : s.slices) begin_load(part, copier, *pool, s.pending);
}

void staged_operation::state::post(slot& s) {
  if (s.slices.size() == 1) {
    s.operation = backend_instance(s.slices.front(), *pool);
  } else {
    s.parts.clear();
    for (slice& part : s.slices) s.parts.push_back(backend_instance(part, *pool));
    s.operation = {};
    s.operation.struct_size = sizeof(s.operation);
    s.operation.kind = SUCL_KIND_GROUP;
    s.operation.sequence = operation.sequence;
    s.operation.parts = s.parts.data();
    s.operation.part_count = s.parts.size();
  }
  s.request = nullptr;
  check(below.table->post(below.comm, &s.operation, &s.request));
  s.now = s.request ? phase::posted : phase::landed;
}

void staged_operation::state::progress(slot& s) {
  const phase before = s.now;
  if (s.now == phase::loading && s.pending.done(copier)) {
    for (slice& part : s.slices) finish_load(part);
    s.now = phase::loaded;
  }
  if (s.now == phase::posted) {
    std::int32_t done = 0;
    const sucl_status status = below.table->test(below.comm, s.request, &done);
    if (status != SUCL_SUCCESS || done) {
      s.request = nullptr;
      s.now = phase::landed;
    }
    check(status);
  }
  if (s.now == phase::landed) {
    s.now = phase::storing;
    for (slice& part : s.slices) begin_store(part, copier, *pool, s.pending);
  }
  if (s.now == phase::storing && s.pending.done(copier)) {
    for (slice& part : s.slices) end(part, true);
    s.now = phase::idle;
    ++finished;
  }
  if (s.now != before) note_advance();
}

staged_operation::staged_operation(const sucl_operation& operation, staging_plan how,
                                   const backend_comm& below, const device_copier* copier,
                                   scratch_pool& pool)
    : m_state(new state{operation, std::move(how), below, copier, &pool}) {
  m_state->make_tasks();
  for (const task& t : m_state->tasks) {
    if (copier || (!t.source.device && !t.sink.device)) continue;
    base::fail(errc::unsupported,
               "device memory must be staged through the host, but nothing copies from the device",
               "Create the communicator from a sycl::queue of that device.");
  }
}

staged_operation::~staged_operation() {
  for (slot& s : m_state->slots)
    for (slice& part : s.slices) end(part, !s.request && s.pending.tokens.empty());
}

bool staged_operation::step() {
  state& s = *m_state;
  for (slot& one : s.slots) s.progress(one);
  while (s.loads < s.total && s.at(s.loads).now == phase::idle) {
    slot& one = s.at(s.loads++);
    s.load(one);
    s.progress(one);
  }
  while (s.posted < s.loads && s.at(s.posted).now == phase::loaded) s.post(s.at(s.posted++));
  return s.finished == s.total;
}

bool staged_operation::all_posted() const noexcept { return m_state->posted == m_state->total; }

bool staged_operation::may_follow(const sucl_operation& next) const noexcept {
  const auto message = [](sucl_kind kind) { return is_message(kind) || kind == SUCL_KIND_GROUP; };
  return all_posted() || (!message(m_state->operation.kind) && message(next.kind));
}

}  // namespace sucl::core
