// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What MPI promises of requests and communicators beyond results: progress while a rank waits
// elsewhere, communicators that end before their requests, thousands that come and go, errors.
// Exit status 1 if anything is wrong. To be run interposed, without trials.
//
//   life multiple|funneled [callbacks]    the latter alone, which the former leaves out
#include <malloc.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

int g_rank = 0, g_size = 1, g_failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "rank %d: %s\n", g_rank, what);
  ++g_failures;
}

int sum_of_ranks() { return g_size * (g_size - 1) / 2; }

// SuCL sets itself up for a communicator in its blocking collectives.
void settle(MPI_Comm comm) {
  for (int i = 0; i < 6; ++i) MPI_Barrier(comm);
}

// More messages than a library has room for between two processes: the rest of them leaves when the
// sender is in MPI again, which waits for a collective that the receiver joins afterwards.
void many_messages_before(bool blocking) {
  constexpr std::size_t n = 400, words = 750;
  std::vector<int> data(n * words, g_rank);
  std::vector<MPI_Request> sent(g_rank == 0 ? n : 0);
  for (std::size_t i = 0; i < sent.size(); ++i)
    MPI_Isend(data.data() + i * words, words, MPI_INT, 1, int(i), MPI_COMM_WORLD, &sent[i]);
  for (std::size_t i = 0; g_rank == 1 && i < n; ++i)
    MPI_Recv(data.data() + i * words, words, MPI_INT, 0, int(i), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int sum = -1;
  MPI_Request r = MPI_REQUEST_NULL;
  if (blocking)
    MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Waitall(int(sent.size()), sent.data(), MPI_STATUSES_IGNORE);
  expect(sum == sum_of_ranks() && (g_rank != 1 || data.back() == 0),
         "one of many messages is wrong");
}

// A rank that waits in MPI helps those that wait for its part of a collective.
void progress_in_messages() {
  int sum = -1, word = 0;
  MPI_Request r = MPI_REQUEST_NULL;
  std::vector<int> large(1 << 20, g_rank), all(large.size());
  MPI_Iallreduce(large.data(), all.data(), int(large.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
  if (g_rank == 0) MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  expect(all.back() == sum_of_ranks(), "a sum beside a message is wrong");
  if (g_rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  // Both ways of waiting for SuCL let a large message go on that a rank needs before it joins.
  for (const bool blocking : {true, false}) {
    std::vector<char> data(8 << 20, char(g_rank));
    MPI_Request message = MPI_REQUEST_NULL;
    if (g_rank == 0)
      MPI_Isend(data.data(), int(data.size()), MPI_CHAR, 1, 1, MPI_COMM_WORLD, &message);
    if (g_rank == 1)
      MPI_Recv(data.data(), int(data.size()), MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (blocking) {
      MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
      MPI_Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    expect(sum == sum_of_ranks() && (g_rank != 1 || data.back() == 0), "a large message is wrong");
    many_messages_before(blocking);
  }
}

// Open MPI 5.0's own non-blocking and persistent collectives use their communicator after its end,
// and crash: there the interposer has to execute all of them.
bool may_end_before_requests() {
#if defined(OPEN_MPI)
  const auto is = [](const char* variable, const char* part) {
    const char* value = std::getenv(variable);
    return value && std::strstr(value, part);
  };
  return is("LD_PRELOAD", "libsucl_pmpi") && is("SUCL_INTERPOSE_TRIALS", "0");
#else
  return true;
#endif
}

void ends_before_its_requests() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  settle(comm);
  int sums[3] = {-1, -1, -1}, again = -1;
  MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL}, p = MPI_REQUEST_NULL;
  MPI_Allreduce_init(&g_rank, &again, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p);
  for (int i = 0; i < 3; ++i) MPI_Iallreduce(&g_rank, &sums[i], 1, MPI_INT, MPI_SUM, comm, &r[i]);
  MPI_Comm_free(&comm);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
  for (int s : sums) expect(s == sum_of_ranks(), "a sum over a freed communicator is wrong");
  for (int i = 0; i < 3; ++i) {
    again = -1;
    MPI_Start(&p);
    MPI_Wait(&p, MPI_STATUS_IGNORE);
    expect(again == sum_of_ranks(), "a persistent sum over a freed communicator is wrong");
  }
  MPI_Request_free(&p);
  expect(p == MPI_REQUEST_NULL, "a freed request is not null");
}

// A rank frees the communicator of what is under way, and goes on, when others are still to join
// it.
void ends_before_others_join() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  settle(comm);
  int word = 0, sum = -1;
  MPI_Request r = MPI_REQUEST_NULL;
  if (g_rank > 0) MPI_Recv(&word, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r);
  MPI_Comm_free(&comm);
  for (int to = 1; g_rank == 0 && to < g_size; ++to)
    MPI_Send(&word, 1, MPI_INT, to, 8, MPI_COMM_WORLD);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  expect(sum == sum_of_ranks(), "a sum that others join after the end is wrong");
}

// Requests of the program's own among those of collectives, which another thread ends while all are
// waited for.
void beside_generalized_requests(int provided) {
  if (provided < MPI_THREAD_MULTIPLE) return;
  const auto query = [](void*, MPI_Status* status) {
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
  };
  const auto nothing = [](void*) { return MPI_SUCCESS; };
  const auto cancel = [](void*, int) { return MPI_SUCCESS; };
  for (int first = 0; first < 3; ++first) {
    int sums[3] = {-1, -1, -1}, count = -1;
    MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status[3];
    for (int i = 0; i < 3; ++i)
      if (i == first)
        MPI_Grequest_start(query, nothing, cancel, nullptr, &r[i]);
      else
        MPI_Iallreduce(&g_rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[i]);
    const MPI_Request own = r[first];
    std::thread other([own] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      MPI_Grequest_complete(own);
    });
    MPI_Waitall(3, r, status);
    other.join();
    for (int i = 0; i < 3; ++i) {
      MPI_Get_count(&status[i], MPI_INT, &count);
      expect(count == (i == first ? 3 : 0), "a status beside a generalized request is wrong");
      expect(i == first || sums[i] == sum_of_ranks(), "a sum beside one is wrong");
    }
  }
}

// The first step of MPI_Finalize deletes the attributes of MPI_COMM_SELF, whose callbacks may
// complete what is under way.
int g_last[8], g_last_sum = -1, g_last_calls = 0;
MPI_Request g_last_requests[2];

void completes_at_the_end() {
  MPI_Datatype spaced = MPI_DATATYPE_NULL;
  MPI_Type_vector(4, 1, 2, MPI_INT, &spaced);
  MPI_Type_commit(&spaced);
  for (int i = 0; i < 8; ++i) g_last[i] = g_rank == 0 ? i : -1;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(
      MPI_COMM_NULL_COPY_FN,
      [](MPI_Comm, int, void*, void*) {
        ++g_last_calls;
        MPI_Waitall(2, g_last_requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 8; i += 2) expect(g_last[i] == i, "spaced data at the end is wrong");
        expect(g_last_sum == sum_of_ranks(), "a sum at the end is wrong");
        int sum = -1;
        MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        expect(sum == sum_of_ranks(), "a sum that is made at the end is wrong");
        return MPI_SUCCESS;
      },
      &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm_free_keyval(&key);
  MPI_Ibcast(g_last, 1, spaced, 0, MPI_COMM_WORLD, &g_last_requests[0]);
  MPI_Iallreduce(&g_rank, &g_last_sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &g_last_requests[1]);
  MPI_Type_free(&spaced);
}

// What the end of a communicator calls may still use it, in whichever order; the next one, which
// may have its handle, is smaller. Alone in its process, as Intel MPI 2021.18 has to be left its
// collectives in shared memory: where they are messages, one that comes before MPI_Comm_free keeps
// it from calling back there, with and without SuCL, and the ranks are apart.
void collectives_at_the_end() {
  int key = MPI_KEYVAL_INVALID, sums = 0;
  MPI_Comm_create_keyval(
      MPI_COMM_DUP_FN,
      [](MPI_Comm comm, int, void* value, void*) {
        int sum = 0;
        MPI_Barrier(comm);
        MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        *static_cast<int*>(value) += sum;
        return MPI_SUCCESS;
      },
      &key, nullptr);
  for (int i = 0; i < 12; ++i) {
    MPI_Comm comm = MPI_COMM_NULL, copy = MPI_COMM_NULL, part = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i % 2) settle(comm);  // SuCL's own attribute comes first
    MPI_Comm_set_attr(comm, key, &sums);
    settle(comm);
    MPI_Comm_dup(comm, &copy);
    settle(copy);
    MPI_Comm_free(&comm);
    i % 3 ? MPI_Comm_free(&copy) : MPI_Comm_disconnect(&copy);
    MPI_Comm_split(MPI_COMM_WORLD, g_rank == 0, g_rank, &part);
    for (int k = 0; k < 6; ++k) {
      int sum = -1;
      MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, part);
      expect(sum == (g_rank == 0 ? 0 : sum_of_ranks()), "a sum of the next communicator is wrong");
    }
    MPI_Comm_free(&part);
  }
  expect(sums == 24 * sum_of_ranks(), "a sum at the end of a communicator is wrong");
  MPI_Comm_free_keyval(&key);
}

// A type may be freed while it is in use, and an array of requests may have gaps.
void types_and_gaps() {
  MPI_Datatype spaced = MPI_DATATYPE_NULL;
  MPI_Type_vector(4, 1, 2, MPI_INT, &spaced);
  MPI_Type_commit(&spaced);
  int data[8];
  for (int i = 0; i < 8; ++i) data[i] = g_rank == 0 ? i : -1;
  MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Ibcast(data, 1, spaced, 0, MPI_COMM_WORLD, &r[1]);
  MPI_Type_free(&spaced);
  int index = -1;
  MPI_Status status;
  MPI_Waitany(3, r, &index, &status);
  expect(index == 1 && r[1] == MPI_REQUEST_NULL, "the request was not the one that is done");
  int count = -1, cancelled = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  MPI_Test_cancelled(&status, &cancelled);
  expect(count == 0 && cancelled == 0, "the status is not empty");
  for (int i = 0; i < 8; ++i)
    expect(data[i] == (g_rank == 0 || i % 2 == 0 ? i : -1), "spaced data is wrong");
  MPI_Waitany(3, r, &index, &status);
  expect(index == MPI_UNDEFINED, "there is no request left");
}

// A type may be freed once a call has returned, and SuCL copies arrays too: they are changed before
// the operation is over, or has even begun, which is earlier than MPI allows it.
void arguments_are_copied() {
  const std::size_t n = std::size_t(g_size);
  for (const bool persistent : {false, true})
    for (const bool gaps : {false, true}) {
      MPI_Datatype type = MPI_INT;
      if (gaps) {
        MPI_Type_vector(2, 1, 2, MPI_INT, &type);
        MPI_Type_commit(&type);
      }
      const int extent = gaps ? 3 : 1;
      std::vector<int> counts(n), displs(n), mine(6, g_rank), all(n * 6, -1), sums(3, -1);
      for (int r = 0; r < g_size; ++r)
        counts[std::size_t(r)] = 2, displs[std::size_t(r)] = 2 * (g_size - 1 - r);
      const std::vector<int> parts(n, 3), values(n * 3, g_rank);
      std::vector<int> changed = parts;
      MPI_Request r[2];
      if (persistent) {
        MPI_Allgatherv_init(mine.data(), 2, type, all.data(), counts.data(), displs.data(), type,
                            MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
        MPI_Reduce_scatter_init(values.data(), sums.data(), changed.data(), MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
      } else {
        MPI_Iallgatherv(mine.data(), 2, type, all.data(), counts.data(), displs.data(), type,
                        MPI_COMM_WORLD, &r[0]);
        MPI_Ireduce_scatter(values.data(), sums.data(), changed.data(), MPI_INT, MPI_SUM,
                            MPI_COMM_WORLD, &r[1]);
      }
      counts.assign(n, 1 << 30), displs.assign(n, -77777), changed.assign(n, -1);
      if (gaps) MPI_Type_free(&type);
      for (int round = 0; round < (persistent ? 3 : 1); ++round) {
        if (persistent) MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (int k = 0; k < g_size; ++k)
          expect(all[std::size_t(2 * extent * (g_size - 1 - k))] == k, "a gathered block is wrong");
        expect(sums[2] == sum_of_ranks(), "a scattered sum is wrong");
      }
      for (int i = 0; persistent && i < 2; ++i) MPI_Request_free(&r[i]);
    }
}

void errors() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  settle(comm);
  int sum = -1;
  MPI_Request r = MPI_REQUEST_NULL;
  // Under way on rank 0 for as long as rank 1 has not joined it.
  int word = 0;
  if (g_rank == 1) MPI_Recv(&word, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r);
  if (g_rank == 0) {
    expect(MPI_Cancel(&r) != MPI_SUCCESS, "a collective was cancelled");
    expect(MPI_Request_free(&r) != MPI_SUCCESS, "a collective under way was freed");
    MPI_Send(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  }
  expect(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS && sum == sum_of_ranks(),
         "a sum is wrong after errors");
  MPI_Comm_free(&comm);
}

int open_files() {
  int n = 0;
  for (int fd = 0; fd < 1024; ++fd)
    n += std::ifstream("/proc/self/fd/" + std::to_string(fd)).good();
  return n;
}
long mappings() {
  std::ifstream maps("/proc/self/maps");
  long n = 0;
  for (std::string line; std::getline(maps, line);) ++n;
  return n;
}

std::size_t heap() {
  const auto all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

void many_communicators() {
  long maps = 0;
  std::vector<std::size_t> bytes;
  int files = 0;
  for (int i = 0; i < 1200; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (i % 2)
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
      MPI_Comm_split(MPI_COMM_WORLD, 0, -g_rank, &comm);
    const bool used = i % 40 == 0;  // by SuCL too
    int sum = -1;
    if (used) settle(comm);
    MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == sum_of_ranks(), "a sum over one of many communicators is wrong");
    MPI_Comm_free(&comm);
    if (i == 200) maps = mappings(), files = open_files();
    if (i >= 200 && (i + 1) % 100 == 0) bytes.push_back(heap());
  }
  expect(mappings() < maps + 60, "communicators leave memory behind");
  // What is left behind grows all the time; what is allocated once, whenever that is, does not.
  std::size_t least = bytes.back();
  for (std::size_t i = 1; i < bytes.size(); ++i)
    least = std::min(least, bytes[i] - std::min(bytes[i], bytes[i - 1]));
  expect(least < (std::size_t{25} << 10), "communicators leave allocations behind");
  expect(open_files() <= files + 4, "communicators leave files behind");
}

// More than SuCL makes communicators for, all alive.
void communicators_beyond_the_limit() {
  std::vector<MPI_Comm> comms(70);
  for (auto& c : comms) MPI_Comm_dup(MPI_COMM_WORLD, &c);
  for (auto& c : comms) {
    int sum = -1;
    settle(c);
    MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, c);
    expect(sum == sum_of_ranks(), "a sum beyond the limit is wrong");
  }
  for (auto& c : comms) MPI_Comm_free(&c);
}

void threads(int provided) {
  if (provided < MPI_THREAD_MULTIPLE) return;
  std::vector<MPI_Comm> comms(3);
  for (auto& c : comms) MPI_Comm_dup(MPI_COMM_WORLD, &c);
  std::vector<int> wrong(comms.size());
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < comms.size(); ++t)
    all.emplace_back([&, t] {
      for (int i = 0; i < 150; ++i) {
        int sum = -1;
        MPI_Request r = MPI_REQUEST_NULL;
        if (i % 2)
          MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comms[t]);
        else
          MPI_Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comms[t], &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        wrong[t] += sum != sum_of_ranks();
      }
    });
  for (auto& t : all) t.join();
  for (int w : wrong) expect(w == 0, "a sum of a thread is wrong");
  for (auto& c : comms) MPI_Comm_free(&c);
}

// The other group's size is what arrays go by: all of it is MPI's.
void between_groups() {
  if (g_size < 3) return;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  const int side = g_rank > 0;
  MPI_Comm_split(MPI_COMM_WORLD, side, g_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : 1, 5, &inter);
  for (int i = 0; i < 8; ++i) {
    int sum = -1;
    MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    expect(sum == (side ? 0 : sum_of_ranks()), "a sum between groups is wrong");
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

void all_others(int provided) {
  progress_in_messages();
  if (may_end_before_requests())
    ends_before_its_requests(), ends_before_others_join();
  else
    std::printf("rank %d: left out: communicators that end before their requests\n", g_rank);
  types_and_gaps();
  arguments_are_copied();
  errors();
  many_communicators();
  communicators_beyond_the_limit();
  threads(provided);
  beside_generalized_requests(provided);
  between_groups();
  completes_at_the_end();
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  const std::string level = argc > 1 ? argv[1] : "", part = argc > 2 ? argv[2] : "";
  const bool multiple = level == "multiple";
  if ((!multiple && level != "funneled") || (part != "" && part != "callbacks")) {
    std::fprintf(stderr, "life multiple|funneled [callbacks]\n");
    return 2;
  }
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  settle(MPI_COMM_WORLD);
  if (part == "callbacks")
    collectives_at_the_end();
  else
    all_others(provided);
  MPI_Finalize();
  expect(g_last_calls == (part == ""), "how often the end was told");
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  return g_failures == 0 ? 0 : 1;
}
