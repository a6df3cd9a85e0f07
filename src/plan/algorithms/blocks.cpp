// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/algorithms/collectives.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

// The blocks of all ranks packed one after another.
ends packed_cuts(const builder& b, bool output) {
  ends cuts{0};
  for (int r = 0; r < b.ranks(); ++r)
    cuts.push_back(cuts.back() + (output ? output_block(b.what(), 0, r).bytes
                                         : input_block(b.what(), 0, r).bytes));
  return cuts;
}

bool is_packed(const builder& b, const ends& cuts) {
  for (int r = 0; r < b.ranks(); ++r) {
    const extent e = output_block(b.what(), 0, r);
    if (e.bytes > 0 && e.offset != cuts[static_cast<std::size_t>(r)]) return false;
  }
  return true;
}

// Every rank reads all others' input.
void peer_allgather_inputs(builder& b) {
  const team t = all_ranks(b, {space::send, 0});
  peer_barrier(b, t, 0);
  for (int r = 0; r < b.ranks(); ++r) {
    for (int k = 0; k < b.ranks(); ++k) {
      const int from = (r + k) % b.ranks();
      const extent e = output_block(b.what(), r, from);
      if (k == 0) {
        b.copy(r, {space::recv, e.offset}, {space::send, 0}, e.bytes);
      } else {
        b.get(r, from, {space::recv, e.offset}, remote({space::send, 0}), e.bytes);
      }
    }
    b.fence(r);
  }
  peer_barrier(b, t, 0);
}

// The digits of a radix in Bruck's alltoall: which blocks (by distance) move in a step.
std::vector<int> blocks_of_step(int ranks, std::int64_t stride, int radix, int digit) {
  std::vector<int> list;
  for (int d = 1; d < ranks; ++d)
    if (d / stride % radix == digit) list.push_back(d);
  return list;
}

// Alltoall of Bruck and others (1997): blocks are forwarded by the digits of their distance; each
// block is at its rank after all digits. Blocks of one step are packed into one message.
void bruck_alltoall(builder& b, int radix) {
  const int n = b.ranks();
  const std::uint64_t size = input_block(b.what(), 0, 0).bytes;
  for (int r = 0; r < n; ++r) {
    const auto at = [&](int rank) { return static_cast<std::uint64_t>((rank + n) % n) * size; };
    const address work = b.scratch(r, size * static_cast<std::uint64_t>(n));
    const auto block = [&](int d) { return work + static_cast<std::uint64_t>(d) * size; };
    const auto half = static_cast<std::uint64_t>(n);  // no step moves more blocks than there are
    const address out = b.scratch(r, half * size), in = b.scratch(r, half * size);
    b.copy(r, work, {space::send, at(r)}, at(-r) == 0 ? half * size : (half - r) * size);
    if (r > 0) b.copy(r, block(n - r), {space::send, 0}, at(r));
    for (std::int64_t stride = 1; stride < n; stride *= radix) {
      for (int digit = 1; digit < radix && digit * stride < n; ++digit) {
        const auto moving = blocks_of_step(n, stride, radix, digit);
        const auto shift = static_cast<int>(digit * stride);
        for (std::size_t k = 0; k < moving.size(); ++k)
          b.copy(r, out + k * size, block(moving[k]), size);
        b.send(r, (r + shift) % n, out, moving.size() * size);
        b.receive(r, (r - shift + n) % n, in, moving.size() * size);
        b.fence(r);
        for (std::size_t k = 0; k < moving.size(); ++k)
          b.copy(r, block(moving[k]), in + k * size, size);
      }
    }
    // Block d is now what the rank d before this one sent here.
    for (int d = 0; d < n; ++d) b.copy(r, {space::recv, at(r - d)}, block(d), size);
  }
}

void direct_alltoall(builder& b, int ports) {
  const int n = b.ranks();
  const int batch = batch_of(ports, std::max(n - 1, 1));
  for (int r = 0; r < n; ++r) {
    const extent own = input_block(b.what(), r, r);
    b.copy(r, {space::recv, output_block(b.what(), r, r).offset}, {space::send, own.offset},
           own.bytes);
    for (int k = 1; k < n; ++k) {
      const int to = (r + k) % n, from = (r - k + n) % n;
      const extent out = input_block(b.what(), r, to), in = output_block(b.what(), r, from);
      b.send(r, to, {space::send, out.offset}, out.bytes);
      b.receive(r, from, {space::recv, in.offset}, in.bytes);
      if (k % batch == 0) b.fence(r);
    }
    b.fence(r);
  }
}

void peer_alltoall(builder& b) {
  const int n = b.ranks();
  const team t = all_ranks(b, {space::send, 0});
  peer_barrier(b, t, 0);
  for (int r = 0; r < n; ++r) {
    for (int k = 0; k < n; ++k) {
      const int from = (r + k) % n;
      const extent there = input_block(b.what(), from, r), here = output_block(b.what(), r, from);
      const address dst{space::recv, here.offset}, src{space::send, there.offset};
      if (k == 0) {
        b.copy(r, dst, src, here.bytes);
      } else {
        b.get(r, from, dst, remote(src), here.bytes);
      }
    }
    b.fence(r);
  }
  peer_barrier(b, t, 0);
}

}  // namespace

void build_allgather(builder& b, const recipe& r) {
  if (r.algorithm == "one_shot") return peer_allgather_inputs(b);
  const ends cuts = packed_cuts(b, true);
  const bool packed = is_packed(b, cuts);
  team t = all_ranks(b, {space::recv, 0});
  for (int m = 0; m < b.ranks(); ++m) {
    const auto self = static_cast<std::size_t>(m);
    if (!packed) t.base[self] = b.scratch(m, cuts.back());
    b.copy(m, t.base[self] + cuts[self], {space::send, 0}, cuts[self + 1] - cuts[self]);
  }
  if (r.algorithm == "ring") ring_allgather(b, t, cuts);
  if (r.algorithm == "direct") direct_allgather(b, t, cuts, r.ports);
  if (r.algorithm == "exchange") exchange_allgather(b, t, cuts, r.radices, r.ports);
  if (r.algorithm == "cyclic") cyclic_allgather(b, t, cuts, r.radices, r.ports);
  for (int m = 0; m < b.ranks() && !packed; ++m) {
    for (std::size_t from = 0; from + 1 < cuts.size(); ++from)
      b.copy(m, {space::recv, output_block(b.what(), m, static_cast<int>(from)).offset},
             t.base[static_cast<std::size_t>(m)] + cuts[from], cuts[from + 1] - cuts[from]);
  }
}

void build_reduce_scatter(builder& b, const recipe& r) {
  const ends cuts = packed_cuts(b, false);
  team t = all_ranks(b, {space::send, 0});
  const std::vector<address> out(t.ranks.size(), address{space::recv, 0});
  if (r.algorithm == "one_shot") {
    peer_reduce_scatter(b, t, out, cuts, 0);
    return peer_barrier(b, t, 0);
  }
  if (r.algorithm == "ring") return ring_reduce_scatter(b, t, out, cuts);
  if (r.algorithm == "direct") return direct_reduce_scatter(b, t, out, cuts, r.ports);
  t.from = t.base;
  for (int m = 0; m < b.ranks(); ++m)
    t.base[static_cast<std::size_t>(m)] = b.scratch(m, cuts.back());
  if (r.algorithm == "exchange") exchange_reduce_scatter(b, t, cuts, r.radices, r.ports);
  if (r.algorithm == "cyclic") cyclic_reduce_scatter(b, t, cuts, r.radices, r.ports);
  for (std::size_t m = 0; m < t.ranks.size(); ++m)
    b.copy(t.ranks[m], out[m], t.base[m] + cuts[m], cuts[m + 1] - cuts[m]);
}

void build_alltoall(builder& b, const recipe& r) {
  if (r.algorithm == "one_shot") return peer_alltoall(b);
  if (r.algorithm == "bruck") return bruck_alltoall(b, r.radices[0]);
  direct_alltoall(b, r.algorithm == "pairwise" ? 1 : r.ports);
}

// Recursive doubling (Hillis and Steele 1986): after the step of distance d, a rank holds what the
// 2d ranks up to itself contribute. Exscan then hands every result to the next rank.
void build_scan(builder& b, const recipe&) {
  const int n = b.ranks();
  const std::uint64_t bytes = input_block(b.what(), 0, 0).bytes;
  const bool exclusive = b.what().kind == kind::exscan;
  for (int r = 0; r < n; ++r) {
    const address sum = exclusive ? b.scratch(r, bytes) : address{space::recv, 0};
    const address landing = b.scratch(r, bytes);
    b.copy(r, sum, {space::send, 0}, bytes);
    for (int d = 1; d < n; d *= 2) {
      if (r + d < n) b.send(r, r + d, sum, bytes);
      if (r >= d) b.receive(r, r - d, landing, bytes);
      b.fence(r);
      if (r >= d) b.reduce(r, sum, landing, bytes);
    }
    if (!exclusive) continue;
    if (r + 1 < n) b.send(r, r + 1, sum, bytes);
    if (r > 0) b.receive(r, r - 1, {space::recv, 0}, bytes);
    b.fence(r);
  }
}

}  // namespace sucl::plan
