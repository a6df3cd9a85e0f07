// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/compose/composition.hpp"

#include "base/error.hpp"
#include "plan/symbolic/symbolic.hpp"

#include <algorithm>
#include <numeric>

namespace sucl::plan {
namespace {

using type = primitive::type;

std::string to_text(address p) {
  return std::string(name(p.where)) + "+" + std::to_string(p.offset);
}

std::uint64_t size_of_space(const composition& c, int rank, space s) {
  if (s == space::send) return send_bytes(c.what, rank);
  if (s == space::recv) return recv_bytes(c.what, rank);
  return rank < static_cast<int>(c.scratch.size()) ? c.scratch[static_cast<std::size_t>(rank)] : 0;
}

void check_ranks(const composition& c, const primitive& p) {
  const auto bad = [&](int r) { return r < 0 || r >= c.what.ranks; };
  std::vector<int> ranks;
  for (const endpoint& l : p.leaves) ranks.push_back(l.rank);
  std::sort(ranks.begin(), ranks.end());
  const bool twice = std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end();
  if (bad(p.root.rank) || ranks.empty() || bad(ranks.front()) || bad(ranks.back()) || twice)
    base::fail(errc::invalid_rank,
               to_text(p) + " names a rank that does not exist, no leaf, or a leaf twice",
               "Ranks are 0 to " + std::to_string(c.what.ranks - 1) + ".");
  if (p.bytes == 0 || p.bytes % c.what.element_bytes != 0)
    base::fail(errc::invalid_count, to_text(p) + " has a length of no or partial elements",
               "Give a positive multiple of " + std::to_string(c.what.element_bytes) + " bytes.");
}

primitive make(type what, address src, address dst, std::uint64_t bytes, int root,
               const std::vector<int>& leaves) {
  primitive p;
  p.what = what;
  p.bytes = bytes;
  p.root = {root, what == type::multicast ? src : dst};
  for (const int l : leaves) p.leaves.push_back({l, what == type::multicast ? dst : src});
  return p;
}

}  // namespace

composition composition::custom(int ranks, std::uint64_t send_elements, std::uint64_t recv_elements,
                                std::uint64_t element_bytes) {
  composition c;
  c.what.kind = kind::group;
  c.what.ranks = ranks;
  c.what.element_bytes = element_bytes;
  c.what.counts = {send_elements, recv_elements};
  c.what.outcome.resize(static_cast<std::size_t>(std::max(ranks, 0)));
  check(c.what);
  c.scratch.resize(static_cast<std::size_t>(ranks));
  return c;
}

void composition::multicast(address src, address dst, std::uint64_t bytes, int root,
                            const std::vector<int>& leaves) {
  primitive p = make(type::multicast, src, dst, bytes, root, leaves);
  check_ranks(*this, p);
  steps.back().push_back(std::move(p));
}

void composition::reduction(address src, address dst, std::uint64_t bytes,
                            const std::vector<int>& leaves, int root) {
  primitive p = make(type::reduction, src, dst, bytes, root, leaves);
  check_ranks(*this, p);
  steps.back().push_back(std::move(p));
}

void composition::fence() {
  if (!steps.back().empty()) steps.emplace_back();
}

address composition::take_scratch(int rank, std::uint64_t bytes) {
  const std::uint64_t unit = std::lcm(what.element_bytes, std::uint64_t{16});
  scratch.resize(static_cast<std::size_t>(what.ranks));
  std::uint64_t& top = scratch[static_cast<std::size_t>(rank)];
  const address p{space::scratch, top};
  top += (bytes + unit - 1) / unit * unit;
  return p;
}

std::vector<int> all_ranks(const problem& p) {
  std::vector<int> list(static_cast<std::size_t>(p.ranks));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

std::vector<int> all_but(const problem& p, int rank) {
  std::vector<int> list = all_ranks(p);
  list.erase(list.begin() + rank);
  return list;
}

namespace {

struct touch {
  std::uint64_t begin, end;
  bool write;
  std::uint32_t primitive_index;  // primitive of the step
};

// What the primitives of a step touch, by rank and space.
using touches = std::vector<std::vector<touch>>;

void add_touch(const composition& c, touches& all, const primitive& p, const endpoint& e,
               bool write, std::uint32_t primitive_index) {
  const std::uint64_t size = size_of_space(c, e.rank, e.at.where);
  if (e.at.where == space::none || is_remote(e.at.where) || p.bytes > size ||
      e.at.offset > size - p.bytes || (write && e.at.where == space::send))
    base::fail(errc::invalid_count,
               to_text(p) + " goes beyond " + name(e.at.where) + " of rank " +
                   std::to_string(e.rank) + ", which has " + std::to_string(size) + " bytes" +
                   (write && e.at.where == space::send ? " and is only read" : ""),
               "Give addresses inside the spaces; results go to recv or scratch.");
  all[static_cast<std::size_t>(e.rank) * 3 + static_cast<std::size_t>(e.at.where) - 1].push_back(
      {e.at.offset, e.at.offset + p.bytes, write, primitive_index});
}

// The first conflict among touches sorted by begin, if there is one.
bool conflict(std::vector<touch>& list, touch& a, touch& b) {
  std::sort(list.begin(), list.end(), [](const touch& x, const touch& y) {
    return x.begin != y.begin ? x.begin < y.begin : x.primitive_index < y.primitive_index;
  });
  // The write and the read that reach farthest of those that began earlier, and the farthest of
  // another primitive than that one.
  const touch* far[2][2] = {{nullptr, nullptr}, {nullptr, nullptr}};
  for (const touch& t : list) {
    for (int write = t.write ? 0 : 1; write < 2; ++write) {
      for (const touch* f : far[write]) {
        if (!f || f->primitive_index == t.primitive_index || f->end <= t.begin) continue;
        a = *f;
        b = t;
        return true;
      }
    }
    auto& mine = far[t.write ? 1 : 0];
    if (!mine[0] || t.end > mine[0]->end) {
      if (mine[0] && mine[0]->primitive_index != t.primitive_index) mine[1] = mine[0];
      mine[0] = &t;
    } else if (t.primitive_index != mine[0]->primitive_index &&
               (!mine[1] || t.end > mine[1]->end)) {
      mine[1] = &t;
    }
  }
  return false;
}

}  // namespace

void check_races(const composition& c) {
  for (std::size_t s = 0; s < c.steps.size(); ++s) {
    touches all(static_cast<std::size_t>(c.what.ranks) * 3);
    for (std::uint32_t k = 0; k < c.steps[s].size(); ++k) {
      const primitive& p = c.steps[s][k];
      add_touch(c, all, p, p.root, p.what == type::reduction, k);
      for (const endpoint& l : p.leaves) add_touch(c, all, p, l, p.what == type::multicast, k);
    }
    for (std::size_t m = 0; m < all.size(); ++m) {
      touch a{}, b{};
      if (!conflict(all[m], a, b)) continue;
      const std::uint64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
      const auto describe = [&](const touch& t) {
        return std::string("primitive ") + std::to_string(t.primitive_index) + " (" +
               to_text(c.steps[s][t.primitive_index]) + (t.write ? ") writes" : ") reads");
      };
      base::fail(errc::invalid_argument,
                 "a race in step " + std::to_string(s) + ": " + describe(a) + " and " +
                     describe(b) + " " + name(static_cast<space>(m % 3 + 1)) + " bytes " +
                     std::to_string(begin) + " to " + std::to_string(end - 1) + " of rank " +
                     std::to_string(m / 3),
                 "Put a fence between the two, or let them touch different bytes.");
    }
  }
}

namespace {

// Executes a composition on symbolic values, step by step, to see what recv holds in the end.
class executor {
 public:
  explicit executor(const composition& c)
      : m_composition(c),
        m_values(c.what.ranks, c.what.order, fold_rules::of(c.what.element_bytes), m_cost) {
    const int ranks = c.what.ranks;
    m_memories.resize(static_cast<std::size_t>(ranks) * 3);
    for (int r = 0; r < ranks; ++r) {
      for (const space s : {space::send, space::recv, space::scratch})
        at(r, s).reset(size_of_space(c, r, s), {}, m_cost);
      const extent in = input_extent(c.what, r);
      if (in.bytes == 0) continue;
      memory& m = at(r, c.what.in_place ? space::recv : space::send);
      m[m.cut(in.offset, in.bytes, m_lists)].value =
          m_values.input_of(r, -static_cast<std::int64_t>(in.offset));
    }
  }

  void run(const step& s) {
    struct write {
      endpoint to;
      std::uint64_t bytes;
      std::vector<segment> run;
    };
    std::vector<write> writes;
    for (const primitive& p : s) {
      if (p.what == type::multicast) {
        for (const endpoint& l : p.leaves) writes.push_back({l, p.bytes, read(p, p.root, l)});
      } else {
        std::vector<segment> sum = read(p, p.leaves[0], p.root);
        for (std::size_t l = 1; l < p.leaves.size(); ++l)
          sum = add(p, sum, read(p, p.leaves[l], p.root));
        writes.push_back({p.root, p.bytes, std::move(sum)});
      }
    }
    for (const write& w : writes) {
      memory& m = at(w.to.rank, w.to.at.where);
      m.replace(m.cut(w.to.at.offset, w.bytes, m_lists), w.bytes, w.run);
    }
  }

  std::vector<piece> result(int rank) {
    std::vector<piece> pieces;
    const memory& m = at(rank, space::recv);
    for (auto k = m.find(0); !m.past(k, m.bytes()); m.next(k)) {
      const segment& g = m[k];
      if (g.value.id == 0) continue;
      piece part{g.begin, m.end_of(k) - g.begin, {}};
      for (const share& s : m_values.shares(g.value.id))
        part.terms.push_back({s.first, s.count,
                              static_cast<std::uint64_t>(static_cast<std::int64_t>(g.begin) +
                                                         g.value.shift + s.shift)});
      pieces.push_back(std::move(part));
    }
    return pieces;
  }

 private:
  memory& at(int rank, space s) {
    return m_memories[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(s) - 1];
  }

  std::vector<segment> read(const primitive& p, const endpoint& from, const endpoint& to) {
    std::vector<segment> run;
    const memory& m = at(from.rank, from.at.where);
    const std::uint64_t end = from.at.offset + p.bytes;
    for (auto k = m.find(from.at.offset); !m.past(k, end); m.next(k)) {
      if (m[k].value.id == 0)
        base::fail(errc::invalid_argument,
                   to_text(p) + " reads " + name(from.at.where) + " of rank " +
                       std::to_string(from.rank) + " where nothing was written",
                   "Write it in an earlier step.");
      segment g;
      g.begin = std::max(m[k].begin, from.at.offset) - from.at.offset + to.at.offset;
      g.value = {m[k].value.id,
                 m[k].value.shift + static_cast<std::int64_t>(from.at.offset - to.at.offset)};
      run.push_back(g);
    }
    return run;
  }

  std::vector<segment> add(const primitive& p, const std::vector<segment>& a,
                           const std::vector<segment>& b) {
    std::vector<segment> sum;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
      segment g;
      g.begin = std::max(a[i].begin, b[j].begin);
      if (m_values.combine(a[i].value, b[j].value, false, g.value) != value_table::outcome::good)
        base::fail(errc::invalid_argument,
                   to_text(p) + " reduces a contribution twice or out of order",
                   "Name every leaf's data once, in order of rank where the plan is ranked.");
      sum.push_back(g);
      const std::uint64_t none = ~std::uint64_t{0};
      const std::uint64_t end_a = i + 1 < a.size() ? a[i + 1].begin : none;
      const std::uint64_t end_b = j + 1 < b.size() ? b[j + 1].begin : none;
      if (end_a <= end_b) ++i;
      if (end_b <= end_a) ++j;
    }
    return sum;
  }

  const composition& m_composition;
  proof_cost m_cost{proof_limits{}};
  value_table m_values;
  std::vector<memory> m_memories;
  std::vector<std::vector<access>> m_lists;
};

}  // namespace

composition derive_outcome(composition c) {
  check_races(c);
  executor e(c);
  for (const step& s : c.steps) e.run(s);
  c.what.outcome.assign(static_cast<std::size_t>(c.what.ranks), {});
  for (int r = 0; r < c.what.ranks; ++r) c.what.outcome[static_cast<std::size_t>(r)] = e.result(r);
  c.in_order = c.what.order != ordering::free && reduces_repeatedly(c);
  return c;
}

bool reduces_repeatedly(const composition& c) {
  struct reduced {
    int rank;  // the lowest leaf
    space where;
    std::uint64_t begin, end;
    auto operator<=>(const reduced&) const = default;
  };
  std::vector<reduced> all;
  for (const step& s : c.steps)
    for (const primitive& p : s) {
      if (p.what != type::reduction || p.leaves.size() < 3) continue;
      const auto low =
          std::min_element(p.leaves.begin(), p.leaves.end(),
                           [](const endpoint& a, const endpoint& b) { return a.rank < b.rank; });
      all.push_back({low->rank, low->at.where, low->at.offset, low->at.offset + p.bytes});
    }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].rank == all[i - 1].rank && all[i].where == all[i - 1].where &&
        all[i].begin < all[i - 1].end)
      return true;
  return false;
}

std::string to_text(const primitive& p) {
  const bool cast = p.what == type::multicast;
  std::string text = cast ? "multicast " : "reduction ";
  const auto end = [](const endpoint& e) { return std::to_string(e.rank) + ":" + to_text(e.at); };
  std::string leaves;
  for (const endpoint& l : p.leaves) {
    if (!leaves.empty()) leaves += ' ';
    leaves += end(l);
  }
  text += cast ? end(p.root) + " -> " + leaves : leaves + " -> " + end(p.root);
  text += ", " + std::to_string(p.bytes) + " bytes";
  if (p.channel != 0) text += ", channel " + std::to_string(p.channel);
  if (p.level != 0) text += " @" + std::to_string(p.level);
  return text;
}

std::string to_text(const composition& c) {
  std::string text;
  for (std::size_t s = 0; s < c.steps.size(); ++s) {
    if (s > 0) text += "fence\n";
    for (const primitive& p : c.steps[s]) text += to_text(p) + "\n";
  }
  return text;
}

}  // namespace sucl::plan
