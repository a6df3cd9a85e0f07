// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "flow.hpp"

#include "bench/reference/delivery.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sucl::conformance {
namespace {

using std::size_t;

// Blocks of kinds with a count for each rank: some empty, none alike, laid out from the last rank
// to the first with gaps between them.
struct blocks {
  std::vector<size_t> counts, displs;
};

size_t count_for(const call_spec& s, int a) {
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
  return b;
}

// What a sends to b; in place as much as b sends to a.
size_t between(const call_spec& s, int a, int b) {
  return count_for(s, s.in_place ? a + b : 2 * a + b);
}

bool among_all(const call_spec& s) {
  return s.kind == kind::alltoallv || (s.kind == kind::group && s.all_pairs);
}

// The counts of a call and where its blocks lie, of the kinds that have them.
void lay_out(flow& f, const call_spec& s, int rank, int ranks) {
  const bool root = rank == s.root;
  const auto by_rank = [&](int r) { return count_for(s, r); };
  blocks send, recv;
  if (among_all(s)) {
    send = spread(ranks, [&](int r) { return between(s, rank, r); });
    recv = spread(ranks, [&](int r) { return between(s, r, rank); });
  } else if (s.kind == kind::scatterv && root) {
    send = spread(ranks, by_rank);
  } else if (s.kind == kind::reduce_scatter || s.kind == kind::allgatherv ||
             (s.kind == kind::gatherv && root)) {
    recv = spread(ranks, by_rank);
  }
  f.send_counts = std::move(send.counts);
  f.send_displs = std::move(send.displs);
  f.recv_counts = std::move(recv.counts);
  f.recv_displs = std::move(recv.displs);
}

// Its arguments, as far as they say what is delivered.
sucl_operation operation_of(const flow& f, const call_spec& s, int rank, int ranks) {
  sucl_operation o{};
  o.kind = static_cast<sucl_kind>(s.kind);
  o.root = s.root;
  o.count = s.count;
  o.flags = s.in_place ? SUCL_FLAG_IN_PLACE : 0;
  if (s.kind == kind::gatherv || s.kind == kind::scatterv) o.count = count_for(s, rank);
  o.send_counts = f.send_counts.data();
  o.send_displs = f.send_displs.data();
  o.recv_counts = f.recv_counts.data();
  o.recv_displs = f.recv_displs.data();
  if (among_all(s)) {
    o.kind = SUCL_KIND_ALLTOALLV;  // messages from each to each deliver the same
  } else if (s.kind >= kind::send) {
    // A ring, to the next rank from the one before; each sends another count.
    o.kind = SUCL_KIND_SENDRECV;
    o.root = (rank + 1) % ranks;
    o.source = (rank + ranks - 1) % ranks;
    o.recv_count = s.count == 0 ? 0 : s.count + static_cast<size_t>(o.source);
    if (s.count != 0) o.count += static_cast<size_t>(rank);
  }
  return o;
}

// Keys of what a rank contributes: the same on both sides.
std::uint64_t key_of(size_t number, std::uint64_t offset) { return number * 1000003 + offset; }

// What memory holds before: a pattern that repeats after 251 bytes, from its byte `first` on.
std::vector<std::byte> filled(size_t bytes, size_t first) {
  constexpr size_t period = 251;
  std::vector<std::byte> result(bytes);
  const size_t made = std::min(bytes, period);
  for (size_t i = 0; i < made; ++i)
    result[i] = static_cast<std::byte>(0x5b + 31 * ((i + first) % period));
  for (size_t i = made; i < bytes; i += period)
    std::memcpy(&result[i], result.data(), std::min(period, bytes - i));
  return result;
}

}  // namespace

call_spec call_spec_of(const test_case& c, int ranks) {
  return {c.kind(),
          c.count(),
          c.root(ranks),
          c.in_place(),
          c.kind() == kind::group && c.at[f_memory] < buffer_1d,
          0};
}

flow flow_of(const call_spec& s, int rank, int ranks) {
  flow f;
  lay_out(f, s, rank, ranks);
  const sucl_operation o = operation_of(f, s, rank, ranks);
  const auto in = reference::contributed(o, rank, ranks);
  const auto out = reference::delivered(o, rank, ranks);
  for (const auto& b : in) f.in.push_back({b.at, b.count, key_of(f.in.size(), 0)});
  for (const auto& p : out)
    f.out.push_back({p.at, p.count, p.first, p.last, key_of(p.number, p.offset)});
  // In place, what is given lies in the receive memory. Of some kinds all ranks have that, whether
  // they get something or not.
  const bool inside = s.in_place || s.kind == kind::broadcast;
  const bool all_have =
      s.kind == kind::broadcast || s.kind == kind::reduce || s.kind == kind::exscan;
  f.send_size = inside ? 0 : reference::end_of(in);
  f.recv_size = std::max<size_t>(reference::end_of(out), inside ? reference::end_of(in) : 0);
  if (all_have) f.recv_size = std::max(f.recv_size, s.count);
  const bool scatters = s.kind == kind::reduce_scatter || s.kind == kind::reduce_scatter_block;
  if (s.in_place && scatters) f.scrap = reference::end_of(out);
  if (o.kind == SUCL_KIND_SENDRECV) {
    f.sends = {{o.root, 0, o.count}};
    f.recvs = {{o.source, 0, o.recv_count}};
  }
  for (int r = 0; s.kind == kind::group && s.all_pairs && r < ranks; ++r) {
    const auto peer = static_cast<size_t>(r);
    f.sends.push_back({r, f.send_displs[peer], f.send_counts[peer]});
    f.recvs.push_back({r, f.recv_displs[peer], f.recv_counts[peer]});
  }
  return f;
}

size_t layout::array_index(size_t element) const {
  const size_t depth = std::max<size_t>(1, range[2]);  // an empty range has an index too
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
  i.send = filled(i.send_layout.storage() * e.size, 0);
  i.recv = filled(i.recv_layout.storage() * e.size, 7);
  std::vector<std::byte> dense;
  const auto put = [&](const layout& l, std::vector<std::byte>& to, size_t at, size_t count) {
    for (size_t n = 0, row = 0; n < count; n += row) {
      row = std::min(l.row_rest(at + n), count - n);
      std::memcpy(&to[l.array_index(at + n) * e.size], &dense[n * e.size], row * e.size);
    }
  };
  const bool inside = f.send_size == 0;
  for (const given& g : f.in) {
    dense.resize(g.count * e.size);
    reference::write_inputs(e, c.op(), {ranks, rank, g.key}, g.count, dense.data());
    put(inside ? i.recv_layout : i.send_layout, inside ? i.recv : i.send, g.at, g.count);
  }
  i.expected_recv = i.recv;
  for (const got& g : f.out) {
    dense.resize(g.count * e.size);
    if (reduces(c.kind()))
      reference::write_folds(e, c.op(), {ranks, g.first, g.key}, g.first, g.last, g.count,
                             dense.data());
    else
      reference::write_inputs(e, c.op(), {ranks, g.first, g.key}, g.count, dense.data());
    put(i.recv_layout, i.expected_recv, g.at, g.count);
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
  const auto equal = [](const std::byte* is, const std::byte* must, size_t bytes) {
    return bytes == 0 || std::memcmp(is, must, bytes) == 0;
  };
  if (!equal(send.data(), before.send.data(), send.size()))
    for (size_t i = 0; i < send.size(); i += e.size)
      if (!equal(&send[i], &before.send[i], e.size))
        return difference("send", c, i / e.size, &send[i], &before.send[i]);
  if (recv.size() == before.expected_recv.size() &&
      equal(recv.data(), before.expected_recv.data(), recv.size()))
    return {};
  std::vector<std::byte> wanted = before.expected_recv;
  for (size_t n = f.scrap; n < f.recv_size; ++n) {
    const size_t at = before.recv_layout.array_index(n) * e.size;
    std::copy_n(&recv[at], e.size, &wanted[at]);
  }
  std::vector<bool> result(recv.size() / e.size, false);
  for (const got& g : f.out)
    for (size_t n = 0; n < g.count; ++n) result[before.recv_layout.array_index(g.at + n)] = true;
  for (size_t i = 0; i < recv.size() / e.size; ++i) {
    const std::byte* is = &recv[i * e.size];
    const std::byte* must = &wanted[i * e.size];
    bool same = equal(is, must, e.size);
    if (!same && result[i])
      same = reference::same(e, c.op(), is, must) ||
             (c.divides_first && c.op() == op::avg && reference::a_subnormal_apart(e, is, must));
    if (!same) return difference(result[i] ? "receive" : "unused receive", c, i, is, must);
  }
  return {};
}

}  // namespace sucl::conformance
