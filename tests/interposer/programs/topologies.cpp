// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Collectives between neighbours, and between groups, which MPI executes, beside others on the same
// communicators, which SuCL executes. Exit status 1 if anything is wrong. To be run interposed.
#include "../library_faults.hpp"

#include <mpi.h>

#include <cstdio>
#include <functional>
#include <vector>

namespace {

int g_rank = 0, g_size = 1, g_failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "rank %d: %s is wrong\n", g_rank, what);
  ++g_failures;
}

// SuCL's own, with a request of its own among those of MPI.
void with_a_sum(MPI_Comm comm, std::vector<MPI_Request> requests) {
  int size = 1, all = -1;
  const int one = 1;
  MPI_Comm_size(comm, &size);
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm, &r);
  requests.insert(requests.begin(), r);
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  expect(all == size, "a sum beside neighbours");
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  expect(all == size, "a sum between neighbours' calls");
}

using starter = std::function<void(MPI_Request*)>;

// Neighbours: in a ring the previous rank, this one and the next; in a line, where ends have none,
// the previous and the next. Block i of what is sent goes to neighbour `to[i]`, block i of what is
// received comes from `from[i]`, which has sent it as its block `as[i]`.
struct neighbours {
  MPI_Comm comm;
  std::vector<int> from, as;

  int count() const { return int(from.size()); }
  static int block(int rank, int index, int i) { return rank * 1000 + index * 100 + i; }

  // `same`: every neighbour is sent the same block. A block without a sender stays as it is.
  std::vector<int> wanted(int n, bool same) const {
    std::vector<int> all;
    for (std::size_t b = 0; b < from.size(); ++b)
      for (int i = 0; i < n; ++i)
        all.push_back(from[b] == MPI_PROC_NULL ? -1 : block(from[b], same ? 0 : as[b], i));
    return all;
  }
};

constexpr int n = 3;

struct arrays {
  std::vector<int> counts, displs, bytes, sent, received;
  std::vector<MPI_Aint> byte_displs;
  std::vector<MPI_Datatype> types;

  explicit arrays(const neighbours& at) : received(std::size_t(at.count() * n), -1) {
    for (int b = 0; b < at.count(); ++b) {
      counts.push_back(n);
      displs.push_back(b * n);
      byte_displs.push_back(MPI_Aint(b * n * int(sizeof(int))));
      types.push_back(MPI_INT);
      for (int i = 0; i < n; ++i) sent.push_back(neighbours::block(g_rank, b, i));
    }
  }
  void check(const neighbours& at, bool same, const char* what) {
    expect(received == at.wanted(n, same), what);
    received.assign(received.size(), -1);
  }
};

void blocking(const neighbours& at) {
  arrays a(at);
  MPI_Neighbor_allgather(a.sent.data(), n, MPI_INT, a.received.data(), n, MPI_INT, at.comm);
  a.check(at, true, "neighbor_allgather");
  MPI_Neighbor_allgatherv(a.sent.data(), n, MPI_INT, a.received.data(), a.counts.data(),
                          a.displs.data(), MPI_INT, at.comm);
  a.check(at, true, "neighbor_allgatherv");
  MPI_Neighbor_alltoall(a.sent.data(), n, MPI_INT, a.received.data(), n, MPI_INT, at.comm);
  a.check(at, false, "neighbor_alltoall");
  MPI_Neighbor_alltoallv(a.sent.data(), a.counts.data(), a.displs.data(), MPI_INT,
                         a.received.data(), a.counts.data(), a.displs.data(), MPI_INT, at.comm);
  a.check(at, false, "neighbor_alltoallv");
  MPI_Neighbor_alltoallw(a.sent.data(), a.counts.data(), a.byte_displs.data(), a.types.data(),
                         a.received.data(), a.counts.data(), a.byte_displs.data(), a.types.data(),
                         at.comm);
  a.check(at, false, "neighbor_alltoallw");
#if MPI_VERSION >= 4
  const std::vector<MPI_Count> counts(a.counts.begin(), a.counts.end());
  const std::vector<MPI_Aint> displs(a.displs.begin(), a.displs.end());
  MPI_Neighbor_allgather_c(a.sent.data(), n, MPI_INT, a.received.data(), n, MPI_INT, at.comm);
  a.check(at, true, "neighbor_allgather_c");
  MPI_Neighbor_alltoallv_c(a.sent.data(), counts.data(), displs.data(), MPI_INT, a.received.data(),
                           counts.data(), displs.data(), MPI_INT, at.comm);
  a.check(at, false, "neighbor_alltoallv_c");
#endif
}

void non_blocking(const neighbours& at) {
  arrays a(at), v(at);
  MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Ineighbor_allgather(a.sent.data(), n, MPI_INT, a.received.data(), n, MPI_INT, at.comm, &r[0]);
  MPI_Ineighbor_alltoallv(v.sent.data(), v.counts.data(), v.displs.data(), MPI_INT,
                          v.received.data(), v.counts.data(), v.displs.data(), MPI_INT, at.comm,
                          &r[1]);
  with_a_sum(at.comm, {r[0], r[1]});
  a.check(at, true, "ineighbor_allgather");
  v.check(at, false, "ineighbor_alltoallv");
  MPI_Ineighbor_alltoall(a.sent.data(), n, MPI_INT, a.received.data(), n, MPI_INT, at.comm, &r[0]);
  MPI_Ineighbor_alltoallw(v.sent.data(), v.counts.data(), v.byte_displs.data(), v.types.data(),
                          v.received.data(), v.counts.data(), v.byte_displs.data(), v.types.data(),
                          at.comm, &r[1]);
  with_a_sum(at.comm, {r[0], r[1]});
  a.check(at, false, "ineighbor_alltoall");
  v.check(at, false, "ineighbor_alltoallw");
  MPI_Ineighbor_allgatherv(a.sent.data(), n, MPI_INT, a.received.data(), a.counts.data(),
                           a.displs.data(), MPI_INT, at.comm, &r[0]);
  with_a_sum(at.comm, {r[0]});
  a.check(at, true, "ineighbor_allgatherv");
}

void persistent(const neighbours& at) {
#if MPI_VERSION >= 4
  if (!persistent_works) return;
  arrays a(at), v(at);
  MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Neighbor_allgather_init(a.sent.data(), n, MPI_INT, a.received.data(), n, MPI_INT, at.comm,
                              MPI_INFO_NULL, &r[0]);
  MPI_Neighbor_alltoallw_init(v.sent.data(), v.counts.data(), v.byte_displs.data(), v.types.data(),
                              v.received.data(), v.counts.data(), v.byte_displs.data(),
                              v.types.data(), at.comm, MPI_INFO_NULL, &r[1]);
  for (int round = 0; round < 3; ++round) {
    MPI_Startall(2, r);
    with_a_sum(at.comm, {r[0], r[1]});
    a.check(at, true, "neighbor_allgather_init");
    v.check(at, false, "neighbor_alltoallw_init");
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
#else
  static_cast<void>(at);
#endif
}

void between_neighbours() {
  const int before = (g_rank + g_size - 1) % g_size, next = (g_rank + 1) % g_size;
  const int sources[] = {before, g_rank, next}, destinations[] = {next, g_rank, before};
  neighbours ring{MPI_COMM_NULL, {before, g_rank, next}, {0, 1, 2}};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, MPI_UNWEIGHTED, 3, destinations,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring.comm);
  const int ends[] = {0};
  const bool first = g_rank == 0, last = g_rank == g_size - 1;
  neighbours line{MPI_COMM_NULL,
                  {first ? MPI_PROC_NULL : g_rank - 1, last ? MPI_PROC_NULL : g_rank + 1},
                  {1, 0}};
  MPI_Cart_create(MPI_COMM_WORLD, 1, &g_size, ends, 0, &line.comm);
  for (neighbours* of : {&ring, &line}) {
    for (int round = 0; round < 8; ++round) {  // SuCL sets itself up meanwhile
      blocking(*of);
      non_blocking(*of);
    }
    persistent(*of);
    MPI_Comm_free(&of->comm);
  }
}

// One group is rank 0, the other one the rest: each gets what the other has. SuCL says nothing.
void between_groups() {
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, all = MPI_COMM_NULL;
  const int second = g_rank > 0;
  MPI_Comm_split(MPI_COMM_WORLD, second, g_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, second ? 0 : 1, 5, &inter);
  const int remote = second ? 1 : g_size - 1, first = second ? 0 : 1;
  const int theirs = second ? 0 : g_size * (g_size - 1) / 2;
  std::vector<int> others, counts(std::size_t(remote), 1), displs;
  for (int r = 0; r < remote; ++r) others.push_back(first + r), displs.push_back(r);
  for (int i = 0; i < 8; ++i) {
    int sum = -1, later = -1, word = second ? -1 : i;
    MPI_Request r[3];
    std::vector<int> in(std::size_t(remote), -1), out(std::size_t(remote), g_rank), late = in;
    MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    expect(sum == theirs, "a sum between groups");
    MPI_Bcast(&word, 1, MPI_INT, second ? 0 : MPI_ROOT, inter);
    expect(word == i, "a broadcast between groups");
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, inter);
    expect(in == others, "an alltoall between groups");
    in.assign(in.size(), -1);
    MPI_Allgatherv(&g_rank, 1, MPI_INT, in.data(), counts.data(), displs.data(), MPI_INT, inter);
    expect(in == others, "an allgatherv between groups");
    MPI_Barrier(inter);
    MPI_Ibarrier(inter, &r[0]);
    MPI_Iallreduce(&g_rank, &later, 1, MPI_INT, MPI_MAX, inter, &r[1]);
    MPI_Iallgather(&g_rank, 1, MPI_INT, late.data(), 1, MPI_INT, inter, &r[2]);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    expect(later == others.back() && late == others, "what goes on between groups");
  }
  MPI_Intercomm_merge(inter, second, &all);
  for (int i = 0; i < 8; ++i) with_a_sum(all, {});
  MPI_Comm_free(&all);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

// A topology of fewer processes than there are: its group has all of them in MPICH 5.0.2.
void among_fewer() {
  const int fewer = g_size - 1, ends[] = {1};
  std::vector<int> last, edges;
  for (int r = 0; r < fewer; ++r) {
    edges.push_back((r + 1) % fewer);
    last.push_back(int(edges.size()));
  }
  for (const bool graph : {false, true}) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (graph)
      MPI_Graph_create(MPI_COMM_WORLD, fewer, last.data(), edges.data(), 0, &comm);
    else
      MPI_Cart_create(MPI_COMM_WORLD, 1, &fewer, ends, 0, &comm);
    expect((comm != MPI_COMM_NULL) == (g_rank < fewer), "who is in a topology of fewer");
    if (comm == MPI_COMM_NULL) continue;
    for (int i = 0; i < 8; ++i) with_a_sum(comm, {});
    MPI_Comm_free(&comm);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  between_neighbours();
  between_groups();
  among_fewer();
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
