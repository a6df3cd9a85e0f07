// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Collectives in one or two steps through memory that all ranks reach. Nothing here knows a kind of
// collective: each rank reads what its outcome is made of.
#include "plan/algorithms/collectives.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

// Parts of a rank's input, apart and in order, and where each lies in its scratch.
class staging_area {
 public:
  void need(std::uint64_t begin, std::uint64_t end) { m_parts.push_back({begin, end, 0}); }

  // Joins adjacent parts. Returns the bytes that scratch must have.
  std::uint64_t settle() {
    std::sort(m_parts.begin(), m_parts.end(),
              [](const part& a, const part& b) { return a.begin < b.begin; });
    std::vector<part> joined;
    for (const part& p : m_parts) {
      if (!joined.empty() && p.begin <= joined.back().end)
        joined.back().end = std::max(joined.back().end, p.end);
      else
        joined.push_back(p);
    }
    m_parts = std::move(joined);
    std::uint64_t at = 0;
    for (part& p : m_parts) {
      p.staged_at = at;
      at += p.end - p.begin;
    }
    return at;
  }

  // Where byte `source` of the input is staged.
  std::uint64_t offset_of(std::uint64_t source) const {
    const auto after = std::upper_bound(m_parts.begin(), m_parts.end(), source,
                                        [](std::uint64_t s, const part& p) { return s < p.begin; });
    const part& p = *std::prev(after);
    return p.staged_at + (source - p.begin);
  }

  template <class Visit>
  void each(Visit visit) const {
    for (const part& p : m_parts) visit(p.begin, p.staged_at, p.end - p.begin);
  }
  bool empty() const { return m_parts.empty(); }

 private:
  struct part {
    std::uint64_t begin, end, staged_at;
  };
  std::vector<part> m_parts;
};

class one_shot_maker {
 public:
  one_shot_maker(builder& b, access how)
      : m_builder(b),
        m_ranks(b.ranks()),
        m_staged(how == access::staged),
        m_reads(how == access::read),
        m_areas(static_cast<std::size_t>(m_ranks)),
        m_base(static_cast<std::size_t>(m_ranks)),
        m_readers(static_cast<std::size_t>(m_ranks)) {
    // With two ranks both orders of combining give the same bits.
    const problem& p = b.what();
    // The blocks of a reduce-scatter may overlap its result in place, so no rank reads its own.
    m_ordered = p.order == ordering::ranked || p.order == ordering::fixed ||
                (p.kind == kind::allreduce && m_ranks > 2) || p.kind == kind::reduce_scatter;
  }

  void make() {
    collect();
    for (int r = 0; r < m_ranks; ++r) publish(r);
    for (int r = 0; r < m_ranks; ++r) combine(r);
    if (!m_staged) release();
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  // Which blocks each rank reads, and of which rank.
  void collect() {
    for (int r = 0; r < m_ranks; ++r) {
      for_each_outcome(m_builder.what(), r, [&](const piece& p) {
        const int terms = count(p);
        for (const term& t : p.terms) {
          for (int k = 0; k < t.count; ++k) {
            const int from = t.first + k;
            if (from == r && !(m_staged && m_ordered && terms > 1)) continue;
            m_areas[at(from)].need(t.source, t.source + p.bytes);
            if (from != r) m_readers[at(from)].push_back(r);
          }
        }
      });
    }
    for (int r = 0; r < m_ranks; ++r) {
      const std::uint64_t bytes = m_areas[at(r)].settle();
      if (m_staged && bytes > 0) m_base[at(r)] = m_builder.scratch(r, bytes);
      auto& list = m_readers[at(r)];
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      // Every rank begins with the next rank, so that not all read the same memory at once.
      std::rotate(list.begin(), std::upper_bound(list.begin(), list.end(), r), list.end());
    }
  }

  static int count(const piece& p) {
    int n = 0;
    for (const term& t : p.terms) n += t.count;
    return n;
  }

  void publish(int r) {
    if (m_staged)
      m_areas[at(r)].each([&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
        m_builder.copy(r, m_base[at(r)] + to, {space::send, from}, bytes);
      });
    for (const int reader : m_readers[at(r)]) m_builder.signal(r, reader, 0);
  }

  address source(int reader, int from, std::uint64_t byte, bool combined) const {
    if (from == reader && !(m_staged && m_ordered && combined)) return {space::send, byte};
    const address p = m_staged ? m_base[at(from)] + m_areas[at(from)].offset_of(byte)
                               : address{space::send, byte};
    return from == reader ? p : remote(p);
  }

  // The ranks that a piece comes from, in the order in which `r` combines them.
  std::vector<std::pair<int, std::uint64_t>> terms_of(const piece& p, int r) const {
    std::vector<std::pair<int, std::uint64_t>> list;
    for (const term& t : p.terms)
      for (int k = 0; k < t.count; ++k) list.emplace_back(t.first + k, t.source);
    if (!m_ordered)
      std::rotate(list.begin(),
                  std::lower_bound(list.begin(), list.end(), std::pair(r, std::uint64_t{0})),
                  list.end());
    return list;
  }

  // Where what is combined can be combined from: what is only read is read whole before.
  address within_reach(int r, const address& what, int from, std::uint64_t bytes) {
    if (!m_reads || !is_remote(what.where)) return what;
    const address copied = m_builder.scratch(r, bytes);
    m_builder.copy(r, copied, what, bytes, from);
    return copied;
  }

  void combine(int r) {
    std::vector<bool> waited(at(m_ranks), false);
    std::vector<piece> pieces;
    for_each_outcome(m_builder.what(), r, [&](const piece& p) { pieces.push_back(p); });
    // What comes from this rank first, then what comes from the next one, and so on.
    const auto distance = [&](const piece& p) {
      return (p.terms[0].first - r + m_ranks) % m_ranks;
    };
    std::stable_sort(pieces.begin(), pieces.end(),
                     [&](const piece& a, const piece& b) { return distance(a) < distance(b); });
    for (const piece& p : pieces) {
      const auto terms = terms_of(p, r);
      for (const auto& [from, byte] : terms) {
        if (from == r || waited[at(from)]) continue;
        m_builder.wait(r, from, 0);
        waited[at(from)] = true;
      }
      bool first = true;
      std::vector<address> sources;
      for (const auto& [from, byte] : terms) {
        const address what = source(r, from, byte, terms.size() > 1);
        sources.push_back(terms.size() > 1 ? within_reach(r, what, from, p.bytes) : what);
      }
      for (std::size_t i = 0; i < terms.size(); ++i) {
        const int from = terms[i].first;
        const address to{space::recv, p.offset};
        const address what = sources[i];
        const int peer = is_remote(what.where) ? from : -1;
        if (first)
          m_builder.copy(r, to, what, p.bytes, peer);
        else
          m_builder.reduce(r, to, what, p.bytes, peer);
        first = false;
      }
    }
  }

  // The memory belongs to the program again when no rank reads it any more.
  void release() {
    for (int from = 0; from < m_ranks; ++from)
      for (const int reader : m_readers[at(from)]) m_builder.signal(reader, from, 1);
    for (int from = 0; from < m_ranks; ++from)
      for (const int reader : m_readers[at(from)]) m_builder.wait(from, reader, 1);
  }

  builder& m_builder;
  int m_ranks;
  bool m_staged;
  bool m_reads;
  bool m_ordered;
  std::vector<staging_area> m_areas;
  std::vector<address> m_base;
  std::vector<std::vector<int>> m_readers;
};

}  // namespace

void build_one_shot(builder& b, access how) { one_shot_maker(b, how).make(); }

namespace {

// The order in which rank `r` folds a chunk: its own part first, so that not all read the same
// memory at once; in the fixed order that of ranks, but that of the first two either may come
// first.
std::vector<int> fold_order(const builder& b, int r) {
  std::vector<int> order;
  const bool fixed = b.what().order == ordering::fixed;
  for (int k = 0; k < b.ranks(); ++k) order.push_back(fixed ? k : (r + k) % b.ranks());
  if (fixed && r == 1) std::swap(order[0], order[1]);
  return order;
}

}  // namespace

// Rank r combines chunk r. `result` holds its chunk where peers find it, beside what it staged.
void build_staged_two_shot(builder& b) {
  const int ranks = b.ranks();
  const auto at = [](int r) { return static_cast<std::size_t>(r); };
  const std::uint64_t bytes = send_bytes(b.what(), 0);
  const std::vector<std::uint64_t> cuts = cut_evenly(bytes, b.element(), ranks);
  const auto size = [&](int r) { return cuts[at(r) + 1] - cuts[at(r)]; };
  std::vector<address> staged, result;
  for (int r = 0; r < ranks; ++r) {
    staged.push_back(b.scratch(r, bytes));
    result.push_back(b.scratch(r, size(r)));
  }
  for (int r = 0; r < ranks; ++r) {
    for (int k = 1; k < ranks; ++k) {
      const int q = (r + k) % ranks;
      b.copy(r, staged[at(r)] + cuts[at(q)], {space::send, cuts[at(q)]}, size(q));
      if (size(q) > 0) b.signal(r, q, 0);
    }
    if (size(r) > 0) {
      for (int k = ranks - 1; k > 0; --k) b.wait(r, (r + k) % ranks, 0);
      // Combining into memory that no other rank reads and copying that is faster than combining
      // into shared memory: copies take lines over without reading them.
      const address out{space::recv, cuts[at(r)]};
      const std::vector<int> order = fold_order(b, r);
      // In place, the own part lies where the result goes: it must come first, or be staged too.
      address own{space::send, cuts[at(r)]};
      if (order[0] != r) b.copy(r, staged[at(r)] + cuts[at(r)], own, size(r));
      if (order[0] != r) own = staged[at(r)] + cuts[at(r)];
      for (const int q : order) {
        const address part = q == r ? own : remote(staged[at(q)] + cuts[at(r)]);
        if (q == order[0])
          b.copy(r, out, part, size(r), q == r ? -1 : q);
        else
          b.reduce(r, out, part, size(r), q == r ? -1 : q);
      }
      b.copy(r, result[at(r)], out, size(r));
      for (int k = 1; k < ranks; ++k) b.signal(r, (r + k) % ranks, 1);
    }
    for (int k = 1; k < ranks; ++k) {
      const int q = (r + k) % ranks;
      if (size(q) == 0) continue;
      b.wait(r, q, 1);
      b.copy(r, {space::recv, cuts[at(q)]}, remote(result[at(q)]), size(q), q);
    }
  }
}

// The same straight from the inputs to the outputs. Only the combining goes through scratch, for
// the reason above: peers read the output.
void build_mapped_two_shot(builder& b) {
  const int ranks = b.ranks();
  const auto at = [](int r) { return static_cast<std::size_t>(r); };
  const std::vector<std::uint64_t> cuts = cut_evenly(send_bytes(b.what(), 0), b.element(), ranks);
  const auto size = [&](int r) { return cuts[at(r) + 1] - cuts[at(r)]; };
  const auto synchronise = [&](int r, std::uint64_t flag) {
    for (int k = 1; k < ranks; ++k) b.signal(r, (r + k) % ranks, flag);
    for (int k = 1; k < ranks; ++k) b.wait(r, (r + k) % ranks, flag);
  };
  for (int r = 0; r < ranks; ++r) {
    synchronise(r, 0);
    const address in{space::send, cuts[at(r)]}, out{space::recv, cuts[at(r)]};
    const address sum = b.scratch(r, size(r));
    const std::vector<int> order = fold_order(b, r);
    for (const int q : order) {
      if (q == order[0])
        b.copy(r, sum, q == r ? in : remote(in), size(r), q == r ? -1 : q);
      else
        b.reduce(r, sum, q == r ? in : remote(in), size(r), q == r ? -1 : q);
    }
    b.copy(r, out, sum, size(r));
    for (int k = 1; k < ranks; ++k) b.signal(r, (r + k) % ranks, 1);
    for (int k = 1; k < ranks; ++k) {
      const int q = (r + k) % ranks;
      const address theirs{space::recv, cuts[at(q)]};
      b.wait(r, q, 1);
      b.copy(r, theirs, remote(theirs), size(q), q);
    }
    synchronise(r, 2);
  }
}

// The same where peers' memory can only be read whole: chunks are read into scratch, combined in
// the output, and read there.
void build_read_two_shot(builder& b) {
  const int ranks = b.ranks();
  const auto at = [](int r) { return static_cast<std::size_t>(r); };
  const std::vector<std::uint64_t> cuts = cut_evenly(send_bytes(b.what(), 0), b.element(), ranks);
  const auto size = [&](int r) { return cuts[at(r) + 1] - cuts[at(r)]; };
  const auto signal_peers = [&](int r, std::uint64_t flag) {
    for (int k = 1; k < ranks; ++k) b.signal(r, (r + k) % ranks, flag);
  };
  for (int r = 0; r < ranks; ++r) {
    const address in{space::send, cuts[at(r)]}, out{space::recv, cuts[at(r)]};
    std::vector<address> parts(at(ranks), in);
    signal_peers(r, 0);
    for (int k = 1; k < ranks; ++k) {
      const int q = (r + k) % ranks;
      b.wait(r, q, 0);
      parts[at(q)] = b.scratch(r, size(r));
      b.copy(r, parts[at(q)], remote(in), size(r), q);
    }
    const std::vector<int> order = fold_order(b, r);
    if (order[0] != r) {
      parts[at(r)] = b.scratch(r, size(r));
      b.copy(r, parts[at(r)], in, size(r));
    }
    b.copy(r, out, parts[at(order[0])], size(r));
    for (std::size_t k = 1; k < order.size(); ++k) b.reduce(r, out, parts[at(order[k])], size(r));
    signal_peers(r, 1);
    for (int k = 1; k < ranks; ++k) {
      const int q = (r + k) % ranks;
      const address theirs{space::recv, cuts[at(q)]};
      b.wait(r, q, 1);
      b.copy(r, theirs, remote(theirs), size(q), q);
    }
    signal_peers(r, 2);
    for (int k = 1; k < ranks; ++k) b.wait(r, (r + k) % ranks, 2);
  }
}

}  // namespace sucl::plan
