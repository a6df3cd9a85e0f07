// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations drawn at random for the executor's tests, as every rank knows them.
#pragma once

#include "backends/shm_p2p/backend.hpp"
#include "backends/shm_plan/backend.hpp"
#include "support/drive.hpp"
#include "support/jobs/thread_messages.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace sucl::testing {

using bytes = std::vector<std::byte>;

/// Writes a number that the type holds, and whose sums and products stay exact.
void write_element(type t, std::uint64_t bits, std::byte* at);

/// One operation as every rank knows it.
struct draw {
  std::uint64_t seed;
  kind what;
  type element;
  op reduction;
  int root;
  std::uint64_t count;
  std::vector<std::uint64_t> counts, displs;
  std::uint64_t misalignment;  // bytes by which memory is not aligned
  bool symmetric;              // alltoallv: both directions of a pair have the same count

  // Of a pair, in alltoallv.
  std::uint64_t between(int from, int to) const {
    if (symmetric && to < from) std::swap(from, to);
    const auto pair = static_cast<std::uint64_t>(from * 64 + to) + seed * 4099;
    return pair * 0x9e3779b97f4a7c15u % 5 == 0 ? 0
                                               : (pair * 0xbf58476d1ce4e5b9u >> 20) % (count + 1);
  }
  std::uint64_t total() const { return std::accumulate(counts.begin(), counts.end(), count * 0); }
};

draw make_draw(std::uint64_t seed, int size, std::uint64_t most);

struct memory {
  bytes send, recv;
  std::vector<std::uint64_t> counts[2], displs[2];  // alltoallv: of what is sent, and received
};

/// The operation of one rank, on memory that is filled for it.
sucl_operation prepare(const draw& d, int rank, int size, bool in_place, memory& m);

std::string describe(const draw& d, int rank, int size, bool in_place);

/// Elements from byte `misalignment` on, with the padding bytes of pairs zeroed.
bytes without_padding(type t, std::size_t misalignment, bytes b);

/// Whether two results are equal. Quotients may be rounded differently in the last bit, and pairs
/// have padding bytes.
bool same(const draw& d, bytes a, bytes b);

/// Channels of one rank.
struct backends {
  core::backend_comm ipc, plan, mock, messages;
};
using rank_body = std::function<void(const backends&, const sucl_comm_info&)>;

/// Runs ranks that are threads, on the nodes of `node_of`, one entry a rank; or all on one.
/// `settings` are those of the backend ipc, `tuned` is a tuning table; `ordered`: plans fold in the
/// fixed order where it matters.
void for_nodes(const std::vector<int>& node_of, const rank_body& body,
               std::vector<std::pair<std::string, std::string>> settings = {},
               const tune::table* tuned = nullptr, bool ordered = false);
void for_ranks(int size, const rank_body& body,
               std::vector<std::pair<std::string, std::string>> settings = {},
               const tune::table* tuned = nullptr);

/// Whether a channel supports it natively.
bool supports(const core::backend_comm& c, const draw& d);

/// A table that has a recipe for everything that it is defined for, in small slices.
tune::table table_of(const char* recipe, tune::memory_kind memory);

}  // namespace sucl::testing
