// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/sizes.hpp"

#include <sucl/neighborhood.hpp>

#include <algorithm>
#include <string>

namespace sucl {
namespace {

using detail::neighbor;

// Messages between the same two ranks are distinguished by the number of earlier ones.
std::vector<neighbor> numbered(const std::vector<int>& ranks) {
  std::vector<neighbor> result;
  for (const int rank : ranks) {
    const auto before = std::count_if(result.begin(), result.end(),
                                      [&](const neighbor& n) { return n.rank == rank; });
    result.push_back({rank, static_cast<int>(before)});
  }
  return result;
}

// How often each rank is named; the last entry counts what names no rank of the communicator.
std::vector<int> times_named(const std::vector<int>& ranks, int size) {
  std::vector<int> times(static_cast<std::size_t>(size) + 1);
  for (const int rank : ranks) {
    if (rank == no_rank) continue;
    const bool known = rank >= 0 && rank < size;
    ++times[static_cast<std::size_t>(known ? rank : size)];
  }
  return times;
}

std::string quantity(int n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// Throws on every rank if any rank names others that there are not, or one rank sends to another
// what that one does not expect.
void check_edges(communicator& comm, const std::vector<int>& sources,
                 const std::vector<int>& destinations) {
  const int size = comm.size();
  auto blocking = comm.blocking();
  const std::vector<int> expected = times_named(sources, size);
  const std::vector<int> sent = times_named(destinations, size);
  const auto last = static_cast<std::size_t>(size);
  std::vector<int> arrives(last);
  blocking.alltoall(sent.data(), arrives.data(), 1);
  // What this rank has found: of which kind, with which rank, and the two numbers.
  struct finding {
    int kind, rank, sent, expected;
  } found{};
  if (expected[last] + sent[last] > 0) found.kind = 1;
  for (std::size_t r = 0; r < last && found.kind == 0; ++r)
    if (arrives[r] != expected[r]) found = {2, static_cast<int>(r), arrives[r], expected[r]};
  const std::vector<finding> all = blocking.allgather(found);
  const auto wrong =
      std::find_if(all.begin(), all.end(), [](const finding& f) { return f.kind != 0; });
  if (wrong == all.end()) return;
  const std::string here = std::to_string(wrong - all.begin());
  if (wrong->kind == 1)
    base::fail(
        errc::invalid_rank,
        "a neighbour of rank " + here + " is not a rank of a communicator of " +
            std::to_string(size),
        "Ranks go from 0 to " + std::to_string(size - 1) + "; sucl::no_rank stands for none");
  base::fail(errc::mismatch,
             "rank " + std::to_string(wrong->rank) + " sends " + quantity(wrong->sent, "block") +
                 " to rank " + here + ", which expects " + std::to_string(wrong->expected),
             "Each rank's destinations must name a rank as often as that one's sources name it");
}

std::vector<int> ranks_of(const std::vector<neighbor>& neighbors) {
  std::vector<int> ranks;
  for (const neighbor& n : neighbors) ranks.push_back(n.rank);
  return ranks;
}

// What is wrong with a grid; empty: nothing.
std::string fault_of(const std::vector<int>& extents, const std::vector<bool>& periodic, int size) {
  if (!periodic.empty() && periodic.size() != extents.size())
    return "the grid has " + std::to_string(extents.size()) + " extents, but 'periodic' has " +
           std::to_string(periodic.size()) + " entries";
  long long ranks = 1;
  for (const int n : extents) {
    if (n < 1 || ranks * n > size) ranks = 0;
    ranks *= n;
  }
  if (ranks == size) return {};
  return "the extents of the grid do not make up the " + std::to_string(size) +
         " ranks of the communicator";
}

void check_grid(communicator& comm, const std::vector<int>& extents,
                const std::vector<bool>& periodic) {
  const std::string fault = fault_of(extents, periodic, comm.size());
  const std::vector<int> faulty = comm.blocking().allgather(fault.empty() ? 0 : 1);
  const auto first = std::find(faulty.begin(), faulty.end(), 1);
  if (first == faulty.end()) return;
  const char* cure =
      "Pass the same grid on every rank, whose extents multiply to the number of "
      "ranks";
  if (!fault.empty()) base::fail(errc::invalid_argument, fault, cure);
  base::fail(errc::mismatch,
             "the grid of rank " + std::to_string(first - faulty.begin()) +
                 " does not fit the communicator, and this one does",
             cure);
}

}  // namespace

void detail::check_neighbors(std::size_t given, std::size_t neighbors, const char* what) {
  if (given != neighbors)
    base::fail(errc::invalid_count,
               "there are " + std::to_string(given) + " " + what + " for " +
                   std::to_string(neighbors) + " neighbours",
               "Pass one a neighbour, also where that is sucl::no_rank");
}

void detail::check_blocks(const void* memory, std::size_t blocks, std::size_t count,
                          std::size_t element_size, const char* side) {
  const std::uint64_t elements = base::product(blocks, count);
  base::bytes_of(elements, element_size);
  if (memory || elements == 0) return;
  base::fail(errc::invalid_memory,
             std::string(side) + " memory of " + std::to_string(elements) + " elements is null",
             "Pass an allocation that is large enough");
}

void detail::check_blocks(const void* memory, const sucl::counts& counts,
                          const sucl::counts& displs, std::size_t element_size, const char* side) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) end = std::max<std::uint64_t>(end, base::sum(displs[i], counts[i]));
  check_blocks(memory, 1, end, element_size, side);
}

void detail::check_neighbor_blocks(std::size_t blocks, std::size_t count, std::size_t elements,
                                   const char* side) {
  check_room(base::product(blocks, count), elements, side);
}

std::size_t detail::neighbor_block(std::size_t sent, std::size_t destinations, std::size_t received,
                                   std::size_t sources) {
  const std::size_t blocks = destinations > 0 ? destinations : sources;
  const std::size_t elements = destinations > 0 ? sent : received;
  if (blocks == 0) return 0;
  if (elements % blocks != 0)
    base::fail(errc::invalid_count,
               std::to_string(elements) + " elements are no whole number for each of " +
                   std::to_string(blocks) + " neighbours",
               "Pass a range with as many blocks as neighbours, or use alltoallv");
  check_neighbor_blocks(sources, elements / blocks, received, "receive");
  return elements / blocks;
}

void detail::check_placed_blocks(const sucl::counts& counts, const sucl::counts& displs,
                                 std::size_t elements, const char* side) {
  for (std::size_t i = 0; i < counts.size() && i < displs.size(); ++i)
    if (counts[i] > 0) check_room(base::sum(displs[i], counts[i]), elements, side);
}

neighborhood::neighborhood(const communicator& comm, const std::vector<int>& sources,
                           const std::vector<int>& destinations)
    : m_communicator(comm.dup()),
      m_sources(numbered(sources)),
      m_destinations(numbered(destinations)) {
  check_edges(m_communicator, sources, destinations);
}

neighborhood neighborhood::grid(const communicator& comm, const std::vector<int>& extents,
                                const std::vector<bool>& periodic) {
  neighborhood made;
  made.m_communicator = comm.dup();
  check_grid(made.m_communicator, extents, periodic);
  made.m_coordinates.resize(extents.size());
  std::vector<int> stride(extents.size(), 1);
  for (std::size_t d = extents.size(); d-- > 1;) stride[d - 1] = stride[d] * extents[d];
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const int at = comm.rank() / stride[d] % extents[d];
    made.m_coordinates[d] = at;
    const bool wraps = !periodic.empty() && periodic[d];
    for (const int step : {-1, 1}) {
      int other = at + step;
      if (wraps) other = (other + extents[d]) % extents[d];
      const bool exists = other >= 0 && other < extents[d];
      const int rank = exists ? comm.rank() + (other - at) * stride[d] : no_rank;
      // What goes up comes from below: with two ranks in a ring both are one neighbour.
      const int up = static_cast<int>(2 * d + 1), down = static_cast<int>(2 * d);
      made.m_sources.push_back({rank, step > 0 ? down : up});
      made.m_destinations.push_back({rank, step > 0 ? up : down});
    }
  }
  check_edges(made.m_communicator, made.sources(), made.destinations());
  return made;
}

std::vector<int> neighborhood::sources() const { return ranks_of(m_sources); }
std::vector<int> neighborhood::destinations() const { return ranks_of(m_destinations); }

}  // namespace sucl
