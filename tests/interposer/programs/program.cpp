// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// An MPI program that knows nothing of SuCL. Every collective in the forms that MPI allows, checked
// against what it must give; exit status 1 if anything is wrong. To be run interposed.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

int g_rank = 0;
int g_failures = 0;

void expect(bool right, const char* what, int count) {
  if (right) return;
  std::fprintf(stderr, "rank %d: %s of %d is wrong\n", g_rank, what, count);
  ++g_failures;
}

struct comm_position {
  MPI_Comm comm;
  int rank;
  int size;
  explicit comm_position(MPI_Comm c) : comm(c) {
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
  }
};

// A value that tells rank and position, small enough for exact sums of floats.
template <class T>
T value(int rank, int i) {
  return static_cast<T>((rank * 7 + i * 3) % 11 + 1);
}

template <class T>
std::vector<T> input(int rank, int count) {
  std::vector<T> data(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) data[static_cast<std::size_t>(i)] = value<T>(rank, i);
  return data;
}

template <class T>
std::vector<T> sum(int ranks, int count) {
  std::vector<T> data(static_cast<std::size_t>(count));
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < count; ++i) data[static_cast<std::size_t>(i)] += value<T>(r, i);
  return data;
}

template <class T>
void reductions(const comm_position& at, MPI_Datatype type, int n) {
  const auto mine = input<T>(at.rank, n);
  const auto all = sum<T>(at.size, n);
  std::vector<T> out(static_cast<std::size_t>(n));
  MPI_Allreduce(mine.data(), out.data(), n, type, MPI_SUM, at.comm);
  expect(out == all, "allreduce", n);
  out = mine;
  MPI_Allreduce(MPI_IN_PLACE, out.data(), n, type, MPI_SUM, at.comm);
  expect(out == all, "allreduce in place", n);

  const int root = at.size - 1;
  out.assign(out.size(), T{});
  MPI_Reduce(mine.data(), out.data(), n, type, MPI_SUM, root, at.comm);
  expect(at.rank != root || out == all, "reduce", n);
  out = mine;
  MPI_Reduce(at.rank == root ? MPI_IN_PLACE : out.data(), at.rank == root ? out.data() : nullptr, n,
             type, MPI_SUM, root, at.comm);
  expect(at.rank != root || out == all, "reduce in place", n);

  const auto wide = input<T>(at.rank, n * at.size);
  const auto blocks = sum<T>(at.size, n * at.size);
  const std::vector<T> block(blocks.begin() + at.rank * n, blocks.begin() + (at.rank + 1) * n);
  MPI_Reduce_scatter_block(wide.data(), out.data(), n, type, MPI_SUM, at.comm);
  expect(out == block, "reduce_scatter_block", n);
  const std::vector<int> counts(static_cast<std::size_t>(at.size), n);
  out.assign(out.size(), T{});
  MPI_Reduce_scatter(wide.data(), out.data(), counts.data(), type, MPI_SUM, at.comm);
  expect(out == block, "reduce_scatter", n);

  MPI_Scan(mine.data(), out.data(), n, type, MPI_SUM, at.comm);
  expect(out == sum<T>(at.rank + 1, n), "scan", n);
  MPI_Exscan(mine.data(), out.data(), n, type, MPI_SUM, at.comm);
  expect(at.rank == 0 || out == sum<T>(at.rank, n), "exscan", n);
}

void other_ops(const comm_position& at, int n) {
  const auto mine = input<int>(at.rank, n);
  std::vector<int> out(mine.size());
  MPI_Allreduce(mine.data(), out.data(), n, MPI_INT, MPI_MAX, at.comm);
  auto largest = mine;
  for (int r = 0; r < at.size; ++r)
    for (int i = 0; i < n; ++i) {
      auto& x = largest[static_cast<std::size_t>(i)];
      x = std::max(x, value<int>(r, i));
    }
  expect(out == largest, "max", n);

  struct pair {
    double value;
    int index;
  };
  std::vector<pair> found(static_cast<std::size_t>(n));
  std::vector<pair> own(found.size());
  for (auto& p : own) p = {1.0, at.rank};
  MPI_Allreduce(own.data(), found.data(), n, MPI_DOUBLE_INT, MPI_MINLOC, at.comm);
  for (const auto& p : found) expect(p.value == 1.0 && p.index == 0, "minloc", n);

  // An op of the program's own, which only MPI knows.
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(
      [](void* in, void* inout, int* length, MPI_Datatype*) {
        for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] ^= static_cast<int*>(in)[i];
      },
      1, &op);
  auto mixed = mine;
  MPI_Allreduce(MPI_IN_PLACE, mixed.data(), n, MPI_INT, op, at.comm);
  MPI_Allreduce(mine.data(), out.data(), n, MPI_INT, MPI_BXOR, at.comm);
  expect(out == mixed, "an op of its own", n);
  MPI_Op_free(&op);
}

std::vector<double> inputs_of_all(const comm_position& at, int n) {
  std::vector<double> every;
  for (int r = 0; r < at.size; ++r)
    for (double x : input<double>(r, n)) every.push_back(x);
  return every;
}

void moves_to_all(const comm_position& at, int n) {
  const int last = at.size - 1;
  auto data = at.rank == last ? input<double>(last, n) : std::vector<double>(std::size_t(n));
  MPI_Bcast(data.data(), n, MPI_DOUBLE, last, at.comm);
  expect(data == input<double>(last, n), "broadcast", n);

  const std::vector<double> every = inputs_of_all(at, n);
  const auto mine = input<double>(at.rank, n);
  std::vector<double> out(every.size());
  MPI_Allgather(mine.data(), n, MPI_DOUBLE, out.data(), n, MPI_DOUBLE, at.comm);
  expect(out == every, "allgather", n);
  out.assign(out.size(), 0);
  std::copy(mine.begin(), mine.end(), out.begin() + at.rank * n);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), n, MPI_DOUBLE, at.comm);
  expect(out == every, "allgather in place", n);

  std::vector<int> counts;
  std::vector<int> displs;
  for (int r = 0; r < at.size; ++r) {
    counts.push_back(n);
    displs.push_back((last - r) * n);  // the blocks in reverse
  }
  std::vector<double> reversed;
  for (int r = last; r >= 0; --r)
    for (double x : input<double>(r, n)) reversed.push_back(x);
  out.assign(out.size(), 0);
  MPI_Allgatherv(mine.data(), n, MPI_DOUBLE, out.data(), counts.data(), displs.data(), MPI_DOUBLE,
                 at.comm);
  expect(out == reversed, "allgatherv", n);
}

void rooted_moves(const comm_position& at, int n) {
  const int last = at.size - 1;
  const auto mine = input<double>(at.rank, n);
  const std::vector<double> every = inputs_of_all(at, n);
  std::vector<double> out(every.size());
  MPI_Gather(mine.data(), n, MPI_DOUBLE, out.data(), n, MPI_DOUBLE, last, at.comm);
  expect(at.rank != last || out == every, "gather", n);
  std::copy(mine.begin(), mine.end(), out.begin() + at.rank * n);
  MPI_Gather(at.rank == 0 ? MPI_IN_PLACE : mine.data(), n, MPI_DOUBLE, out.data(), n, MPI_DOUBLE, 0,
             at.comm);
  expect(at.rank != 0 || out == every, "gather in place", n);

  std::vector<double> data(mine.size());
  MPI_Scatter(every.data(), n, MPI_DOUBLE, data.data(), n, MPI_DOUBLE, 0, at.comm);
  expect(data == mine, "scatter", n);
  data.assign(data.size(), 0);
  auto sent = every;
  MPI_Scatter(sent.data(), n, MPI_DOUBLE, at.rank == last ? MPI_IN_PLACE : data.data(), n,
              MPI_DOUBLE, last, at.comm);
  expect(at.rank == last ? sent == every : data == mine, "scatter in place", n);
}

void exchanges(const comm_position& at, int n) {
  std::vector<double> rows;
  std::vector<double> columns;
  for (int r = 0; r < at.size; ++r)
    for (int i = 0; i < n; ++i) {
      rows.push_back(value<double>(at.rank, r * 13 + i));
      columns.push_back(value<double>(r, at.rank * 13 + i));
    }
  std::vector<double> out(rows.size());
  MPI_Alltoall(rows.data(), n, MPI_DOUBLE, out.data(), n, MPI_DOUBLE, at.comm);
  expect(out == columns, "alltoall", n);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, rows.data(), n, MPI_DOUBLE, at.comm);
  expect(rows == columns, "alltoall in place", n);
  MPI_Barrier(at.comm);
}

// The same data described in different ways by different ranks.
void derived_types(const comm_position& at, int n) {
  MPI_Datatype strided = MPI_DATATYPE_NULL;
  MPI_Type_vector(n, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  const auto expected = input<int>(0, n);
  std::vector<int> wide(static_cast<std::size_t>(2 * n), -1);
  std::vector<int> flat(static_cast<std::size_t>(n), -1);
  for (int i = 0; i < n; ++i)
    if (at.rank == 0) wide[std::size_t(2 * i)] = flat[std::size_t(i)] = expected[std::size_t(i)];
  if (at.rank % 2 == 0)
    MPI_Bcast(wide.data(), 1, strided, 0, at.comm);
  else
    MPI_Bcast(flat.data(), n, MPI_INT, 0, at.comm);
  for (int i = 0; i < n; ++i)
    expect((at.rank % 2 == 0 ? wide[std::size_t(2 * i)] : flat[std::size_t(i)]) ==
               expected[std::size_t(i)],
           "broadcast of a vector", n);
  if (at.rank % 2 == 0 && n > 1) expect(wide[1] == -1, "the gap of a vector", n);

  // Each block as a vector on the even ranks.
  MPI_Datatype spaced = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(strided, 0, static_cast<MPI_Aint>(2 * n * int(sizeof(int))), &spaced);
  MPI_Type_commit(&spaced);
  const auto mine = input<int>(at.rank, n);
  std::vector<int> all(static_cast<std::size_t>(2 * n * at.size), -1);
  const bool even = at.rank % 2 == 0;
  MPI_Allgather(mine.data(), n, MPI_INT, all.data(), even ? 1 : n, even ? spaced : MPI_INT,
                at.comm);
  for (int r = 0; r < at.size; ++r)
    for (int i = 0; i < n; ++i)
      expect(all[std::size_t(even ? r * 2 * n + 2 * i : r * n + i)] == value<int>(r, i),
             "allgather of vectors", n);
  // The same on every rank: Open MPI's allgatherv hangs if they differ.
  const std::vector<int> counts(std::size_t(at.size), 1);
  std::vector<int> displs;
  for (int r = 0; r < at.size; ++r) displs.push_back(r);
  all.assign(all.size(), -1);
  MPI_Allgatherv(mine.data(), n, MPI_INT, all.data(), counts.data(), displs.data(), spaced,
                 at.comm);
  for (int r = 0; r < at.size; ++r)
    for (int i = 0; i < n; ++i)
      expect(all[std::size_t(r * 2 * n + 2 * i)] == value<int>(r, i), "allgatherv of vectors", n);
  MPI_Type_free(&spaced);
  MPI_Type_free(&strided);
}

// Types that were made with large counts, of which some functions of MPI may not be asked.
void types_of_large_counts([[maybe_unused]] const comm_position& at, [[maybe_unused]] int n) {
#if MPI_VERSION >= 4
  MPI_Datatype run = MPI_DATATYPE_NULL, copy = MPI_DATATYPE_NULL, spaced = MPI_DATATYPE_NULL;
  MPI_Type_contiguous_c(n, MPI_INT, &run);
  MPI_Type_dup(run, &copy);
  MPI_Type_vector_c(n, 1, 2, MPI_INT, &spaced);
  for (MPI_Datatype* type : {&run, &copy, &spaced}) {
    const int step = type == &spaced ? 2 : 1;
    MPI_Type_commit(type);
    std::vector<int> data(std::size_t(2 * n), -1);
    for (int i = 0; i < n && at.rank == 0; ++i) data[std::size_t(step * i)] = value<int>(0, i);
    MPI_Bcast(data.data(), 1, *type, 0, at.comm);
    for (int i = 0; i < n; ++i)
      expect(data[std::size_t(step * i)] == value<int>(0, i), "a type of a large count", n);
    expect(data[std::size_t(2 * n - 1)] == -1, "what is no part of it", n);
  }
  for (MPI_Datatype* type : {&run, &copy, &spaced}) MPI_Type_free(type);
#endif
}

// Calls of one class that look different, often enough for a decision to be looked at again.
void many_alike(const comm_position& at) {
  for (int i = 0; i < 2600; ++i) {
    const int root = (i / 7) % at.size, count = 5 + i % 3;
    auto data =
        at.rank == root ? input<int>(root + i, count) : std::vector<int>(std::size_t(count));
    MPI_Bcast(data.data(), count, MPI_INT, root, at.comm);
    expect(data == input<int>(root + i, count), "one broadcast of many", i);
  }
}

void everything(MPI_Comm comm, int count) {
  const comm_position at(comm);
  reductions<float>(at, MPI_FLOAT, count);
  reductions<int>(at, MPI_INT, count);
  reductions<long>(at, MPI_LONG, count);
  other_ops(at, count);
  moves_to_all(at, count);
  rooted_moves(at, count);
  exchanges(at, count);
  if (count > 0) derived_types(at, count);
  if (count > 0) types_of_large_counts(at, count);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string level = argc > 1 ? argv[1] : "single";
  if (level == "multiple") {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  // Often enough for trials, their decisions, and what comes after them.
  for (int round = 0; round < 6; ++round)
    for (int count : {0, 1, 5, 1000}) everything(MPI_COMM_WORLD, count);
  everything(MPI_COMM_WORLD, 70001);
  many_alike(comm_position(MPI_COMM_WORLD));
  // Communicators come and go, some with calls left over, some without any.
  for (int i = 0; i < 20; ++i) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 0 ? 0 : g_rank % 2, -g_rank, &half);
    if (i % 4 != 3) everything(half, i + 1);
    MPI_Comm_free(&half);
  }
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  everything(copy, 17);
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Finalize();  // ends the copy too
  return g_failures == 0 ? 0 : 1;
}
