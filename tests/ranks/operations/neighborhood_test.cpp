// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Collectives between neighbours, on grids and other graphs.
#include "ranks/fixture.hpp"

#include <span>

namespace sucl::testing {
namespace {

struct neighborhoods : ::testing::Test {
  communicator& world = fixture().world;
  const int rank = world.rank();
  const int size = world.size();
};

TEST_F(neighborhoods, of_a_ring_have_both_sides) {
  auto ring = neighborhood::grid(world, {size}, {true});
  const int down = (rank + size - 1) % size, up = (rank + 1) % size;
  EXPECT_EQ(ring.sources(), (std::vector<int>{down, up}));
  EXPECT_EQ(ring.destinations(), (std::vector<int>{down, up}));
  EXPECT_EQ(ring.coordinates(), std::vector<int>{rank});
  // What goes down arrives from above, also where both neighbours are one rank, or this one.
  const std::vector<int> send{10 * rank, 10 * rank, 10 * rank + 1, 10 * rank + 1};
  for (const bool blocking : {true, false}) {
    std::vector<int> recv(4, -1);
    if (blocking)
      ring.blocking().alltoall(send.data(), recv.data(), 2);
    else
      ring.alltoall(send.data(), recv.data(), 2).wait();
    EXPECT_EQ(recv, (std::vector<int>{10 * down + 1, 10 * down + 1, 10 * up, 10 * up}));
  }
}

TEST_F(neighborhoods, at_the_ends_of_a_line_leave_memory_as_it_is) {
  auto line = neighborhood::grid(world, {1, size});
  const std::vector<int> expected{no_rank, no_rank, rank > 0 ? rank - 1 : no_rank,
                                  rank + 1 < size ? rank + 1 : no_rank};
  EXPECT_EQ(line.sources(), expected);
  const int mine = rank;
  std::vector<int> recv(4, -7);
  line.allgather(&mine, recv.data(), 1).wait();
  for (std::size_t j = 0; j < 4; ++j)
    EXPECT_EQ(recv[j], expected[j] == no_rank ? -7 : expected[j]) << j;
}

// Rank r sends r + 1 blocks to the next rank, and one to itself.
TEST_F(neighborhoods, of_a_graph_match_in_order) {
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  std::vector<int> destinations{rank}, sources;
  for (int i = 0; i <= rank; ++i) destinations.push_back(next);
  for (int i = 0; i <= last; ++i) sources.push_back(last);
  sources.push_back(rank);
  neighborhood graph(world, sources, destinations);
  sucl::counts send_counts, send_displs, recv_counts, recv_displs;
  std::vector<int> send, expected;
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    send_displs.push_back(send.size());
    send_counts.push_back(i + 1);
    for (std::size_t k = 0; k <= i; ++k) send.push_back(1000 * rank + static_cast<int>(i));
  }
  // In a job of one rank, it is `last` too, and its own blocks are matched in the order of lists.
  for (std::size_t j = 0; j < sources.size(); ++j) {
    const bool from_last = size > 1 && j + 1 < sources.size();
    const int i = size == 1 ? static_cast<int>(j) : from_last ? static_cast<int>(j) + 1 : 0;
    recv_displs.push_back(expected.size());
    recv_counts.push_back(static_cast<std::size_t>(i) + 1);
    for (int k = 0; k <= i; ++k) expected.push_back(1000 * (from_last ? last : rank) + i);
  }
  std::vector<int> recv(expected.size(), -1);
  graph.blocking().alltoallv(send.data(), send_counts, send_displs, recv.data(), recv_counts,
                             recv_displs);
  EXPECT_EQ(recv, expected);
}

// The halo of a square in a buffer: rows are contiguous, columns are not.
TEST_F(neighborhoods, exchange_blocks_of_a_buffer) {
  constexpr std::size_t n = 6;
  sycl::buffer<int, 2> field{sycl::range<2>(n, n)};
  {
    sycl::host_accessor f{field};
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) f[i][j] = rank * 100 + static_cast<int>(i * n + j);
  }
  auto grid = neighborhood::grid(world, {1, size}, {true, true});
  const auto part = [&](std::size_t i, std::size_t j, std::size_t h, std::size_t w) {
    return block<int, 2>(field, {i, j}, {h, w});
  };
  const std::vector<block<int, 2>> inner{part(1, 1, 1, n - 2), part(n - 2, 1, 1, n - 2),
                                         part(1, 1, n - 2, 1), part(1, n - 2, n - 2, 1)};
  std::vector<block<int, 2>> halo{part(0, 1, 1, n - 2), part(n - 1, 1, 1, n - 2),
                                  part(1, 0, n - 2, 1), part(1, n - 1, n - 2, 1)};
  grid.exchange(inner, halo);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  sycl::host_accessor f{field};
  for (std::size_t k = 1; k + 1 < n; ++k) {
    const auto at = [](int r, std::size_t i, std::size_t j) {
      return r * 100 + static_cast<int>(i * n + j);
    };
    EXPECT_EQ(f[0][k], at(rank, n - 2, k));
    EXPECT_EQ(f[n - 1][k], at(rank, 1, k));
    EXPECT_EQ(f[k][0], at(left, k, n - 2));
    EXPECT_EQ(f[k][n - 1], at(right, k, 1));
  }
}

TEST_F(neighborhoods, take_ranges_and_check_their_sizes) {
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  auto ring = neighborhood::grid(world, {size}, {true});
  const std::vector<int> mine{rank, -rank};
  std::vector<int> got(4, -1);
  ring.allgather(mine, got).wait();
  EXPECT_EQ(got, (std::vector<int>{last, -last, next, -next}));
  ring.blocking().alltoall(std::vector<int>{2 * rank, 2 * rank + 1}, std::span(got.data(), 2));
  EXPECT_EQ(got[0], 2 * last + 1);
  EXPECT_EQ(got[1], 2 * next);
  const counts one{1, 1}, displs{1, 0};
  ring.alltoallv(mine, one, displs, got, one, displs).wait();
  EXPECT_EQ(got[1], last);
  EXPECT_EQ(got[0], -next);

  std::vector<int> three(3);
  const auto refused = [](const auto& call) { expect_error(errc::invalid_count, call); };
  refused([&] { (void)ring.allgather(mine, three); });
  refused([&] { (void)ring.alltoall(three, got); });
  refused([&] { (void)ring.alltoall(got, three); });
  refused([&] { (void)ring.alltoallv(mine, one, {2, 0}, got, one, displs); });
  refused([&] { (void)ring.alltoallv(mine, one, displs, three, one, {3, 0}); });
  world.blocking().barrier();
}

TEST_F(neighborhoods, that_do_not_fit_are_refused_on_every_rank) {
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  const std::string edges = expect_error(errc::mismatch, [&] {
    const bool expects = rank != size - 1;
    neighborhood(world, expects ? std::vector<int>{last} : std::vector<int>{}, {next});
  });
  const std::string expected = "rank " + std::to_string((2 * size - 2) % size) +
                               " sends 1 block to rank " + std::to_string(size - 1) +
                               ", which expects 0";
  EXPECT_NE(edges.find(expected), edges.npos) << edges;
  expect_error(errc::invalid_rank, [&] {
    neighborhood(world, {}, rank == 0 ? std::vector<int>{size} : std::vector<int>{});
  });
  expect_error(errc::invalid_argument, [&] { (void)neighborhood::grid(world, {size, 2}); });
  expect_error(errc::invalid_argument, [&] { (void)neighborhood::grid(world, {0}); });
  expect_error(errc::invalid_argument,
               [&] { (void)neighborhood::grid(world, {size}, {true, true}); });
  expect_error(rank == 0 ? errc::invalid_argument : errc::mismatch,
               [&] { (void)neighborhood::grid(world, {rank == 0 ? size + 1 : size}); });
  auto line = neighborhood::grid(world, {size});
  expect_error(errc::invalid_count, [&] {
    std::vector<sycl::buffer<int>> none;
    (void)line.exchange(none, none);
  });
  world.blocking().barrier();
}

}  // namespace
}  // namespace sucl::testing
