// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Calls with wrong arguments, in all forms and with both widths of counts: each has to end as the
// library itself ends it, with the same class of error, the communicator's handler called as often,
// and the communicator of use afterwards. What some libraries do not survive themselves is left out
// there. To be run interposed.
//
//   wrong [tried]
//
// tried: with SuCL's five rounds of trials.
#include "wrong_calls.hpp"

#include <mpi.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Whether the library itself crashes, or spoils its memory.
bool is_too_wrong([[maybe_unused]] const row& r) {
#if defined(OPEN_MPI)
  return r.what == "Allgatherv: counts";
#elif defined(MPICH_VERSION) || defined(MPI_ABI_VERSION)
  const bool reduces =
      r.what.find("educe") != std::string::npos || r.what.find("can:") != std::string::npos;
  return reduces && (r.what.ends_with(": count") || r.what.ends_with(": type"));
#else
  return false;
#endif
}

void handle(MPI_Comm*, int*, ...) { ++g_handled; }

struct result {
  int error_class, handled;
};
result run(const row& what, form f, bool large, MPI_Comm comm, bool usual) {
  g_usual = usual;
  g_handled = 0;
  const int code = what.call(f, large, comm);
  result r{MPI_SUCCESS, g_handled};
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &r.error_class);
  return r;
}

void expect(bool right, const std::string& what) {
  if (right) return;
  ++g_failures;
  std::fprintf(stderr, "rank %d: %s\n", g_rank, what.c_str());
}

void still_works(MPI_Comm comm, const std::string& after) {
  int sum = -1;
  MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect(sum == g_size * (g_size - 1) / 2, "a sum is wrong after " + after);
}

void compare(const row& what, bool large, MPI_Comm comm) {
  for (const form f : {form::blocking, form::started, form::persistent}) {
    const std::string name = form_names[int(f)] + what.what + (large ? ", large" : "");
    const result found = run(what, f, large, comm, true), wanted = run(what, f, large, comm, false);
    expect(found.error_class == wanted.error_class,
           name + " is of class " + std::to_string(found.error_class) + ", not " +
               std::to_string(wanted.error_class));
    expect(found.handled == wanted.handled, name + " calls the handler " +
                                                std::to_string(found.handled) + " times, not " +
                                                std::to_string(wanted.handled));
    still_works(comm, name);
  }
}

// Only one rank is wrong, in a call that the others need not wait in or do not make; it makes the
// right one afterwards. From the first call on, so that ranks set up SuCL meanwhile.
void wrong_on_one() {
  for (int calls = 0; calls < 8; ++calls) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < calls; ++i) MPI_Barrier(comm);
    if (g_rank == 0) {
      expect(MPI_Allreduce(g_in, g_out, 2, MPI_INT, MPI_OP_NULL, comm) != MPI_SUCCESS, "an op");
      expect(MPI_Bcast(g_in, 2, no_type, 0, comm) != MPI_SUCCESS, "a type");
      expect(MPI_Gather(g_in, 2, MPI_INT, g_out, 2, no_type, 0, comm) != MPI_SUCCESS, "a type");
      expect(MPI_Reduce(g_in, MPI_IN_PLACE, 2, MPI_INT, MPI_SUM, 0, comm) != MPI_SUCCESS,
             "in place");
      if (checks_buffers) {
        expect(MPI_Gather(g_in, 2, MPI_INT, g_in, 2, MPI_INT, 0, comm) != MPI_SUCCESS, "an alias");
        expect(MPI_Scatter(g_in, 2, MPI_INT, g_in, 2, MPI_INT, 0, comm) != MPI_SUCCESS, "an alias");
      }
      expect(MPI_Reduce(g_in, g_in, 2, MPI_INT, MPI_SUM, 0, comm) != MPI_SUCCESS, "an alias");
    }
    for (int i = 0; i < 12; ++i) {
      int word = g_rank == 0 ? i : -1;
      MPI_Bcast(&word, 1, MPI_INT, 0, comm);
      expect(word == i, "a broadcast after errors of one rank is wrong");
      still_works(comm, "errors of one rank");
    }
    MPI_Comm_free(&comm);
  }
}

// The library refuses a persistent collective on one rank alone; the others have made theirs, and
// all go on with other calls. `barriers`: before, so that SuCL is set up or not. `again`: that rank
// then makes the right one.
void wrong_persistent_on_one(int barriers, bool again) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < barriers; ++i) MPI_Barrier(comm);
  std::vector<MPI_Request> made;
  int sums[3] = {-1, -1, -1};
  const auto make = [&](int* sum, MPI_Op op) {
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Allreduce_init(&g_rank, sum, 1, MPI_INT, op, comm, MPI_INFO_NULL, &r);
    if (code == MPI_SUCCESS) made.push_back(r);
    return code;
  };
  // One that is right everywhere comes first.
  expect(make(&sums[0], MPI_SUM) == MPI_SUCCESS, "a persistent call");
  if (g_rank == 0) expect(make(&sums[1], MPI_OP_NULL) != MPI_SUCCESS, "a persistent call's op");
  if (g_rank != 0 || again) expect(make(&sums[1], MPI_SUM) == MPI_SUCCESS, "a persistent call");
  for (int i = 0; i < 12; ++i) still_works(comm, "a persistent call that is wrong on one rank");
  const int started = again ? 2 : 1;
  if (again) expect(make(&sums[2], MPI_SUM) == MPI_SUCCESS, "a later persistent call");
  for (int round = 0; round < 4; ++round) {
    sums[0] = sums[1] = -1;
    MPI_Startall(started, made.data());
    MPI_Waitall(started, made.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < started; ++i)
      expect(sums[i] == g_size * (g_size - 1) / 2, "a persistent sum is wrong after an error");
  }
  for (MPI_Request& r : made) MPI_Request_free(&r);
  MPI_Comm_free(&comm);
}

// In the others the ranks wait for a root whose call is wrong, also without SuCL.
bool is_open_mpi() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  return std::string_view(version).starts_with("Open MPI");
}

// All ranks make a call of which only the root's arguments are wrong: the others have made it, the
// root has not. MPI goes on with other calls, whatever the ranks have called before: `barriers`,
// and as many right calls of the same function.
template <class Call>
void wrong_at_the_root(int barriers, int right, const Call& call) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < barriers; ++i) MPI_Barrier(comm);
  for (int i = 0; i < right; ++i) expect(call(comm, false) == MPI_SUCCESS, "a right call fails");
  const int code = call(comm, g_rank == 0);
  expect((code != MPI_SUCCESS) == (g_rank == 0), "a call that is wrong at the root");
  for (int i = 0; i < 12; ++i) still_works(comm, "an error of the root");
  MPI_Comm_free(&comm);
}

void wrong_at_the_root() {
  if (!is_open_mpi()) return;
  const auto reduce = [](MPI_Comm comm, bool wrong) {
    return MPI_Reduce(g_in, wrong ? g_in : g_out, 2, MPI_INT, MPI_SUM, 0, comm);
  };
  const auto gather = [](MPI_Comm comm, bool wrong) {
    return MPI_Gather(g_in, 2, MPI_INT, g_out, 2, wrong ? no_type : MPI_INT, 0, comm);
  };
  for (int calls = 0; calls < 8; ++calls) {
    wrong_at_the_root(calls, 0, reduce);
    wrong_at_the_root(0, calls, reduce);
    wrong_at_the_root(0, calls, gather);
  }
  // Amid trials, and where they end.
  for (int calls = 44; calls < 64; ++calls) wrong_at_the_root(8, calls, reduce);
}

// The same of a call in which the others wait for the root, as it is of many bytes: they have given
// what they had to, and the root's error is the root's alone.
void large_and_wrong_at_the_root() {
  constexpr int count = 1 << 20;
  std::vector<int> in(count, 1), out(count);
  for (const bool started : {false, true}) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 12; ++i) MPI_Barrier(comm);
    int* const to = g_rank == 0 ? in.data() : out.data();
    int code = MPI_SUCCESS;
    if (started) {
      MPI_Request r = MPI_REQUEST_NULL;
      code = MPI_Ireduce(in.data(), to, count, MPI_INT, MPI_SUM, 0, comm, &r);
      // The root comes with the next call when the others have begun this one.
      MPI_Barrier(MPI_COMM_WORLD);
      if (g_rank == 0) still_works(comm, "a started error of the root");
      if (code == MPI_SUCCESS) code = MPI_Wait(&r, MPI_STATUS_IGNORE);
      if (g_rank > 0) still_works(comm, "a started error of the root");
    } else {
      code = MPI_Reduce(in.data(), to, count, MPI_INT, MPI_SUM, 0, comm);
    }
    expect((code != MPI_SUCCESS) == (g_rank == 0), "a large call that is wrong at the root");
    for (int i = 0; i < 12; ++i) still_works(comm, "a large error of the root");
    MPI_Comm_free(&comm);
  }
}

// The same of a call that the others need not wait in, and a message of theirs that the root waits
// for: so nothing of SuCL's may wait for the root, as the agreement after the trials, or the
// set-up.
void message_after_wrong_at_the_root(int barriers, int right) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < barriers; ++i) MPI_Barrier(comm);
  const auto reduce = [&](const int* in) {
    return MPI_Reduce(in, g_out, 2, MPI_INT, MPI_SUM, 0, comm);
  };
  for (int i = 0; i < right; ++i) expect(reduce(g_in) == MPI_SUCCESS, "a right call fails");
  const bool wrong = reduce(g_rank == 0 ? g_out : g_in) != MPI_SUCCESS;
  expect(wrong == (g_rank == 0), "a call that is wrong at the root");
  int word = g_rank;
  for (int r = 1; r < g_size; ++r) {
    if (g_rank == 0) MPI_Recv(&word, 1, MPI_INT, r, 0, comm, MPI_STATUS_IGNORE);
    if (g_rank == r) MPI_Send(&word, 1, MPI_INT, 0, 0, comm);
  }
  for (int i = 0; i < 12; ++i) still_works(comm, "an error of the root and a message");
  MPI_Comm_free(&comm);
}

// The root gives itself more than it takes, which is an error of its own. The others' calls are
// right, whichever library executes them, and all go on. Where that is SuCL, as here, the root has
// to come to SuCL as well: MPICH's would wait for the others' messages.
void root_takes_too_little() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < 12; ++i) MPI_Barrier(comm);
  const int one = g_rank == 0 ? 1 : 2;
  const auto ranks = static_cast<std::size_t>(g_size);
  std::vector<int> twos(ranks, 2), but_one(twos), displs(ranks);
  but_one[0] = 1;
  for (int i = 0; i < g_size; ++i) displs[static_cast<std::size_t>(i)] = 2 * i;
  const auto check = [&](int code, const char* name) {
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) PMPI_Error_class(code, &error_class);
    expect(
        error_class == (g_rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
        std::string(name) + " of too much for the root is of class " + std::to_string(error_class));
    still_works(comm, name);
  };
  MPI_Request r = MPI_REQUEST_NULL;
  g_usual = true;
  check(MPI_Gather(g_in, 2, MPI_INT, g_out, 1, MPI_INT, 0, comm), "a gather");
  check(MPI_Scatter(g_in, 2, MPI_INT, g_out, one, MPI_INT, 0, comm), "a scatter");
  check(MPI_Gatherv(g_in, 2, MPI_INT, g_out, but_one.data(), displs.data(), MPI_INT, 0, comm),
        "a gatherv");
  check(MPI_Scatterv(g_in, twos.data(), displs.data(), MPI_INT, g_out, one, MPI_INT, 0, comm),
        "a scatterv");
  check(finish(MPI_Igather(g_in, 2, MPI_INT, g_out, 1, MPI_INT, 0, comm, &r), &r, false),
        "a non-blocking gather");
  check(finish(MPI_Iscatter(g_in, 2, MPI_INT, g_out, one, MPI_INT, 0, comm, &r), &r, false),
        "a non-blocking scatter");
  // The others send what the root takes: it is its count to be sent that is wrong.
  MPI_Gather(g_in, g_rank == 0 ? 2 : 1, MPI_INT, g_out, 1, MPI_INT, 0, comm);
  for (int i = 0; i < 12; ++i) still_works(comm, "a gather of another amount at the root");
  MPI_Comm_free(&comm);
}

// Ranks differ in what they call. Where all wait for each other the library says what is wrong, if
// it sees it: MPICH does not wait there, nor may SuCL. In a call with a root others may have gone
// through it when the root finds that: it gets the error, and all go on.
void ranks_differ() {
  MPI_Comm comm = MPI_COMM_NULL;
  const auto begin = [&] {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 12; ++i) MPI_Barrier(comm);
  };
  const auto end = [&](const char* what) {
    for (int i = 0; i < 12; ++i) still_works(comm, what);
    MPI_Comm_free(&comm);
  };
  begin();
  const int code = MPI_Reduce(g_in, g_out, g_rank == 0 ? 10 : 1, MPI_INT, MPI_SUM, 0, comm);
  expect(code != MPI_SUCCESS || g_rank > 0, "the root does not see that the others reduce less");
  end("a reduction of another length at the root");
  if (is_open_mpi()) return;
  begin();
  MPI_Allgather(g_in, g_rank == 0 ? 1 : 2, MPI_INT, g_out, 2, MPI_INT, comm);
  end("an allgather to which one rank gives less");
  begin();
  MPI_Alltoall(g_in, g_rank == 0 ? 4 : 2, MPI_INT, g_out, 2, MPI_INT, comm);
  end("an alltoall to which one rank gives more");
}

// A broadcast of more than the others take fails where it is completed, amid trials. Open MPI's
// Waitall that ignores statuses says nothing of it, and leaves the request.
void failed_amid_trials() {
  for (int right = 0; right < 12; ++right) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);
    MPI_Request r = MPI_REQUEST_NULL;
    for (int i = 0; i < right; ++i) {
      MPI_Ibcast(g_out, 20, MPI_INT, 0, comm, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    // The root comes when the others have called.
    int word = 0, done = 0;
    for (int i = 1; g_rank == 0 && i < g_size; ++i)
      MPI_Recv(&word, 1, MPI_INT, i, 0, comm, MPI_STATUS_IGNORE);
    MPI_Ibcast(g_out, g_rank == 0 ? 31 : 17, MPI_INT, 0, comm, &r);
    if (g_rank > 0) MPI_Send(&word, 1, MPI_INT, 0, 0, comm);
    while (!done) MPI_Request_get_status(r, &done, MPI_STATUS_IGNORE);
    MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
    if (r != MPI_REQUEST_NULL) MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
  }
}

// MPICH asks the handler that the world has now, where none was set when a communicator was made of
// the world: the program's first one is set here, when SuCL has been set up for the communicator.
void handler_of_the_world() {
  if (is_open_mpi()) return;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  for (int i = 0; i < 8; ++i) MPI_Barrier(made);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  expect(MPI_Send(g_in, -1, MPI_INT, 0, 0, made) != MPI_SUCCESS, "a send of -1 elements");
  MPI_Comm_free(&made);
}

// No communicator at all, or one that has been freed.
void without_communicator(MPI_Comm comm, const char* what) {
  MPI_Request r = MPI_REQUEST_NULL;
  std::vector<std::vector<int>> outcomes;
  for (const bool usual : {true, false}) {
    g_usual = usual;
    outcomes.emplace_back();
    const std::function<int()> calls[] = {
        [&] { return SUCL_CALL(Barrier, comm); },
        [&] { return SUCL_CALL(Allreduce, g_in, g_out, 2, MPI_INT, MPI_SUM, comm); },
        [&] { return SUCL_CALL(Bcast, g_in, 2, MPI_INT, 0, comm); },
        [&] {
          return SUCL_CALL(Reduce_scatter, g_in, g_out, right_counts(), MPI_INT, MPI_SUM, comm);
        },
        [&] { return SUCL_CALL(Ibarrier, comm, &r); }};
    for (const auto& call : calls) {
      g_handled = 0;
      int error_class = MPI_SUCCESS;
      const int code = call();
      if (code != MPI_SUCCESS) PMPI_Error_class(code, &error_class);
      outcomes.back().insert(outcomes.back().end(), {error_class, g_handled});
    }
  }
  expect(outcomes[0] == outcomes[1],
         std::string("calls with ") + what + " end in another class, or call another handler");
}

void without_communicator() {
  without_communicator(MPI_COMM_NULL, "no communicator");
#if !defined(MPI_ABI_VERSION)
  if (is_open_mpi()) return;  // it reads what the handle was of
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &made);
  const MPI_Comm gone = made;
  MPI_Comm_free(&made);
  without_communicator(gone, "a freed communicator");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  expect(before == MPI_ERRORS_ARE_FATAL, "the handler at the beginning is not MPI's");
  MPI_Errhandler_free(&before);
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Type_contiguous(2, MPI_INT, &g_uncommitted);
  for (int i = 0; i < 8; ++i) MPI_Barrier(MPI_COMM_WORLD);
  handler_of_the_world();
  int rows = 0;
  // A handler of the program is asked as often; with one MPICH returns success.
  for (const MPI_Errhandler h : {handler, MPI_Errhandler(MPI_ERRORS_RETURN)}) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, h);
    for (const auto& table : {reductions(), moves()})
      for (const row& r : table)
        for (int width = 0; width < widths && !is_too_wrong(r); ++width, ++rows)
          compare(r, width > 0, MPI_COMM_WORLD);
    without_communicator();
  }
  wrong_on_one();
  for (int barriers = 0; barriers < 8; ++barriers)
    for (const bool again : {false, true}) wrong_persistent_on_one(barriers, again);
  wrong_at_the_root();
  if (argc == 1) {
    large_and_wrong_at_the_root();
    root_takes_too_little();
    ranks_differ();
  }
  if (is_open_mpi()) {
    message_after_wrong_at_the_root(0, 0);
    // The last call of the trials is MPI's: a round to warm up and five, of two turns of four
    // calls.
    if (argc > 1) message_after_wrong_at_the_root(8, 6 * 2 * 4 - 1);
    if (argc > 1) failed_amid_trials();
  }
  if (g_rank == 0) std::printf("%d rows, in three forms\n", rows);
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Type_free(&g_uncommitted);
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
