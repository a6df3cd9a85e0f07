// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Types that are nothing or lie elsewhere than their buffer: of no size, at null on some ranks, of
// absolute addresses, behind or before their own beginning, and of Fortran's precisions. Exit
// status 1 if anything is wrong. To be run interposed, without trials.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace {

int g_rank = 0, g_size = 1, g_failures = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  ++g_failures;
  std::fprintf(stderr, "rank %d: %s is wrong\n", g_rank, what.c_str());
}

std::vector<int> all(int value) { return std::vector<int>(std::size_t(g_size), value); }

// Elements of a type without data: on rank 0 they are at null, and the others have ints, of which
// rank 0 gets none and gives none.
void nothing_at_null(MPI_Datatype nothing, const std::string& name) {
  const bool empty = g_rank == 0;
  std::vector<int> in(std::size_t(g_size), g_rank), out(std::size_t(g_size), -1);
  const MPI_Datatype type = empty ? nothing : MPI_INT;
  std::vector<int> counts = all(empty ? 5 : 1), offsets(std::size_t(g_size), 0);
  if (!empty) counts[0] = 0;
  const std::vector<int> taken = counts;  // equal arrays look like equal memory
  for (int r = 0; r < g_size && !empty; ++r) offsets[std::size_t(r)] = r;
  void* const from = empty ? nullptr : in.data();
  void* const to = empty ? nullptr : out.data();
  const auto right = [&](const std::string& what) {
    for (int r = 1; r < g_size && !empty; ++r)
      expect(out[std::size_t(r)] == r, what + " of " + name);
    std::fill(out.begin(), out.end(), -1);
  };
  MPI_Alltoallv(from, counts.data(), offsets.data(), type, to, taken.data(), offsets.data(), type,
                MPI_COMM_WORLD);
  right("alltoallv");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoallv(from, counts.data(), offsets.data(), type, to, taken.data(), offsets.data(), type,
                 MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  right("ialltoallv");
  // What is received from rank 0 is nothing.
  std::vector<int> lengths = all(1), displs(std::size_t(g_size), 0);
  lengths[0] = 0;
  for (int r = 0; r < g_size; ++r) displs[std::size_t(r)] = r;
  MPI_Allgatherv(from, empty ? 3 : 1, type, out.data(), lengths.data(), displs.data(), MPI_INT,
                 MPI_COMM_WORLD);
  if (empty) {
    for (int r = 1; r < g_size; ++r)
      expect(out[std::size_t(r)] == r, "allgatherv of " + name + " at rank 0");
    std::fill(out.begin(), out.end(), -1);
  } else {
    right("allgatherv");
  }
  const int root = g_size - 1;
  MPI_Gatherv(from, empty ? 3 : 1, type, out.data(), lengths.data(), displs.data(), MPI_INT, root,
              MPI_COMM_WORLD);
  if (g_rank == root) right("gatherv");
  int word = -1;
  MPI_Scatterv(in.data(), lengths.data(), displs.data(), MPI_INT, empty ? nullptr : &word,
               empty ? 3 : 1, type, root, MPI_COMM_WORLD);
  expect(word == (empty ? -1 : root), "scatterv of " + name);
}

// An element that is all of an array of ints, wherever the buffer is said to be.
void elsewhere() {
  std::vector<int> data(6), copies(std::size_t(g_size) * 3, -1);
  MPI_Aint address = 0;
  MPI_Get_address(data.data(), &address);
  const int lengths[] = {1, 2};
  const MPI_Aint offsets[] = {address + MPI_Aint(5 * sizeof(int)), address};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  MPI_Datatype absolute = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, offsets, types, &absolute);
  MPI_Type_commit(&absolute);
  for (int root = 0; root < g_size; ++root) {
    for (int i = 0; i < 6; ++i) data[std::size_t(i)] = g_rank == root ? 10 * root + i : -1;
    MPI_Bcast(MPI_BOTTOM, 1, absolute, root, MPI_COMM_WORLD);
    for (const int i : {0, 1, 5})
      expect(data[std::size_t(i)] == 10 * root + i, "a broadcast of addresses");
    if (g_rank != root) expect(data[2] == -1 && data[4] == -1, "memory between addresses");
  }
  for (int i = 0; i < 6; ++i) data[std::size_t(i)] = 10 * g_rank + i;
  MPI_Allgather(MPI_BOTTOM, 1, absolute, copies.data(), 3, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < g_size; ++r)
    expect(copies[std::size_t(3 * r)] == 10 * r + 5 && copies[std::size_t(3 * r + 2)] == 10 * r + 1,
           "an allgather of addresses");
  MPI_Type_free(&absolute);
}

// Elements that follow each other backwards, and whose data lies before where they begin.
void backwards() {
  MPI_Datatype before = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  const int length = 1;
  const MPI_Aint offset = -MPI_Aint(sizeof(int));
  MPI_Type_create_hindexed(1, &length, &offset, MPI_INT, &before);
  MPI_Type_create_resized(before, -MPI_Aint(2 * sizeof(int)), -MPI_Aint(sizeof(int)), &type);
  MPI_Type_commit(&type);
  const int n = 4;
  std::vector<int> data(std::size_t(n * g_size + 2), -1);
  int* const begin = data.data() + n * g_size;  // the first element is just before it
  for (int i = 0; i < n * g_size; ++i) begin[-1 - i] = i / n == g_rank ? 100 * g_rank + i % n : -1;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, begin, n, type, MPI_COMM_WORLD);
  for (int i = 0; i < n * g_size; ++i)
    expect(begin[-1 - i] == 100 * (i / n) + i % n, "an allgather backwards");
  expect(begin[0] == -1 && begin[1] == -1, "memory behind what goes backwards");
  std::vector<int> in(std::size_t(n * g_size)), out(in.size(), -1);
  for (int i = 0; i < n * g_size; ++i) in[std::size_t(i)] = 1000 * g_rank + i;
  MPI_Alltoall(in.data(), n, MPI_INT, out.data() + out.size(), n, type, MPI_COMM_WORLD);
  for (int i = 0; i < n * g_size; ++i)
    expect(out[out.size() - 1 - std::size_t(i)] == 1000 * (i / n) + g_rank * n + i % n,
           "an alltoall backwards");
  MPI_Type_free(&before);
  MPI_Type_free(&type);
}

// Predefined types without a name may not be freed by whom the library shows one.
void precisions() {
  MPI_Datatype real = MPI_DATATYPE_NULL, pair = MPI_DATATYPE_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code = MPI_Type_create_f90_real(15, 100, &real);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
  if (code != MPI_SUCCESS || real == MPI_DATATYPE_NULL) return;  // a library without Fortran
  for (int i = 0; i < 20; ++i) {
    MPI_Type_contiguous(2, real, &pair);
    MPI_Type_commit(&pair);
    double data[] = {g_rank == 0 ? 1.5 + i : -1, g_rank == 0 ? 2.5 + i : -1};
    MPI_Bcast(data, 1, pair, 0, MPI_COMM_WORLD);
    expect(data[0] == 1.5 + i && data[1] == 2.5 + i, "a broadcast of Fortran's reals");
    MPI_Type_free(&pair);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  for (int i = 0; i < 6; ++i) MPI_Barrier(MPI_COMM_WORLD);  // SuCL sets itself up
  MPI_Datatype nothing = MPI_DATATYPE_NULL, spread = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  nothing_at_null(nothing, "no elements");
  MPI_Type_create_resized(nothing, 0, 16, &spread);
  MPI_Type_commit(&spread);
  nothing_at_null(spread, "an extent alone");
  MPI_Type_free(&spread);
  MPI_Type_free(&nothing);
  elsewhere();
  backwards();
  precisions();
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
