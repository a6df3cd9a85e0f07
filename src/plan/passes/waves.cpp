// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/waves.hpp"

#include "base/error.hpp"
#include "plan/ir/fold_run.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace sucl::plan {
namespace {

bool is_message(const instruction& i) { return i.op == opcode::send || i.op == opcode::receive; }

// The messages of a channel from one rank to another on one level, in order.
struct wave_stream {
  std::int32_t from, to;
  std::size_t channel;
  std::uint8_t level;
  auto operator<=>(const wave_stream&) const = default;
};

// Executes the plan with waves as time.
class divider {
 public:
  divider(const schedule& s, const std::vector<int>& node_of)
      : m_schedule(s), m_node_of(node_of), m_channels(s.ranks.size()) {
    for (const program& p : s.ranks) {
      m_out.of_rank.emplace_back();
      for (const channel& code : p.channels) m_out.of_rank.back().emplace_back(code.size());
    }
    m_flags.resize(s.ranks.size());
    for (std::size_t r = 0; r < s.ranks.size(); ++r)
      m_channels[r].resize(s.ranks[r].channels.size());
  }

  wave_division run() {
    check();
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < m_channels.size(); ++r)
        for (std::size_t c = 0; c < m_channels[r].size(); ++c)
          while (step(r, c)) moved = true;
    }
    for (std::size_t r = 0; r < m_channels.size(); ++r)
      for (std::size_t c = 0; c < m_channels[r].size(); ++c)
        if (m_channels[r][c].next < m_schedule.ranks[r].channels[c].size())
          base::fail(errc::internal, "a verified plan does not end");
    list_messages();
    return std::move(m_out);
  }

 private:
  struct transfer {
    std::size_t at;  // instruction
    wave_stream which;
    std::size_t number;  // in the stream
    bool network, receives;
  };
  struct progress {
    std::size_t next = 0;
    std::uint32_t wave = 0;
    std::deque<transfer> open;
  };
  // The waves in which the ends of a message start it.
  struct meeting {
    std::optional<std::uint32_t> sent, received;
  };

  void check() const {
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r)
      for (const channel& code : m_schedule.ranks[r].channels)
        for (const instruction& i : code)
          if (i.peer >= 0 && !is_message(i) && i.peer != static_cast<std::int32_t>(r))
            base::fail(errc::unsupported,
                       std::string("a plan in which ranks ") + name(i.op) +
                           " at each other's cannot be divided in waves",
                       "Use memory that the host reads, or another composition");
  }

  bool step(std::size_t r, std::size_t c) {
    progress& p = m_channels[r][c];
    const channel& code = m_schedule.ranks[r].channels[c];
    if (p.next == code.size()) return false;
    const instruction& i = code[p.next];
    if (i.op == opcode::wait && !pass_wait(r, c, i)) return false;
    if (i.op == opcode::fence && !pass_fence(r, c, i)) return false;
    if (i.op == opcode::signal) m_flags[r][i.dst_offset].raised.push_back(p.wave);
    if (is_message(i)) start(r, c, i);
    if (!is_message(i) || i.op == opcode::send) set_wave(r, c, p.next, p.wave);
    ++p.next;
    return true;
  }

  void set_wave(std::size_t r, std::size_t c, std::size_t at, std::uint32_t wave) {
    m_out.of_rank[r][c][at] = wave;
    const opcode op = m_schedule.ranks[r].channels[c][at].op;
    if (moves(op) || op == opcode::send || op == opcode::receive)
      m_out.waves = std::max(m_out.waves, wave + 1);
  }

  bool pass_wait(std::size_t r, std::size_t c, const instruction& i) {
    flag& f = m_flags[r][i.dst_offset];
    if (f.taken == f.raised.size()) return false;
    std::uint32_t& wave = m_channels[r][c].wave;
    wave = std::max(wave, f.raised[f.taken++]);
    return true;
  }

  void start(std::size_t r, std::size_t c, const instruction& i) {
    progress& p = m_channels[r][c];
    const auto self = static_cast<std::int32_t>(r);
    const bool receives = i.op == opcode::receive;
    const wave_stream which =
        receives ? wave_stream{i.peer, self, c, i.level} : wave_stream{self, i.peer, c, i.level};
    const bool network = m_node_of[r] != m_node_of[static_cast<std::size_t>(i.peer)];
    const std::size_t number = (receives ? m_received : m_sent)[which]++;
    auto& all = m_meetings[which];
    if (all.size() <= number) all.resize(number + 1);
    (receives ? all[number].received : all[number].sent) = p.wave;
    p.open.push_back({p.next, which, number, network, receives});
  }

  // What a fence finishes is known once both ends have started it; only a receive waits for a
  // message of the own node.
  bool pass_fence(std::size_t r, std::size_t c, const instruction& i) {
    progress& p = m_channels[r][c];
    const std::size_t finished = p.open.size() - std::min<std::size_t>(p.open.size(), i.bytes);
    for (std::size_t k = 0; k < finished; ++k) {
      const transfer& t = p.open[k];
      const meeting& m = m_meetings[t.which][t.number];
      if ((t.network || t.receives) && !(m.sent && m.received)) return false;
    }
    for (std::size_t k = 0; k < finished; ++k) {
      const transfer t = p.open.front();
      p.open.pop_front();
      const meeting& m = m_meetings[t.which][t.number];
      if (t.network) {
        p.wave = std::max(p.wave, std::max(*m.sent, *m.received) + 1);
      } else if (t.receives) {
        p.wave = std::max(p.wave, *m.sent);
        set_wave(r, c, t.at, p.wave);
      }
    }
    return true;
  }

  // In the order of their channels and levels, which both ends know.
  void list_messages() {
    m_out.messages.resize(m_schedule.ranks.size());
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r) {
      using key = std::tuple<std::uint32_t, std::size_t, std::uint8_t, bool, std::size_t>;
      std::vector<std::pair<key, network_message>> all;
      std::map<wave_stream, std::size_t> numbers;
      const auto self = static_cast<std::int32_t>(r);
      for (std::size_t c = 0; c < m_schedule.ranks[r].channels.size(); ++c)
        for (const instruction& i : m_schedule.ranks[r].channels[c]) {
          if (!is_message(i) || m_node_of[r] == m_node_of[static_cast<std::size_t>(i.peer)])
            continue;
          const bool sends = i.op == opcode::send;
          const wave_stream which =
              sends ? wave_stream{self, i.peer, c, i.level} : wave_stream{i.peer, self, c, i.level};
          const std::size_t number = numbers[which]++;
          const meeting& m = m_meetings[which][number];
          const std::uint32_t wave = std::max(m.sent.value_or(0), m.received.value_or(0));
          m_out.waves = std::max(m_out.waves, wave + 1);
          all.push_back({{wave, c, i.level, sends, number},
                         {wave, i.peer, sends, sends ? i.src : i.dst,
                          sends ? i.src_offset : i.dst_offset, i.bytes}});
        }
      std::stable_sort(all.begin(), all.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (auto& [at, message] : all) m_out.messages[r].push_back(message);
    }
  }

  struct flag {
    std::vector<std::uint32_t> raised;  // the wave of each signal
    std::size_t taken = 0;
  };

  const schedule& m_schedule;
  const std::vector<int>& m_node_of;
  std::vector<std::vector<progress>> m_channels;
  std::map<wave_stream, std::size_t> m_sent, m_received;
  std::map<wave_stream, std::vector<meeting>> m_meetings;
  std::vector<std::map<std::uint64_t, flag>> m_flags;
  wave_division m_out;
};

}  // namespace

wave_division divide_in_waves(const schedule& s, const std::vector<int>& node_of) {
  return divider(s, node_of).run();
}

node_part part_of_node(const schedule& s, const wave_division& division,
                       const std::vector<int>& members) {
  std::vector<std::int32_t> local(s.ranks.size(), -1);
  for (std::size_t i = 0; i < members.size(); ++i)
    local[static_cast<std::size_t>(members[i])] = static_cast<std::int32_t>(i);
  node_part part;
  part.local.what = s.what;
  part.local.what.ranks = static_cast<int>(members.size());
  part.local.algorithm = s.algorithm;
  part.local.levels = s.levels;
  part.wave_count = division.waves;
  part.occupied.resize(division.waves);
  for (const int member : members) {
    const auto r = static_cast<std::size_t>(member);
    program p;
    p.scratch_bytes = s.ranks[r].scratch_bytes;
    wave_numbers numbers;
    for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c) {
      channel code;
      std::vector<std::uint32_t> waves;
      std::vector<bool> open;  // by transfer, whether it is within the node
      for (std::size_t i = 0; i < s.ranks[r].channels[c].size(); ++i) {
        instruction one = s.ranks[r].channels[c][i];
        const std::uint32_t wave = division.of_rank[r][c][i];
        const std::int32_t peer =
            one.peer < 0 ? one.peer : local[static_cast<std::size_t>(one.peer)];
        if (is_message(one)) open.push_back(peer >= 0);
        if (is_message(one) && peer < 0) continue;
        one.peer = peer;
        if (one.op == opcode::fence) {
          const auto rest =
              static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(one.bytes, open.size()));
          open.erase(open.begin(), open.end() - rest);
          one.bytes = static_cast<std::uint64_t>(std::count(open.begin(), open.end(), true));
        }
        if (moves(one.op) || is_message(one)) part.occupied[wave] = true;
        code.push_back(one);
        waves.push_back(wave);
      }
      p.channels.push_back(std::move(code));
      numbers.push_back(std::move(waves));
    }
    part.local.ranks.push_back(std::move(p));
    part.waves.push_back(std::move(numbers));
    part.messages.push_back(division.messages[r]);
  }
  return part;
}

}  // namespace sucl::plan
