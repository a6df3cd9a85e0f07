// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interpret.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>

namespace sucl::plan {
namespace {

using cells = std::vector<std::uint32_t>;  // one number a byte; reduce adds

struct transfer {
  const instruction* i = nullptr;
  int rank = 0, channel = 0;
  bool done = false;
  bool buffered = false;  // a send whose data was taken at once
  bool taken = false;     // a message that is matched
  cells data;
};

struct runner {
  std::size_t pc = 0;
  std::size_t finished = 0;
  std::vector<std::size_t> transfers;  // into machine::m_transfers
};

class machine {
 public:
  machine(const schedule& s, std::uint64_t seed) : m_schedule(s), m_random(seed) {
    const auto ranks = static_cast<std::size_t>(s.what.ranks);
    m_state.assign(ranks, not_started);
    m_memories.resize(ranks * 3);
    m_results.resize(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      m_runners.emplace_back(s.ranks[r].channels.size());
      m_memories[r * 3].resize(send_bytes(s.what, static_cast<int>(r)));
      m_memories[r * 3 + 1].resize(recv_bytes(s.what, static_cast<int>(r)));
      m_memories[r * 3 + 2].resize(s.ranks[r].scratch_bytes);
      scramble(r, 3);
      m_inputs.push_back(cells(input_extent(s.what, static_cast<int>(r)).bytes));
      for (auto& c : m_inputs.back()) c = static_cast<std::uint32_t>(m_random());
    }
  }

  std::string run() {
    const auto ranks = m_state.size();
    for (std::uint64_t idle = 0; idle < 40 * (ranks + 8);) {
      if (std::all_of(m_state.begin(), m_state.end(), [](int s) { return s == over; })) break;
      bool moved = false;
      const std::size_t r = m_random() % ranks;
      if (m_random() % 3 == 0) moved = move_data();
      moved = advance(r) || moved;
      idle = moved ? 0 : idle + 1;
      // Chance alone never proves a standstill: try everything before giving up.
      if (idle == 40 * (ranks + 8) - 1 && try_everything()) idle = 0;
    }
    for (std::size_t q = 0; q < ranks; ++q)
      if (m_state[q] != over) return "rank " + std::to_string(q) + " does not end";
    for (const auto& [key, n] : m_flags)
      if (n != 0) return "a signal is left over";
    for (const transfer& t : m_transfers)
      if (!t.done || ((t.i->op == opcode::send) && !t.taken)) return "a transfer is left over";
    return compare();
  }

 private:
  enum { not_started, running, over };

  // Spaces that the rank does not have: before it starts and after it ends its buffers are not the
  // plan's, but its scratch is.
  void scramble(std::size_t r, std::size_t spaces) {
    for (std::size_t s = 0; s < spaces; ++s)
      for (auto& c : m_memories[r * 3 + s]) c = static_cast<std::uint32_t>(m_random());
  }

  cells::iterator at(int rank, const instruction& i, space s, std::uint64_t offset) {
    const auto owner = static_cast<std::size_t>(is_remote(s) ? i.peer : rank);
    return m_memories[owner * 3 + static_cast<std::size_t>(local_form(s)) - 1].begin() +
           static_cast<std::ptrdiff_t>(offset);
  }

  void start(std::size_t r) {
    scramble(r, 2);
    const extent in = input_extent(m_schedule.what, static_cast<int>(r));
    auto& m = m_memories[r * 3 + (m_schedule.what.in_place ? 1 : 0)];
    std::copy(m_inputs[r].begin(), m_inputs[r].end(),
              m.begin() + static_cast<std::ptrdiff_t>(in.offset));
    m_state[r] = running;
  }

  bool try_everything() {
    bool moved = move_data();
    for (std::size_t r = 0; r < m_state.size(); ++r) moved = advance(r) || moved;
    return moved;
  }

  bool advance(std::size_t r) {
    if (m_state[r] == over) return false;
    if (m_state[r] == not_started) {
      start(r);
      return true;
    }
    const auto& channels = m_schedule.ranks[r].channels;
    bool moved = false, all = true;
    const std::size_t first = channels.empty() ? 0 : m_random() % channels.size();
    for (std::size_t k = 0; k < channels.size(); ++k) {
      const std::size_t c = (first + k) % channels.size();
      runner& me = m_runners[r][c];
      for (std::uint64_t steps = m_random() % 4; steps > 0 && me.pc < channels[c].size(); --steps) {
        if (!step(static_cast<int>(r), static_cast<int>(c), channels[c][me.pc])) break;
        ++me.pc;
        moved = true;
      }
      // One step for sure where chance gave none, so that a standstill is one.
      if (!moved && me.pc < channels[c].size() &&
          step(static_cast<int>(r), static_cast<int>(c), channels[c][me.pc])) {
        ++me.pc;
        moved = true;
      }
      all = all && me.pc == channels[c].size();
    }
    if (all) {
      m_state[r] = over;
      m_results[r] = m_memories[r * 3 + 1];
      scramble(r, 2);
      moved = true;
    }
    return moved;
  }

  bool step(int rank, int channel, const instruction& i) {
    runner& me = m_runners[static_cast<std::size_t>(rank)][static_cast<std::size_t>(channel)];
    switch (i.op) {
      case opcode::copy:
      case opcode::reduce: {
        auto dst = at(rank, i, i.dst, i.dst_offset);
        const auto src = at(rank, i, i.src, i.src_offset);
        for (std::uint64_t k = 0; k < i.bytes; ++k)
          dst[static_cast<std::ptrdiff_t>(k)] =
              src[static_cast<std::ptrdiff_t>(k)] +
              (i.op == opcode::reduce ? dst[static_cast<std::ptrdiff_t>(k)] : 0);
        return true;
      }
      case opcode::signal: ++m_flags[{rank, i.peer, i.dst_offset}]; return true;
      case opcode::wait: {
        auto& n = m_flags[{i.peer, rank, i.dst_offset}];
        if (n == 0) return false;
        --n;
        return true;
      }
      case opcode::fence: {
        const std::size_t keep = std::min<std::size_t>(i.bytes, me.transfers.size());
        while (me.finished < me.transfers.size() - keep) {
          if (!m_transfers[me.transfers[me.finished]].done) return false;
          ++me.finished;
        }
        return true;
      }
      default: post(rank, channel, i, me); return true;
    }
  }

  void post(int rank, int channel, const instruction& i, runner& me) {
    me.transfers.push_back(m_transfers.size());
    transfer t;
    t.i = &i;
    t.rank = rank;
    t.channel = channel;
    if (i.op == opcode::send && m_random() % 2 == 0) {
      t.buffered = t.done = true;
      const auto src = at(rank, i, i.src, i.src_offset);
      t.data.assign(src, src + static_cast<std::ptrdiff_t>(i.bytes));
    }
    if (i.op == opcode::send || i.op == opcode::receive) {
      const bool sending = i.op == opcode::send;
      auto& pair = m_pairs[{sending ? rank : i.peer, sending ? i.peer : rank, channel, i.level}];
      (sending ? pair.sends : pair.receives).push_back(m_transfers.size());
    }
    m_pending.push_back(m_transfers.size());
    m_transfers.push_back(std::move(t));
  }

  // Moves the data of some pending transfers.
  bool move_data() {
    bool moved = false;
    for (auto& [key, pair] : m_pairs) {
      if (pair.sends.empty() || pair.receives.empty() || m_random() % 3 == 0) continue;
      deliver(m_transfers[pair.sends.front()], m_transfers[pair.receives.front()]);
      pair.sends.pop_front();
      pair.receives.pop_front();
      moved = true;
    }
    for (const std::size_t k : m_pending) {
      transfer& t = m_transfers[k];
      const bool one_sided = t.i->op == opcode::put || t.i->op == opcode::get;
      if (t.done || !one_sided || m_random() % 3 == 0) continue;
      const auto src = at(t.rank, *t.i, t.i->src, t.i->src_offset);
      std::copy_n(src, t.i->bytes, at(t.rank, *t.i, t.i->dst, t.i->dst_offset));
      t.done = moved = true;
    }
    std::erase_if(m_pending, [&](std::size_t k) { return m_transfers[k].done; });
    return moved;
  }

  void deliver(transfer& send, transfer& receive) {
    if (!send.buffered) {
      const auto src = at(send.rank, *send.i, send.i->src, send.i->src_offset);
      send.data.assign(src, src + static_cast<std::ptrdiff_t>(send.i->bytes));
    }
    if (send.i->bytes != receive.i->bytes) m_lengths_differ = true;
    const auto n = std::min(send.i->bytes, receive.i->bytes);
    std::copy_n(send.data.begin(), n,
                at(receive.rank, *receive.i, receive.i->dst, receive.i->dst_offset));
    send.done = send.taken = receive.done = true;
    send.data.clear();
  }

  std::string compare() {
    if (m_lengths_differ) return "lengths of a message differ";
    std::string wrong;
    for (int r = 0; r < m_schedule.what.ranks; ++r) {
      for_each_outcome(m_schedule.what, r, [&](const piece& part) {
        for (std::uint64_t k = 0; k < part.bytes; ++k) {
          std::uint32_t sum = 0;
          for (const term& t : part.terms)
            for (int q = t.first; q < t.first + t.count; ++q)
              sum += m_inputs[static_cast<std::size_t>(q)][t.source + k];
          if (sum != m_results[static_cast<std::size_t>(r)][part.offset + k])
            wrong = "byte " + std::to_string(part.offset + k) + " of rank " + std::to_string(r);
        }
      });
    }
    return wrong;
  }

  struct pair {
    std::deque<std::size_t> sends, receives;
  };

  const schedule& m_schedule;
  std::mt19937_64 m_random;
  std::vector<int> m_state;
  std::vector<cells> m_memories, m_inputs, m_results;
  std::vector<std::vector<runner>> m_runners;
  std::vector<transfer> m_transfers;
  std::vector<std::size_t> m_pending;
  std::map<std::tuple<int, int, int, int>, pair> m_pairs;
  std::map<std::tuple<int, int, std::uint64_t>, std::int64_t> m_flags;
  bool m_lengths_differ = false;
};

}  // namespace

std::string interpret(const schedule& s, std::uint64_t seed) { return machine(s, seed).run(); }

}  // namespace sucl::plan
