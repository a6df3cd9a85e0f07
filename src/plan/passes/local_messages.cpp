// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>

namespace sucl::plan {
namespace {

// The messages from one rank to another in one channel on one level, in order.
struct stream {
  std::int32_t from, to;
  std::size_t channel;
  std::uint8_t level;
  auto operator<=>(const stream&) const = default;
};

// A transfer that a channel has started: what its fence has to do.
struct pending {
  bool shared = false;  // through scratch
  bool receives = false;
  stream which{};
  instruction what;
};

class local_messages_pass {
 public:
  local_messages_pass(schedule s, const std::vector<int>& node_of)
      : m_schedule(std::move(s)), m_node_of(node_of) {}

  schedule run() {
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r)
      for (std::size_t c = 0; c < m_schedule.ranks[r].channels.size(); ++c)
        for (const instruction& i : m_schedule.ranks[r].channels[c]) note(r, c, i);
    if (!m_any) return std::move(m_schedule);
    number_flags();
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r)
      for (std::size_t c = 0; c < m_schedule.ranks[r].channels.size(); ++c) rewrite(r, c);
    return std::move(m_schedule);
  }

 private:
  bool is_shared(std::size_t rank, const instruction& i) const {
    if (i.op != opcode::send && i.op != opcode::receive) return false;
    const std::string& via = m_schedule.levels[i.level].via;
    const bool near = m_node_of[rank] == m_node_of[static_cast<std::size_t>(i.peer)];
    if (via == shared_memory_transport && !near)
      base::fail(errc::invalid_argument,
                 "ranks " + std::to_string(rank) + " and " + std::to_string(i.peer) +
                     " exchange messages via " + via + ", and are on different nodes",
                 "Give the level another transport, or a hierarchy whose inner groups are nodes.");
    return near && (via == shared_memory_transport || via == "any");
  }

  stream stream_of(std::size_t rank, std::size_t c, const instruction& i) const {
    const auto self = static_cast<std::int32_t>(rank);
    return i.op == opcode::send ? stream{self, i.peer, c, i.level}
                                : stream{i.peer, self, c, i.level};
  }

  // Takes scratch of the sender for each message, and finds out which flags there are.
  void note(std::size_t rank, std::size_t c, const instruction& i) {
    if (i.op == opcode::signal || i.op == opcode::wait)
      m_next_flag = std::max(m_next_flag, i.dst_offset + 1);
    if (!is_shared(rank, i)) return;
    m_any = true;
    const stream s = stream_of(rank, c, i);
    m_flags[s] = 0;
    if (i.op != opcode::send) return;
    const std::uint64_t step = std::lcm(m_schedule.what.element_bytes, std::uint64_t{16});
    std::uint64_t& top = m_schedule.ranks[rank].scratch_bytes;
    top = (top + step - 1) / step * step;
    m_offsets[s].push_back(top);
    top += i.bytes;
  }

  void number_flags() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::uint64_t> next;
    for (auto& [s, flag] : m_flags) {
      const auto [n, made] = next.try_emplace({s.from, s.to}, m_next_flag);
      (void)made;
      flag = n->second++;
    }
  }

  void rewrite(std::size_t rank, std::size_t c) {
    const channel old = std::move(m_schedule.ranks[rank].channels[c]);
    channel& out = m_schedule.ranks[rank].channels[c] = {};
    std::deque<pending> open;
    for (const instruction& i : old) {
      if (i.op == opcode::fence) {
        finish(out, open, i.bytes);
      } else if (is_shared(rank, i)) {
        open.push_back({true, i.op == opcode::receive, stream_of(rank, c, i), i});
        if (i.op == opcode::send) stage(out, open.back());
      } else {
        if (is_posted(i.op)) open.push_back({false, false, {}, i});
        out.push_back(i);
      }
    }
  }

  // The sender is done with its data at once.
  void stage(channel& out, const pending& p) {
    const std::uint64_t offset = m_offsets[p.which][m_sent[p.which]++];
    const instruction& i = p.what;
    out.push_back(
        {opcode::copy, space::scratch, i.src, i.level, -1, offset, i.src_offset, i.bytes});
    out.push_back(
        {opcode::signal, space::none, space::none, i.level, i.peer, m_flags[p.which], 0, 0});
  }

  void take(channel& out, const pending& p) {
    const std::uint64_t offset = m_offsets[p.which][m_received[p.which]++];
    const instruction& i = p.what;
    out.push_back(
        {opcode::wait, space::none, space::none, i.level, i.peer, m_flags[p.which], 0, 0});
    out.push_back(
        {opcode::copy, i.dst, space::peer_scratch, i.level, i.peer, i.dst_offset, offset, i.bytes});
  }

  // Finishes the oldest transfers until `keep` are left.
  void finish(channel& out, std::deque<pending>& open, std::uint64_t keep) {
    bool others = false;
    std::vector<pending> done;
    while (open.size() > keep) {
      done.push_back(open.front());
      open.pop_front();
    }
    for (const pending& p : done) {
      if (p.shared && p.receives) take(out, p);
      others |= !p.shared;
    }
    if (!others) return;
    const auto left =
        std::count_if(open.begin(), open.end(), [](const auto& p) { return !p.shared; });
    out.push_back(
        {opcode::fence, space::none, space::none, 0, -1, 0, 0, static_cast<std::uint64_t>(left)});
  }

  schedule m_schedule;
  const std::vector<int>& m_node_of;
  bool m_any = false;
  std::uint64_t m_next_flag = 0;
  std::map<stream, std::uint64_t> m_flags;
  std::map<stream, std::vector<std::uint64_t>> m_offsets;  // in the sender's scratch
  std::map<stream, std::size_t> m_sent, m_received;
};

}  // namespace

schedule share_local_messages(schedule s, const std::vector<int>& node_of) {
  return local_messages_pass(std::move(s), node_of).run();
}

}  // namespace sucl::plan
