// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Reductions by ops of the program's own, whose operands SuCL moves and MPI applies: every kind and
// form, where the order shows; and what functions promise that say of a request that it is over,
// but leave it. Exit status 1 if anything is wrong. To be run interposed, without trials: there is
// no other collective, so that the summary shows whether SuCL has executed these.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

int g_rank = 0, g_size = 1, g_failures = 0, g_calls = 0;

// x -> first * x + second, modulo 2^32. To do one after another is associative, and does not
// commute. MPI_2INT has its layout, and is a type of MPI's.
struct map {
  unsigned first, second;
  bool operator==(const map&) const = default;
};
using maps = std::vector<map>;

map after(map a, map b) { return {a.first * b.first, a.second * b.first + b.second}; }

void apply(void* in, void* inout, int* n, MPI_Datatype*) {
  ++g_calls;
  auto *a = static_cast<map*>(in), *b = static_cast<map*>(inout);
  for (int i = 0; i < *n; ++i) b[i] = after(a[i], b[i]);
}

map operand(int rank, int i) { return {2 * unsigned(rank + i) + 3, unsigned(rank * 7 + i)}; }

maps operands(int rank, int n, int from = 0) {
  maps all;
  for (int i = 0; i < n; ++i) all.push_back(operand(rank, from + i));
  return all;
}

// Of ranks 0 to `last`.
maps reduced(int last, int n, int from = 0) {
  maps all = operands(0, n, from);
  for (int r = 1; r <= last; ++r)
    for (int i = 0; i < n; ++i)
      all[std::size_t(i)] = after(all[std::size_t(i)], operand(r, from + i));
  return all;
}

void expect(bool right, const char* what, int n) {
  if (right) return;
  std::fprintf(stderr, "rank %d: %s of %d is wrong\n", g_rank, what, n);
  ++g_failures;
}

bool begins_with(const maps& all, const maps& wanted) {
  return std::equal(wanted.begin(), wanted.end(), all.begin());
}

void blocking(MPI_Datatype type, MPI_Op op, int n) {
  const maps mine = operands(g_rank, n), nothing(mine.size());
  maps out = nothing;
  MPI_Allreduce(mine.data(), out.data(), n, type, op, MPI_COMM_WORLD);
  expect(out == reduced(g_size - 1, n), "allreduce", n);
  out = mine;
  MPI_Allreduce(MPI_IN_PLACE, out.data(), n, type, op, MPI_COMM_WORLD);
  expect(out == reduced(g_size - 1, n), "allreduce in place", n);
  for (int root = 0; root < g_size; ++root) {
    out = mine;
    const bool here = root == g_rank;
    MPI_Reduce(here ? MPI_IN_PLACE : mine.data(), here ? out.data() : nullptr, n, type, op, root,
               MPI_COMM_WORLD);
    expect(out == (here ? reduced(g_size - 1, n) : mine), "reduce", n);
  }
  out = nothing;
  MPI_Scan(mine.data(), out.data(), n, type, op, MPI_COMM_WORLD);
  expect(out == reduced(g_rank, n), "scan", n);
  out = mine;
  MPI_Exscan(MPI_IN_PLACE, out.data(), n, type, op, MPI_COMM_WORLD);
  expect(g_rank == 0 || out == reduced(g_rank - 1, n), "exscan in place", n);
  out = nothing;
  MPI_Exscan(mine.data(), out.data(), n, type, op, MPI_COMM_WORLD);
  expect(out == (g_rank == 0 ? nothing : reduced(g_rank - 1, n)), "exscan", n);
}

// Each rank has a block of its own, one of them none.
void scattered(MPI_Datatype type, MPI_Op op, int n) {
  std::vector<int> counts;
  int all = 0, before = 0;
  for (int r = 0; r < g_size; ++r) {
    counts.push_back(n * r);
    if (r < g_rank) before += n * r;
    all += n * r;
  }
  const maps wide = operands(g_rank, n * g_size), uneven = operands(g_rank, all);
  maps out(std::size_t(n), map{}), part(std::size_t(n * g_rank) + 1, map{});
  MPI_Reduce_scatter_block(wide.data(), out.data(), n, type, op, MPI_COMM_WORLD);
  expect(out == reduced(g_size - 1, n, n * g_rank), "reduce_scatter_block", n);
  MPI_Reduce_scatter(uneven.data(), part.data(), counts.data(), type, op, MPI_COMM_WORLD);
  expect(begins_with(part, reduced(g_size - 1, n * g_rank, before)), "reduce_scatter", n);
  maps in_place = wide;
  MPI_Reduce_scatter_block(MPI_IN_PLACE, in_place.data(), n, type, op, MPI_COMM_WORLD);
  expect(begins_with(in_place, reduced(g_size - 1, n, n * g_rank)), "in place", n);
}

// The op is freed before they are over, or have even begun. Open MPI 5.0 itself crashes then.
void going_on(int n) {
  for (const bool persistent : {false, true}) {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(apply, 0, &op);
    const maps mine = operands(g_rank, n);
    maps all(mine.size()), some(mine.size()), at_root(mine.size());
    MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (persistent) {
      MPI_Allreduce_init(mine.data(), all.data(), n, MPI_2INT, op, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &r[0]);
      MPI_Scan_init(mine.data(), some.data(), n, MPI_2INT, op, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &r[1]);
      MPI_Reduce_init(mine.data(), at_root.data(), n, MPI_2INT, op, 0, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &r[2]);
    } else {
      MPI_Iallreduce(mine.data(), all.data(), n, MPI_2INT, op, MPI_COMM_WORLD, &r[0]);
      MPI_Iscan(mine.data(), some.data(), n, MPI_2INT, op, MPI_COMM_WORLD, &r[1]);
      MPI_Ireduce(mine.data(), at_root.data(), n, MPI_2INT, op, 0, MPI_COMM_WORLD, &r[2]);
    }
    MPI_Op_free(&op);
    expect(op == MPI_OP_NULL, "the handle of a freed op", n);
    for (int round = 0; round < (persistent ? 3 : 1); ++round) {
      if (persistent) {
        for (maps* out : {&all, &some, &at_root}) out->assign(mine.size(), map{});
        MPI_Startall(3, r);
      }
      MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
      expect(all == reduced(g_size - 1, n), "an allreduce that goes on", n);
      expect(some == reduced(g_rank, n), "a scan that goes on", n);
      expect(g_rank != 0 || at_root == reduced(g_size - 1, n), "a reduce that goes on", n);
    }
    for (int i = 0; persistent && i < 3; ++i) MPI_Request_free(&r[i]);
  }
}

// Until the function says that the request is over. Some are of MPI 4.1.
void ask(int by, MPI_Request* r) {
  int flag = 0, index = -1;
  while (!flag) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    if (by == 1) MPI_Request_get_status_all(1, r, &flag, MPI_STATUSES_IGNORE);
    if (by == 2) MPI_Request_get_status_any(1, r, &index, &flag, MPI_STATUS_IGNORE);
    if (by == 3) MPI_Request_get_status_some(1, r, &flag, &index, MPI_STATUSES_IGNORE);
    if (by > 0) continue;
#endif
    MPI_Request_get_status(*r, &flag, MPI_STATUS_IGNORE);
  }
  static_cast<void>(by + index);
}

// From then on the memory is the program's: it has the result, and what the program writes stays.
void told(MPI_Op op, int n) {
  MPI_Datatype spread = MPI_DATATYPE_NULL, column = MPI_DATATYPE_NULL;
  MPI_Type_vector(n, 1, 3, MPI_2INT, &spread);
  MPI_Type_create_resized(spread, 0, MPI_Aint(3 * sizeof(map)) * n, &column);
  MPI_Type_commit(&column);
  const maps mine = operands(g_rank, n), marks(mine.size(), map{77, 78});
  for (int by = 0; by < 4; ++by)
    for (const bool free : {false, true}) {
      maps sums(mine.size()), spaced(3 * mine.size() * std::size_t(g_size));
      MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      MPI_Iallreduce(mine.data(), sums.data(), n, MPI_2INT, op, MPI_COMM_WORLD, &r[0]);
      MPI_Iallgather(mine.data(), n, MPI_2INT, spaced.data(), 1, column, MPI_COMM_WORLD, &r[1]);
      for (MPI_Request& one : r) ask(by, &one);
      expect(sums == reduced(g_size - 1, n), "a sum before its request is gone", n);
      maps gathered;
      for (std::size_t i = 0; i < spaced.size(); i += 3) gathered.push_back(spaced[i]);
      maps wanted;
      for (int k = 0; k < g_size; ++k) {
        const maps of_rank = operands(k, n);
        wanted.insert(wanted.end(), of_rank.begin(), of_rank.end());
      }
      expect(gathered == wanted, "a column before its request is gone", n);
      sums = marks;
      spaced.assign(spaced.size(), marks[0]);
      // Libraries let a program free one that is over, too.
      for (MPI_Request& one : r)
        expect((free ? MPI_Request_free(&one) : MPI_Wait(&one, MPI_STATUS_IGNORE)) == MPI_SUCCESS &&
                   one == MPI_REQUEST_NULL,
               "the end of a request", n);
      expect(sums == marks && spaced == maps(spaced.size(), marks[0]), "what was written later", n);
    }
  MPI_Type_free(&spread);
  MPI_Type_free(&column);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(apply, 0, &op);
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
  MPI_Type_commit(&pair);
  for (const int n : {1, 7, 2000})
    for (MPI_Datatype type : {MPI_2INT, pair}) {
      blocking(type, op, n);
      scattered(type, op, n);
    }
  expect(g_calls > 0, "the number of calls", g_calls);
  going_on(5);
  going_on(3000);
  told(op, 1);
  told(op, 900);
  // More than is moved.
  const int large = 700000;
  maps all(std::size_t{large}, map{});
  const maps mine = operands(g_rank, large);
  MPI_Allreduce(mine.data(), all.data(), large, MPI_2INT, op, MPI_COMM_WORLD);
  expect(all == reduced(g_size - 1, large), "allreduce", large);
  MPI_Type_free(&pair);
  MPI_Op_free(&op);
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
