// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include "base/error.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/check_form.hpp"
#include "plan/verify/queues.hpp"
#include "sim/event_queue.hpp"
#include "sim/routes.hpp"
#include "sim/symmetry.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace sucl::sim {
namespace {

using plan::instruction;
using plan::opcode;

// A plan whose time is bounded is compared with its bound so many times.
constexpr double bound_checks = 64;
constexpr double rounding = 1e-6;  // relative

// A side of a message that waits for the other, or a signal in flight.
struct waiting {
  std::uint32_t thread = 0;
  std::uint32_t ticket = 0;  // number among the thread's transfers
  std::uint32_t next = 0;
  ticks at = 0;            // when a signal is there
  std::uint32_t turn = 0;  // of a send among those of its channel
};

// A channel of a rank.
struct thread {
  std::int32_t rank = 0;
  std::int32_t channel = 0;
  const plan::channel* code = nullptr;
  std::size_t first = 0;  // number of its first instruction among all
  std::uint32_t pc = 0;
  std::uint32_t done_until = 0;          // transfers before this are done
  std::uint32_t kernel_left = 0;         // parts of the kernel that it waits for
  bool submitted = false;                // the instruction at pc was paid for
  bool entered = false;                  // and was looked at
  bool running = false;                  // its kernel was launched
  std::vector<bool> done;                // by transfer
  std::vector<std::uint32_t> transfers;  // pc of each, for timelines
};

// Bytes in flight: of a message, or of a part of a kernel.
struct movement {
  double bytes = 0;
  std::uint32_t bundle = 0;
  std::uint32_t thread[2] = {};  // of a message both sides, of a transfer or kernel twice the same;
                                 // a rank that stands for both has two tickets
  std::uint32_t ticket[2] = {};
  std::uint32_t sender = 0;  // whose channel it is
  bool kernel = false;
  bool free = false;     // nothing limits it
  bool queued = false;   // flows after what its channel sent before
  bool waiting = false;  // for that
};

struct event {
  ticks at;
  std::uint32_t subject;
  bool movement;  // begins to move; else a thread goes on
};

class simulation {
 public:
  // `by` not null: only rank 0 has a program, see routes.
  simulation(const plan::schedule& s, const machine& m, const simulate_options& o,
             const plan::digits* by = nullptr)
      : m_schedule(s),
        m_options(o),
        m_routes(s, m, m_flows, by),
        m_like(by ? symmetry(s.what.ranks, m_routes) : symmetry(s, m_routes, o.every_rank)),
        m_total(m_routes.totals(m_like)) {
    m_result.rank_seconds.resize(static_cast<std::size_t>(s.what.ranks));
    m_free_at.resize(static_cast<std::size_t>(s.what.ranks));
    m_launch_latency = to_ticks(m.local.launch_latency);
    m_launch_overhead = to_ticks(m.local.launch_overhead);
    make_threads();
    m_in_order = !m.wires.empty();
    m_lines.resize(m_threads.size());
  }

  prediction run() {
    m_running = m_threads.size();
    m_result.min_seconds = min_left() * (1 - rounding);
    for (std::uint32_t t = 0; t < m_threads.size(); ++t) wake(t, 0);
    while (!gives_up()) {
      const ticks next = std::min(m_events.next(), m_flows.next());
      if (next == never) {
        finish();
        return std::move(m_result);
      }
      if (next > latest) refuse_length();
      m_now = next;
      run_step();
      m_flows.settle(m_now);
    }
    return gave_up();
  }

 private:
  std::uint64_t work() const { return m_result.events + m_flows.work(); }
  bool gives_up() {
    if (m_options.max_work > 0 && work() > m_options.max_work) return true;
    if (m_options.max_seconds <= 0 || m_running == 0) return false;
    double least = to_seconds(m_now);
    if (m_now >= m_next_check) {
      least += min_left() * (1 - rounding);
      m_next_check = m_now + to_ticks(m_options.max_seconds / bound_checks);
    }
    return least > m_options.max_seconds;
  }
  prediction gave_up() {
    prediction p;
    p.seconds = to_seconds(m_now);
    p.events = m_result.events;
    p.work = work();
    p.gave_up = true;
    p.min_seconds = m_result.min_seconds;
    return p;
  }

  [[noreturn]] void refuse_length() const {
    base::fail(errc::invalid_argument,
               "the plan takes more than " + std::to_string(static_cast<int>(to_seconds(latest))) +
                   " seconds on this machine",
               "Correct its figures, or the bytes of the plan.");
  }

  void make_threads() {
    std::size_t first = 0;
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r) {
      const auto& channels = m_schedule.ranks[r].channels;
      const auto rank = static_cast<std::int32_t>(r);
      if (m_options.timeline) m_result.timeline.emplace_back(channels.size());
      for (std::size_t c = 0; c < channels.size(); ++c) {
        if (m_like.first_of(rank) != rank) {
          first += channels[c].size();
          continue;
        }
        thread& t = m_threads.emplace_back();
        t.rank = rank;
        t.channel = static_cast<std::int32_t>(c);
        t.code = &channels[c];
        t.first = first;
        first += channels[c].size();
        if (m_options.timeline) m_result.timeline.back()[c].resize(channels[c].size());
      }
    }
  }

  route& route_at(const thread& t, std::uint32_t pc) { return m_routes.of(t.first + pc); }

  // ---- events

  void wake(std::uint32_t thread, ticks at) { m_events.push({at, thread, false}); }

  // All that happens now, and what follows from it without taking time.
  void run_step() {
    for (;;) {
      if (m_flows.next_end() == m_now) {
        end_movement(m_flows.end_one(m_now));
      } else if (m_events.next() == m_now) {
        const event e = m_events.pop();
        if (e.movement)
          begin_movement(e.subject);
        else
          advance(e.subject);
      } else {
        return;
      }
      ++m_result.events;
    }
  }

  std::uint32_t new_movement() {
    if (m_free.empty()) {
      m_movements.emplace_back();
      return static_cast<std::uint32_t>(m_movements.size() - 1);
    }
    const std::uint32_t i = m_free.back();
    m_free.pop_back();
    m_movements[i] = {};
    return i;
  }

  void begin_movement(std::uint32_t i) {
    movement& m = m_movements[i];
    if (m.queued) {
      m.waiting = true;  // its latency is over
      return;
    }
    if (m.free)
      end_movement(i);
    else
      m_flows.start(m.bundle, m.bytes, i, m_now);
  }

  // Sets off a movement along a route.
  void set_out(std::uint32_t index, route& r, ticks latency) {
    movement& m = m_movements[index];
    m.free = r.free();
    if (!m.free) m.bundle = m_routes.bundle(r, m_threads[m.thread[0]].rank, m_like);
    m_events.push({m_now + latency, index, true});
  }

  // What a channel sends flows in order on a machine that is a graph: bytes of a message follow
  // those of the one that the channel started before, also where that has to wait for its receive.
  void set_turn(std::uint32_t i, int sender, std::uint32_t turn) {
    if (!m_in_order) return;
    movement& m = m_movements[i];
    m.sender = m.thread[sender];
    line& l = m_lines[m.sender];
    m.queued = l.next != turn;
    if (!m.queued) return;
    if (l.movements.size() <= turn) l.movements.resize(turn + 1);
    l.movements[turn] = i + 1;
  }
  void let_next_flow(const movement& m) {
    if (!m_in_order || m.kernel) return;
    line& l = m_lines[m.sender];
    if (++l.next >= l.movements.size() || l.movements[l.next] == 0) return;
    const std::uint32_t next = l.movements[l.next] - 1;
    m_movements[next].queued = false;
    if (m_movements[next].waiting) m_events.push({m_now, next, true});
  }

  void end_movement(std::uint32_t i) {
    const movement m = m_movements[i];
    let_next_flow(m);
    m_free.push_back(i);
    if (m.kernel) {
      thread& t = m_threads[m.thread[0]];
      if (--t.kernel_left == 0) advance(m.thread[0]);
      return;
    }
    const int sides = m.thread[0] == m.thread[1] && m.ticket[0] == m.ticket[1] ? 1 : 2;
    for (int side = 0; side < sides; ++side) {
      thread& t = m_threads[m.thread[side]];
      t.done[m.ticket[side]] = true;
      if (m_options.timeline) span_of(t, t.transfers[m.ticket[side]]).end = to_seconds(m_now);
      while (t.done_until < t.done.size() && t.done[t.done_until]) ++t.done_until;
      if (t.entered && (*t.code)[t.pc].op == opcode::fence) advance(m.thread[side]);
    }
  }

  // ---- instructions

  span& span_of(const thread& t, std::uint32_t pc) {
    return m_result
        .timeline[static_cast<std::size_t>(t.rank)][static_cast<std::size_t>(t.channel)][pc];
  }

  // Runs a thread from where it is until it has to wait.
  void advance(std::uint32_t index) {
    thread& t = m_threads[index];
    while (t.pc < t.code->size()) {
      if (!t.entered) {
        t.entered = true;
        if (m_options.timeline) span_of(t, t.pc).start = to_seconds(m_now);
      }
      const std::uint32_t count = step(index, (*t.code)[t.pc]);
      if (count == 0) return;
      leave(t, count);
    }
    --m_running;
    auto& end = m_result.rank_seconds[static_cast<std::size_t>(t.rank)];
    end = std::max(end, to_seconds(m_now));
  }

  void leave(thread& t, std::uint32_t count) {
    if (m_options.timeline) {
      const double start = span_of(t, t.pc).start;
      for (std::uint32_t i = 0; i < count; ++i)
        if (!plan::is_posted((*t.code)[t.pc + i].op))
          span_of(t, t.pc + i) = {start, to_seconds(m_now)};
    }
    t.pc += count;
    t.submitted = t.entered = t.running = false;
  }

  // Does an instruction. Returns how many are done with it; 0 if it has to wait.
  std::uint32_t step(std::uint32_t index, const instruction& i) {
    thread& t = m_threads[index];
    switch (i.op) {
      case opcode::fence: return t.done_until + i.bytes >= t.done.size() ? 1 : 0;
      case opcode::wait: return take_signal(index, i);
      case opcode::signal: return raise(index, i);
      case opcode::copy:
      case opcode::reduce: return launch(index, i);
      default: return submit(index, route_at(t, t.pc).overhead) && post(index, i);
    }
  }

  // Pays for an instruction: the work of one rank is done one after another.
  bool submit(std::uint32_t index, ticks overhead) {
    thread& t = m_threads[index];
    if (t.submitted || overhead == 0) return true;
    ticks& free_at = m_free_at[static_cast<std::size_t>(t.rank)];
    free_at = std::min(std::max(free_at, m_now) + overhead, latest + 1);
    t.submitted = true;
    wake(index, free_at);
    return false;
  }

  // ---- transfers

  std::uint32_t new_ticket(thread& t) {
    t.done.push_back(false);
    if (m_options.timeline) t.transfers.push_back(t.pc);
    return static_cast<std::uint32_t>(t.done.size() - 1);
  }

  bool post(std::uint32_t index, const instruction& i) {
    thread& t = m_threads[index];
    const bool sends = i.op != opcode::receive;
    waiting own{index, new_ticket(t), 0, 0};
    if (m_in_order && sends) own.turn = m_lines[index].started++;
    if (m_options.timeline) span_of(t, t.pc).start = to_seconds(m_now);
    if (i.op == opcode::put || i.op == opcode::get) {
      move(own, own, route_at(t, t.pc), i.bytes);
      return true;
    }
    route& r = route_at(t, t.pc);
    auto& queue = queue_in(m_messages, r, static_cast<std::uint64_t>(t.channel) << 8 | i.level);
    if (queue.first == 0) queue.sends = sends;
    if (queue.first == 0 || queue.sends == sends)
      m_messages.push(queue, own);
    else
      move(own, m_messages.pop(queue), r, i.bytes, sends);
    return true;
  }

  // Between two ranks of which the first is the first of its kind.
  plan::queue& queue_in(plan::queues<waiting>& all, route& r, std::uint64_t slot) {
    if (r.queue[0] < 0) std::tie(r.queue[0], r.queue[1]) = m_like.pair_of(r.from, r.to);
    return all.find(r.queue[0], r.queue[1], slot);
  }

  // `sends`: the first of the two does.
  void move(const waiting& a, const waiting& b, route& r, std::uint64_t bytes, bool sends = true) {
    const std::uint32_t index = new_movement();
    movement& m = m_movements[index];
    m.bytes = static_cast<double>(bytes);
    m.thread[0] = a.thread;
    m.ticket[0] = a.ticket;
    m.thread[1] = b.thread;
    m.ticket[1] = b.ticket;
    set_turn(index, sends ? 0 : 1, sends ? a.turn : b.turn);
    set_out(index, r, r.latency);
  }

  // ---- kernels

  std::uint32_t launch(std::uint32_t index, const instruction& first) {
    thread& t = m_threads[index];
    if (!submit(index, m_launch_overhead)) return 0;
    const std::uint32_t n = kernel_length(*t.code, t.pc);
    if (t.running) return n;  // its last part has ended
    t.running = true;
    t.kernel_left = n;
    for (std::uint32_t k = 0; k < n; ++k) launch_part(index, (&first)[k], route_at(t, t.pc + k));
    return 0;
  }

  void launch_part(std::uint32_t index, const instruction& i, route& r) {
    const std::uint32_t at = new_movement();
    movement& m = m_movements[at];
    m.bytes = static_cast<double>(i.bytes);
    m.thread[0] = m.thread[1] = index;
    m.kernel = true;
    set_out(at, r, m_launch_latency + r.latency);
  }

  // ---- what is still to be done

  // The least time that the rest takes: what still has to go through the busiest limit.
  double min_left() const {
    const std::vector<double> under_way = m_flows.under_way(m_now);
    double seconds = 0;
    for (std::uint32_t i = 0; i < m_total.size(); ++i)
      seconds =
          std::max(seconds, (m_total[i] - m_flows.taken(i) + under_way[i]) / m_flows.capacity(i));
    return seconds;
  }

  // ---- signals

  // Signals of one flag number to several peers are one work of the rank.
  std::uint32_t raise(std::uint32_t index, const instruction& first) {
    thread& t = m_threads[index];
    if (!submit(index, route_at(t, t.pc).overhead)) return 0;
    std::uint32_t n = 0;
    for (; t.pc + n < t.code->size(); ++n) {
      const instruction& i = (*t.code)[t.pc + n];
      if (i.op != opcode::signal || i.dst_offset != first.dst_offset) break;
      route& r = route_at(t, t.pc + n);
      const ticks there = m_now + r.latency;
      auto& queue = queue_in(m_signals, r, i.dst_offset);
      if (queue.first != 0 && !queue.sends)
        wake(m_signals.pop(queue).thread, there);
      else {
        queue.sends = true;
        m_signals.push(queue, {index, 0, 0, there});
      }
    }
    return n;
  }

  std::uint32_t take_signal(std::uint32_t index, const instruction& i) {
    thread& t = m_threads[index];
    if (t.submitted) return 1;  // woken by it
    t.submitted = true;
    auto& queue = queue_in(m_signals, route_at(t, t.pc), i.dst_offset);
    if (queue.first != 0 && queue.sends) {
      const ticks there = m_signals.pop(queue).at;
      if (there <= m_now) return 1;
      wake(index, there);
      return 0;
    }
    queue.sends = false;
    m_signals.push(queue, {index, 0, 0, 0});
    return 0;
  }

  // ---- the end

  void finish() {
    for (const thread& t : m_threads) {
      if (t.pc == t.code->size()) continue;
      base::fail(errc::invalid_argument,
                 "the plan never ends: rank " + std::to_string(t.rank) + ", channel " +
                     std::to_string(t.channel) + " waits at instruction " + std::to_string(t.pc) +
                     " (" + plan::to_text((*t.code)[t.pc]) + ")",
                 "Verify the plan before simulating it.");
    }
    copy_to_likes();
    for (const double end : m_result.rank_seconds)
      m_result.seconds = std::max(m_result.seconds, end);
    m_result.gave_up = m_options.max_seconds > 0 && m_result.seconds > m_options.max_seconds;
    m_result.levels = m_routes.traffic();
    if (m_options.matrix) m_result.matrix = m_routes.matrix();
    m_result.work = work();
    if (m_options.usage) m_result.uses = m_routes.uses(m_like);
  }

  // What happened to the first rank of a kind happened to all.
  void copy_to_likes() {
    for (std::int32_t r = 0; r < m_schedule.what.ranks; ++r) {
      const auto own = static_cast<std::size_t>(r);
      const auto first = static_cast<std::size_t>(m_like.first_of(r));
      m_result.rank_seconds[own] = m_result.rank_seconds[first];
      if (m_options.timeline && own < m_result.timeline.size() && own != first)
        m_result.timeline[own] = m_result.timeline[first];
    }
  }

  const plan::schedule& m_schedule;
  const simulate_options m_options;
  flows m_flows;
  routes m_routes;
  const symmetry m_like;
  const std::vector<double> m_total;  // by limit: bytes of the whole plan
  ticks m_launch_latency = 0, m_launch_overhead = 0;
  bool m_in_order = false;
  // By channel, if so: how many messages it has started, whose turn it is to flow, and those that
  // wait for their turn, by number + 1.
  struct line {
    std::uint32_t started = 0, next = 0;
    std::vector<std::uint32_t> movements;
  };
  std::vector<line> m_lines;
  std::vector<thread> m_threads;
  std::size_t m_running = 0;     // threads that have not ended
  std::vector<ticks> m_free_at;  // by rank: when it can do its next work
  std::vector<movement> m_movements;
  std::vector<std::uint32_t> m_free;
  plan::queues<waiting> m_messages, m_signals;
  event_queue<event> m_events;
  ticks m_now = 0;
  ticks m_next_check = 0;  // at what is left
  prediction m_result;
};

}  // namespace

const char* name(usage::part p) noexcept {
  switch (p) {
    case usage::part::memory: return "memory";
    case usage::part::kernels: return "kernels";
    case usage::part::rank_out: return "rank_out";
    case usage::part::rank_in: return "rank_in";
    case usage::part::port_out: return "port_out";
    case usage::part::port_in: return "port_in";
    case usage::part::port_both: return "port_both";
    case usage::part::link: return "link";
    case usage::part::fabric: return "fabric";
  }
  return "unknown";
}

namespace {

void check_ranks(const plan::problem& p, const machine& m) {
  check(m);
  plan::check(p);
  if (p.ranks > rank_count(m))
    base::fail(errc::invalid_argument,
               "the plan has " + std::to_string(p.ranks) + " ranks and the machine '" + m.name +
                   "' only " + std::to_string(rank_count(m)),
               "Plan for fewer, or raise the outermost groups in the description.");
}

}  // namespace

prediction simulate(const plan::schedule& s, const machine& m, const simulate_options& o) {
  check_ranks(s.what, m);
  if (const plan::verdict form = plan::check_form(s); !form)
    base::fail(errc::invalid_argument, "the plan is wrong: " + form.message,
               "Verify the plan before simulating it.");
  return simulation(s, m, o).run();
}

std::string refusal(const plan::digits& ranks, const machine& m) {
  if (!m.wires.empty()) return "the machine is a graph";
  // Groups of so many consecutive ranks are taken to each other.
  const auto keeps = [&](std::int64_t group) {
    bool found = group >= ranks.ranks();
    for (int d = 0; d < ranks.count(); ++d) found |= ranks.stride(d) == group;
    return found;
  };
  if (m.local.bandwidth > 0 && !keeps(m.local.shared_by))
    return "ranks that share a memory are no digits";
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const level& of = m.levels[l];
    const std::int64_t member = member_ranks(m, l);
    if (!keeps(member)) return "the members of level '" + of.name + "' are no digits";
    if (member > ranks.ranks() && of.ports > 1)
      return "not all ranks of a member of level '" + of.name + "' take part";
    if (of.ports < 2 || (of.port_bandwidth <= 0 && of.port_both <= 0)) continue;
    const auto port = [&](int rank) {
      return of.binding.empty() ? rank * of.ports / member
                                : of.binding[static_cast<std::size_t>(rank)];
    };
    for (int d = 0; d < ranks.count(); ++d) {
      std::map<std::int64_t, std::int64_t> to;
      for (int r = 0; ranks.stride(d) < member && r < member; ++r) {
        const std::int64_t there = port(ranks.add(r, ranks.stride(d)));
        if (to.try_emplace(port(r), there).first->second != there)
          return "ranks that share a port of level '" + of.name + "' are taken to others";
      }
    }
  }
  return {};
}

prediction simulate(const plan::symmetric_schedule& s, const machine& m,
                    const simulate_options& o) {
  check_ranks(s.what, m);
  if (const std::string why = refusal(s.ranks, m); !why.empty())
    base::fail(errc::invalid_argument, "ranks are not alike on " + m.name + ": " + why,
               "Take radices whose products are the groups of the machine.");
  plan::schedule first{s.what, s.algorithm, s.levels, {}};
  first.ranks.resize(static_cast<std::size_t>(s.what.ranks));
  first.ranks[0] = {s.scratch_bytes, s.channels};
  return simulation(first, m, o, &s.ranks).run();
}

}  // namespace sucl::sim
