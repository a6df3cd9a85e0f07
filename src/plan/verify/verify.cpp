// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/ir/fold_run.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/check_form.hpp"
#include "plan/verify/checker.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

std::string range_text(space s, std::uint64_t offset, std::uint64_t bytes) {
  return std::string(name(s)) + " bytes " + std::to_string(offset) + " to " +
         std::to_string(offset + bytes - 1);
}

}  // namespace

void checker::stop(verdict v, const std::string& why) const {
  v.message = std::string(name(v.what)) + ": rank " + std::to_string(v.rank);
  if (v.channel >= 0) v.message += ", channel " + std::to_string(v.channel);
  if (v.instruction >= 0) {
    const auto& c = m_schedule.ranks[static_cast<std::size_t>(v.rank)]
                        .channels[static_cast<std::size_t>(v.channel)];
    v.message += ", instruction " + std::to_string(v.instruction) + " (" +
                 to_text(c[static_cast<std::size_t>(v.instruction)]) + ")";
  } else {
    v.message += ", at the end";
  }
  if (v.bytes > 0) v.message += ", " + range_text(v.where, v.offset, v.bytes);
  v.message += ": " + why;
  throw stopped{std::move(v)};
}

void checker::stop(fault f, std::uint32_t t, std::uint32_t pc, space s, std::uint64_t offset,
                   std::uint64_t bytes, const std::string& why) const {
  verdict v;
  v.what = f;
  v.rank = state(t).rank;
  v.channel = state(t).channel;
  v.instruction = pc;
  v.where = s;
  v.offset = offset;
  v.bytes = bytes;
  stop(std::move(v), why);
}

std::string checker::text_of(access a) const {
  if (a.thread >= m_clocks.threads())
    return "the start of rank " + std::to_string(a.thread - m_clocks.threads());
  const thread_state& t = state(a.thread);
  std::string text = "rank " + std::to_string(t.rank) + ", channel " + std::to_string(t.channel);
  if ((a.stamp & access::posted) != 0) {
    const std::uint32_t pc = t.posted[a.stamp & ~access::posted];
    text += ", instruction " + std::to_string(pc) + " (" + to_text((*t.code)[pc]) + ")";
  }
  return text;
}

void checker::prepare() {
  const int ranks = m_schedule.what.ranks;
  m_memories.resize(static_cast<std::size_t>(ranks) * 3);
  for (int r = 0; r < ranks; ++r) {
    const program& p = m_schedule.ranks[static_cast<std::size_t>(r)];
    // A rank that knows that all have begun needs no signal of the owner.
    const access start = m_entry == entry::together ? access{} : m_clocks.start_of(r);
    at(r, space::send).reset(send_bytes(m_schedule.what, r), start, m_cost);
    at(r, space::recv).reset(recv_bytes(m_schedule.what, r), start, m_cost);
    // Scratch is there before the first rank begins and until the last one ends.
    at(r, space::scratch).reset(p.scratch_bytes, access{}, m_cost);
    const extent in = input_extent(m_schedule.what, r);
    if (in.bytes > 0) {
      memory& m = at(r, m_schedule.what.in_place ? space::recv : space::send);
      m[m.cut(in.offset, in.bytes, m_lists)].value =
          m_values.input_of(r, -static_cast<std::int64_t>(in.offset));
    }
    for (std::size_t c = 0; c < p.channels.size(); ++c) {
      thread_state t;
      t.rank = r;
      t.channel = static_cast<std::int32_t>(c);
      t.code = &p.channels[c];
      m_threads.push_back(std::move(t));
    }
  }
}

void checker::check_order(std::uint32_t t, std::uint32_t pc, space s, const memory& m,
                          memory::cursor at, access past, const char* act, const char* past_act) {
  if (m_clocks.ordered(t, past)) return;
  stop(
      fault::race, t, pc, s, m[at].begin, m.end_of(at) - m[at].begin,
      std::string(act) + " what " + text_of(past) + " " + past_act + " and nothing orders the two");
}

void checker::note_read(segment& g, access as) {
  const auto same = [&](const access& a) {
    return a.thread == as.thread && (a.stamp & access::posted) == (as.stamp & access::posted);
  };
  if (g.read.thread == access::no_thread || same(g.read)) {
    g.read = as;
    return;
  }
  if (g.more_reads == 0) {
    m_cost.take_bytes(sizeof m_lists[0]);
    m_lists.emplace_back();
    g.more_reads = static_cast<std::uint32_t>(m_lists.size());
  }
  auto& list = m_lists[g.more_reads - 1];
  m_cost.take_steps(list.size());
  const auto known = std::find_if(list.begin(), list.end(), same);
  if (known == list.end()) {
    m_cost.take_bytes(sizeof as);
    list.push_back(as);
  } else {
    *known = as;
  }
}

// Reads the source (or, for a reduction, the destination) of an instruction into m_run, with
// segments at the addresses of the instruction's destination. `keep`: others must know of it.
void checker::read(std::uint32_t t, std::uint32_t pc, bool source, access as, bool keep) {
  const instruction& i = code(t, pc);
  const space s = source ? i.src : i.dst;
  const std::uint64_t offset = source ? i.src_offset : i.dst_offset;
  memory& m = of(state(t), i, s);
  m_run.clear();
  memory::cursor& hint = m_threads[t].hints[static_cast<std::size_t>(s)];
  for (auto k = keep ? m.cut(offset, i.bytes, m_lists, hint) : m.find(offset, hint);
       !m.past(k, offset + i.bytes); m.next(k)) {
    m_cost.take_steps(1);
    check_order(t, pc, s, m, k, m[k].write, "reads", "writes");
    if (m[k].value.id == 0) {
      const std::uint64_t begin = std::max(m[k].begin, offset);
      stop(fault::unset_read, t, pc, s, begin, std::min(m.end_of(k), offset + i.bytes) - begin,
           "nothing was written there before it is read");
    }
    if (keep) note_read(m[k], as);
    segment g;
    g.begin = std::max(m[k].begin, offset) - offset + i.dst_offset;
    g.value = {m[k].value.id, m[k].value.shift + static_cast<std::int64_t>(offset - i.dst_offset)};
    if (m_run.empty() || m_run.back().value != g.value) m_run.push_back(g);
  }
}

void checker::check_write(std::uint32_t t, std::uint32_t pc, memory& m, memory::cursor first) {
  const instruction& i = code(t, pc);
  const space s = i.dst;
  for (memory::cursor k = first; !m.past(k, i.dst_offset + i.bytes); m.next(k)) {
    m_cost.take_steps(1);
    check_order(t, pc, s, m, k, m[k].write, "writes", "writes");
    check_order(t, pc, s, m, k, m[k].read, "writes", "reads");
    if (m[k].more_reads == 0) continue;
    m_cost.take_steps(m_lists[m[k].more_reads - 1].size());
    for (const access& a : m_lists[m[k].more_reads - 1])
      check_order(t, pc, s, m, k, a, "writes", "reads");
  }
}

// Writes m_run to the destination of an instruction.
void checker::write(std::uint32_t t, std::uint32_t pc, access as) {
  const instruction& i = code(t, pc);
  memory& m = of(state(t), i, i.dst);
  memory::cursor& hint = m_threads[t].hints[static_cast<std::size_t>(i.dst)];
  const memory::cursor first = m.cut(i.dst_offset, i.bytes, m_lists, hint);
  check_write(t, pc, m, first);
  for (segment& g : m_run) g.write = as;
  m.replace(first, i.bytes, m_run);
}

// Takes the destination of a posted receive: until it is fenced no other instruction may touch it.
void checker::mark_write(std::uint32_t t, std::uint32_t pc, access as) {
  segment g;
  g.begin = code(t, pc).dst_offset;
  m_run.assign(1, g);
  write(t, pc, as);
}

// Counts the sources of the fold that an instruction begins, or goes on with: then true, if there
// is a partial result that is no value of its own.
bool checker::note_fold(std::uint32_t t, const instruction& i) {
  thread_state& me = m_threads[t];
  std::uint32_t& sources = me.fold_sources;
  if (!moves(i.op)) {
    sources = 0;
    return false;
  }
  const bool on = sources > 0 && sources < max_fold_sources && goes_on(code(t, me.pc - 1), i);
  const bool open = on && sources > 1;
  sources = on ? sources + 1 : i.op == opcode::reduce ? 2 : 1;
  return open;
}

void checker::combine(std::uint32_t t, std::uint32_t pc, bool open) {
  const instruction& i = code(t, pc);
  m_other = m_run;  // the source; m_run is read again: the destination
  read(t, pc, false, {}, false);
  m_merged.clear();
  const auto element = static_cast<std::int64_t>(m_schedule.what.element_bytes);
  std::size_t a = 0, b = 0;
  for (std::uint64_t x = i.dst_offset; x < i.dst_offset + i.bytes;) {
    const auto end_in = [&](const std::vector<segment>& run, std::size_t k) {
      return k + 1 < run.size() ? run[k + 1].begin : i.dst_offset + i.bytes;
    };
    const std::uint64_t end = std::min(end_in(m_run, a), end_in(m_other, b));
    m_cost.take_steps(1);
    segment g;
    g.begin = x;
    const auto where = static_cast<std::int64_t>(x);
    const symbol left = m_run[a].value, right = m_other[b].value;
    if ((where + left.shift) % element != 0 || (where + right.shift) % element != 0)
      stop(fault::malformed, t, pc, i.dst, x, end - x, "what is combined are no whole elements");
    switch (m_values.combine(left, right, open, g.value)) {
      case value_table::outcome::twice:
        stop(fault::twice, t, pc, i.dst, x, end - x,
             "a contribution that is already in the destination is combined again");
      case value_table::outcome::order:
        stop(fault::order, t, pc, i.dst, x, end - x,
             "the contributions of source and destination are no neighbouring runs of ranks");
      case value_table::outcome::good: break;
    }
    m_merged.push_back(g);
    if (end == end_in(m_run, a)) ++a;
    if (end == end_in(m_other, b)) ++b;
    x = end;
  }
  m_run = m_merged;
}

void checker::wake(std::uint32_t t) {
  if (m_threads[t].queued) return;
  m_threads[t].queued = true;
  m_ready.push_back(t);
}

// Moves a message whose send and receive are both posted. The source cannot change before the send
// is finished, and no instruction may read the destination before the receive is.
void checker::deliver(const parcel& send, const parcel& receive) {
  if (send.bytes != receive.bytes) {
    const instruction& in = code(receive.thread, receive.pc);
    stop(fault::length, receive.thread, receive.pc, in.dst, in.dst_offset, in.bytes,
         "rank " + std::to_string(state(send.thread).rank) + ", channel " +
             std::to_string(state(send.thread).channel) + ", instruction " +
             std::to_string(send.pc) + " sends " + std::to_string(send.bytes) + " bytes");
  }
  started& to = m_threads[receive.thread].transfer(receive.ticket);
  to.done = true;
  to.value = send.value;
  to.published = send.published;
  m_threads[send.thread].transfer(send.ticket).done = true;
  if (send.value.id == 0) copy_run(send, receive);
  wake(send.thread);
  wake(receive.thread);
}

// Writes a message of several values.
void checker::copy_run(const parcel& send, const parcel& receive) {
  const instruction& out = code(send.thread, send.pc);
  const instruction& in = code(receive.thread, receive.pc);
  const memory& from = of(state(send.thread), out, out.src);
  m_run.clear();
  memory::cursor& source = m_threads[send.thread].hints[static_cast<std::size_t>(out.src)];
  memory::cursor& target = m_threads[receive.thread].hints[static_cast<std::size_t>(in.dst)];
  for (auto k = from.find(out.src_offset, source); !from.past(k, out.src_offset + out.bytes);
       from.next(k)) {
    m_cost.take_steps(1);
    segment g;
    g.begin = std::max(from[k].begin, out.src_offset) - out.src_offset + in.dst_offset;
    g.value = {from[k].value.id,
               from[k].value.shift + static_cast<std::int64_t>(out.src_offset - in.dst_offset)};
    g.write = m_clocks.posting(receive.thread, receive.ticket);
    m_run.push_back(g);
  }
  memory& to = of(state(receive.thread), in, in.dst);
  to.replace(to.cut(in.dst_offset, in.bytes, m_lists, target), in.bytes, m_run);
}

void checker::message(std::uint32_t t, const instruction& i) {
  thread_state& me = m_threads[t];
  const bool sending = i.op == opcode::send;
  parcel mine{t, me.post(false), me.pc, 0, i.bytes, {}, 0};
  const access as = m_clocks.posting(t, mine.ticket);
  if (sending) {
    read(t, me.pc, true, as, true);
    if (m_run.size() == 1) mine.value = m_run[0].value;
    mine.published = publish(t, i.peer);
  } else {
    mark_write(t, me.pc, as);
  }
  queue& q = m_messages.find(sending ? me.rank : i.peer, sending ? i.peer : me.rank,
                             static_cast<std::uint64_t>(me.channel) << 8 | i.level);
  if (q.first == 0 || q.sends == sending) {
    q.sends = sending;
    m_messages.push(q, mine);
    return;
  }
  const parcel other = m_messages.pop(q);
  sending ? deliver(mine, other) : deliver(other, mine);
}

void checker::one_sided(std::uint32_t t) {
  thread_state& me = m_threads[t];
  const access as = m_clocks.posting(t, me.post(true));
  read(t, me.pc, true, as, true);
  write(t, me.pc, as);
}

// Writes the message of a finished receive.
void checker::take_in(std::uint32_t t, const instruction& i, symbol value) {
  memory& m = of(state(t), i, i.dst);
  segment& g = m[m.find(i.dst_offset, m_threads[t].hints[static_cast<std::size_t>(i.dst)])];
  g.value = {value.id, value.shift - static_cast<std::int64_t>(i.dst_offset)};
}

bool checker::fence(std::uint32_t t, const instruction& i) {
  thread_state& me = m_threads[t];
  const auto posted = static_cast<std::uint32_t>(me.posted.size());
  const auto keep = static_cast<std::uint32_t>(std::min<std::uint64_t>(i.bytes, posted));
  const std::uint32_t until = std::max(me.finished, posted - keep);
  while (me.done_until < until && me.transfer(me.done_until).done) ++me.done_until;
  if (me.done_until < until) return false;
  for (; me.finished < until; ++me.finished) {
    const started& s = me.transfer(me.finished);
    if (s.value.id != 0) take_in(t, code(t, me.posted[me.finished]), s.value);
    m_clocks.acquire(t, m_snapshots.take(s.published));
  }
  me.close_finished();
  m_clocks.finish(t, me.finished);
  return true;
}

// All signals of a flag come from one channel, all waits too: else timing would pair them.
void checker::claim(std::uint32_t t, const instruction& i, std::uint32_t& owner, const char* act) {
  if (owner == access::no_thread) owner = t;
  if (owner != t)
    stop(fault::race, t, state(t).pc, space::none, 0, 0,
         "flag " + std::to_string(i.dst_offset) + " is also " + act + " by channel " +
             std::to_string(state(owner).channel));
}

void checker::signal(std::uint32_t t, const instruction& i) {
  const thread_state& me = state(t);
  queue& q = m_signals.find(me.rank, i.peer, i.dst_offset);
  claim(t, i, q.sender, "raised");
  m_signals.push(q, {t, 0, me.pc, 0, 0, {}, publish(t, i.peer)});
  if (q.receiver != access::no_thread) wake(q.receiver);
}

bool checker::wait(std::uint32_t t, const instruction& i) {
  const thread_state& me = state(t);
  queue& q = m_signals.find(i.peer, me.rank, i.dst_offset);
  claim(t, i, q.receiver, "waited for");
  if (q.first == 0) return false;
  m_clocks.acquire(t, m_snapshots.take(m_signals.pop(q).published));
  return true;
}

// Executes one instruction; false if it must wait.
bool checker::step(std::uint32_t t, const instruction& i) {
  const thread_state& me = state(t);
  m_cost.take_steps(1);
  const bool open = note_fold(t, i);
  switch (i.op) {
    case opcode::copy:
    case opcode::reduce: {
      const access as = m_clocks.now(t);
      read(t, me.pc, true, as, !m_clocks.alone(t));
      if (i.op == opcode::reduce) combine(t, me.pc, open);
      write(t, me.pc, as);
      return true;
    }
    case opcode::send:
    case opcode::receive: message(t, i); return true;
    case opcode::put:
    case opcode::get: one_sided(t); return true;
    case opcode::signal: signal(t, i); return true;
    case opcode::wait: return wait(t, i);
    case opcode::fence: break;
  }
  return fence(t, i);
}

void checker::run_thread(std::uint32_t t) {
  thread_state& me = m_threads[t];
  while (me.pc < me.code->size() && step(t, (*me.code)[me.pc])) ++me.pc;
  me.queued = false;
}

verdict checker::run() {
  try {
    prepare();
    for (std::uint32_t t = static_cast<std::uint32_t>(m_threads.size()); t-- > 0;)
      m_ready.push_back(t);
    std::vector<std::uint32_t> now;
    while (!m_ready.empty()) {
      now.swap(m_ready);
      for (const std::uint32_t t : now) run_thread(t);
      now.clear();
    }
    check_ends();
    check_last_accesses();
    for (int r = 0; r < m_schedule.what.ranks; ++r) check_outcome(r);
    verdict good;
    good.identical = m_identical;
    good.peak_values = m_values.size();
    return good;
  } catch (const stopped& s) {
    return s.why;
  }
}

verdict verify(const schedule& s, entry how) {
  return verify(s, how, fold_rules::of(s.what.element_bytes));
}

namespace {

verdict verify(const schedule& s, entry how, fold_rules rules, proof_limits limits) {
  check(s.what);
  proof_cost cost(limits);
  // Charged three times: for the form, before all ranks run, and after.
  cost.take_steps(3 * outcome_steps(s.what));
  verdict v = check_form(s);
  if (!v) return v;
  v = checker(s, how, rules, cost).run();
  v.steps = cost.steps();
  return v;
}

}  // namespace

verdict verify(const schedule& s, entry how, fold_rules rules) {
  return verify(s, how, rules, proof_limits{});
}

verdict verify(const schedule& s, proof_limits limits) {
  return verify(s, entry::apart, fold_rules::of(s.what.element_bytes), limits);
}

}  // namespace sucl::plan
