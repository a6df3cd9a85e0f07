// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/hierarchical/backend.hpp"

#include "backends/device_kernels/memory/device.hpp"
#include "base/bounds.hpp"
#include "base/error.hpp"
#include "base/narrow.hpp"
#include "base/text.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/selection.hpp"
#include "core/selection/settings.hpp"
#include "core/support/backoff.hpp"

#include <algorithm>
#include <utility>

namespace sucl::core {

/// An operation that is executed from the host.
struct hierarchical_request {
  sucl_operation operation{};
  step_list what;
  std::byte* memory = nullptr;  ///< scratch
  std::size_t next = 0;         ///< the first step of the wave that is in flight, or comes next
  std::vector<ticket> current;  ///< of the steps of that wave
  std::size_t failed = 0;       ///< the step that has failed, if any
  bool done = false;
  std::optional<error_info> failure;
};

namespace {

hierarchical_comm& of(sucl_backend_comm* comm) {
  return *reinterpret_cast<hierarchical_comm*>(comm);
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  return guarded([&] {
    *request = nullptr;
    if (o->launch_target)
      of(comm).launch(*o, o->launch_target);
    else
      *request = reinterpret_cast<sucl_request*>(of(comm).start(*o));
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  return guarded([&] { *done = of(comm).test(reinterpret_cast<hierarchical_request*>(request)); });
}

// Contributions are combined more than once: what must be rounded once is left to others.
sucl_status query(sucl_state* state, const sucl_query* q, sucl_capability* answer) {
  const auto* comm = reinterpret_cast<hierarchical_comm*>(state);  // null: of any communicator
  static const hierarchical_map any = map_nodes({0, 0, 1, 1}, 0);
  const bool narrow = base::is_narrow_float(q->type);
  const bool rounds =
      q->op == SUCL_OP_AVG || (narrow && (q->op == SUCL_OP_SUM || q->op == SUCL_OP_PROD));
  answer->flags = comm && comm->has_queue() ? SUCL_CAP_STREAM_ORDERED : 0;
  answer->max_count = 0;
  if (q->kind == compiled_plan_kind) {
    answer->supported = comm && comm->runs_plans_on(q->memory);
    return SUCL_SUCCESS;
  }
  answer->supported = has_steps(q->kind, comm ? comm->where() : any) &&
                      (!reduces(static_cast<kind>(q->kind)) ||
                       (!rounds && defined(static_cast<op>(q->op), static_cast<type>(q->type))));
  return SUCL_SUCCESS;
}

// The part of the operation's memory that a step or a message uses: its address, unless that is a
// buffer, whose address comes later, and its kind.
struct located {
  std::byte* at = nullptr;
  sucl_memory kind = SUCL_MEMORY_SYSTEM;
};
located locate(const sucl_operation& o, step_memory::area where, std::uint64_t bytes,
               const located& scratch) {
  using area = step_memory::area;
  if (where == area::none) return {};
  located found = scratch;
  if (where == area::send)
    found = {static_cast<std::byte*>(const_cast<void*>(o.send)), o.send_memory};
  if (where == area::recv) found = {static_cast<std::byte*>(o.recv), o.recv_memory};
  if (found.at) found.at += bytes;
  return found;
}

std::vector<step_operand> operands_of(const step_list& what, const hierarchical_step& s,
                                      std::uint64_t element_size) {
  std::vector<step_operand> all;
  if (s.kind != SUCL_KIND_GROUP)
    return {{0, true, s.from.where, s.from.at * element_size},
            {0, false, s.to.where, s.to.at * element_size}};
  for (std::size_t i = s.first; i < s.behind; ++i) {
    const step_message& m = what.messages[i];
    all.push_back({i - s.first, m.sends, m.memory.where, m.memory.at});
  }
  return all;
}

sucl_memory wider(const sucl_operation& o) { return std::max(o.send_memory, o.recv_memory); }

}  // namespace

hierarchical_settings hierarchical_settings::read(
    const std::vector<std::pair<std::string, std::string>>& table) {
  hierarchical_settings s;
  for (const auto& [key, value] : table) {
    const backend_setting one(hierarchical_backend_name, key, value);
    if (key == "leaders")
      s.leaders = one.number({0, 1 << 20});
    else if (key == "single_leader")
      s.single_leader = one.size({0, std::uint64_t{1} << 60});
    else if (key == "piece")
      s.piece = one.size({0, std::uint64_t{1} << 60});
    else
      one.refuse_key("It knows leaders, a number, and single_leader and piece, sizes");
  }
  return s;
}

int hierarchical_settings::leaders_of(const hierarchical_map& where) const {
  const auto most = static_cast<std::uint64_t>(where.max_leaders);
  return static_cast<int>(leaders == 0 ? most : std::min(leaders, most));
}

hierarchical_comm::hierarchical_comm(hierarchical_map where, const hierarchical_settings& settings,
                                     hierarchical_parts parts, const hierarchical_memory& memory,
                                     hierarchical_queue* queue)
    : m_where(std::move(where)),
      m_leaders(settings.leaders_of(m_where)),
      m_single_leader(settings.single_leader),
      m_piece(settings.piece),
      m_parts{std::move(parts.node), std::move(parts.across), std::move(parts.whole)},
      m_memory(memory),
      m_queue(queue) {
  if (!m_queue) return;
  for (std::size_t i = 0; i < level_count; ++i)
    if (m_parts[i]) m_queues[i] = m_queue->attach(m_parts[i]);
}

hierarchical_comm::~hierarchical_comm() {
  for (const auto& part : m_parts)
    if (part) part->shut_down(true);
  // Operations that were given up may still write to it.
  if (m_aborted)
    for (auto* one : {&m_from_host, &m_on_streams})
      for (scratch& s : one->host) s.abandon();
}

communicator& hierarchical_comm::part(const hierarchical_step& step) const {
  return *m_parts[static_cast<std::size_t>(step.on)];
}

std::string hierarchical_comm::words_of(level on) const {
  const std::string name = m_where.islands ? "island" : "node";
  return on == level::node ? " within the " + name : " between " + name + "s";
}

step_list hierarchical_comm::steps(const sucl_operation& o) const {
  if (o.kind == compiled_plan_kind) return m_plans->steps(o.plan);
  const bool small = o.count * o.element_size < m_single_leader;
  // No measurement says which pieces are best between nodes.
  const std::uint64_t piece =
      m_where.islands && m_piece > 0 ? std::max<std::uint64_t>(1, m_piece / o.element_size) : 0;
  return steps_of(o, m_where, {small ? 1 : m_leaders, m_leaders, piece});
}

bool hierarchical_comm::on_device(const sucl_operation& o) const {
  return m_memory.device && wider(o) == SUCL_MEMORY_DEVICE;
}

sucl_memory hierarchical_comm::scratch_memory_of(const sucl_operation& o) const {
  if (o.kind == compiled_plan_kind)
    return m_memory.device->on_host ? SUCL_MEMORY_HOST : SUCL_MEMORY_DEVICE;
  return on_device(o) || wider(o) != SUCL_MEMORY_DEVICE ? wider(o)
                                                        : sucl_memory{SUCL_MEMORY_SYSTEM};
}

bool hierarchical_comm::runs_plans_on(sucl_memory memory) const {
  return m_plans && (m_memory.device->on_host || memory != SUCL_MEMORY_SYSTEM);
}

void hierarchical_comm::add_plans(const sucl_oob& oob) {
  m_plans.emplace(m_where, m_parts[static_cast<std::size_t>(level::node)],
                  m_parts[static_cast<std::size_t>(level::whole)], oob);
}

// Of the kind that the operation is in, so that selection sees one kind. Memory that has become too
// small stays, as it may still be in use.
std::byte* hierarchical_comm::memory_for(const sucl_operation& o, const step_list& what, area& of) {
  constexpr std::uint64_t least = 1 << 16;
  if (o.kind == compiled_plan_kind) return m_plans->scratch(o.plan);
  const std::uint64_t bytes = what.scratch * o.element_size;
  if (bytes == 0) return nullptr;
  if (on_device(o)) {
    if (bytes > of.device_bytes) {
      of.device_bytes = std::max({bytes, 2 * of.device_bytes, least});
      of.device.push_back(m_memory.device->allocate(of.device_bytes));
    }
    return static_cast<std::byte*>(of.device.back().get());
  }
  if (bytes > of.host_bytes) {
    of.host_bytes = std::max({bytes, 2 * of.host_bytes, least});
    of.host.push_back(m_memory.host->acquire(of.host_bytes));
  }
  return reinterpret_cast<std::byte*>(of.host.back().data());
}

hierarchical_comm::step_record hierarchical_comm::record_of(const sucl_operation& o,
                                                            const step_list& what,
                                                            const hierarchical_step& s,
                                                            std::byte* memory) const {
  if (s.kind == SUCL_KIND_GROUP) return group_of(o, what, s, memory);
  step_record made;
  sucl_operation& r = made.whole;
  r.struct_size = sizeof r;
  r.kind = s.kind;
  r.root = s.root;
  if (s.kind == SUCL_KIND_BARRIER) return made;
  r.type = o.type;
  r.op = reduces(static_cast<kind>(s.kind)) ? o.op : SUCL_OP_NONE;
  r.element_size = o.element_size;
  r.count = s.count;
  r.plan = s.plan;
  if (s.kind == compiled_plan_kind) {
    r.count = o.count;
    r.recv_count = o.recv_count;
  }
  if (s.in_place) r.flags = SUCL_FLAG_IN_PLACE;
  const located scratch{memory, scratch_memory_of(o)};
  const located from = locate(o, s.from.where, s.from.at * o.element_size, scratch);
  const located to = locate(o, s.to.where, s.to.at * o.element_size, scratch);
  r.send = from.at;
  r.send_memory = from.kind;
  r.recv = to.at;
  r.recv_memory = to.kind;
  r.send_counts = what.array(s.send.counts);
  r.send_displs = what.array(s.send.displs);
  r.recv_counts = what.array(s.recv.counts);
  r.recv_displs = what.array(s.recv.displs);
  return made;
}

hierarchical_comm::step_record hierarchical_comm::group_of(const sucl_operation& o,
                                                           const step_list& what,
                                                           const hierarchical_step& s,
                                                           std::byte* memory) const {
  step_record made;
  const located scratch{memory, scratch_memory_of(o)};
  for (std::size_t i = s.first; i < s.behind; ++i) {
    const step_message& m = what.messages[i];
    const located at = locate(o, m.memory.where, m.memory.at, scratch);
    sucl_operation part{};
    part.struct_size = sizeof part;
    part.kind = m.sends ? SUCL_KIND_SEND : SUCL_KIND_RECV;
    part.type = SUCL_TYPE_BYTES;
    part.element_size = 1;
    part.count = m.bytes;
    (m.sends ? part.root : part.source) = m.peer;
    if (m.sends)
      part.send = at.at;
    else
      part.recv = at.at;
    (m.sends ? part.send_memory : part.recv_memory) = at.kind;
    made.parts.push_back(part);
  }
  made.whole.struct_size = sizeof made.whole;
  made.whole.kind = SUCL_KIND_GROUP;
  made.whole.parts = made.parts.data();
  made.whole.part_count = made.parts.size();
  return made;
}

void hierarchical_comm::launch(const sucl_operation& o, void* target) {
  const step_list what = steps(o);
  std::byte* memory = memory_for(o, what, m_on_streams);
  for (const hierarchical_step& s : what) {
    const auto& attached = m_queues[static_cast<std::size_t>(s.on)];
    m_queue->start(attached.get(), record_of(o, what, s, memory).whole,
                   operands_of(what, s, o.element_size), target);
  }
}

bool hierarchical_comm::orders_on_stream(const sucl_operation& o) {
  const step_list what = steps(o);
  return what.size() > 0 && std::all_of(what.begin(), what.end(), [&](const hierarchical_step& s) {
           return part(s).streams().would_order(record_of(o, what, s, nullptr).whole);
         });
}

hierarchical_request* hierarchical_comm::start(const sucl_operation& o) {
  hierarchical_request r;
  r.operation = o;
  r.what = steps(o);
  r.memory = memory_for(o, r.what, m_from_host);
  m_requests.push_back(std::move(r));
  hierarchical_request* request = &m_requests.back();
  advance();
  return conclude(request) ? nullptr : request;
}

bool hierarchical_comm::test(hierarchical_request* request) {
  advance();
  return conclude(request);
}

// Forgets a request that is done; throws how it failed.
bool hierarchical_comm::conclude(hierarchical_request* request) {
  if (!request->done) return false;
  const auto failure = std::move(request->failure);
  m_requests.remove_if([&](const hierarchical_request& r) { return &r == request; });
  if (failure) throw error(*failure);
  return true;
}

// The steps come in one order on every rank, whatever each waits for: an operation begins when the
// one before is done, which also leaves it the scratch.
void hierarchical_comm::advance() {
  for (hierarchical_request& r : m_requests)
    if (!r.done && !advance(r)) return;
}

bool hierarchical_comm::advance(hierarchical_request& r) {
  try {
    while (r.next < r.what.size()) {
      if (!advance_wave(r)) return false;
      note_advance();
      r.next += r.current.size();
      r.current.clear();
    }
  } catch (...) {
    fail(r);
  }
  r.done = true;
  return true;
}

// The exception that is being handled: how the step that is in flight has failed.
void hierarchical_comm::fail(hierarchical_request& r) const {
  error_info info;
  try {
    throw;
  } catch (const error& e) {
    info = e.info();
  } catch (const std::exception& e) {
    info.code = errc::internal;
    info.message = e.what();
  }
  const hierarchical_step& s = r.what.steps[r.failed];
  // All ranks get the error about their different calls in the same words.
  if (info.code != errc::mismatch || !m_mismatch_reported.load(std::memory_order_acquire))
    info.message = std::string(kind_name(s.kind)) + words_of(s.on) + " failed: " + info.message;
  info.operation = sucl::core::describe(r.operation);
  info.rank = m_where.rank;
  r.failure = std::move(info);
}

// Begins the steps of the wave that comes next, or progresses them; true if all are done. When one
// fails, the others end first: they use memory of the program.
bool hierarchical_comm::advance_wave(hierarchical_request& r) {
  for (std::size_t i = r.next + r.current.size(); i < r.what.size(); ++i) {
    const hierarchical_step& s = r.what.steps[i];
    if (s.wave != r.what.steps[r.next].wave) break;
    r.failed = i;
    observer watch;
    watch.assisted = true;  // by this function
    // In the form of streams, which other ranks may use for the same step: all have to choose
    // alike.
    r.current.push_back(
        part(s)
            .issue(record_of(r.operation, r.what, s, r.memory).whole, {}, true, watch)
            .operation);
  }
  bool done = true;
  for (std::size_t i = 0; i < r.current.size(); ++i) {
    if (r.current[i].done()) continue;
    part(r.what.steps[r.next + i]).progress();
    done = r.current[i].done() && done;
  }
  if (!done) return false;
  for (std::size_t i = 0; i < r.current.size(); ++i) {
    if (!r.current[i].failure()) continue;
    const error_info failure = *r.current[i].failure();
    r.failed = r.next + i;
    try {
      part(r.what.steps[r.failed]).check();  // reported here
    } catch (const error&) {
    }
    throw error(failure);
  }
  return true;
}

void hierarchical_comm::check() {
  for (const auto& part : m_parts)
    if (part) part->check();
}

void hierarchical_comm::abort() {
  m_aborted = true;
  error_info info;  // the whole has noted why, if that is a failure
  info.code = errc::shut_down;
  info.message = "the communicator that the step is for has ended";
  info.hint = "Look for what failed first";
  for (const auto& part : m_parts)
    if (part) part->abandon(info);
}

void hierarchical_comm::report_mismatch(const std::string& what) {
  m_mismatch_reported.store(true, std::memory_order_release);
  for (const auto& part : m_parts)
    if (part) part->report_mismatch(what);
}

std::string hierarchical_comm::describe(const sucl_operation& o) {
  step_list what = steps(o);
  std::string text;
  int last = -1;
  for (const hierarchical_step& s : what) {
    // Pieces go the same way.
    if (std::exchange(last, std::max(last, s.phase)) > s.phase || s.wave > s.phase) continue;
    const step_record record = record_of(o, what, s, nullptr);
    const std::string step = std::string(kind_name(s.kind)) + words_of(s.on) + " by " +
                             part(s).backends().name_of(record.whole, false);
    if (text.size() >= step.size() && text.ends_with(step)) continue;
    text += (text.empty() ? "" : ", then ") + step;
  }
  if (text.empty()) return "nothing";
  const int pieces = what.steps.back().wave - what.steps.back().phase + 1;
  return pieces > 1 ? text + ", in " + std::to_string(pieces) + " pieces" : text;
}

const sucl_backend& hierarchical_backend() noexcept {
  static const sucl_backend table = table_of<hierarchical_comm>(
      hierarchical_backend_name,
      "steps within each node and between nodes, executed by other backends", query, post, test);
  return table;
}

namespace {

// A rank that is alone on an island copies there, where blocks have to be put in another order.
bool has_own_node(const hierarchical_map& where) {
  return !where.alone() || (where.islands && !where.consecutive);
}

}  // namespace

backend_comm make_hierarchical(const std::vector<std::pair<std::string, std::string>>& settings,
                               const hierarchical_map& where, const hierarchical_makers& how,
                               std::string* obstacle) {
  // Every rank makes every attempt, in the same order, until one of them has failed.
  const auto attempt = [&](const auto& work) {
    try {
      if (obstacle->empty()) work();
    } catch (const error& e) {
      *obstacle = e.info().message;
    }
    if (!how.agree(obstacle->empty()) && obstacle->empty())
      *obstacle = "it cannot be used on every rank";
  };
  // The same on every rank, and so is what is wrong with it.
  const auto values = hierarchical_settings::read(settings);
  hierarchical_parts parts;
  const bool all_nodes = how.plans || has_own_node(where);
  attempt([&] { parts.node = how.split(all_nodes ? where.node : -1, where.local, false); });
  attempt([&] {
    if (!where.alone() && how.must_order && !parts.node->streams().would_order(*how.must_order))
      base::fail(errc::unavailable, std::string("within a") +
                                        (where.islands ? "n island" : " node") +
                                        " nothing orders operations on device streams");
  });
  attempt([&] {
    const bool leads = how.collectives && where.local < values.leaders_of(where);
    parts.across = how.split(leads ? where.local : -1, where.node, false);
  });
  attempt([&] {
    if (where.islands || how.plans) parts.whole = how.split(0, where.rank, true);
  });
  std::string no_plans;
  attempt([&] {
    if (how.plans) no_plans = hierarchical_plans::obstacle(*parts.node, *parts.whole);
  });
  const bool plans = how.plans && obstacle->empty() && how.agree(no_plans.empty());
  if (obstacle->empty() && !plans && !how.collectives)
    *obstacle = no_plans.empty() ? "it cannot run plans on every rank" : no_plans;
  if (!obstacle->empty()) return {};
  auto* made = new hierarchical_comm(where, values, std::move(parts), how.memory, how.queue);
  if (plans) made->add_plans(*how.plans);
  return {&hierarchical_backend(), reinterpret_cast<sucl_state*>(made),
          reinterpret_cast<sucl_backend_comm*>(made)};
}

hierarchical_comm& hierarchical_of(const backend_comm& c) { return of(c.comm); }

}  // namespace sucl::core
