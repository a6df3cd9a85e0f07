// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a plan must compute: the collective, its sizes, and the outcome each rank must hold.
#pragma once

#include <sucl/types.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sucl::plan {

/// The most ranks of a plan, and bytes that a number of it may say: sums of two of them, and of the
/// blocks of all ranks, stay below 64 bits.
inline constexpr std::int32_t max_ranks = 1 << 20;
inline constexpr std::uint64_t max_bytes = std::uint64_t{1} << 60;

/// In which order contributions may be combined. All but `free` also say that all ranks that
/// receive the same element receive the same expression.
enum class ordering : std::uint8_t {
  any = 0,     ///< in any order and grouping
  ranked = 1,  ///< every reduce joins two neighbouring runs of ranks: the grouping follows ranks
  fixed = 2,   ///< ((x0 op x1) op x2) op ... in order of rank, in one fold
  free = 3     ///< in any, on each rank in its own: for what is associative
};

/// As in "ranked".
const char* name(ordering o) noexcept;
/// The ordering of this name; `found` says whether there is one.
ordering ordering_named(const std::string& word, bool& found) noexcept;

/// Consecutive ranks that contribute the same offset of their input.
struct term {
  std::int32_t first = 0;    ///< first rank
  std::int32_t count = 1;    ///< number of ranks
  std::uint64_t source = 0;  ///< byte of each one's input that the first byte of the piece takes

  friend bool operator==(const term&, const term&) = default;
};

/// A part of a rank's output: the reduction (or, with one rank, the copy) of its terms.
struct piece {
  std::uint64_t offset = 0;  ///< byte in recv
  std::uint64_t bytes = 0;
  std::vector<term> terms;  ///< by first rank, none twice

  friend bool operator==(const piece&, const piece&) = default;
};

/// A collective with its sizes.
///
/// `counts` are elements. One entry: the count of the uniform forms, as in <sucl/abi/backend.h>
/// (allgather, gather: from each rank; scatter, alltoall, reduce_scatter_block: to each; broadcast,
/// reduce, allreduce: all of it). The v-forms and reduce_scatter have one entry a rank, alltoallv
/// has ranks x ranks of them, [from * ranks + to]. Displacements, in elements and as
/// many as `counts`, say where blocks lie in the larger buffer; empty: packed in order of rank.
///
/// kind::group stands for a custom composition: counts = {elements of send, elements of recv},
/// and `outcome` says what every rank must hold.
struct problem {
  sucl::kind kind = sucl::kind::allreduce;
  ordering order = ordering::any;
  bool in_place = false;  ///< the input lies in recv (of gathers: at its own block); send is empty
  std::int32_t ranks = 1;
  std::int32_t root = 0;            ///< of rooted kinds, else 0
  std::uint64_t element_bytes = 1;  ///< reductions work on whole elements
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> send_displs;
  std::vector<std::uint64_t> recv_displs;
  std::vector<std::vector<piece>> outcome;  ///< one list a rank; of kind::group only

  friend bool operator==(const problem&, const problem&) = default;
};

/// A byte range of a buffer.
struct extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Throws invalid_argument, invalid_rank or invalid_count where the problem makes no sense.
void check(const problem& p);

/// Bytes of the send and recv spaces of `rank`. A rank that contributes nothing has no send space,
/// one that gets nothing has no recv space (broadcast: the root has no recv, unless in place).
std::uint64_t send_bytes(const problem& p, int rank);
std::uint64_t recv_bytes(const problem& p, int rank);

/// Where the input of `rank` lies: bytes [0, send_bytes) of send, or with in_place this part of
/// recv. Sources of terms count from its first byte.
extent input_extent(const problem& p, int rank);

/// Block `to` in the input of `rank`, counted from the input's first byte: what it contributes to
/// rank `to` (scatter, alltoall, reduce_scatter), else the whole input.
extent input_block(const problem& p, int rank, int to);

/// Block `from` in recv of `rank`: what comes from rank `from` (gathers, alltoall), else the whole
/// output.
extent output_block(const problem& p, int rank, int from);

/// Calls `visit` with every piece of recv that `rank` must hold at the end, by offset. Pieces that
/// overlap nothing else of recv are all there is: the rest of recv is undefined at the end.
void for_each_outcome(const problem& p, int rank, const std::function<void(const piece&)>& visit);

/// How many blocks and pieces for_each_outcome() and the sizes of all ranks look at, about.
std::uint64_t outcome_steps(const problem& p);

}  // namespace sucl::plan
