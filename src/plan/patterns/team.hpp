// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Patterns: parts of collectives among some ranks, written to a builder. Algorithms and the levels
/// of hierarchies are made of them.
///
/// A team works on a vector: member i's copy begins at base[i]. Where its input lies elsewhere, at
/// from[i], patterns that reduce read it there, leave it as it is, and need no copy of it. `cuts`
/// divides the vector into one chunk a member (members + 1 ends, chunks may be empty or of
/// different lengths); where a pattern takes no cuts it works on `bytes` bytes. Each pattern
/// appends to every member's program and fences its own transfers; scratch that it takes is free
/// again afterwards.
#pragma once

#include "plan/ir/builder.hpp"

#include <cstdint>
#include <vector>

namespace sucl::plan {

struct team {
  std::vector<int> ranks;     ///< members
  std::vector<address> base;  ///< where each member's vector begins
  std::vector<address> from;  ///< where its input begins; empty: there too

  int size() const { return static_cast<int>(ranks.size()); }
  address input(std::size_t member) const { return from.empty() ? base[member] : from[member]; }
  bool apart(std::size_t member) const { return input(member) != base[member]; }
};

/// Says where the members' input lies. Where a plan will run in place, with the input in the output
/// that patterns write, copies it to base instead.
void take_input(builder& b, team& t, address from, std::uint64_t bytes);

using ends = std::vector<std::uint64_t>;

/// How many of a step's messages are in flight at once with so many `ports` (0: any).
inline int batch_of(int ports, int messages) {
  return ports > 0 && ports < messages ? ports : messages;
}

/// Factors of `n` as near to `radix` as can be: powers of it where possible, else primes above it.
std::vector<int> factors_of(int n, int radix);

/// The largest product of `radix` that is not above n, as a list; n itself where it is such.
std::vector<int> powers_below(int n, int radix);

// ---- chunks: member i ends with chunk i reduced, or starts with it

/// The addresses of the members' own chunks in their own vectors.
std::vector<address> own_chunks(const team& t, const ends& cuts);

/// Ring (as in Patarasuk and Yuan 2009): members - 1 steps to the next neighbour. The result goes
/// to `out`; the vectors are only read, but for an `out` that lies in them.
void ring_reduce_scatter(builder& b, const team& t, const std::vector<address>& out,
                         const ends& cuts);
void ring_allgather(builder& b, const team& t, const ends& cuts);

/// All messages at once, every member with every other; `ports` at a time (0: all). Out as above.
void direct_reduce_scatter(builder& b, const team& t, const std::vector<address>& out,
                           const ends& cuts, int ports);
void direct_allgather(builder& b, const team& t, const ends& cuts, int ports);

/// Recursive halving and doubling with any radices whose product is the number of members
/// (recursive exchange, Jocksch and others 2021), the farthest members first (allgather: last).
void exchange_reduce_scatter(builder& b, const team& t, const ends& cuts,
                             const std::vector<int>& radices, int ports);
void exchange_allgather(builder& b, const team& t, const ends& cuts,
                        const std::vector<int>& radices, int ports);

/// Cyclic shift (after Bruck and others 1997): any number of members; keeps the vector rotated in
/// scratch. The first radix is that of the nearest members; the last one is taken again until all
/// are reached, so that one radix takes ceil(log_radix) steps. A step of radix r has r - 1
/// messages, `ports` at a time (0: all).
void cyclic_reduce_scatter(builder& b, const team& t, const ends& cuts,
                           const std::vector<int>& radices, int ports);
void cyclic_allgather(builder& b, const team& t, const ends& cuts, const std::vector<int>& radices,
                      int ports);

// ---- whole vectors

/// Recursive exchange for allreduce. The first `split` radices reduce and scatter, the others
/// exchange all that is left, then the first are undone. Members beyond the product of the radices
/// (at most as many again) hand their vector to a partner first and get the result from it.
void exchange_allreduce(builder& b, const team& t, std::uint64_t bytes,
                        const std::vector<int>& radices, int split, int ports);

/// Cyclic reduce-scatter and allgather without unrotating in between.
void cyclic_allreduce(builder& b, const team& t, const ends& cuts, const std::vector<int>& radices,
                      int ports);

/// Binomial (radix 2) and k-nomial trees.
void tree_broadcast(builder& b, const team& t, int root, std::uint64_t bytes, int radix);
void tree_reduce(builder& b, const team& t, int root, std::uint64_t bytes, int radix);

/// A chain from the root around the members, in `segments` pieces that follow each other.
void chain_broadcast(builder& b, const team& t, int root, std::uint64_t bytes, int segments);
void chain_reduce(builder& b, const team& t, int root, std::uint64_t bytes, int segments);

// ---- through each other's memory, ordered by flags

/// Signals all other members that this one has arrived, and waits for them, by flags of this
/// number. Different channels need different flags.
void peer_barrier(builder& b, const team& t, std::uint64_t flag);

/// After a barrier, every member reads its chunk of all others' vectors, beginning with its own and
/// going round, and reduces it into `out`. The vectors must stay valid until the caller's next
/// barrier.
void peer_reduce_scatter(builder& b, const team& t, const std::vector<address>& out,
                         const ends& cuts, std::uint64_t flag);

/// Between two barriers, every member reads all others' chunks into its own vector.
void peer_allgather(builder& b, const team& t, const ends& cuts, std::uint64_t flag);

/// Recursive exchange with any radices whose product is the number of members, the nearest members
/// first, each phase ordered by flags among those that meet in it: the node stage of Jocksch and
/// others (2021). An allreduce: reduces and scatters, then gathers. Ends with a barrier.
void peer_exchange(builder& b, const team& t, std::uint64_t bytes, const std::vector<int>& radices,
                   std::uint64_t flag);

}  // namespace sucl::plan
