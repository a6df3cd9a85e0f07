// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/execution/prepared_run.hpp"

#include "backends/shm_common/flag_wait.hpp"
#include "backends/shm_plan/execution/long_pieces.hpp"
#include "backends/shm_plan/execution/metadata_exchange.hpp"
#include "base/error.hpp"
#include "core/host_ops/nt_copy.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <utility>

namespace sucl::core {

using action = step::action;

std::shared_ptr<prepared_run> prepared_runs::prepare(const sucl_operation& requested) const {
  const sucl_operation o = simplest(requested, m_size);
  if (o.kind == compiled_plan_kind || m_exchange.may_be_mapped(o)) return nullptr;
  copy_mode_tuner* const tuner = m_exchange.tuner_if_open(o);
  if (!tuner && m_exchange.may_be_read(o)) return nullptr;
  auto made = std::make_shared<prepared_run>();
  made->tuner = tuner;
  made->what = std::make_shared<execution>();
  execution& e = *made->what;
  e.what = o;
  e.signature = signature_of(requested, m_size);
  e.element_size = o.element_size;
  set_memory(e, m_rank, m_size);
  if (has_hidden_counts(o.kind)) {
    e.exchanging = execution::notice::counts;
    e.peer_send.resize(static_cast<std::size_t>(m_size));
    m_exchange.start(e, ahead());
  } else {
    e.how = &m_plans.of(o, access_mode::staged);
  }
  const program& code = e.how->of(0);
  if (e.how->slices != 1 || code.channels.size() != 1 || code.posts) return nullptr;
  if (reduces(static_cast<kind>(o.kind))) made->fold = find_fold(o.type, o.op);
  made->scratch = m_memory.need_of(code.scratch_bytes);
  bind(e, *made);
  set_memory(e, m_rank, m_size);  // in place of its notes
  return made;
}

namespace {

// Has a signal take along what was to be copied beside its flag just before.
void join(bound_step& before, bound_step& signal, const std::byte* beside,
          std::uint64_t scratch_bytes) {
  constexpr std::uint64_t most = sizeof *signal.flag;
  if (before.what != action::copy || before.size == 0 || before.to.at != beside) return;
  const bool fills = before.size == most || (before.size < most && before.size == scratch_bytes);
  if (!before.to.in_scratch || !fills || !stores_pairs()) return;
  signal.first = before.first;
  signal.size = std::exchange(before.size, 0);
}

}  // namespace

// Adds the steps of a run, one for each of the program.
void prepared_runs::bind(execution& e, prepared_run& p) const {
  plan_run r;
  r.owner = &e;
  r.code = &e.how->of(0);
  r.scratch = m_memory.parts();
  const auto memory = [&](const operand& o) -> bound_memory {
    return {r.address(o, m_rank), o.where == plan::space::scratch ? ~std::uint64_t{0} : 0};
  };
  for (const step& s : r.code->channels[0]) {
    bound_step b;
    b.what = s.what;
    b.peer = s.peer;
    b.value = s.value;
    b.first = p.sources.size();
    if (s.what == action::signal || s.what == action::wait) {
      const bool signals = s.what == action::signal;
      b.flag = m_memory.flag_at(0, signals ? m_rank : s.peer, signals ? 0 : s.channel);
      if (signals && p.scratch.ring == 0 && !p.steps.empty())
        join(p.steps.back(), b, r.scratch[m_rank], r.code->scratch_bytes);
    } else {
      const bool copies = s.what == action::copy;
      b.to = memory(s.to);
      b.sources = copies ? 1 : s.sources;
      b.size = copies ? s.bytes : s.bytes / e.element_size;
      b.nontemporal = s.nontemporal && s.bytes >= nt_store_policy::min_bytes;
      for (std::uint32_t i = 0; i < b.sources; ++i)
        p.sources.push_back(memory(r.code->sources[s.first + i]));
      const bool stays = b.to.at == p.sources.back().at && !b.to.in_scratch;
      if (copies && (keeps_block(e, s) || stays)) b.size = 0;
    }
    p.steps.push_back(b);
  }
}

// One run of it.
struct prepared_runs::bound_run {
  const prepared_run& how;
  std::uint64_t number, history, flag, scratch_at;
  std::uint64_t slot;  ///< flags before those of its slot

  const std::byte* source(const bound_step& s, std::uint32_t i = 0) const {
    return how.sources[s.first + i].in(scratch_at);
  }
};

inline void prepared_runs::raise(const bound_run& r, const bound_step& s) {
  std::uint64_t* const flag = s.flag + r.slot;
  const std::uint64_t value = r.flag | s.value;
  if (s.size == 0) return shared_memory::flag(*flag).store(value, std::memory_order_release);
  std::uint64_t data = 0;
  move_bytes(&data, r.source(s), s.size);
  store_pair(flag, value, data);
}

// One step; false if it waits for a peer that is not near.
inline bool prepared_runs::take(const bound_run& r, const bound_step& s) {
  switch (s.what) {
    case action::copy:
      if (s.nontemporal)
        copy_to_peers(m_copier, m_long, s.to.in(r.scratch_at), r.source(s), s.size);
      else if (m_long.shares(s.size))
        m_long.copy(s.to.in(r.scratch_at), r.source(s), s.size, false);
      else
        move_bytes(s.to.in(r.scratch_at), r.source(s), s.size);
      return true;
    case action::fold: {
      const void* from[max_sources];
      for (std::uint32_t i = 0; i < s.sources; ++i) from[i] = r.source(s, i);
      std::byte* const to = s.to.in(r.scratch_at);
      const std::uint64_t element_size = r.how.what->element_size;
      if (m_long.shares(s.size * element_size))
        m_long.fold(r.how.fold, element_size, to, from, s.sources, s.size, m_size, false);
      else
        r.how.fold(to, from, s.sources, s.size, m_size);
      return true;
    }
    case action::signal: raise(r, s); return true;
    default:
      switch (poll_flag(shared_memory::flag(s.flag[r.slot]), r.flag, s.value,
                        m_spin_limit < spins_without_pause ? m_spin_limit : spins_without_pause)) {
        case flag_state::not_yet: return false;
        case flag_state::other_call:
          if (m_where.compared) return false;
          m_memory.board().show(r.number, r.history, r.how.what->signature);
          throw error(m_memory.board().report_mismatch(r.number, r.history));
        case flag_state::raised: break;
      }
      m_node.note_peer_in_run(s.peer, r.number);
      return true;
  }
}

// What is left to do where a peer lets this rank wait, the next run begins with.
bool prepared_runs::run(const prepared_run& p, std::uint64_t number) {
  if (p.tuner && !p.tuner->converged()) return false;
  const bool has_counts = p.what->exchanging == execution::notice::counts;
  if (has_counts) m_exchange.write_counts(*p.what);
  const std::uint64_t history = m_memory.board().history_after(p.what->signature);
  const bound_run r{p,
                    number,
                    history,
                    run_flag::of(number, history),
                    m_memory.scratch_at(p.scratch, number),
                    m_memory.slot_of(number) * shared_memory::flags_per_slot()};
  if (run_flag::renews(number, m_memory.slots())) renew_flags(m_memory, m_rank, number, r.flag);
  const bound_step* const end = p.steps.data() + p.steps.size();
  const bound_step* s = p.steps.data();
  while (s != end && take(r, *s)) ++s;
  // Peers read this only after a long wait: what they wait for goes first.
  m_memory.board().show(number, history, p.what->signature);
  m_ahead = static_cast<std::uint32_t>(s - p.steps.data());
  m_last = &p;
  if (s != end || (has_counts && !m_exchange.has_all_counts(*p.what))) return false;
  m_ahead = 0;
  m_memory.board().keep(history);
  m_memory.take(p.scratch);
  if (p.tuner) p.tuner->next();
  return true;
}

}  // namespace sucl::core
