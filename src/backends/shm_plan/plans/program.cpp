// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/plans/program.hpp"

#include "base/error.hpp"
#include "core/host_ops/nt_copy.hpp"
#include "plan/ir/fold_run.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace sucl::core {
namespace {

using plan::goes_on;
using plan::instruction;
using plan::opcode;
using plan::space;
using action = step::action;

// Every channel has one flag that its signals raise. This is where the k-th signal of a rank to a
// flag of another one appears.
struct appearance {
  std::uint32_t channel;
  std::uint64_t value;
};

struct flag_key {
  std::int32_t from, to;
  std::uint64_t flag;
  auto operator<=>(const flag_key&) const = default;
};

bool is_signal(const instruction& i) { return i.op == opcode::signal; }

// Numbers the signals of all ranks: those that follow each other are one store.
std::map<flag_key, std::vector<appearance>> number_signals(const plan::schedule& s) {
  std::map<flag_key, std::vector<appearance>> all;
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c) {
      const auto& code = s.ranks[r].channels[c];
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < code.size(); ++i) {
        if (!is_signal(code[i])) continue;
        if (i == 0 || !is_signal(code[i - 1])) ++value;
        all[{static_cast<std::int32_t>(r), code[i].peer, code[i].dst_offset}].push_back(
            {static_cast<std::uint32_t>(c), value});
      }
      if (value > 0xffff)
        base::fail(errc::unsupported, "a plan with more than 65535 signals in one channel",
                   "Use fewer segments");
    }
  }
  return all;
}

// A copy or a reduction of any number of sources, before it is cut into blocks.
struct movement {
  bool folds = false;
  std::int32_t rank = 0;  // owner of `to`
  space to = space::none;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  struct source {
    std::int32_t rank;
    space where;
    std::uint64_t offset;
  };
  std::vector<source> from;
};

class lowering {
 public:
  lowering(const plan::schedule& s, const placement& where, const blocking& cut)
      : m_schedule(s),
        m_where(where),
        m_rank(where.rank),
        m_cut(cut),
        m_signals(number_signals(s)) {}

  program run() {
    const plan::program& mine = m_schedule.ranks[static_cast<std::size_t>(m_rank)];
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r) {
      const plan::program& p = m_schedule.ranks[r];
      m_out.scratch_bytes = std::max(m_out.scratch_bytes, p.scratch_bytes);
      if (p.channels.size() > max_channels)
        base::fail(errc::unsupported,
                   "a plan with " + std::to_string(p.channels.size()) + " channels",
                   "The executor takes up to " + std::to_string(max_channels));
      for (const auto& c : p.channels)
        for (const instruction& i : c) {
          note_spaces(i);
          check_reach(r, i);
          check_message(i);
          if (plan::is_remote(i.src) && i.peer == m_rank) m_peers_reads.push_back(&i);
        }
    }
    for (const auto& code : mine.channels) {
      m_out.channels.emplace_back();
      channel(code);
    }
    return std::move(m_out);
  }

 private:
  void note_spaces(const instruction& i) {
    for (const space s : {i.dst, i.src}) {
      m_out.maps_send |= s == space::peer_send;
      m_out.maps_recv |= s == space::peer_recv;
    }
    m_out.posts |= i.op == opcode::send || i.op == opcode::receive;
  }

  // Whether other ranks read some of this memory, or are its owners.
  bool is_read_by_peers(const movement& m) const {
    return m.rank != m_rank ||
           std::any_of(m_peers_reads.begin(), m_peers_reads.end(), [&](const instruction* i) {
             return plan::local_form(i->src) == m.to && i->src_offset < m.offset + m.bytes &&
                    m.offset < i->src_offset + i->bytes;
           });
  }

  // Only messages leave a node.
  void check_reach(std::size_t rank, const instruction& i) const {
    if (i.peer < 0 || i.op == opcode::send || i.op == opcode::receive) return;
    if (m_where.node_of[rank] == m_where.node_of[static_cast<std::size_t>(i.peer)]) return;
    base::fail(errc::invalid_argument,
               "a plan has rank " + std::to_string(rank) + " " + plan::name(i.op) + " with rank " +
                   std::to_string(i.peer) + ", which is on another node",
               "Use messages between nodes");
  }

  // A message that one rank could not post is refused on all ranks.
  void check_message(const instruction& i) const {
    if (i.op != opcode::send && i.op != opcode::receive) return;
    transport_of(i.level);
    const bool sends = i.op == opcode::send;
    std::uint64_t left = i.bytes;
    operand_at(sends ? i.src : i.dst, m_rank, sends ? i.src_offset : i.dst_offset, &left);
    if (left < i.bytes)
      base::fail(errc::unsupported, "a message of a plan has parts of several blocks",
                 "Use an algorithm that packs them, as node_shot does");
  }

  std::uint32_t transport_of(std::uint8_t level) const {
    const std::string& via = m_schedule.levels[level].via;
    std::string names;
    for (std::size_t t = 0; t < m_where.transports.size(); ++t) {
      if (via == "any" || via == m_where.transports[t].name) return static_cast<std::uint32_t>(t);
      names += ", " + m_where.transports[t].name;
    }
    base::fail(errc::invalid_argument,
               "a plan uses the transport '" + via + "', which is not there",
               "The transports of this communicator are ipc (within nodes)" + names +
                   "; any takes the fastest");
  }

  std::int32_t owner(space s, std::int32_t peer) const {
    return plan::is_remote(s) ? peer : m_rank;
  }

  void channel(const plan::channel& code) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < code.size(); ++i) {
      const instruction& one = code[i];
      if (plan::moves(one.op)) {
        i = move(code, i);
      } else if (is_signal(one)) {
        if (i > 0 && is_signal(code[i - 1])) continue;
        add(action::signal).value = ++value;
      } else if (one.op == opcode::wait) {
        wait(one);
      } else if (one.op == opcode::fence) {
        if (m_out.posts) add(action::fence).bytes = one.bytes;
      } else {
        post(one);
      }
    }
  }

  step& add(action what) {
    m_out.channels.back().emplace_back();
    m_out.channels.back().back().what = what;
    return m_out.channels.back().back();
  }

  // Waits of one rank for one flag are all in one channel, so they are counted as they come.
  void wait(const instruction& i) {
    const flag_key key{i.peer, m_rank, i.dst_offset};
    const appearance& a = m_signals.at(key)[m_waits[key]++];
    step& s = add(action::wait);
    s.peer = i.peer;
    s.channel = a.channel;
    s.value = a.value;
  }

  void post(const instruction& i) {
    const bool sends = i.op == opcode::send;
    const space where = sends ? i.src : i.dst;
    const auto first = static_cast<std::uint32_t>(m_out.sources.size());
    std::uint64_t left = i.bytes;
    m_out.sources.push_back(operand_at(where, m_rank, sends ? i.src_offset : i.dst_offset, &left));
    step& s = add(sends ? action::send : action::receive);
    s.peer = i.peer;
    if (i.level >= max_message_levels)
      base::fail(errc::unsupported,
                 "messages on more than " + std::to_string(max_message_levels) + " levels");
    s.channel = transport_of(i.level);
    s.value = i.level * max_channels + (m_out.channels.size() - 1);
    s.first = first;
    s.sources = 1;
    s.bytes = i.bytes;
  }

  // The movement that begins at instruction `i`, with the reductions that follow and go to the same
  // address. Returns the last instruction that it took.
  std::size_t move(const plan::channel& code, std::size_t i) {
    const instruction& one = code[i];
    movement m;
    m.rank = owner(one.dst, one.peer);
    m.to = plan::local_form(one.dst);
    m.offset = one.dst_offset;
    m.bytes = one.bytes;
    if (one.op == opcode::reduce) m.from.push_back({m.rank, m.to, m.offset});
    const auto take = [&](const instruction& n) {
      m.from.push_back({owner(n.src, n.peer), plan::local_form(n.src), n.src_offset});
    };
    take(one);
    while (m.from.size() < max_sources && i + 1 < code.size() && goes_on(code[i], code[i + 1]))
      take(code[++i]);
    m.folds = m.from.size() > 1;
    write(m);
    return i;
  }

  const std::vector<std::uint64_t>* ends_of(space s) const {
    const auto* ends = s == space::send   ? &m_cut.send_ends
                       : s == space::recv ? &m_cut.recv_ends
                                          : nullptr;
    return ends && !ends->empty() ? ends : nullptr;
  }

  // Where a byte of a packed space is, and how many bytes of its block follow.
  operand operand_at(space s, std::int32_t rank, std::uint64_t byte, std::uint64_t* left) const {
    operand o{s, rank, -1, byte};
    const auto* ends = ends_of(s);
    if (!ends) return o;
    const auto at = std::upper_bound(ends->begin(), ends->end(), byte);
    o.block = static_cast<std::int32_t>(at - ends->begin());
    o.offset = at == ends->begin() ? byte : byte - *std::prev(at);
    *left = std::min(*left, *at - byte);
    return o;
  }

  void write(const movement& m) {
    const bool nontemporal =
        !m.folds && m.bytes >= nt_store_policy::min_bytes && is_read_by_peers(m);
    for (std::uint64_t done = 0; done < m.bytes;) {
      std::uint64_t length = m.bytes - done;
      step s;
      s.what = m.folds ? action::fold : action::copy;
      s.first = static_cast<std::uint32_t>(m_out.sources.size());
      s.sources = static_cast<std::uint32_t>(m.from.size());
      s.nontemporal = nontemporal;
      s.to = operand_at(m.to, m.rank, m.offset + done, &length);
      s.own_block = !m.folds && m.to == space::recv && m.from[0].where == space::send &&
                    m.rank == m_rank && m.from[0].rank == m_rank;
      for (const auto& f : m.from)
        m_out.sources.push_back(operand_at(f.where, f.rank, f.offset + done, &length));
      s.bytes = length;
      m_out.channels.back().push_back(s);
      done += length;
    }
  }

  const plan::schedule& m_schedule;
  const placement& m_where;
  const std::int32_t m_rank;
  const blocking& m_cut;
  const std::map<flag_key, std::vector<appearance>> m_signals;
  std::map<flag_key, std::size_t> m_waits;
  std::vector<const instruction*> m_peers_reads;  ///< what peers do with memory of this rank
  program m_out;
};

}  // namespace

program lower(const plan::schedule& s, const placement& where, const blocking& cut) {
  return lowering(s, where, cut).run();
}

}  // namespace sucl::core
