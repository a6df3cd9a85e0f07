// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Every call of <sucl/mpi.hpp>: that each argument arrives in the right parameter.
#include "ranks/fixture.hpp"

#include <sucl/mpi.hpp>

namespace sucl::testing::wrappers {
namespace {

using mpi::in_place;
using sizes = std::vector<std::size_t>;

constexpr std::size_t n = 5;

struct wrapper : ::testing::Test {
  communicator comm = fixture().world;
  sycl::queue q = fixture().in_order;  // not the communicator's own
  const int rank = comm.rank();
  const int size = comm.size();
  const std::size_t p = static_cast<std::size_t>(size);
  const int root = size - 1;
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;
  shared<int> x{2 * n * p, q}, y{2 * n * p, q};
  // Rank r has r + 1 elements, with a gap of one before each block.
  sizes counts = [this] {
    sizes c(p);
    for (std::size_t r = 0; r < p; ++r) c[r] = r + 1;
    return c;
  }();
  sizes displs = [this] {
    sizes d(p);
    for (std::size_t r = 0, at = 1; r < p; at += counts[r++] + 1) d[r] = at;
    return d;
  }();
  std::size_t total = displs.back() + counts.back();
  shared<int> xv{total, q}, yv{total, q};

  // Element i of what rank r sends.
  static int value(int r, std::size_t i) { return 100 * r + static_cast<int>(i); }
  void SetUp() override {
    q.wait();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(rank, i), y[i] = -1;
    for (std::size_t i = 0; i < total; ++i) xv[i] = value(rank, i), yv[i] = -1;
  }
  /// Expects that `got` has `count` elements `want(i)`, and nothing after them.
  template <class Want>
  void expect(const shared<int>& got, std::size_t count, Want&& want, int after = -1) {
    q.wait();
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(got[i], want(i)) << i;
    if (count < got.size()) {
      EXPECT_EQ(got[count], after);
    }
    SetUp();
  }
  int sum(std::size_t i, int ranks) const {
    return 100 * (ranks * (ranks - 1) / 2) + ranks * static_cast<int>(i);
  }
};

TEST_F(wrapper, send_and_recv) {
  auto aside = comm.dup();
  sycl::queue out = fixture().queue;
  auto sent = mpi::send(out, x.get(), n, next, 7, aside);
  mpi::recv(q, y.get(), n, last, 7, aside);
  expect(y, n, [&](std::size_t i) { return value(last, i); });
  sent.wait();
  sycl::buffer<int, 1> from(x.get(), sycl::range<1>(n)), to{sycl::range<1>(n)};
  mpi::send(out, from, n, next, 8, aside);
  mpi::recv(q, to, n, last, 8, aside);
  EXPECT_EQ(sycl::host_accessor{to}[n - 1], value(last, n - 1));
}

TEST_F(wrapper, messages_to_no_rank) {
  y[0] = -5;
  mpi::send(q, x.get(), n, mpi::proc_null, 1, comm).wait();
  mpi::recv(q, y.get(), n, mpi::proc_null, 1, comm).wait();
  EXPECT_EQ(y[0], -5);
}

TEST_F(wrapper, sendrecv) {
  mpi::sendrecv(q, x.get(), n, next, 3, y.get(), n, last, 3, comm);
  expect(y, n, [&](std::size_t i) { return value(last, i); });
  mpi::sendrecv(q, in_place, n, next, 3, x.get(), n, last, 3, comm);
  expect(x, n, [&](std::size_t i) { return value(last, i); }, value(rank, n));
  // The tag is the sender's.
  mpi::sendrecv(q, x.get(), n - 1, next, rank, y.get(), n - 1, last, last, comm);
  expect(y, n - 1, [&](std::size_t i) { return value(last, i); });
  const auto text = expect_error(errc::invalid_argument, [&] {
    mpi::sendrecv(q, in_place, n, next, 1, x.get(), n, last, 2, comm);
  });
  EXPECT_NE(text.find("send tag 1 and receive tag 2"), std::string::npos) << text;
}

TEST_F(wrapper, barrier_and_bcast) {
  auto done = mpi::barrier(q, comm);
  mpi::bcast(q, x.get(), n, root, comm, {done});
  expect(x, n, [&](std::size_t i) { return value(root, i); }, value(rank, n));
}

TEST_F(wrapper, reductions) {
  const auto all = [&](std::size_t i) { return sum(i, size); };
  mpi::reduce(q, x.get(), y.get(), n, op::sum, root, comm);
  if (rank == root)
    expect(y, n, all);
  else
    expect(y, 0, all);
  mpi::allreduce(q, x.get(), y.get(), n, op::sum, comm);
  expect(y, n, all);
  mpi::allreduce(q, in_place, x.get(), n, op::max, comm);
  expect(x, n, [&](std::size_t i) { return value(size - 1, i); }, value(rank, n));
  mpi::scan(q, x.get(), y.get(), n, op::sum, comm);
  expect(y, n, [&](std::size_t i) { return sum(i, rank + 1); });
  mpi::exscan(q, x.get(), y.get(), n, op::sum, comm);
  expect(y, rank == 0 ? 0 : n, [&](std::size_t i) { return sum(i, rank); });
  const auto mine = static_cast<std::size_t>(rank);
  mpi::reduce_scatter_block(q, x.get(), y.get(), n, op::sum, comm);
  expect(y, n, [&](std::size_t i) { return sum(n * mine + i, size); });
  std::size_t before = 0;
  for (std::size_t r = 0; r < mine; ++r) before += counts[r];
  mpi::reduce_scatter(q, x.get(), y.get(), counts, op::sum, comm);
  expect(y, counts[mine], [&](std::size_t i) { return sum(before + i, size); });
}

TEST_F(wrapper, gathers) {
  const auto blocks = [&](std::size_t i) { return value(static_cast<int>(i / n), i % n); };
  mpi::allgather(q, x.get(), n, y.get(), n, comm);
  expect(y, n * p, blocks);
  mpi::gather(q, x.get(), n, y.get(), n, root, comm);
  expect(y, rank == root ? n * p : 0, blocks);
  // In element i of a block of `displs`, or a gap.
  const auto spread = [&](std::size_t i) {
    for (std::size_t r = 0; r < p; ++r)
      if (i >= displs[r] && i < displs[r] + counts[r])
        return value(static_cast<int>(r), i - displs[r]);
    return -1;
  };
  const auto mine = counts[static_cast<std::size_t>(rank)];
  mpi::allgatherv(q, xv.get(), mine, yv.get(), counts, displs, comm);
  expect(yv, total, spread);
  mpi::gatherv(q, xv.get(), mine, yv.get(), counts, displs, root, comm);
  expect(yv, rank == root ? total : 0, spread);
}

TEST_F(wrapper, scatters) {
  const auto mine = static_cast<std::size_t>(rank);
  mpi::scatter(q, x.get(), n, y.get(), n, root, comm);
  expect(y, n, [&](std::size_t i) { return value(root, n * mine + i); });
  mpi::scatterv(q, xv.get(), counts, displs, y.get(), counts[mine], root, comm);
  expect(y, counts[mine], [&](std::size_t i) { return value(root, displs[mine] + i); });
}

TEST_F(wrapper, alltoalls) {
  const auto mine = static_cast<std::size_t>(rank);
  mpi::alltoall(q, x.get(), n, y.get(), n, comm);
  expect(y, n * p, [&](std::size_t i) { return value(static_cast<int>(i / n), n * mine + i % n); });
  // Rank s sends r + 1 elements to rank r; who receives them has them one after the other.
  sizes same(p, counts[mine]), dense(p);
  for (std::size_t r = 0; r < p; ++r) dense[r] = r * counts[mine];
  shared<int> got(p * counts[mine], q, -1);
  mpi::alltoallv(q, xv.get(), counts, displs, got.get(), same, dense, comm);
  q.wait();
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i], value(static_cast<int>(i / counts[mine]), displs[mine] + i % counts[mine]));
}

TEST_F(wrapper, counts_that_differ) {
  expect_error(errc::invalid_count, [&] { mpi::allgather(q, x.get(), n, y.get(), 1, comm); });
  expect_error(errc::invalid_count, [&] { mpi::alltoall(q, x.get(), n, y.get(), 1, comm); });
  if (rank == root) {
    expect_error(errc::invalid_count, [&] { mpi::gather(q, x.get(), n, y.get(), 1, root, comm); });
    expect_error(errc::invalid_count, [&] { mpi::scatter(q, x.get(), n, y.get(), 1, root, comm); });
  }
}

}  // namespace
}  // namespace sucl::testing::wrappers
