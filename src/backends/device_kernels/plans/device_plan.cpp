// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/plans/device_plan.hpp"

#include "backends/device_kernels/plans/align_scratch.hpp"
#include "base/error.hpp"
#include "base/sizes.hpp"
#include "plan/ir/fold_run.hpp"
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

using kernels::plan_action;
using kernels::plan_operand;
using kernels::plan_protocol;
using kernels::plan_space;
using kernels::plan_step;
using plan::instruction;
using plan::opcode;

constexpr std::uint64_t no_period = std::uint64_t{1} << 60;
// A group should have that much of the largest step, and that much of it in one piece.
constexpr std::uint64_t min_share = 4096, min_stripe = 1024;
constexpr std::uint64_t slot_unit = kernels::ll_row, quad_bytes = 16;

// The messages of a channel from one rank to another on one level, in order.
struct stream {
  std::int32_t from, to;
  std::size_t channel;
  std::uint8_t level;
  auto operator<=>(const stream&) const = default;
};

struct message {
  std::uint64_t slot, value;
  std::uint64_t from_offset, bytes;
  plan_protocol how;
};

[[noreturn]] void refuse(const std::string& what) {
  base::fail(errc::unsupported, what + " cannot run on devices",
             "Use memory that the host reads, or another composition");
}

plan_space space_of(plan::space s) {
  switch (s) {
    case plan::space::send: return plan_space::send;
    case plan::space::recv: return plan_space::recv;
    default: return plan_space::scratch;
  }
}

bool is_message(const instruction& i) { return i.op == opcode::send || i.op == opcode::receive; }
bool is_flag(const instruction& i) { return i.op == opcode::signal || i.op == opcode::wait; }

class device_lowering {
 public:
  device_lowering(plan::schedule s, int rank, const device_plan_limits& limits)
      : m_schedule(std::move(s)), m_rank(rank), m_limits(limits) {}

  device_plan run() {
    check();
    m_schedule = align_scratch(std::move(m_schedule));
    return lower();
  }

  device_plan run(const plan::node_part& part) {
    check();
    m_waves = &part.waves[static_cast<std::size_t>(m_rank)];
    m_network = part.messages[static_cast<std::size_t>(m_rank)];
    m_out.waves = std::max<std::uint32_t>(part.wave_count, 1);
    const auto first = std::find(part.occupied.begin(), part.occupied.end(), true);
    m_out.first_wave = static_cast<std::uint32_t>(first - part.occupied.begin());
    return lower();
  }

 private:
  device_plan lower() {
    find_stripes();
    assign_slots();
    const auto& mine = m_schedule.ranks[static_cast<std::size_t>(m_rank)];
    m_out.scratch_bytes = mine.scratch_bytes;
    m_own_channels = mine.channels.size();
    m_out.bounds.resize((m_out.waves + 1) * m_own_channels);
    for (std::size_t c = 0; c < mine.channels.size(); ++c) {
      m_first = m_out.steps.size();
      m_wave = 0;
      bound(0, c) = static_cast<std::uint32_t>(m_first);
      channel(c, mine.channels[c]);
      enter_wave(c, m_out.waves);
      read_from_slots(mine, c);
    }
    resolve_waits();
    return std::move(m_out);
  }

  std::uint32_t& bound(std::uint32_t wave, std::size_t c) {
    return m_out.bounds[wave * m_own_channels + c];
  }

  // What is added from here on is in that wave.
  void enter_wave(std::size_t c, std::uint32_t wave) {
    while (m_wave < wave) bound(++m_wave, c) = static_cast<std::uint32_t>(m_out.steps.size());
  }
  void enter_wave_of(std::size_t c, std::size_t i) {
    if (m_waves) enter_wave(c, (*m_waves)[c][i]);
  }

  template <class Function>
  void each_instruction(const Function& f) const {
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r)
      for (std::size_t c = 0; c < m_schedule.ranks[r].channels.size(); ++c)
        for (const instruction& i : m_schedule.ranks[r].channels[c])
          f(static_cast<std::int32_t>(r), c, i);
  }

  template <class Function>
  void each_channel(const Function& f) const {
    for (const plan::program& p : m_schedule.ranks)
      for (const plan::channel& c : p.channels) f(c);
  }

  // Instructions that are one fold, from `i` on.
  static std::size_t fold_length(const plan::channel& code, std::size_t i) {
    std::size_t n = 1;
    while (i + n < code.size() && plan::goes_on(code[i + n - 1], code[i + n])) ++n;
    return n;
  }

  static void check_level(const std::string& via) {
    if (via != "any" && via != plan::shared_memory_transport)
      refuse("a plan with messages via " + via);
  }

  void check() const {
    if (m_schedule.ranks.size() > static_cast<std::size_t>(kernels::max_ranks))
      refuse("a plan of " + std::to_string(m_schedule.ranks.size()) + " ranks");
    for (const plan::program& p : m_schedule.ranks)
      if (p.channels.size() > static_cast<std::size_t>(kernels::max_plan_channels))
        refuse("a plan with " + std::to_string(p.channels.size()) + " channels");
    each_channel([](const plan::channel& code) {
      for (std::size_t i = 0; i < code.size(); ++i) {
        if (!plan::moves(code[i].op)) continue;
        const std::size_t sources = fold_length(code, i) + (code[i].op == opcode::reduce ? 1 : 0);
        if (sources > static_cast<std::size_t>(kernels::max_plan_sources))
          refuse("a reduction of " + std::to_string(sources) + " contributions at once");
        i += fold_length(code, i) - 1;
      }
    });
    each_instruction([&](std::int32_t rank, std::size_t, const instruction& i) {
      const bool near = i.peer < 0 || i.peer == rank || is_message(i);
      if (is_message(i)) check_level(m_schedule.levels[i.level].via);
      if (!near || plan::is_remote(i.dst) || plan::is_remote(i.src))
        refuse(std::string("a plan in which ranks ") + plan::name(i.op) + " at each other's");
    });
  }

  // A part of a period is one too. That of the largest step has all groups at work on it.
  static std::uint64_t shorter(std::uint64_t period, std::uint64_t largest, std::uint64_t unit) {
    if (largest == 0) return period;
    const std::uint64_t least = (period + largest - 1) / largest;
    for (std::uint64_t k = std::max<std::uint64_t>(least, 2); k < 2 * least; ++k)
      if (period % (k * unit) == 0) return period / k;
    return period;
  }

  // How far apart source and destination of everything are: where these are multiples of a period,
  // what lies in one part of each period stays in it.
  void find_stripes() {
    std::map<stream, std::vector<std::uint64_t>> sent;
    std::map<stream, std::size_t> received;
    std::uint64_t period = 0, largest = 0;
    const auto apart = [&](std::uint64_t a, std::uint64_t b) {
      period = std::gcd(period, a < b ? b - a : a - b);
    };
    each_instruction([&](std::int32_t rank, std::size_t c, const instruction& i) {
      if (i.op == opcode::send) sent[{rank, i.peer, c, i.level}].push_back(i.src_offset);
      if (plan::moves(i.op)) apart(i.dst_offset, i.src_offset);
      if (plan::moves(i.op) || is_message(i)) largest = std::max(largest, i.bytes);
    });
    each_instruction([&](std::int32_t rank, std::size_t c, const instruction& i) {
      if (i.op != opcode::receive) return;
      const stream s{i.peer, rank, c, i.level};
      apart(sent[s][received[s]++], i.dst_offset);
    });
    const std::uint64_t unit = std::lcm(m_schedule.what.element_bytes, std::uint64_t{16});
    period = shorter(period, largest, unit);
    const std::uint64_t reach = period ? std::min(period, largest) : largest;
    const std::uint64_t most =
        std::min({static_cast<std::uint64_t>(m_limits.groups),
                  (largest + min_share - 1) / min_share, reach / std::max(unit, min_stripe)});
    m_out.groups = static_cast<int>(std::max<std::uint64_t>(most, 1));
    m_out.period = period && m_out.groups > 1 ? period : no_period;
    // Without a period the largest step is cut into stripes.
    const std::uint64_t whole = period ? period : base::round_up(largest, unit);
    m_out.stripe = m_out.groups == 1
                       ? no_period
                       : base::round_up((whole + static_cast<unsigned>(m_out.groups) - 1) /
                                            static_cast<unsigned>(m_out.groups),
                                        unit);
    if (m_out.groups > 1 && !period)
      m_out.period = m_out.stripe * static_cast<unsigned>(m_out.groups);
    m_whole_quads = m_out.groups == 1 || m_out.period % quad_bytes == 0;
  }

  // Every message has a slot of its own at its receiver, and a number in its flag.
  void assign_slots() {
    std::size_t channels = 0;
    for (const plan::program& p : m_schedule.ranks)
      channels = std::max(channels, p.channels.size());
    m_channels = channels;
    std::vector<std::uint64_t> top(m_schedule.ranks.size());
    std::map<std::pair<std::pair<std::int32_t, std::int32_t>, std::size_t>, std::uint64_t> count;
    each_instruction([&](std::int32_t rank, std::size_t c, const instruction& i) {
      if (i.op != opcode::send) return;
      message m;
      m.from_offset = i.src_offset;
      m.bytes = i.bytes;
      m.value = ++count[{{rank, i.peer}, c}];
      if (m.value >= kernels::max_steps)
        refuse("a plan with " + std::to_string(m.value) + " messages in a channel");
      m.how = protocol_of(i);
      std::uint64_t& end = top[static_cast<std::size_t>(i.peer)];
      m.slot = end;
      end += slot_bytes(m);
      m_messages[{rank, i.peer, c, i.level}].push_back(m);
    });
    m_out.slots_bytes = *std::max_element(top.begin(), top.end());
    m_out.flags_bytes =
        base::round_up(m_schedule.ranks.size() * channels * static_cast<unsigned>(m_out.groups) *
                           sizeof(std::uint64_t),
                       slot_unit);
  }

  plan_protocol protocol_of(const instruction& i) const {
    if (i.bytes >= m_limits.ll128_min_bytes && i.bytes <= m_limits.ll128_max_bytes)
      return plan_protocol::ll128;
    const bool in_quads = m_whole_quads && (m_out.groups == 1 || i.src_offset % quad_bytes == 0);
    return in_quads && i.bytes <= m_limits.ll_max_bytes ? plan_protocol::ll : plan_protocol::bulk;
  }

  std::uint64_t slot_bytes(const message& m) const {
    const std::uint64_t data = base::round_up(m.bytes, slot_unit);
    if (m.how == plan_protocol::bulk) return data;
    if (m.how == plan_protocol::ll) return 2 * data;
    const std::uint64_t periods = m.bytes / m_out.period + 2;
    return kernels::lines_of_run(m.bytes, periods * static_cast<unsigned>(m_out.groups));
  }

  std::uint64_t flag_of(std::int32_t sender, std::size_t c) const {
    return static_cast<std::uint64_t>(sender) * m_channels + c;
  }

  plan_step& add(plan_action what) {
    m_out.steps.emplace_back();
    m_out.steps.back().what = what;
    return m_out.steps.back();
  }

  void channel(std::size_t c, const plan::channel& code) {
    std::deque<std::size_t> open;
    for (std::size_t i = 0; i < code.size(); ++i) {
      const instruction& one = code[i];
      if (one.op != opcode::receive && one.op != opcode::fence) enter_wave_of(c, i);
      if (is_message(one)) open.push_back(i);
      if (one.op == opcode::send) message_step(plan_action::send, c, one);
      if (plan::moves(one.op)) i = move(code, i);
      if (one.op == opcode::signal)
        m_signals[one.dst_offset].emplace_back(c, m_out.steps.size() - m_first);
      if (one.op == opcode::wait) m_waits.emplace_back(m_out.steps.size(), one.dst_offset);
      if (one.op == opcode::wait) add(plan_action::wait);
      if (one.op != opcode::fence) continue;
      for (; open.size() > one.bytes; open.pop_front()) {
        if (code[open.front()].op != opcode::receive) continue;
        enter_wave_of(c, open.front());
        message_step(plan_action::take, c, code[open.front()]);
      }
    }
  }

  void message_step(plan_action what, std::size_t c, const instruction& i) {
    const bool sends = what == plan_action::send;
    const stream which =
        sends ? stream{m_rank, i.peer, c, i.level} : stream{i.peer, m_rank, c, i.level};
    const message& m = m_messages.at(which)[(sends ? m_sent : m_taken)[which]++];
    plan_step& s = add(what);
    s.peer = i.peer;
    s.bytes = i.bytes;
    s.at = {sends ? i.src_offset : i.dst_offset, space_of(sends ? i.src : i.dst), 0};
    s.slot = m.slot;
    s.flag = flag_of(which.from, c);
    s.value = m.value;
    s.how = m.how;
  }

  // As one fold, with the reductions that follow and go to the same address.
  std::size_t move(const plan::channel& code, std::size_t i) {
    const instruction& one = code[i];
    plan_step& s = add(plan_action::fold);
    s.bytes = one.bytes;
    s.at = {one.dst_offset, space_of(one.dst), 0};
    s.first = static_cast<std::uint32_t>(m_out.operands.size());
    if (one.op == opcode::reduce) m_out.operands.push_back(s.at);
    const auto take = [&](const instruction& n) {
      m_out.operands.push_back({n.src_offset, space_of(n.src), 0});
    };
    const std::size_t length = fold_length(code, i);
    for (std::size_t k = 0; k < length; ++k) take(code[i + k]);
    s.sources = static_cast<std::uint32_t>(m_out.operands.size()) - s.first;
    return i + length - 1;
  }

  static bool overlap(const plan_operand& a, std::uint64_t a_bytes, const plan_operand& b,
                      std::uint64_t b_bytes) {
    return a.where == b.where && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
  }

  // A message for scratch that is only read there is read from its slot instead.
  void read_from_slots(const plan::program& mine, std::size_t c) {
    for (std::size_t t = m_first; t < m_out.steps.size(); ++t) {
      plan_step& taken = m_out.steps[t];
      if (taken.what != plan_action::take || taken.how == plan_protocol::ll ||
          taken.at.where != plan_space::scratch || is_touched_elsewhere(mine, c, taken))
        continue;
      std::vector<reader> readers;
      if (!find_readers(t, readers)) continue;
      const bool in_lines = taken.how == plan_protocol::ll128;
      for (const auto& [fold, o] : readers) {
        *o = {taken.slot + (o->offset - taken.at.offset),
              in_lines ? plan_space::lines : plan_space::slots, 0};
        if (in_lines) fold->how = plan_protocol::ll128;
      }
      taken.stays_in_slot = 1;
    }
  }

  // By another channel, or by a message between nodes.
  bool is_touched_elsewhere(const plan::program& mine, std::size_t c,
                            const plan_step& taken) const {
    for (const plan::network_message& m : m_network) {
      const plan_operand at{m.offset, space_of(m.where), 0};
      if (overlap(at, m.bytes, taken.at, taken.bytes)) return true;
    }
    for (std::size_t other = 0; other < mine.channels.size(); ++other)
      for (const instruction& i : mine.channels[other]) {
        if (other == c || is_flag(i) || i.op == opcode::fence) continue;
        const plan_operand dst{i.dst_offset, space_of(i.dst), 0};
        const plan_operand src{i.src_offset, space_of(i.src), 0};
        if ((i.dst != plan::space::none && overlap(dst, i.bytes, taken.at, taken.bytes)) ||
            (i.src != plan::space::none && overlap(src, i.bytes, taken.at, taken.bytes)))
          return true;
      }
    return false;
  }

  struct reader {
    plan_step* fold;
    plan_operand* source;
  };

  // Whether a fold can read its source in the slot. Lines are read by work items that combine words
  // of eight bytes, and all of them.
  bool fits_slot(const plan_step& fold, const plan_operand& o, const plan_step& taken) const {
    if (taken.how == plan_protocol::ll128)
      return o.offset == taken.at.offset && fold.bytes == taken.bytes &&
             (fold.sources == 1 || m_schedule.what.element_bytes <= 8);
    return o.offset >= taken.at.offset && o.offset + fold.bytes <= taken.at.offset + taken.bytes;
  }

  // The sources of folds that read what step `t` has taken; false if something else does, or only a
  // part is overwritten. Offsets of what groups cut stay what they are: sends and folds have
  // theirs.
  bool find_readers(std::size_t t, std::vector<reader>& readers) {
    const plan_step taken = m_out.steps[t];
    for (std::size_t i = t + 1; i < m_out.steps.size(); ++i) {
      plan_step& s = m_out.steps[i];
      const bool touches = overlap(s.at, s.bytes, taken.at, taken.bytes);
      if (s.what == plan_action::send && touches) return false;
      for (std::uint32_t k = 0; s.what == plan_action::fold && k < s.sources; ++k) {
        plan_operand& o = m_out.operands[s.first + k];
        if (!overlap(o, s.bytes, taken.at, taken.bytes)) continue;
        if (!fits_slot(s, o, taken)) return false;
        readers.push_back({&s, &o});
      }
      if ((s.what == plan_action::fold || s.what == plan_action::take) && touches)
        return s.at.offset <= taken.at.offset &&
               s.at.offset + s.bytes >= taken.at.offset + taken.bytes;
    }
    return true;
  }

  // A rank's signals to itself say how far a channel is.
  void resolve_waits() {
    std::map<std::uint64_t, std::size_t> taken;
    for (const auto& [step, flag] : m_waits) {
      const auto& [c, done] = m_signals.at(flag)[taken[flag]++];
      plan_step& s = m_out.steps[step];
      s.peer = static_cast<std::int32_t>(c);
      s.value = bound(0, c) + done;
    }
  }

  plan::schedule m_schedule;
  const std::int32_t m_rank;
  const device_plan_limits& m_limits;
  bool m_whole_quads = true;  // stripes begin with whole quads of what begins with one
  std::size_t m_channels = 0, m_own_channels = 0, m_first = 0;
  const plan::wave_numbers* m_waves = nullptr;  // of this rank; null: there is one
  std::uint32_t m_wave = 0;
  std::span<const plan::network_message> m_network;  // of this rank
  std::map<stream, std::vector<message>> m_messages;
  std::map<stream, std::size_t> m_sent, m_taken;
  std::map<std::uint64_t, std::vector<std::pair<std::size_t, std::size_t>>> m_signals;
  std::vector<std::pair<std::size_t, std::uint64_t>> m_waits;  // step and flag, in order
  device_plan m_out;
};

}  // namespace

device_plan lower_for_device(const plan::schedule& s, int rank, const device_plan_limits& limits) {
  return device_lowering(s, rank, limits).run();
}

device_plan lower_for_device(const plan::node_part& part, int member,
                             const device_plan_limits& limits) {
  return device_lowering(part.local, member, limits).run(part);
}

}  // namespace sucl::core
