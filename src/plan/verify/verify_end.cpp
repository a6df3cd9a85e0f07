// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What must hold when all ranks have run.
#include "plan/verify/checker.hpp"

#include <algorithm>
#include <tuple>

namespace sucl::plan {

void checker::check_ends() {
  for (std::uint32_t t = 0; t < m_threads.size(); ++t)
    if (state(t).pc < state(t).code->size()) stop_blocked(t);
  for (std::uint32_t t = 0; t < m_threads.size(); ++t) {
    const thread_state& me = state(t);
    if (me.finished == me.posted.size()) continue;
    const std::uint32_t pc = me.posted[me.finished];
    const instruction& i = code(t, pc);
    const bool writes = i.op == opcode::receive || i.op == opcode::get;
    if (!m_threads[t].transfer(me.finished).done)
      stop(fault::unmatched, t, pc, writes ? i.dst : i.src, writes ? i.dst_offset : i.src_offset,
           i.bytes, "rank " + std::to_string(i.peer) + " has nothing that matches it");
    stop(fault::unfinished, t, pc, writes ? i.dst : i.src, writes ? i.dst_offset : i.src_offset,
         i.bytes, "no fence finishes it");
  }
  check_left_over();
}

// Signals that no rank waited for would be taken by the next run.
void checker::check_left_over() {
  const parcel* first = nullptr;
  m_signals.for_each_waiting([&](const queue& q) {
    const parcel& p = m_signals.front(q);
    if (!first || std::tie(p.thread, p.pc) < std::tie(first->thread, first->pc)) first = &p;
  });
  if (first)
    stop(fault::unmatched, first->thread, first->pc, space::none, 0, 0,
         "its peer never waits for it");
}

void checker::stop_blocked(std::uint32_t t) {
  const thread_state& me = state(t);
  std::uint32_t pc = me.pc;
  if (code(t, pc).op == opcode::fence) pc = me.posted[me.done_until];
  const instruction& i = code(t, pc);
  const auto& peer = m_schedule.ranks[static_cast<std::size_t>(i.peer)];
  bool over = true;  // whether the peer is at its end
  for (std::size_t c = 0; c < peer.channels.size(); ++c) {
    const bool matters = i.op == opcode::wait || static_cast<int>(c) == me.channel;
    const thread_state& p = state(m_clocks.thread_of(i.peer, static_cast<int>(c)));
    over = over && (!matters || p.pc == p.code->size());
  }
  const bool memory = i.op != opcode::wait;
  const bool writes = i.op == opcode::receive;
  stop(over ? fault::unmatched : fault::deadlock, t, pc,
       !memory  ? space::none
       : writes ? i.dst
                : i.src,
       writes ? i.dst_offset : i.src_offset, memory ? i.bytes : 0,
       "rank " + std::to_string(i.peer) +
           (over ? " comes to its end and has nothing that matches it"
                 : " waits, directly or through others, for this rank to go on"));
}

// What others did to the memory of a rank must be over before that rank is.
void checker::check_last_accesses() {
  for (int r = 0; r < m_schedule.what.ranks; ++r) {
    if (m_clocks.is_private(r)) continue;
    const bool runs = !m_schedule.ranks[static_cast<std::size_t>(r)].channels.empty();
    if (runs) m_clocks.join(r);
    for (const space s : {space::send, space::recv}) {
      const memory& m = at(r, s);
      for (memory::cursor k = m.find(0); !m.past(k, m.bytes()); m.next(k)) {
        m_cost.take_steps(1);
        check_last(r, s, m, k, m[k].write);
        check_last(r, s, m, k, m[k].read);
        if (m[k].more_reads == 0) continue;
        m_cost.take_steps(m_lists[m[k].more_reads - 1].size());
        for (const access& a : m_lists[m[k].more_reads - 1]) check_last(r, s, m, k, a);
      }
    }
  }
}

void checker::check_last(int rank, space s, const memory& m, memory::cursor k, access a) {
  if (a.thread == access::no_thread || a.thread >= m_clocks.threads()) return;
  const bool runs = !m_schedule.ranks[static_cast<std::size_t>(rank)].channels.empty();
  if (runs && m_clocks.ordered(m_clocks.thread_of(rank, 0), a)) return;
  verdict v;
  v.what = fault::race;
  v.rank = rank;
  v.where = s;
  v.offset = m[k].begin;
  v.bytes = m.end_of(k) - m[k].begin;
  stop(std::move(v), "nothing says that " + text_of(a) + " is done with it");
}

void checker::check_piece(int rank, const piece& part) {
  m_shares.clear();
  for (const term& t : part.terms)
    m_shares.push_back(
        {t.first, t.count,
         static_cast<std::int64_t>(t.source) - static_cast<std::int64_t>(part.offset)});
  if (m_shares.size() > 1) normalise(m_shares);
  const bool reduced = part.terms.size() > 1 || part.terms[0].count > 1;
  const memory& m = at(rank, space::recv);
  for (auto k = m.find(part.offset); !m.past(k, part.offset + part.bytes); m.next(k)) {
    const auto found = m_values.shares(m[k].value.id);
    m_cost.take_steps(1 + found.size());
    bool good = m[k].value.id != 0 && found.size() == m_shares.size();
    for (std::size_t i = 0; good && i < found.size(); ++i)
      good = found[i].first == m_shares[i].first && found[i].count == m_shares[i].count &&
             found[i].shift + m[k].value.shift == m_shares[i].shift;
    const std::uint64_t begin = std::max(m[k].begin, part.offset);
    if (good && reduced) {
      check_fixed(rank, part, begin, m[k].value);
      check_same(rank, begin, std::min(m.end_of(k), part.offset + part.bytes), m[k].value);
    }
    if (good) continue;
    verdict v;
    v.what = fault::result;
    v.rank = rank;
    v.where = space::recv;
    v.offset = begin;
    v.bytes = std::min(m.end_of(k), part.offset + part.bytes) - begin;
    std::string why = m[k].value.id == 0 ? "nothing is written there" : "it holds the input of";
    for (const share& s : found)
      why += " ranks " + std::to_string(s.first) + " to " + std::to_string(s.first + s.count - 1) +
             " at byte " +
             std::to_string(static_cast<std::int64_t>(v.offset) + s.shift + m[k].value.shift);
    why += "; it must hold that of";
    for (const share& s : m_shares)
      why += " ranks " + std::to_string(s.first) + " to " + std::to_string(s.first + s.count - 1) +
             " at byte " + std::to_string(static_cast<std::int64_t>(v.offset) + s.shift);
    stop(std::move(v), why);
  }
}

void checker::check_outcome(int rank) {
  for_each_outcome(m_schedule.what, rank, [&](const piece& part) { check_piece(rank, part); });
}

}  // namespace sucl::plan
