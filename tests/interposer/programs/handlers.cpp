// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Handlers of the program's that call MPI, throw or jump out, at errors that SuCL finds: the call
// is over then but for the handler, and everything is of use afterwards. A root that gives itself
// more than it takes has such an error, alone. Exit status 1 if anything is wrong. To be run
// interposed, without trials, on at least two ranks.
#include <mpi.h>

#include <csetjmp>
#include <cstdio>
#include <stdexcept>

namespace {

enum class action { counts, calls, throws, jumps };
const char* const action_names[] = {"counts", "calls MPI", "throws", "jumps out"};
enum class function { blocking, wait, waitall, waitany, waitsome, test, testall };
const char* const function_names[] = {"Gather",   "Wait", "Waitall", "Waitany",
                                      "Waitsome", "Test", "Testall"};

int g_rank = 0, g_size = 1, g_failures = 0, g_handled = 0;
action g_action = action::counts;
std::jmp_buf g_target;
// Of the root: one that the others join when its handler has told them to.
MPI_Request g_later = MPI_REQUEST_NULL;
int g_late_sum = -1;

void expect(bool right, const char* what, action a, function f) {
  if (right) return;
  ++g_failures;
  std::fprintf(stderr, "rank %d: %s is wrong, with a handler that %s, in %s\n", g_rank, what,
               action_names[int(a)], function_names[int(f)]);
}

int sum_of_ranks() { return g_size * (g_size - 1) / 2; }

void handle(MPI_Comm*, int*, ...) {
  ++g_handled;
  if (g_action == action::calls) {
    const int word = 0;
    for (int r = 1; r < g_size; ++r) MPI_Send(&word, 1, MPI_INT, r, 3, MPI_COMM_WORLD);
    MPI_Wait(&g_later, MPI_STATUS_IGNORE);
    g_late_sum += 1;  // so that it is seen that the sum was there
  }
  if (g_action == action::throws) throw std::runtime_error("of the handler");
  if (g_action == action::jumps) std::longjmp(g_target, 1);
}

void complete(function f, MPI_Request* r) {
  constexpr int n = 2;
  int done = 0, which = 0, indices[n] = {};
  switch (f) {
    case function::wait: MPI_Wait(r, MPI_STATUS_IGNORE); break;
    case function::waitall: MPI_Waitall(n, r, MPI_STATUSES_IGNORE); break;
    case function::waitany: MPI_Waitany(1, r, &which, MPI_STATUS_IGNORE); break;
    case function::waitsome: MPI_Waitsome(1, r, &done, indices, MPI_STATUSES_IGNORE); break;
    case function::test:
      while (!done) MPI_Test(r, &done, MPI_STATUS_IGNORE);
      break;
    case function::testall:
      while (!done) MPI_Testall(n, r, &done, MPI_STATUSES_IGNORE);
      break;
    default: break;
  }
}

// The root's error, in a function that ends in the handler.
void gather(function f, MPI_Comm comm, MPI_Request* r, const int* in, int* out) {
  if (f == function::blocking) {
    MPI_Gather(in, 2, MPI_INT, out, 1, MPI_INT, 0, comm);
  } else {
    MPI_Igather(in, 2, MPI_INT, out, 1, MPI_INT, 0, comm, &r[0]);
    complete(f, r);
  }
}

void try_one(action a, function f, MPI_Comm comm, MPI_Comm other) {
  static int in[8], out[64];
  static MPI_Request r[2];  // as the others, not in what a jump may spoil
  static int sum, gone;
  g_action = a;
  g_handled = gone = 0;
  g_late_sum = sum = -1;
  r[0] = r[1] = MPI_REQUEST_NULL;
  const bool two = f == function::waitall || f == function::testall;
  if (two) MPI_Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r[1]);
  if (a == action::calls && g_rank == 0)
    MPI_Iallreduce(&g_rank, &g_late_sum, 1, MPI_INT, MPI_SUM, other, &g_later);
  try {
    if (setjmp(g_target) == 0)
      gather(f, comm, r, in, out);
    else
      gone = 1;
  } catch (const std::runtime_error&) {
    gone = 1;
  }
  if (a == action::calls && g_rank > 0) {
    int word = -1;
    MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&g_rank, &g_late_sum, 1, MPI_INT, MPI_SUM, other, &g_later);
    MPI_Wait(&g_later, MPI_STATUS_IGNORE);
    g_late_sum += 1;
  }
  expect(g_handled == (g_rank == 0), "how often the handler was called", a, f);
  expect(gone == (g_rank == 0 && a >= action::throws), "where the handler went", a, f);
  expect(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL, "a request", a, f);
  if (two) expect(sum == sum_of_ranks(), "the sum beside it", a, f);
  if (a == action::calls) {
    expect(g_later == MPI_REQUEST_NULL, "the request that the handler completed", a, f);
    expect(g_late_sum == sum_of_ranks() + 1, "the sum that the handler waited for", a, f);
  }
  for (int i = 0; i < 3; ++i) {
    int all = -1;
    MPI_Request later = MPI_REQUEST_NULL;
    MPI_Iallreduce(&g_rank, &all, 1, MPI_INT, MPI_SUM, comm, &later);
    MPI_Wait(&later, MPI_STATUS_IGNORE);
    expect(all == sum_of_ranks(), "a sum of a request afterwards", a, f);
    MPI_Allreduce(&g_rank, &all, 1, MPI_INT, MPI_SUM, other);
    expect(all == sum_of_ranks(), "a sum afterwards", a, f);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  MPI_Comm comm = MPI_COMM_NULL, other = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  for (MPI_Comm c : {comm, other}) MPI_Barrier(c);  // SuCL sets itself up
  for (const action a : {action::counts, action::calls, action::throws, action::jumps})
    for (const function f :
         {function::blocking, function::wait, function::waitall, function::waitany,
          function::waitsome, function::test, function::testall})
      try_one(a, f, comm, other);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
