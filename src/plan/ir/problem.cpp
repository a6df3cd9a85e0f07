// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/ir/problem.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <numeric>

namespace sucl::plan {
namespace {

enum class count_list { one, per_rank, per_pair, custom };

count_list count_list_of(kind k) {
  switch (k) {
    case kind::reduce_scatter:
    case kind::allgatherv:
    case kind::gatherv:
    case kind::scatterv: return count_list::per_rank;
    case kind::alltoallv: return count_list::per_pair;
    case kind::group: return count_list::custom;
    default: return count_list::one;
  }
}

bool has_plan(kind k) { return k != kind::barrier && k <= kind::exscan; }

std::size_t wanted_counts(const problem& p) {
  const auto ranks = static_cast<std::size_t>(p.ranks);
  switch (count_list_of(p.kind)) {
    case count_list::per_rank: return ranks;
    case count_list::per_pair: return ranks * ranks;
    case count_list::custom: return 2;
    case count_list::one: break;
  }
  return 1;
}

std::uint64_t prefix(const std::vector<std::uint64_t>& counts, int end) {
  return std::accumulate(counts.begin(), counts.begin() + end, std::uint64_t{0});
}

// The block of `index` among one count a rank, in elements.
extent block_of(const problem& p, const std::vector<std::uint64_t>& displs, int index) {
  const auto i = static_cast<std::size_t>(index);
  if (count_list_of(p.kind) == count_list::one)
    return {static_cast<std::uint64_t>(index) * p.counts[0], p.counts[0]};
  return {displs.empty() ? prefix(p.counts, index) : displs[i], p.counts[i]};
}

// The blocks of alltoallv: of rank `self` with `other`, in its send or its recv space.
extent pair_block(const problem& p, bool sending, int self, int other) {
  const auto ranks = static_cast<std::size_t>(p.ranks);
  const auto at = [&](int peer) {
    const auto s = static_cast<std::size_t>(self), o = static_cast<std::size_t>(peer);
    return sending ? s * ranks + o : o * ranks + s;
  };
  const auto& displs = sending ? p.send_displs : p.recv_displs;
  extent e{0, p.counts[at(other)]};
  if (!displs.empty()) {
    e.offset = displs[static_cast<std::size_t>(self) * ranks + static_cast<std::size_t>(other)];
  } else {
    for (int i = 0; i < other; ++i) e.offset += p.counts[at(i)];
  }
  return e;
}

std::uint64_t span_of(const problem& p, const std::vector<std::uint64_t>& displs) {
  if (count_list_of(p.kind) == count_list::one)
    return static_cast<std::uint64_t>(p.ranks) * p.counts[0];
  if (displs.empty()) return prefix(p.counts, p.ranks);
  std::uint64_t end = 0;
  for (int r = 0; r < p.ranks; ++r) {
    const extent e = block_of(p, displs, r);
    if (e.bytes > 0) end = std::max(end, e.offset + e.bytes);
  }
  return end;
}

std::uint64_t pair_span(const problem& p, bool sending, int self) {
  std::uint64_t end = 0;
  if ((sending ? p.send_displs : p.recv_displs).empty()) {
    const extent last = pair_block(p, sending, self, p.ranks - 1);
    return last.offset + last.bytes;
  }
  for (int r = 0; r < p.ranks; ++r) {
    const extent e = pair_block(p, sending, self, r);
    if (e.bytes > 0) end = std::max(end, e.offset + e.bytes);
  }
  return end;
}

// Sizes in elements, ignoring in_place.
std::uint64_t input_elements(const problem& p, int rank) {
  switch (p.kind) {
    case kind::broadcast: return rank == p.root ? p.counts[0] : 0;
    case kind::scatter:
    case kind::scatterv: return rank == p.root ? span_of(p, p.send_displs) : 0;
    case kind::reduce_scatter:
    case kind::reduce_scatter_block:
    case kind::alltoall: return span_of(p, {});
    case kind::alltoallv: return pair_span(p, true, rank);
    case kind::allgatherv:
    case kind::gatherv: return p.counts[static_cast<std::size_t>(rank)];
    default: return p.counts[0];
  }
}

std::uint64_t output_elements(const problem& p, int rank) {
  switch (p.kind) {
    case kind::broadcast: return rank == p.root ? 0 : p.counts[0];
    case kind::reduce: return rank == p.root ? p.counts[0] : 0;
    case kind::allgather:
    case kind::allgatherv: return span_of(p, p.recv_displs);
    case kind::gather:
    case kind::gatherv: return rank == p.root ? span_of(p, p.recv_displs) : 0;
    case kind::alltoall: return span_of(p, {});
    case kind::alltoallv: return pair_span(p, false, rank);
    case kind::scatterv:
    case kind::reduce_scatter: return p.counts[static_cast<std::size_t>(rank)];
    case kind::group: return p.counts[1];
    default: return p.counts[0];
  }
}

bool gathers(kind k) {
  return k == kind::allgather || k == kind::allgatherv || k == kind::gather || k == kind::gatherv;
}

// Where the input lies in recv with in_place, in elements.
extent in_place_input(const problem& p, int rank) {
  const std::uint64_t size = input_elements(p, rank);
  const bool rooted_gather = p.kind == kind::gather || p.kind == kind::gatherv;
  if (!gathers(p.kind) || (rooted_gather && rank != p.root)) return {0, size};
  return {block_of(p, p.recv_displs, rank).offset, size};
}

extent in_bytes(const problem& p, extent e) {
  return {e.offset * p.element_bytes, e.bytes * p.element_bytes};
}

// Results must not lie on each other.
void check_overlap(const problem& p) {
  if (p.recv_displs.empty()) return;
  const bool pairs = count_list_of(p.kind) == count_list::per_pair;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks;
  for (int r = 0; r < (pairs ? p.ranks : 1); ++r) {
    blocks.clear();
    for (int from = 0; from < p.ranks; ++from) {
      const extent e = pairs ? pair_block(p, false, r, from) : block_of(p, p.recv_displs, from);
      if (e.bytes > 0) blocks.emplace_back(e.offset, e.offset + e.bytes);
    }
    std::sort(blocks.begin(), blocks.end());
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i)
      if (blocks[i].second > blocks[i + 1].first)
        base::fail(errc::invalid_count,
                   "blocks of the output overlap at element " + std::to_string(blocks[i + 1].first),
                   "Give displacements that leave room for every count.");
  }
}

void check_outcome(const problem& p) {
  if (p.kind != kind::group) {
    if (!p.outcome.empty())
      base::fail(errc::invalid_argument, "an outcome is given for a standard collective",
                 "Only custom compositions have one; leave it empty.");
    return;
  }
  if (p.outcome.size() != static_cast<std::size_t>(p.ranks))
    base::fail(errc::invalid_argument,
               "the outcome of a custom plan has " + std::to_string(p.outcome.size()) +
                   " lists for " + std::to_string(p.ranks) + " ranks",
               "Give one list a rank.");
  const std::uint64_t in = p.counts[0] * p.element_bytes, out = p.counts[1] * p.element_bytes;
  for (const auto& list : p.outcome) {
    std::uint64_t end = 0;
    for (const piece& part : list) {
      bool good = part.offset >= end && part.bytes > 0 && part.bytes <= out &&
                  part.offset <= out - part.bytes && !part.terms.empty();
      for (const term& t : part.terms)
        good = good && t.first >= 0 && t.count > 0 && t.count <= p.ranks - t.first &&
               part.bytes <= in && t.source <= in - part.bytes;
      end = part.offset + part.bytes;
      if (!good)
        base::fail(errc::invalid_argument,
                   "the outcome of a custom plan has a piece at byte " +
                       std::to_string(part.offset) + " that is out of order or out of bounds",
                   "Pieces are sorted by offset, do not overlap, and name ranks and input bytes "
                   "that exist.");
    }
  }
}

}  // namespace

void check(const problem& p) {
  if (!has_plan(p.kind) && p.kind != kind::group)
    base::fail(errc::invalid_argument, "there are no plans for " + std::string(sucl::name(p.kind)),
               "Plans exist for the collectives that move data.");
  if (p.ranks < 1 || p.ranks > max_ranks)
    base::fail(errc::invalid_argument, std::to_string(p.ranks) + " ranks",
               "Give from 1 to " + std::to_string(max_ranks) + ".");
  if (p.root < 0 || p.root >= p.ranks || (p.root != 0 && !rooted(p.kind)))
    base::fail(errc::invalid_rank,
               "root " + std::to_string(p.root) + " of " + sucl::name(p.kind) + " among " +
                   std::to_string(p.ranks) + " ranks",
               "Roots are counted from 0; a collective without a root has root 0.");
  if (p.element_bytes == 0 || p.element_bytes > max_bytes)
    base::fail(errc::invalid_argument, "elements of " + std::to_string(p.element_bytes) + " bytes",
               "Give the size of an element, from 1 to " + std::to_string(max_bytes) + ".");
  const std::size_t wanted = wanted_counts(p);
  const auto displs_good = [&](const auto& d) { return d.empty() || d.size() == wanted; };
  if (p.counts.size() != wanted || !displs_good(p.send_displs) || !displs_good(p.recv_displs))
    base::fail(errc::invalid_count,
               std::string(sucl::name(p.kind)) + " of " + std::to_string(p.ranks) + " ranks has " +
                   std::to_string(p.counts.size()) + " counts",
               "It takes " + std::to_string(wanted) + ", and as many displacements or none.");
  if (count_list_of(p.kind) == count_list::one && !(p.send_displs.empty() && p.recv_displs.empty()))
    base::fail(errc::invalid_count, std::string(sucl::name(p.kind)) + " takes no displacements",
               "Use the v-form.");
  // 2^60 keeps every sum of offsets below 64 bits.
  const std::uint64_t most = max_bytes / p.element_bytes;
  for (const auto* list : {&p.counts, &p.send_displs, &p.recv_displs})
    for (const std::uint64_t n : *list)
      if (n > most / static_cast<std::uint64_t>(p.ranks))
        base::fail(errc::invalid_count,
                   "a count of " + std::to_string(n) + " elements of " +
                       std::to_string(p.element_bytes) + " bytes",
                   "All blocks together must stay below 2^60 bytes.");
  check_overlap(p);
  check_outcome(p);
}

std::uint64_t send_bytes(const problem& p, int rank) {
  return p.in_place ? 0 : input_elements(p, rank) * p.element_bytes;
}

std::uint64_t recv_bytes(const problem& p, int rank) {
  const std::uint64_t out = output_elements(p, rank) * p.element_bytes;
  if (!p.in_place) return out;
  const extent in = input_extent(p, rank);
  return std::max(out, in.offset + in.bytes);
}

extent input_extent(const problem& p, int rank) {
  if (!p.in_place) return {0, send_bytes(p, rank)};
  return in_bytes(p, in_place_input(p, rank));
}

extent input_block(const problem& p, int rank, int to) {
  switch (p.kind) {
    case kind::scatter:
    case kind::scatterv: return in_bytes(p, block_of(p, p.send_displs, to));
    case kind::alltoall:
    case kind::reduce_scatter:
    case kind::reduce_scatter_block: return in_bytes(p, block_of(p, {}, to));
    case kind::alltoallv: return in_bytes(p, pair_block(p, true, rank, to));
    default: return {0, input_elements(p, rank) * p.element_bytes};
  }
}

extent output_block(const problem& p, int rank, int from) {
  if (gathers(p.kind)) return in_bytes(p, block_of(p, p.recv_displs, from));
  if (p.kind == kind::alltoall) return in_bytes(p, block_of(p, {}, from));
  if (p.kind == kind::alltoallv) return in_bytes(p, pair_block(p, false, rank, from));
  return {0, output_elements(p, rank) * p.element_bytes};
}

namespace {

// One piece of the outcome of a standard collective.
piece block_piece(extent out, term t) { return {out.offset, out.bytes, {t}}; }

std::vector<piece> gathered(const problem& p, int rank) {
  std::vector<piece> pieces;
  const bool pairs = p.kind == kind::alltoall || p.kind == kind::alltoallv;
  const bool packed = gathers(p.kind) && p.recv_displs.empty();
  std::uint64_t end = 0;
  for (int from = 0; from < p.ranks; ++from) {
    const std::uint64_t source = pairs ? input_block(p, from, rank).offset : 0;
    const extent block = packed ? extent{end, input_elements(p, from) * p.element_bytes}
                                : output_block(p, rank, from);
    pieces.push_back(block_piece(block, {from, 1, source}));
    end += block.bytes;
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const piece& a, const piece& b) { return a.offset < b.offset; });
  return pieces;
}

std::vector<piece> standard_outcome(const problem& p, int rank) {
  const extent out{0, output_elements(p, rank) * p.element_bytes};
  switch (p.kind) {
    case kind::broadcast:
      if (rank == p.root && !p.in_place) return {};
      return {block_piece({0, p.counts[0] * p.element_bytes}, {p.root, 1, 0})};
    case kind::scatter:
    case kind::scatterv: {
      const extent in = input_block(p, p.root, rank);
      const std::uint64_t at = p.in_place && rank == p.root ? in.offset : 0;
      return {block_piece({at, in.bytes}, {p.root, 1, in.offset})};
    }
    case kind::reduce_scatter:
    case kind::reduce_scatter_block:
      return {block_piece(out, {0, p.ranks, input_block(p, rank, rank).offset})};
    case kind::scan: return {block_piece(out, {0, rank + 1, 0})};
    case kind::exscan:
      if (rank == 0) return {};
      return {block_piece(out, {0, rank, 0})};
    case kind::reduce:
      if (rank != p.root) return {};
      [[fallthrough]];
    case kind::allreduce: return {block_piece(out, {0, p.ranks, 0})};
    case kind::gather:
    case kind::gatherv:
      if (rank != p.root) return {};
      [[fallthrough]];
    default: return gathered(p, rank);
  }
}

}  // namespace

const char* name(ordering o) noexcept {
  switch (o) {
    case ordering::ranked: return "ranked";
    case ordering::fixed: return "fixed";
    case ordering::free: return "free";
    default: return "any";
  }
}

ordering ordering_named(const std::string& word, bool& found) noexcept {
  for (const ordering o : {ordering::any, ordering::ranked, ordering::fixed, ordering::free}) {
    found = word == name(o);
    if (found) return o;
  }
  return ordering::any;
}

void for_each_outcome(const problem& p, int rank, const std::function<void(const piece&)>& visit) {
  if (p.kind == kind::group) {
    for (const piece& part : p.outcome[static_cast<std::size_t>(rank)]) visit(part);
    return;
  }
  for (const piece& part : standard_outcome(p, rank))
    if (part.bytes > 0) visit(part);
}

std::uint64_t outcome_steps(const problem& p) {
  const auto ranks = static_cast<std::uint64_t>(p.ranks);
  switch (p.kind) {
    case kind::group: {
      std::uint64_t steps = ranks;
      for (const auto& list : p.outcome)
        for (const piece& part : list) steps += 1 + part.terms.size();
      return steps;
    }
    case kind::alltoallv: return ranks * ranks * ranks;  // a block lies behind those before it
    case kind::alltoall:
    case kind::allgather:
    case kind::allgatherv:
    case kind::gatherv:
    case kind::scatterv:
    case kind::reduce_scatter: return ranks * ranks;
    default: return ranks;
  }
}

}  // namespace sucl::plan
