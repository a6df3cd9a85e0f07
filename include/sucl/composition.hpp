// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Collectives of one's own, composed of multicasts, reductions and fences.
#pragma once

#include <sucl/types.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace sucl {

/// Stands for every rank of a composition: sucl::all.
struct all_ranks_type {};
inline constexpr all_ranks_type all{};

/// A part of a rank's memory in a composition: `count` elements from `offset` on.
struct slice {
  enum class memory { send, recv, scratch };
  memory where = memory::send;
  std::size_t offset = 0;
  std::size_t count = 0;
};

/// How communicator::compile() lowers a composition. The options change how data moves and which
/// transports move it, never the result.
struct compile_options {
  /// Factors of the ranks, outermost first, as in {2, 4} for 2 nodes of 4 ranks: data crosses each
  /// level once, and spreads or is combined below it. Their product is at least the number of
  /// ranks. Empty: one level.
  std::vector<int> hierarchy;
  /// The transport of each level: "ipc" (shared memory, within a node), "mpi" (between nodes), or
  /// "any". Empty: any, which is shared memory within nodes and messages between them.
  std::vector<std::string> via;
  int stripe = 1;    ///< parts of what leaves a node, which go through that many of its ranks
  int ring = 1;      ///< the first factor of the hierarchy: its groups pass data on around a ring
  int pipeline = 1;  ///< parts of the data that follow each other through the levels, at most 16
};

/// A collective operation composed of primitives, after HiCCL (Hidayetoglu and others 2024). Each
/// rank has three memories: `send`, which is only read, `recv`, which the result goes to, and
/// `scratch`, which the plan allocates. Primitives between two fences run at once, so they must
/// not touch the same elements where one of them writes.
///
/// Plain data: the methods only record their arguments, and communicator::compile() checks them.
/// Every rank makes the same composition.
///
/// A reduction to all in two steps, of vectors of p * n elements:
///
///     sucl::composition c{p};
///     for (int r = 0; r < p; ++r)
///       c.reduction(c.send(r * n, n), c.recv(r * n, n), sucl::all, r, sucl::op::sum);
///     c.fence();
///     for (int r = 0; r < p; ++r) c.multicast(c.recv(r * n, n), c.recv(r * n, n), r, sucl::all);
class composition {
 public:
  explicit composition(int ranks) : m_ranks(ranks) {}

  /// Slices of each rank's memories, in elements.
  [[nodiscard]] slice send(std::size_t offset, std::size_t count) const {
    return {slice::memory::send, offset, count};
  }
  [[nodiscard]] slice recv(std::size_t offset, std::size_t count) const {
    return {slice::memory::recv, offset, count};
  }
  [[nodiscard]] slice scratch(std::size_t offset, std::size_t count) const {
    return {slice::memory::scratch, offset, count};
  }

  /// `from` of rank `root` goes to `to` of each of `ranks`.
  void multicast(slice from, slice to, int root, std::vector<int> ranks) {
    m_primitives.push_back({kind::broadcast, from, to, root, std::move(ranks), op::none});
  }
  void multicast(slice from, slice to, int root, all_ranks_type) {
    multicast(from, to, root, every_rank());
  }

  /// `from` of all of `ranks`, combined by `o`, goes to `to` of rank `root`. All reductions of a
  /// composition have the same op; `avg` is none of them.
  void reduction(slice from, slice to, std::vector<int> ranks, int root, op o) {
    m_primitives.push_back({kind::reduce, from, to, root, std::move(ranks), o});
  }
  void reduction(slice from, slice to, all_ranks_type, int root, op o) {
    reduction(from, to, every_rank(), root, o);
  }

  /// Later primitives see the results of earlier ones. No barrier: orders accesses to elements.
  void fence() { m_primitives.push_back({kind::barrier, {}, {}, 0, {}, op::none}); }

  [[nodiscard]] int ranks() const { return m_ranks; }

  /// @cond internal
  struct primitive {
    kind what;  ///< broadcast: multicast, reduce: reduction, barrier: fence
    slice from, to;
    int root;
    std::vector<int> ranks;
    op reduction;
  };
  [[nodiscard]] const std::vector<primitive>& primitives() const { return m_primitives; }
  /// @endcond

 private:
  std::vector<int> every_rank() const {
    std::vector<int> list;
    for (int r = 0; r < m_ranks; ++r) list.push_back(r);
    return list;
  }
  int m_ranks;
  std::vector<primitive> m_primitives;
};

}  // namespace sucl
