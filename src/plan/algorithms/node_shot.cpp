// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Collectives in one step between nodes, for any of them: nothing here knows a kind of collective.
// What the ranks of a node need of another node is put together there, once, from what its ranks
// have staged in their scratch; it is sent in as few messages as there are leaders; and the node
// that gets it reads it where it landed.
#include "plan/algorithms/collectives.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace sucl::plan {
namespace {

using source = std::pair<int, std::uint64_t>;  // a rank and the byte of its input

// What one node owes to others: the reduction, or the copy, of some of its ranks' inputs.
struct value {
  int node = 0;
  int from = 0;  // the rank that sends it
  std::uint64_t bytes = 0;
  std::vector<source> terms;
  std::optional<address> packed;  // in the scratch of `from`
};

// A value where it lands on another node.
struct landing {
  std::size_t what = 0;
  int to = 0;
  address at;
  std::vector<int> readers;
  std::optional<address> only;  // in recv of `to`, if it is nothing but copied there
};

// What one rank puts into one piece of its output: a rank's input, a value of the own node, or one
// that has landed.
struct share {
  enum class type : std::uint8_t { input, own, landed };
  type what = type::input;
  source from;
  std::size_t index = 0;
};

struct result {
  std::uint64_t offset = 0, bytes = 0;
  std::vector<share> shares;
  bool needs_others() const {
    return std::any_of(shares.begin(), shares.end(),
                       [](const share& s) { return s.what == share::type::landed; });
  }
};

// Parts of an input that are staged, and where.
class staged_parts {
 public:
  void need(std::uint64_t begin, std::uint64_t bytes) { m_parts.push_back({begin, begin + bytes}); }
  void settle(builder& b, int rank) {
    std::sort(m_parts.begin(), m_parts.end());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> joined;
    for (const auto& p : m_parts) {
      if (!joined.empty() && p.first <= joined.back().second)
        joined.back().second = std::max(joined.back().second, p.second);
      else
        joined.push_back(p);
    }
    m_parts = std::move(joined);
    for (const auto& [begin, end] : m_parts) m_addresses.push_back(b.scratch(rank, end - begin));
  }
  address of(std::uint64_t byte) const {
    const auto after =
        std::upper_bound(m_parts.begin(), m_parts.end(), std::pair(byte, ~std::uint64_t{0}));
    const auto i = static_cast<std::size_t>(after - m_parts.begin()) - 1;
    return m_addresses[i] + (byte - m_parts[i].first);
  }
  void copy(builder& b, int rank) const {
    for (std::size_t i = 0; i < m_parts.size(); ++i)
      b.copy(rank, m_addresses[i], {space::send, m_parts[i].first},
             m_parts[i].second - m_parts[i].first);
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> m_parts;
  std::vector<address> m_addresses;
};

constexpr std::uint64_t staged_flag = 0, packed_flag = 1, landed_flag = 2;

class node_shot_maker {
 public:
  node_shot_maker(builder& b, const std::vector<int>& node_of, int leaders)
      : m_builder(b),
        m_node_of(node_of.size()),
        m_nodes(members_of(node_of)),
        m_owners_send(leaders != 1),
        m_reduces(sucl::reduces(b.what().kind) || b.what().kind == kind::group),
        m_staged(node_of.size()),
        m_results(node_of.size()),
        m_sends(node_of.size()),
        m_receives(node_of.size()) {
    std::size_t least = m_nodes[0].size();
    for (std::size_t n = 0; n < m_nodes.size(); ++n) {
      for (const int r : m_nodes[n]) m_node_of[at(r)] = static_cast<int>(n);
      least = std::min(least, m_nodes[n].size());
    }
    m_leaders = static_cast<int>(least);
    if (leaders > 0) m_leaders = std::min(m_leaders, leaders);
    // The root is the first leader of its node: nothing goes a way round.
    if (rooted(b.what().kind))
      for (auto& n : m_nodes) {
        const auto root = std::find(n.begin(), n.end(), b.what().root);
        if (root != n.end()) std::rotate(n.begin(), root, root + 1);
      }
  }

  void make() {
    for (int r = 0; r < ranks(); ++r) collect(r);
    note_readers();
    address_messages();
    settle();
    for (int r = 0; r < ranks(); ++r) write(r);
  }

 private:
  using node_list = std::vector<std::vector<int>>;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int ranks() const { return static_cast<int>(m_node_of.size()); }
  int node(int rank) const { return m_node_of[at(rank)]; }

  struct message {
    int from, to;
    std::vector<std::size_t> landings;
    std::vector<std::size_t> values;
    std::uint64_t bytes = 0;
    address src, dst;
    bool direct = false;  // straight from the sender's input
  };

  // ---- which rank needs which value

  void collect(int r) {
    for_each_outcome(m_builder.what(), r, [&](const piece& p) {
      std::vector<source> terms;
      for (const term& t : p.terms)
        for (int k = 0; k < t.count; ++k) terms.emplace_back(t.first + k, t.source);
      if (terms.size() == 1) return add(r, p.offset, p.bytes, 0, terms);
      // Each leader has a part of what is reduced.
      const ends cuts = cut_evenly(p.bytes, m_builder.element(), m_leaders);
      for (int j = 0; j < m_leaders; ++j) {
        auto part = terms;
        for (source& s : part) s.second += cuts[at(j)];
        const std::uint64_t bytes = cuts[at(j) + 1] - cuts[at(j)];
        if (bytes > 0) add(r, p.offset + cuts[at(j)], bytes, j, part);
      }
    });
  }

  void add(int r, std::uint64_t offset, std::uint64_t bytes, int leader,
           const std::vector<source>& terms) {
    result out{offset, bytes, {}};
    for (int n = 0; n < static_cast<int>(m_nodes.size()); ++n) {
      std::vector<source> here;
      for (const source& s : terms)
        if (node(s.first) == n) here.push_back(s);
      if (here.empty()) continue;
      if (n == node(r) && here.size() < terms.size()) {
        // Others may need the same: then all combine the same values in the same order.
        out.shares.push_back({share::type::own, {}, value_of(n, bytes, leader, here)});
      } else if (n == node(r)) {
        for (const source& s : here) out.shares.push_back({share::type::input, s, 0});
      } else {
        out.shares.push_back(
            {share::type::landed, {}, landing_of(r, value_of(n, bytes, leader, here), leader)});
      }
    }
    m_results[at(r)].push_back(std::move(out));
  }

  std::size_t value_of(int n, std::uint64_t bytes, int leader, const std::vector<source>& terms) {
    const auto [known, made] = m_value_of.try_emplace({n, bytes, terms}, m_values.size());
    if (!made) return known->second;
    value v{n, m_nodes[at(n)][at(leader)], bytes, terms, {}};
    if (terms.size() == 1 && m_owners_send) v.from = terms[0].first;
    m_values.push_back(std::move(v));
    m_is_sent.push_back(false);
    return known->second;
  }

  std::size_t landing_of(int r, std::size_t v, int leader) {
    const auto [known, made] = m_landing_of.try_emplace({v, node(r)}, m_landings.size());
    if (made) {
      m_landings.push_back({v, 0, {}, {}, {}});
      m_is_sent[v] = true;
      m_leader_of.push_back(leader);
    }
    auto& readers = m_landings[known->second].readers;
    if (readers.empty() || readers.back() != r) readers.push_back(r);
    return known->second;
  }

  // Where each value lands. What is only moved goes to the one that needs it, or is spread over the
  // node by where it comes from; what is reduced goes from leader to leader.
  void address_messages() {
    std::map<std::pair<int, int>, std::size_t> known;
    for (std::size_t i = 0; i < m_landings.size(); ++i) {
      landing& l = m_landings[i];
      const value& v = m_values[l.what];
      const auto& there = m_nodes[at(node(l.readers[0]))];
      l.to = there[at(m_leader_of[i])];
      if (v.terms.size() == 1 && m_owners_send) {
        const auto& node_ranks = m_nodes[at(v.node)];
        const auto index_in_node =
            std::find(node_ranks.begin(), node_ranks.end(), v.from) - node_ranks.begin();
        l.to = l.readers.size() == 1
                   ? l.readers[0]
                   : there[static_cast<std::size_t>(index_in_node) % there.size()];
      }
      const auto [m, made] = known.try_emplace({v.from, l.to}, m_messages.size());
      if (made) m_messages.push_back({v.from, l.to, {}, {}, 0, {}, {}, false});
      message& all = m_messages[m->second];
      all.landings.push_back(i);
      all.values.push_back(l.what);
      all.bytes += v.bytes;
    }
  }

  // ---- what each rank reads within its node

  // What is reduced is read where it is staged, the own input too: in place it lies in the result.
  bool reads_staged(int reader, int from, bool alone) const {
    return reader != from || (m_reduces && !alone);
  }

  void read_input(int reader, const source& s, std::uint64_t bytes, bool alone) {
    if (!reads_staged(reader, s.first, alone)) return;
    m_staged[at(s.first)].need(s.second, bytes);
    if (reader != s.first) m_staged_readers[{s.first, reader}] = true;
  }

  void note_readers() {
    for (int r = 0; r < ranks(); ++r) {
      for (result& out : m_results[at(r)]) {
        std::vector<share> kept;
        for (const share& s : out.shares) {
          // A value of the own node that no other rank needs is not packed.
          if (s.what == share::type::own && !m_is_sent[s.index]) {
            for (const source& t : m_values[s.index].terms)
              kept.push_back({share::type::input, t, 0});
          } else {
            kept.push_back(s);
          }
        }
        out.shares = std::move(kept);
        for (const share& s : out.shares) {
          if (s.what == share::type::input)
            read_input(r, s.from, out.bytes, out.shares.size() == 1);
          if (s.what == share::type::own && m_values[s.index].from != r)
            m_packed_readers[{m_values[s.index].from, r}] = true;
        }
      }
    }
  }

  // ---- where everything lies

  bool lands_directly() const {
    const kind k = m_builder.what().kind;
    return !m_reduces && k != kind::alltoall && k != kind::alltoallv;
  }

  // The address in recv to which a message may go, because its one value is copied there and
  // nowhere else.
  std::optional<address> only_address(const message& m) const {
    const landing& l = m_landings[m.landings[0]];
    if (!lands_directly() || m.landings.size() > 1 || l.readers.size() > 1 || l.readers[0] != m.to)
      return {};
    std::optional<address> found;
    for (const result& out : m_results[at(m.to)]) {
      const share& s = out.shares[0];
      if (s.what != share::type::landed || s.index != m.landings[0]) continue;
      if (found) return {};
      found = address{space::recv, out.offset};
    }
    return found;
  }

  // The address in the sender's input where the one value of a message lies.
  std::optional<address> direct_source(const message& m) const {
    const value& v = m_values[m.values[0]];
    if (m_reduces || m.values.size() > 1 || v.terms.size() > 1 || v.terms[0].first != m.from)
      return {};
    return address{space::send, v.terms[0].second};
  }

  void settle() {
    std::map<std::pair<int, std::vector<std::size_t>>, address> packs;
    for (message& m : m_messages) {
      const auto direct = direct_source(m);
      m.direct = direct.has_value();
      if (direct) {
        m.src = *direct;
      } else if (const auto same = packs.find({m.from, m.values}); same != packs.end()) {
        m.src = same->second;
      } else {
        m.src = m_builder.scratch(m.from, m.bytes);
        packs.emplace(std::pair(m.from, m.values), m.src);
        pack(m);
      }
      m_sends[at(m.from)].push_back(&m);
      m_receives[at(m.to)].push_back(&m);
      choose_addresses(m);
    }
    for (int r = 0; r < ranks(); ++r) m_staged[at(r)].settle(m_builder, r);
  }

  void pack(const message& m) {
    std::uint64_t offset = 0;
    for (const std::size_t i : m.values) {
      value& v = m_values[i];
      const address to = m.src + offset;
      offset += v.bytes;
      m_packs[m.from].push_back({i, to});
      if (!v.packed) v.packed = to;
      for (const source& s : v.terms) read_input(m.from, s, v.bytes, v.terms.size() == 1);
    }
  }

  void choose_addresses(message& m) {
    const auto only = only_address(m);
    m.dst = only ? *only : m_builder.scratch(m.to, m.bytes);
    std::uint64_t offset = 0;
    for (const std::size_t i : m.landings) {
      landing& l = m_landings[i];
      l.at = m.dst + offset;
      offset += m_values[l.what].bytes;
      if (only) l.only = l.at;
      for (const int reader : l.readers)
        if (reader != l.to) m_landed_readers[{l.to, reader}] = true;
    }
  }

  // ---- the programs

  using readers = std::map<std::pair<int, int>, bool>;

  void signal_readers(int r, const readers& list, std::uint64_t flag) {
    for (auto i = list.lower_bound({r, 0}); i != list.end() && i->first.first == r; ++i)
      m_builder.signal(r, i->first.second, flag);
  }

  // Waits once for each rank and flag.
  void wait_once(int r, int from, std::uint64_t flag) {
    if (from != r && m_waited.insert({from, flag}).second) m_builder.wait(r, from, flag);
  }

  address input_of(int r, const source& s, bool alone) {
    if (!reads_staged(r, s.first, alone)) return {space::send, s.second};
    const address p = m_staged[at(s.first)].of(s.second);
    return s.first == r ? p : remote(p);
  }

  // to = the first of these, or to = to op it.
  void take(int r, address to, address from, std::uint64_t bytes, int owner, bool first) {
    const int peer = is_remote(from.where) ? owner : -1;
    if (first)
      m_builder.copy(r, to, from, bytes, peer);
    else
      m_builder.reduce(r, to, from, bytes, peer);
  }

  void write(int r) {
    m_waited.clear();
    for (const message* m : m_receives[at(r)]) m_builder.receive(r, m->from, m->dst, m->bytes);
    m_staged[at(r)].copy(m_builder, r);
    signal_readers(r, m_staged_readers, staged_flag);
    write_packs(r);
    bool sends_input = false;
    for (const message* m : m_sends[at(r)]) {
      m_builder.send(r, m->to, m->src, m->bytes);
      sends_input |= m->direct;
    }
    signal_readers(r, m_packed_readers, packed_flag);
    // In place what is being sent must not be overwritten.
    if (!sends_input) write_results(r, false);
    m_builder.fence(r);
    signal_readers(r, m_landed_readers, landed_flag);
    if (sends_input) write_results(r, false);
    write_results(r, true);
  }

  void write_packs(int r) {
    const auto packs = m_packs.find(r);
    if (packs == m_packs.end()) return;
    for (const auto& [index, to] : packs->second) {
      const value& v = m_values[index];
      for (const source& s : v.terms) wait_once(r, s.first, staged_flag);
      for (const source& s : v.terms)
        take(r, to, input_of(r, s, v.terms.size() == 1), v.bytes, s.first, &s == &v.terms[0]);
    }
  }

  void write_results(int r, bool of_others) {
    for (const result& out : m_results[at(r)])
      if (out.needs_others() == of_others) write_result(r, out);
  }

  void write_result(int r, const result& out) {
    const bool alone = out.shares.size() == 1;
    for (const share& s : out.shares) {
      if (s.what == share::type::input && reads_staged(r, s.from.first, alone))
        wait_once(r, s.from.first, staged_flag);
      if (s.what == share::type::own) wait_once(r, m_values[s.index].from, packed_flag);
      if (s.what == share::type::landed) wait_once(r, m_landings[s.index].to, landed_flag);
    }
    bool first = true;
    for (const share& s : out.shares) {
      address from;
      int owner = r;
      if (s.what == share::type::input) {
        from = input_of(r, s.from, alone);
        owner = s.from.first;
      } else if (s.what == share::type::own) {
        owner = m_values[s.index].from;
        from = owner == r ? *m_values[s.index].packed : remote(*m_values[s.index].packed);
      } else {
        const landing& l = m_landings[s.index];
        owner = l.to;
        from = owner == r ? l.at : remote(l.at);
        if (l.only) return;  // it is there
      }
      take(r, {space::recv, out.offset}, from, out.bytes, owner, first);
      first = false;
    }
  }

  builder& m_builder;
  std::vector<int> m_node_of;  // index into m_nodes
  node_list m_nodes;           // members, the first leader first
  bool m_owners_send;
  bool m_reduces;
  int m_leaders = 1;
  std::vector<value> m_values;
  std::vector<bool> m_is_sent;  // by value
  std::vector<landing> m_landings;
  std::vector<int> m_leader_of;  // by landing
  std::map<std::tuple<int, std::uint64_t, std::vector<source>>, std::size_t> m_value_of;
  std::map<std::pair<std::size_t, int>, std::size_t> m_landing_of;
  std::vector<message> m_messages;
  std::vector<staged_parts> m_staged;
  std::vector<std::vector<result>> m_results;
  std::vector<std::vector<const message*>> m_sends, m_receives;
  std::map<int, std::vector<std::pair<std::size_t, address>>>
      m_packs;                                                   // by rank: value and address
  readers m_staged_readers, m_packed_readers, m_landed_readers;  // {owner, reader}
  std::set<std::pair<int, std::uint64_t>> m_waited;
};

}  // namespace

std::vector<std::vector<int>> members_of(const std::vector<int>& node_of) {
  std::vector<std::vector<int>> nodes;
  std::map<int, std::size_t> known;
  for (int r = 0; r < static_cast<int>(node_of.size()); ++r) {
    const auto [n, made] = known.try_emplace(node_of[static_cast<std::size_t>(r)], nodes.size());
    if (made) nodes.emplace_back();
    nodes[n->second].push_back(r);
  }
  return nodes;
}

void build_node_shot(builder& b, const recipe& r) { node_shot_maker(b, r.nodes, r.leaders).make(); }

}  // namespace sucl::plan
