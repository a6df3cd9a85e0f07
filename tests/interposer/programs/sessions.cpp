// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Communicators of sessions: without MPI_Init, where SuCL leaves the program alone, and beside it,
// where they outlive MPI_Finalize, and SuCL. Exit status 1 if anything is wrong. To be run
// interposed.
//
//   sessions alone|beside
#include "../library_faults.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

int g_failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "%s is wrong\n", what);
  ++g_failures;
}

struct session {
  MPI_Session handle = MPI_SESSION_NULL;
  session() { MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &handle); }
  ~session() { MPI_Session_finalize(&handle); }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  MPI_Comm communicator(const char* name) const {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group_from_session_pset(handle, "mpi://WORLD", &world);
    MPI_Comm_create_from_group(world, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    MPI_Group_free(&world);
    return made;
  }
};

// Often enough for SuCL to set itself up, in all forms.
void use(MPI_Comm comm) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int wanted = size * (size - 1) / 2;
  int prepared = -1;
  MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (int i = 0; i < 8; ++i) {
    int sum = -1, later = -1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Iallreduce(&rank, &later, 1, MPI_INT, MPI_SUM, comm, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    expect(sum == wanted && later == wanted, "a sum");
  }
  if (!persistent_works) return;
  MPI_Allreduce_init(&rank, &prepared, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[1]);
  for (int i = 0; i < 3; ++i) {
    prepared = -1;
    MPI_Start(&r[1]);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    expect(prepared == wanted, "a prepared sum");
  }
  MPI_Request_free(&r[1]);
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int alone() {
  const session s;
  MPI_Comm comm = s.communicator("alone");
  use(comm);
  const int rank = rank_of(comm);
  MPI_Comm_free(&comm);
  return rank;
}

int beside(int* argc, char*** argv) {
#if defined(I_MPI_NUMVERSION)  // takes no MPI_Init after a session
  MPI_Init(argc, argv);
#endif
  const session s;
  MPI_Comm before = s.communicator("before");
  use(before);
#if !defined(I_MPI_NUMVERSION)
  MPI_Init(argc, argv);
#endif
  const int rank = rank_of(MPI_COMM_WORLD);
  use(MPI_COMM_WORLD);
  MPI_Comm after = s.communicator("after"), copy = MPI_COMM_NULL;
  MPI_Comm_dup(after, &copy);
  for (MPI_Comm c : {before, after, copy}) use(c);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  for (MPI_Comm c : {before, after}) use(c);
  MPI_Comm_free(&after);
  MPI_Comm_free(&before);
  return rank;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_beside = argc > 1 && std::strcmp(argv[1], "beside") == 0;
  const int rank = is_beside ? beside(&argc, &argv) : alone();
  std::printf("rank %d: %d failures\n", rank, g_failures);
  return g_failures == 0 ? 0 : 1;
}
