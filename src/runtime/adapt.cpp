// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/adapt.hpp"

#include "base/error.hpp"
#include "runtime/adapt_slice.hpp"
#include "runtime/core_services.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace sucl::core {
namespace {

enum class phase { idle, loading, loaded, carried, landed, storing };

// A slice in progress; of a group that is posted as one, a slice of each message.
struct slot {
  phase now = phase::idle;
  std::vector<slice> slices;
  sucl_operation operation{};
  std::vector<sucl_operation> parts;
  sucl_request* request = nullptr;
  copies pending;
};

// Slices that are posted in order. Messages to one peer with one tag share a flow, because the
// other side tells them apart by order alone; other messages must not wait for one another.
struct flow {
  std::vector<task*> tasks;
  bool together = false;  // one group of all the tasks
  std::uint64_t total = 0;
  std::uint64_t loads = 0;  // begun
  std::uint64_t posted = 0;
  std::uint64_t finished = 0;
  std::size_t next_task = 0;  // the next slice to load
  std::uint64_t next_index = 0;
  std::vector<slot> slots;

  slot& at(std::uint64_t n) { return slots[n % slots.size()]; }
};

bool sends(const sucl_operation& op) {
  return op.kind == SUCL_KIND_SEND || op.kind == SUCL_KIND_SENDRECV;
}

bool receives(const sucl_operation& op) {
  return op.kind == SUCL_KIND_RECV || op.kind == SUCL_KIND_SENDRECV;
}

// Whether only order tells two messages apart.
bool alike(const sucl_operation& a, const sucl_operation& b) {
  if (a.tag != b.tag) return false;
  return (sends(a) && sends(b) && a.root == b.root) ||
         (receives(a) && receives(b) && a.source == b.source);
}

slice cut(task& of, std::uint64_t index) {
  const std::uint64_t length = of.how->slice_elements;
  slice s;
  s.of = &of;
  s.index = index;
  s.first = index * length;
  s.last = s.first + length;
  return s;
}

}  // namespace

struct adapted::state {
  sucl_operation operation;
  adaptation how;
  channel below;
  const device_copier* copier;
  scratch_pool* pool;
  std::vector<task> tasks;
  std::vector<flow> flows;

  void make_flows();
  void add_flow(std::vector<task*> members, bool together);
  void advance(flow& f);
  void progress(flow& f, slot& s);
  void load(flow& f);
  void post(slot& s);
  bool may_store(const slot& s) const;
  void check(sucl_status status) const;
};

void adapted::state::make_flows() {
  const bool single = std::all_of(tasks.begin(), tasks.end(),
                                  [](const task& t) { return t.slices == 1; });
  if (how.groups && single && tasks.size() > 1) {
    std::vector<task*> all;
    for (task& t : tasks) all.push_back(&t);
    add_flow(std::move(all), true);
    return;
  }
  std::map<std::tuple<sucl_kind, std::int32_t, std::int32_t>, std::vector<task*>> members;
  for (task& t : tasks) {
    const sucl_operation& op = t.operation;
    members[{op.kind, op.kind == SUCL_KIND_RECV ? op.source : op.root, op.tag}].push_back(&t);
  }
  for (auto& [key, list] : members) add_flow(std::move(list), false);
}

void adapted::state::add_flow(std::vector<task*> members, bool together) {
  flow f;
  f.together = together;
  for (const task* t : members) f.total += t->slices;
  if (together) f.total = 1;
  f.tasks = std::move(members);
  f.slots.resize(std::min<std::uint64_t>(static_cast<std::uint64_t>(how.depth), f.total));
  flows.push_back(std::move(f));
}

void adapted::state::check(sucl_status status) const {
  if (status == SUCL_SUCCESS) return;
  throw_last(status, below.table->name,
             std::string(name(static_cast<kind>(operation.kind))) + " #" +
                 std::to_string(operation.sequence),
             how.rank);
}

bool adapted::state::may_store(const slot& s) const {
  return std::all_of(s.slices.begin(), s.slices.end(), [&](const slice& part) {
    if (part.of->after == task::nothing) return true;
    const task& before = tasks[part.of->after];
    return before.posted >= std::min(part.index + 1, before.slices);
  });
}

// Loads the next slice into its slot, which is idle.
void adapted::state::load(flow& f) {
  slot& s = f.at(f.loads);
  s.slices.clear();
  if (f.together) {
    for (task* t : f.tasks) s.slices.push_back(cut(*t, 0));
  } else {
    if (f.next_index == f.tasks[f.next_task]->slices) {
      ++f.next_task;
      f.next_index = 0;
    }
    s.slices.push_back(cut(*f.tasks[f.next_task], f.next_index++));
  }
  ++f.loads;
  s.now = phase::loading;
  for (slice& part : s.slices) begin_load(part, copier, *pool, s.pending);
}

void adapted::state::post(slot& s) {
  if (s.slices.size() == 1) {
    s.operation = carrier(s.slices.front(), *pool);
  } else {
    s.parts.clear();
    for (slice& part : s.slices) s.parts.push_back(carrier(part, *pool));
    s.operation = {};
    s.operation.struct_size = sizeof(s.operation);
    s.operation.kind = SUCL_KIND_GROUP;
    s.operation.sequence = operation.sequence;
    s.operation.parts = s.parts.data();
    s.operation.part_count = s.parts.size();
  }
  s.request = nullptr;
  check(below.table->post(below.comm, &s.operation, &s.request));
  for (slice& part : s.slices) ++part.of->posted;
  s.now = s.request ? phase::carried : phase::landed;
}

void adapted::state::progress(flow& f, slot& s) {
  if (s.now == phase::loading && s.pending.done(copier)) {
    for (slice& part : s.slices) finish_load(part);
    s.now = phase::loaded;
  }
  if (s.now == phase::carried) {
    std::int32_t done = 0;
    const sucl_status status = below.table->test(below.comm, s.request, &done);
    if (status != SUCL_SUCCESS || done) {
      s.request = nullptr;
      s.now = phase::landed;
    }
    check(status);
  }
  if (s.now == phase::landed && may_store(s)) {
    s.now = phase::storing;
    for (slice& part : s.slices) begin_store(part, copier, *pool, s.pending);
  }
  if (s.now == phase::storing && s.pending.done(copier)) {
    for (slice& part : s.slices) end(part, true);
    s.now = phase::idle;
    ++f.finished;
  }
}

void adapted::state::advance(flow& f) {
  for (slot& s : f.slots) progress(f, s);
  while (f.loads < f.total && f.at(f.loads).now == phase::idle) {
    load(f);
    progress(f, f.at(f.loads - 1));
  }
  while (f.posted < f.loads && f.at(f.posted).now == phase::loaded) {
    post(f.at(f.posted));
    ++f.posted;
  }
}

adapted::adapted(const sucl_operation& operation, adaptation how, const channel& below,
                 const device_copier* copier, scratch_pool& pool)
    : m_state(new state{operation, std::move(how), below, copier, &pool, {}, {}}) {
  state& s = *m_state;
  if (s.how.as_messages) s.tasks = make_messages(s.operation, s.how);
  else s.tasks.push_back(make_task(s.operation, s.how));
  for (const task& t : s.tasks) {
    if (copier || (!t.source.device && !t.sink.device)) continue;
    base::fail(errc::unsupported,
               "device memory must be staged through the host, but nothing copies from the device",
               "Create the communicator from a sycl::queue of that device.");
  }
  s.make_flows();
}

adapted::~adapted() {
  for (flow& f : m_state->flows)
    for (slot& s : f.slots)
      for (slice& part : s.slices) end(part, !s.request && s.pending.tokens.empty());
}

bool adapted::step() {
  bool done = true;
  for (flow& f : m_state->flows) {
    m_state->advance(f);
    done = done && f.finished == f.total;
  }
  return done;
}

bool adapted::all_posted() const noexcept {
  return std::all_of(m_state->flows.begin(), m_state->flows.end(),
                     [](const flow& f) { return f.posted == f.total; });
}

bool adapted::may_follow(const sucl_operation& next) const noexcept {
  if (all_posted()) return true;
  const auto message = [](const sucl_operation& op) {
    return is_message(op.kind) || op.kind == SUCL_KIND_GROUP;
  };
  if (!message(m_state->operation)) return message(next);
  if (!message(next)) return true;
  const sucl_operation* parts = next.kind == SUCL_KIND_GROUP ? next.parts : &next;
  const std::uint64_t count = next.kind == SUCL_KIND_GROUP ? next.part_count : 1;
  return std::none_of(m_state->flows.begin(), m_state->flows.end(), [&](const flow& f) {
    if (f.posted == f.total) return false;
    return std::any_of(f.tasks.begin(), f.tasks.end(), [&](const task* t) {
      return std::any_of(parts, parts + count,
                         [&](const sucl_operation& op) { return alike(t->operation, op); });
    });
  });
}

}  // namespace sucl::core
