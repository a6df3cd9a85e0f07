// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "flow.hpp"

#include <algorithm>

namespace sucl::conformance {
namespace {

using std::size_t;

// Blocks of kinds with a count for each rank: some empty, none alike, laid out from the last rank
// to the first with gaps between them.
struct blocks {
  std::vector<size_t> counts, displs;
  size_t end = 0;
};

size_t count_for(const shape& s, int a) {
  if (s.irregular != 0) {
    const auto drawn = reference::mix(s.irregular, static_cast<std::uint64_t>(a));
    return drawn % 4 == 0 ? 0 : (drawn >> 8) % (2 * s.count + 1);
  }
  return s.count == 0 || a % 3 == 1 ? 0 : s.count + static_cast<size_t>(a);
}

template <class Count>
blocks spread(int ranks, Count&& count) {
  blocks b;
  b.counts.resize(static_cast<size_t>(ranks));
  b.displs.resize(static_cast<size_t>(ranks));
  size_t at = 1;
  for (int r = ranks - 1; r >= 0; --r) {
    b.counts[static_cast<size_t>(r)] = count(r);
    b.displs[static_cast<size_t>(r)] = at;
    at += b.counts[static_cast<size_t>(r)] + 2;
  }
  b.end = at;
  return b;
}

// The same keys on both sides of a pair.
std::uint64_t pair_key(int to) { return static_cast<std::uint64_t>(to) * 1000003; }

class maker {
 public:
  maker(const shape& s, int rank, int ranks)
      : m_shape(s),
        m_rank(rank),
        m_ranks(ranks),
        m_root(s.root),
        m_n(s.count),
        m_p(static_cast<size_t>(ranks)),
        m_me(static_cast<size_t>(rank)) {}

  flow make() {
    switch (m_shape.kind) {
      case kind::barrier: break;
      case kind::broadcast: broadcast(); break;
      case kind::reduce:
      case kind::allreduce:
      case kind::scan:
      case kind::exscan: reduce(); break;
      case kind::reduce_scatter:
      case kind::reduce_scatter_block: reduce_scatter(); break;
      case kind::allgather:
      case kind::gather: gather(); break;
      case kind::allgatherv:
      case kind::gatherv: gatherv(); break;
      case kind::alltoall: alltoall(); break;
      case kind::alltoallv: alltoallv(); break;
      case kind::scatter: scatter(); break;
      case kind::scatterv: scatterv(); break;
      case kind::group: m_shape.everybody ? everybody() : neighbours(); break;
      default: neighbours(); break;
    }
    return std::move(m_flow);
  }

 private:
  bool at_root() const { return m_rank == m_root; }
  bool in_place() const { return m_shape.in_place; }

  // In place, what is given lies in the receive memory.
  void sizes(size_t send, size_t recv) {
    m_flow.send_size = in_place() ? 0 : send;
    m_flow.recv_size = in_place() ? std::max(send, recv) : recv;
  }
  void give(size_t at, size_t count, std::uint64_t key) { m_flow.in.push_back({at, count, key}); }
  void get(size_t at, size_t count, int from, std::uint64_t key) {
    m_flow.out.push_back({at, count, from, from, key});
  }

  void broadcast() {
    sizes(0, m_n);
    if (at_root()) give(0, m_n, 0);
    if (!at_root()) get(0, m_n, m_root, 0);
  }

  void reduce() {
    const kind k = m_shape.kind;
    const bool gets = k == kind::exscan ? m_rank > 0 : k != kind::reduce || at_root();
    const int last = k == kind::scan ? m_rank : k == kind::exscan ? m_rank - 1 : m_ranks - 1;
    sizes(m_n, m_n);
    give(0, m_n, 0);
    if (gets) m_flow.out.push_back({0, m_n, 0, last, 0});
  }

  void reduce_scatter() {
    std::vector<size_t> counts(m_p, m_n);
    if (m_shape.kind == kind::reduce_scatter)
      for (int r = 0; r < m_ranks; ++r) counts[static_cast<size_t>(r)] = count_for(m_shape, r);
    size_t total = 0, start = 0;
    for (size_t r = 0; r < m_p; ++r) {
      if (r == m_me) start = total;
      total += counts[r];
    }
    sizes(total, counts[m_me]);
    give(0, total, 0);
    m_flow.out.push_back({0, counts[m_me], 0, m_ranks - 1, start});
    if (in_place()) m_flow.scrap = counts[m_me];
    if (m_shape.kind == kind::reduce_scatter) m_flow.recv_counts = counts;
  }

  void gather() {
    const bool gets = m_shape.kind == kind::allgather || at_root();
    sizes(m_n, gets ? m_p * m_n : 0);
    give(in_place() && gets ? m_me * m_n : 0, m_n, 0);
    for (int r = 0; gets && r < m_ranks; ++r) get(static_cast<size_t>(r) * m_n, m_n, r, 0);
  }

  void gatherv() {
    const blocks b = spread(m_ranks, [&](int r) { return count_for(m_shape, r); });
    const bool gets = m_shape.kind == kind::allgatherv || at_root();
    sizes(b.counts[m_me], gets ? b.end : 0);
    give(in_place() ? b.displs[m_me] : 0, b.counts[m_me], 0);
    if (!gets) return;
    for (size_t r = 0; r < m_p; ++r) get(b.displs[r], b.counts[r], static_cast<int>(r), 0);
    m_flow.recv_counts = b.counts;
    m_flow.recv_displs = b.displs;
  }

  void alltoall() {
    sizes(m_p * m_n, m_p * m_n);
    give(0, m_p * m_n, 0);
    for (int r = 0; r < m_ranks; ++r) get(static_cast<size_t>(r) * m_n, m_n, r, m_me * m_n);
  }

  // What a sends to b; in place as much as b sends to a.
  size_t between(int a, int b) const { return count_for(m_shape, in_place() ? a + b : 2 * a + b); }

  void alltoallv() {
    const blocks out = spread(m_ranks, [&](int r) { return between(m_rank, r); });
    const blocks in = spread(m_ranks, [&](int r) { return between(r, m_rank); });
    sizes(out.end, in.end);
    for (size_t r = 0; r < m_p; ++r) {
      give(out.displs[r], out.counts[r], pair_key(static_cast<int>(r)));
      get(in.displs[r], in.counts[r], static_cast<int>(r), pair_key(m_rank));
    }
    m_flow.send_counts = out.counts;
    m_flow.send_displs = out.displs;
    m_flow.recv_counts = in.counts;
    m_flow.recv_displs = in.displs;
  }

  void scatter() {
    sizes(at_root() ? m_p * m_n : 0, m_n);
    if (at_root()) give(0, m_p * m_n, 0);
    if (!(at_root() && in_place())) get(0, m_n, m_root, m_me * m_n);
  }

  void scatterv() {
    const blocks b = spread(m_ranks, [&](int r) { return count_for(m_shape, r); });
    sizes(at_root() ? b.end : 0, b.counts[m_me]);
    get(0, b.counts[m_me], m_root, pair_key(m_rank));
    if (!at_root()) return;
    for (size_t r = 0; r < m_p; ++r) give(b.displs[r], b.counts[r], pair_key(static_cast<int>(r)));
    m_flow.send_counts = b.counts;
    m_flow.send_displs = b.displs;
  }

  // To the next rank, from the one before; each sends another count.
  void neighbours() {
    const int to = (m_rank + 1) % m_ranks;
    const int from = (m_rank + m_ranks - 1) % m_ranks;
    const size_t sent = m_n == 0 ? 0 : m_n + m_me;
    const size_t received = m_n == 0 ? 0 : m_n + static_cast<size_t>(from);
    sizes(sent, received);
    give(0, sent, 0);
    get(0, received, from, 0);
    m_flow.sends = {{to, 0, sent}};
    m_flow.recvs = {{from, 0, received}};
  }

  // A message from everybody to everybody, oneself too.
  void everybody() {
    const blocks out = spread(m_ranks, [&](int r) { return between(m_rank, r); });
    const blocks in = spread(m_ranks, [&](int r) { return between(r, m_rank); });
    sizes(out.end, in.end);
    for (size_t r = 0; r < m_p; ++r) {
      const int peer = static_cast<int>(r);
      give(out.displs[r], out.counts[r], pair_key(peer));
      get(in.displs[r], in.counts[r], peer, pair_key(m_rank));
      m_flow.sends.push_back({peer, out.displs[r], out.counts[r]});
      m_flow.recvs.push_back({peer, in.displs[r], in.counts[r]});
    }
  }

  const shape& m_shape;
  int m_rank, m_ranks, m_root;
  size_t m_n, m_p, m_me;
  flow m_flow;
};

std::byte filling(size_t i) { return static_cast<std::byte>(0x5b + 31 * (i % 251)); }

}  // namespace

shape shape_of(const test_case& c, int ranks) {
  return {c.kind(),
          c.count(),
          c.root(ranks),
          c.in_place(),
          c.kind() == kind::group && c.at[f_memory] < buffer_1d,
          0};
}

flow flow_of(const shape& s, int rank, int ranks) { return maker(s, rank, ranks).make(); }

size_t layout::place(size_t element) const {
  const size_t depth = std::max<size_t>(1, range[2]);  // the start of nothing is a place too
  const size_t height = std::max<size_t>(1, range[1]);
  const size_t z = element % depth;
  const size_t y = element / depth % height;
  const size_t x = element / depth / height;
  return ((offset[0] + x) * extent[1] + offset[1] + y) * extent[2] + offset[2] + z;
}

layout layout_of(memory m, size_t elements) {
  layout l;
  l.dimensions = m >= buffer_1d && m <= buffer_3d ? m - buffer_1d + 1 : 0;
  // The last dimension gets the largest small divisor, the one before it the next.
  size_t rest = elements;
  for (int d = 2; d > 3 - std::max(1, l.dimensions); --d) {
    for (size_t divisor = 16; divisor > 0 && rest > 0; --divisor)
      if (rest % divisor == 0) {
        l.range[d] = divisor;
        rest /= divisor;
        break;
      }
  }
  l.range[3 - std::max(1, l.dimensions)] = rest;
  for (int d = 3 - std::max(1, l.dimensions); d < 3; ++d) {
    l.offset[d] = static_cast<size_t>(d + 1);
    l.extent[d] = l.range[d] + l.offset[d] + 2;
  }
  return l;
}

images make_images(const test_case& c, const flow& f, int rank, int ranks) {
  images i;
  const auto e = c.element();
  const memory m = c.memory_of(rank);
  i.send_layout = layout_of(m, f.send_size);
  i.recv_layout = layout_of(m, f.recv_size);
  i.send.resize(i.send_layout.storage() * e.size);
  i.recv.resize(i.recv_layout.storage() * e.size);
  for (size_t b = 0; b < i.send.size(); ++b) i.send[b] = filling(b);
  for (size_t b = 0; b < i.recv.size(); ++b) i.recv[b] = filling(b + 7);
  std::vector<std::byte> dense;
  const auto place = [&](const layout& l, std::vector<std::byte>& to, size_t at, size_t count) {
    for (size_t n = 0; n < count; ++n)
      std::copy_n(dense.data() + n * e.size, e.size, to.data() + l.place(at + n) * e.size);
  };
  const bool inside = f.send_size == 0;
  for (const given& g : f.in) {
    dense.resize(g.count * e.size);
    reference::write_inputs(e, c.op(), {ranks, rank, g.key}, g.count, dense.data());
    place(inside ? i.recv_layout : i.send_layout, inside ? i.recv : i.send, g.at, g.count);
  }
  i.expected_recv = i.recv;
  for (const got& g : f.out) {
    dense.resize(g.count * e.size);
    if (reduces(c.kind()))
      reference::write_folds(e, c.op(), {ranks, g.first, g.key}, g.first, g.last, g.count,
                             dense.data());
    else
      reference::write_inputs(e, c.op(), {ranks, g.first, g.key}, g.count, dense.data());
    place(i.recv_layout, i.expected_recv, g.at, g.count);
  }
  return i;
}

namespace {

std::string difference(const char* side, const test_case& c, size_t at, const std::byte* is,
                       const std::byte* must) {
  const auto e = c.element();
  return std::string(side) + " memory, element " + std::to_string(at) + " of the storage: got " +
         reference::text(e, c.op(), is) + ", expected " + reference::text(e, c.op(), must);
}

}  // namespace

std::string compare(const test_case& c, const flow& f, const images& before,
                    const std::vector<std::byte>& send, const std::vector<std::byte>& recv) {
  const auto e = c.element();
  for (size_t i = 0; i < send.size(); i += e.size)
    if (!std::equal(&send[i], &send[i] + e.size, &before.send[i]))
      return difference("send", c, i / e.size, &send[i], &before.send[i]);
  if (recv == before.expected_recv) return {};
  std::vector<std::byte> wanted = before.expected_recv;
  for (size_t n = f.scrap; n < f.recv_size; ++n) {
    const size_t at = before.recv_layout.place(n) * e.size;
    std::copy_n(&recv[at], e.size, &wanted[at]);
  }
  std::vector<bool> result(recv.size() / e.size, false);
  for (const got& g : f.out)
    for (size_t n = 0; n < g.count; ++n) result[before.recv_layout.place(g.at + n)] = true;
  for (size_t i = 0; i < recv.size() / e.size; ++i) {
    const std::byte* is = &recv[i * e.size];
    const std::byte* must = &wanted[i * e.size];
    bool same = std::equal(is, is + e.size, must);
    if (!same && result[i])
      same = reference::same(e, c.op(), is, must) ||
             (c.divides_first && c.op() == op::avg && reference::a_subnormal_apart(e, is, must));
    if (!same) return difference(result[i] ? "receive" : "unused receive", c, i, is, must);
  }
  return {};
}

}  // namespace sucl::conformance
