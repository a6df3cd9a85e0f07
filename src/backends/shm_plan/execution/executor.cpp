// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/execution/executor.hpp"

#include "backends/shm_common/flag_wait.hpp"
#include "base/error.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"
#include "core/support/backoff.hpp"

#include <algorithm>
#include <utility>

namespace sucl::core {
namespace {

using action = step::action;

// Polls in vain before the processor is yielded, some ten nanoseconds each: some
// microseconds where there is a processor for each rank, none to speak of where the peer needs it.
constexpr int spin_limit = 500, spin_limit_oversubscribed = 10;
}  // namespace

executor::executor(const backend_comm& memory, placement where, const sharing& how,
                   std::vector<tuning_row> tuning)
    : m_where(std::move(where)),
      m_rank(m_where.rank),
      m_size(m_where.size),
      m_messages(m_where),
      m_memory_provider(memory),
      m_memory(memory, m_where, how),
      m_node(m_memory, m_where.rank, m_where.size, m_where.neighbours(), !m_where.compared),
      m_plans(m_where, how.slot_bytes, std::move(tuning)),
      m_long(m_where.threads),
      m_mapped(memory),
      m_spin_limit(m_where.oversubscribed ? spin_limit_oversubscribed : spin_limit),
      m_exchange(m_memory, m_node, m_plans, m_mapped, m_rank, m_size),
      m_prepared(m_memory, m_node, m_plans, m_exchange, m_copier, m_long, m_where, m_spin_limit) {}

void executor::abort() { m_messages.abort(); }

// ---- operations

execution* executor::take_request() {
  if (m_free.empty()) {
    m_requests.push_back(std::make_unique<execution>());
    m_requests.back()->peer_send.resize(static_cast<std::size_t>(m_size));
    m_requests.back()->peer_recv.resize(static_cast<std::size_t>(m_size));
    m_free.push_back(m_requests.back().get());
  }
  return m_free.back();
}

execution* executor::start(const sucl_operation& requested) {
  if (m_broken) throw error(*m_broken);
  // A request that has not been given back is still tested, by its plan_instance.
  if (m_plans.is_full() && m_free.size() == m_requests.size()) m_plans.forget();
  check_alarm();
  execution* r = take_request();
  const sucl_operation& o = r->what = simplest(requested, m_size);
  r->signature = signature_of(requested, m_size);
  r->own = nullptr;
  r->reading = false;
  r->timed = nullptr;
  r->exchanging = execution::notice::none;
  r->element_size = o.element_size;
  r->failure.reset();
  if (o.kind == compiled_plan_kind) {
    start_compiled(*r);
  } else if (has_hidden_counts(o.kind)) {
    r->exchanging = execution::notice::counts;
  } else {
    r->how = &m_plans.of(o, access_mode::staged);
    r->fold = reduces(static_cast<kind>(o.kind)) ? find_fold(o.type, o.op) : nullptr;
    const bool maps = m_exchange.may_be_mapped(o);
    if (maps) m_plans.of(o, access_mode::mapped);  // what is wrong with its plan is found now
    if (maps || m_exchange.may_be_read(o)) r->exchanging = execution::notice::memory;
  }
  set_memory(*r, m_rank, m_size);
  if (r->exchanging == execution::notice::counts) m_exchange.start(*r, m_prepared.ahead());
  m_free.pop_back();
  r->started = r->finished = 0;
  if (!r->done()) m_queue.push_back(r);
  return r;
}

// ---- compiled plans

void executor::add(std::uint64_t number, std::unique_ptr<compiled_code> code) {
  m_compiled.emplace_back(number, std::move(code));
}

void executor::remove_compiled(std::uint64_t number) {
  std::erase_if(m_compiled, [&](const auto& c) { return c.first == number; });
}

void executor::start_compiled(execution& e) {
  const auto found = std::find_if(m_compiled.begin(), m_compiled.end(),
                                  [&](const auto& c) { return c.first == e.what.plan; });
  if (found == m_compiled.end())
    base::fail(errc::shut_down, "the compiled plan has been destroyed",
               "Keep the handle while the plan is used");
  e.own = found->second.get();
  e.how = &e.own->how;
  e.fold = e.own->fold;
  e.element_size = e.own->element_size;
}

// ---- runs

bool executor::begin_next() {
  if (m_begun - m_node.retired() == run_window) return false;
  const std::uint64_t number = m_begun + 1;
  execution* owner = m_queue[m_head];
  if (m_memory.board().ends(number)) return false;
  if (!m_node.may_begin(number, owner->own)) {
    if (const auto& d = m_node.found()) report_mismatch(d->number, d->history);
    return false;
  }
  if (owner->started == owner->how->slices) return false;  // its metadata is being exchanged
  if (owner->exchanging == execution::notice::memory)
    m_exchange.start_or_stage(*owner, m_prepared.ahead());
  plan_run& r = m_runs[number % run_window];
  r.owner = owner;
  r.history = m_memory.board().history_after(owner->signature);
  r.flag = run_flag::of(number, r.history);
  m_memory.board().show(number, r.history, owner->signature);
  m_memory.board().keep(r.history);
  if (!m_prepared.ahead() && run_flag::renews(number, m_memory.slots()))
    renew_flags(m_memory, m_rank, number, r.flag);
  r.code = &owner->how->of(owner->started);
  r.number = number;
  r.shift = owner->started * owner->how->slice_bytes;
  r.slot = m_memory.slot_of(number);
  const bool own_scratch = owner->own && owner->own->region.handle;
  if (!own_scratch) {
    const shared_memory::need need = m_memory.need_of(r.code->scratch_bytes);
    r.scratch = m_memory.parts();
    r.scratch_at = m_memory.scratch_at(need, number);
    m_memory.take(need);
  }
  r.ended = 0;
  for (std::size_t c = 0; c < r.code->channels.size(); ++c) r.at[c] = 0;
  r.at[0] = m_prepared.take_ahead();
  if (r.code->posts)
    for (std::size_t c = 0; c < r.code->channels.size(); ++c) r.posted[c].clear();
  m_begun = number;
  if (own_scratch) {
    const std::size_t copy = owner->own->starts++ % compiled_code::copies;
    owner->own->last_run[copy] = number;
    r.scratch = owner->own->scratch[copy].data();
    r.scratch_at = 0;
  }
  if (owner->exchanging != execution::notice::none) {
    ++owner->started;
    return true;
  }
  if (++owner->started == owner->how->slices) next_in_queue();
  return true;
}

void executor::next_in_queue() {
  if (++m_head < m_queue.size()) return;
  m_queue.clear();
  m_head = 0;
}

// Copies from the memory of a peer's process. After a failure the plan goes on, so that no rank
// waits for this rank, and the ranks that wait for it get the error that its data is wrong.
void executor::read(const plan_run& r, std::int32_t rank, std::byte* to, const std::byte* from,
                    std::uint64_t bytes) const {
  if (bytes == 0 || r.owner->failure) return;
  const auto status = m_memory_provider.table->memory_read(
      m_memory_provider.comm, rank, to, reinterpret_cast<std::uint64_t>(from), bytes);
  if (status == SUCL_SUCCESS) return;
  r.owner->failure = take_last(status);
  m_memory.last_unreadable(m_rank).store(r.number, std::memory_order_release);
}

void executor::note_unreadable(execution& e) const {
  for (int rank = 0; rank < m_size && !e.failure; ++rank) {
    const std::uint64_t when = m_memory.last_unreadable(rank).load(std::memory_order_acquire);
    if (when < e.first_run || when > m_node.retired()) continue;
    e.failure.emplace();
    e.failure->code = errc::unsupported;
    e.failure->message =
        "rank " + std::to_string(rank) + " could not read the memory of another rank";
    e.failure->hint = "Set backends.ipc.reads = false for programs with memory of such kind";
  }
}

inline void executor::copy(const plan_run& r, const step& s) {
  const execution& q = *r.owner;
  const operand& source = r.code->sources[s.first];
  if (keeps_block(q, s)) return;
  std::uint64_t bytes = s.bytes;
  if (q.how->clipped) {
    bytes = std::min({bytes, r.length(s.to, m_rank), r.length(source, m_rank)});
    if (bytes == 0) return;
  }
  std::byte* to = r.address(s.to, m_rank);
  const std::byte* from = r.address(source, m_rank);
  if (q.reading && source.rank != m_rank && source.where != plan::space::scratch)
    read(r, source.rank, to, from, bytes);
  else if (s.nontemporal)
    copy_to_peers(m_copier, m_long, to, from, bytes);
  else if (to != from) {
    const bool nontemporal =
        q.how->copies_nontemporal && bytes >= nt_store_policy::min_bytes && is_own_output(s);
    if (m_long.shares(bytes))
      m_long.copy(to, from, bytes, nontemporal);
    else if (nontemporal)
      copy_nontemporal(to, from, bytes);
    else
      move_bytes(to, from, bytes);
  }
}

inline void executor::fold(const plan_run& r, const step& s) {
  const void* from[max_sources];
  const operand* o = &r.code->sources[s.first];
  std::byte* to = r.address(s.to, m_rank);
  const std::uint64_t count = s.bytes / r.owner->element_size;
  for (std::uint32_t i = 0; i < s.sources; ++i) from[i] = r.address(o[i], m_rank);
  const execution& q = *r.owner;
  const bool nontemporal = q.how->folds_nontemporal && is_own_output(s) &&
                           std::find(from, from + s.sources, to) == from + s.sources;
  if (m_long.shares(s.bytes))
    m_long.fold(q.fold, q.element_size, to, from, s.sources, count, m_size, nontemporal);
  else if (nontemporal)
    fold_nontemporal(q.fold, q.element_size, to, from, s.sources, count, m_size);
  else
    q.fold(to, from, s.sources, count, m_size);
}

inline bool executor::wait(plan_run& r, const step& s, int spins) {
  switch (poll_flag(m_memory.at(r.slot, s.peer, s.channel), r.flag, s.value, spins)) {
    case flag_state::not_yet: return false;
    case flag_state::other_call:
      if (!m_where.compared) report_mismatch(r.number, r.history);
      return false;
    case flag_state::raised: break;
  }
  m_node.note_peer_in_run(s.peer, r.number);
  return true;
}

// ---- whether all ranks mean the same

// From that run on nothing may go on: what peers do is not what this rank expects. What came before
// ends, since every rank has called the same.
void executor::report_mismatch(std::uint64_t number, std::uint64_t history) {
  if (!m_memory.board().ends(number)) m_memory.board().report_mismatch(number, history);
  check_alarm();
}

void executor::check_alarm() {
  if (!m_memory.board().ends(m_node.retired() + 1)) return;
  m_broken = m_memory.board().diagnosis();
  throw error(*m_broken);
}

// A rank that waits for long finds out whether its peers have called something else: their
// plans may have other signals, or none.
void executor::examine_peers() {
  constexpr unsigned period = 16;
  if (m_where.compared || ++m_idle_polls % period != 0) return;
  for (std::uint64_t n = m_node.retired() + 1; n <= m_begun; ++n) {
    const plan_run& r = m_runs[n % run_window];
    if (m_memory.board().differs(n, r.history)) return report_mismatch(n, r.history);
  }
}

// ---- messages

void executor::post(plan_run& r, std::uint32_t channel, const step& s) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.type = SUCL_TYPE_BYTES;
  o.element_size = 1;
  o.count = s.bytes;
  o.root = o.source = s.peer;
  // At most `run_window` runs are in flight here: their tags differ, and messages of one tag come
  // in the order of their runs. Those of ranks that have called something else are of other tags
  // too, nearly always, and meet no receive.
  const std::uint64_t base = r.history % history_tags * (run_window + 1);
  o.tag = static_cast<std::int32_t>((base + r.number % (run_window + 1)) * tags_of_run + s.value);
  o.sequence = r.number;
  std::byte* memory = r.address(r.code->sources[s.first], m_rank);
  if (s.what == action::send) {
    o.kind = SUCL_KIND_SEND;
    o.send = memory;
  } else {
    o.kind = SUCL_KIND_RECV;
    o.recv = memory;
  }
  m_messages.post(o, s.channel, r.posted[channel]);
}

// Goes on with one channel; true once it is at its end.
bool executor::advance_channel(plan_run& r, std::uint32_t channel, int spins) {
  const auto& code = r.code->channels[channel];
  for (std::uint32_t& at = r.at[channel]; at < code.size(); ++at, ++m_steps) {
    const step& s = code[at];
    switch (s.what) {
      case action::copy: copy(r, s); break;
      case action::fold: fold(r, s); break;
      case action::signal:
        m_memory.at(r.slot, m_rank, channel).store(r.flag | s.value, std::memory_order_release);
        break;
      case action::wait:
        if (!wait(r, s, spins)) return false;
        break;
      case action::send:
      case action::receive: post(r, channel, s); break;
      case action::fence:
        if (!m_messages.finish(r.posted[channel], s.bytes, spins)) return false;
        break;
    }
  }
  return true;
}

// True once the run is over.
bool executor::advance(plan_run& r, int spins) {
  const auto channels = static_cast<std::uint32_t>(r.code->channels.size());
  if (channels == 1) return advance_channel(r, 0, spins);
  for (std::uint32_t c = 0; c < channels; ++c)
    if ((r.ended >> c & 1u) == 0 && advance_channel(r, c, spins)) r.ended |= 1u << c;
  return r.ended == (1u << channels) - 1;
}

void executor::retire() {
  const plan_run& r = m_runs[(m_node.retired() + 1) % run_window];
  m_node.retire(r.history);
  execution* owner = r.owner;
  if (owner->exchanging == execution::notice::none) {
    if (owner->reading) note_unreadable(*owner);
    ++owner->finished;
    if (owner->timed && owner->done())
      owner->timed->note(owner->reading, std::chrono::steady_clock::now() - owner->since);
    return;
  }
  m_exchange.decide(*owner);
  if (owner->done()) next_in_queue();  // there is nothing to move
}

void executor::progress(int spins) {
  if (m_broken) throw error(*m_broken);
  check_alarm();
  const std::uint64_t before = m_steps;
  try {
    go_on(spins);
    if (spins == 0 && m_steps != before) note_advance();
    if (m_begun != m_node.retired()) examine_peers();
  } catch (const error& e) {
    m_broken = e.info();
    throw;
  }
}

void executor::go_on(int spins) {
  std::uint32_t over = 0;  // runs that are, by their index in the window
  for (;;) {
    while (m_head < m_queue.size() && begin_next()) {
    }
    const std::uint64_t first = m_node.retired() + 1;
    if (m_begun == first) {  // as mostly: spinning pays
      if (!advance(m_runs[first % run_window], spins)) return;
      retire();
      if (m_head == m_queue.size()) return;
      continue;
    }
    bool moved = false;
    for (std::uint64_t n = first; n <= m_begun; ++n) {
      plan_run& r = m_runs[n % run_window];
      if (over >> n % run_window & 1u) continue;
      if (!advance(r, 0)) continue;
      over |= 1u << n % run_window;
      moved = true;
    }
    while (m_node.retired() < m_begun && (over >> (m_node.retired() + 1) % run_window & 1u)) {
      over &= ~(1u << (m_node.retired() + 1) % run_window);
      retire();
    }
    if (!moved) return;
  }
}

void executor::finish(execution* r) {
  progress(m_spin_limit);
  std::uint64_t before = m_steps;
  for (int idle = 0; !r->done() && idle <= m_spin_limit / 8; ++idle) {
    if (m_steps != before) idle = 0;
    before = m_steps;
    relax();
    progress(0);
  }
}

}  // namespace sucl::core
