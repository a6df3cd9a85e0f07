// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/patterns/team.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

struct chunk {
  std::uint64_t offset, bytes;
};

chunk chunk_of(const ends& cuts, int index, int members) {
  const auto i = static_cast<std::size_t>(((index % members) + members) % members);
  return {cuts[i], cuts[i + 1] - cuts[i]};
}

std::uint64_t longest(const ends& cuts) {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) most = std::max(most, cuts[i + 1] - cuts[i]);
  return most;
}

}  // namespace

void ring_reduce_scatter(builder& b, const team& t, const std::vector<address>& out,
                         const ends& cuts) {
  const int n = t.size();
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    const int next = t.ranks[static_cast<std::size_t>((m + 1) % n)];
    const int previous = t.ranks[static_cast<std::size_t>((m + n - 1) % n)];
    const chunk mine = chunk_of(cuts, m, n);
    const address own = t.base[self] + mine.offset;
    const bool apart = out[self] != own;  // then the last message goes straight to out
    if (n == 1) b.copy(rank, out[self], own, mine.bytes);
    const std::uint64_t mark = b.scratch_mark(rank);
    const address landing[2] = {b.scratch(rank, n > 1 ? longest(cuts) : 0),
                                b.scratch(rank, n > 2 ? longest(cuts) : 0)};
    for (int step = 1; step < n; ++step) {
      const chunk sent = chunk_of(cuts, m - step, n), taken = chunk_of(cuts, m - step - 1, n);
      const bool last = step + 1 == n;
      const address in = last && apart ? out[self] : landing[(step + 1) % 2];
      b.send(rank, next, step == 1 ? t.base[self] + sent.offset : landing[step % 2], sent.bytes);
      b.receive(rank, previous, in, taken.bytes);
      b.fence(rank);
      if (last)
        b.reduce(rank, out[self], apart ? own : in, taken.bytes);
      else
        b.reduce(rank, in, t.base[self] + taken.offset, taken.bytes);
    }
    b.scratch_release(rank, mark);
  }
}

void ring_allgather(builder& b, const team& t, const ends& cuts) {
  const int n = t.size();
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    const int next = t.ranks[static_cast<std::size_t>((m + 1) % n)];
    const int previous = t.ranks[static_cast<std::size_t>((m + n - 1) % n)];
    for (int step = 0; step + 1 < n; ++step) {
      const chunk out = chunk_of(cuts, m - step, n), in = chunk_of(cuts, m - step - 1, n);
      b.send(rank, next, t.base[self] + out.offset, out.bytes);
      b.receive(rank, previous, t.base[self] + in.offset, in.bytes);
      b.fence(rank);
    }
  }
}

namespace {

// The same with one fold in order of members, for which all parts must be there. Of the first two
// either may come first.
void direct_reduce_scatter_in_order(builder& b, const team& t, const std::vector<address>& out,
                                    const ends& cuts, int batch) {
  const int n = t.size();
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    const chunk mine = chunk_of(cuts, m, n);
    const std::uint64_t mark = b.scratch_mark(rank);
    std::vector<address> parts(static_cast<std::size_t>(n));
    parts[self] = t.base[self] + mine.offset;
    // The fold goes straight to out, unless the own part lies there and is folded later.
    const bool apart = out[self] != parts[self];
    const int first = apart ? (m == 0 ? 1 : 0) : (m == 1 ? 1 : 0);
    for (int k = 1; k < n; ++k) {
      const int to = (m + k) % n, from = (m + n - k) % n;
      const chunk theirs = chunk_of(cuts, to, n);
      address& in = parts[static_cast<std::size_t>(from)];
      in = apart && from == first ? out[self] : b.scratch(rank, mine.bytes);
      b.send(rank, t.ranks[static_cast<std::size_t>(to)], t.base[self] + theirs.offset,
             theirs.bytes);
      b.receive(rank, t.ranks[static_cast<std::size_t>(from)], in, mine.bytes);
      if (k % batch == 0) b.fence(rank);
    }
    b.fence(rank);
    const address sum = parts[static_cast<std::size_t>(first)];
    for (int d = 0; d < n; ++d)
      if (d != first) b.reduce(rank, sum, parts[static_cast<std::size_t>(d)], mine.bytes);
    b.copy(rank, out[self], sum, mine.bytes);
    b.scratch_release(rank, mark);
  }
}

}  // namespace

void direct_reduce_scatter(builder& b, const team& t, const std::vector<address>& out,
                           const ends& cuts, int ports) {
  const int n = t.size();
  const int batch = batch_of(ports, n - 1);
  if (b.what().order == ordering::fixed && n > 2)
    return direct_reduce_scatter_in_order(b, t, out, cuts, batch);
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    const chunk mine = chunk_of(cuts, m, n);
    const std::uint64_t mark = b.scratch_mark(rank);
    const address own = t.base[self] + mine.offset;
    const bool apart = out[self] != own;  // then the first message goes straight to out
    if (n == 1) b.copy(rank, out[self], own, mine.bytes);
    std::vector<address> landing;
    for (int k = 0; k < batch; ++k)
      landing.push_back(b.scratch(rank, k > 0 || !apart || batch < n - 1 ? mine.bytes : 0));
    for (int begin = 1; begin < n; begin += batch) {
      const int last = std::min(n, begin + batch);
      const auto in = [&](int k) {
        return apart && k == 1 ? out[self] : landing[static_cast<std::size_t>(k - begin)];
      };
      for (int k = begin; k < last; ++k) {
        const int to = (m + k) % n, from = (m + n - k) % n;
        const chunk theirs = chunk_of(cuts, to, n);
        b.send(rank, t.ranks[static_cast<std::size_t>(to)], t.base[self] + theirs.offset,
               theirs.bytes);
        b.receive(rank, t.ranks[static_cast<std::size_t>(from)], in(k), mine.bytes);
      }
      b.fence(rank);
      for (int k = begin; k < last; ++k)
        b.reduce(rank, out[self], apart && k == 1 ? own : in(k), mine.bytes);
    }
    b.scratch_release(rank, mark);
  }
}

void direct_allgather(builder& b, const team& t, const ends& cuts, int ports) {
  const int n = t.size();
  const int batch = batch_of(ports, n - 1);
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    const chunk mine = chunk_of(cuts, m, n);
    for (int k = 1; k < n; ++k) {
      const int to = (m + k) % n, from = (m + n - k) % n;
      const chunk theirs = chunk_of(cuts, from, n);
      b.send(rank, t.ranks[static_cast<std::size_t>(to)], t.base[self] + mine.offset, mine.bytes);
      b.receive(rank, t.ranks[static_cast<std::size_t>(from)], t.base[self] + theirs.offset,
                theirs.bytes);
      if (k % batch == 0) b.fence(rank);
    }
    b.fence(rank);
  }
}

}  // namespace sucl::plan
