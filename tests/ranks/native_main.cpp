// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Programs that call MPI themselves, one for each way to share it with SuCL. Compiled for each MPI;
// the first argument says which one to run. Every rank prints its failures; the status is 0 if
// there are none.
#include "support/host_command.hpp"
#include "support/printed_errors.hpp"

#include <sucl/sucl.hpp>

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

int g_failures = 0;

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (condition) break;                                                          \
    std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    ++g_failures;                                                                  \
  } while (false)

template <class Call>
void expect_error(sucl::errc code, const std::string& part, Call&& call) {
  try {
    call();
  } catch (const sucl::error& e) {
    if (e.code() == code && std::string(e.what()).find(part) != std::string::npos) return;
    std::fprintf(stderr, "expected %s with '%s': %s\n", sucl::name(code), part.c_str(), e.what());
    ++g_failures;
    return;
  }
  std::fprintf(stderr, "no error; expected %s with '%s'\n", sucl::name(code), part.c_str());
  ++g_failures;
}

bool finalised() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

void initialise(int level = MPI_THREAD_MULTIPLE) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, level, &provided);
  CHECK(provided >= level);
}

void sum(sucl::communicator& comm) {
  int x = comm.rank() + 1;
  comm.allreduce(&x, 1, sucl::op::sum).wait();
  CHECK(x == comm.size() * (comm.size() + 1) / 2);
  x = comm.rank();
  comm.blocking().allreduce(&x, 1, sucl::op::max);
  CHECK(x == comm.size() - 1);
}

// SuCL starts and ends MPI.
void uninitialised() {
  {
    sucl::runtime rt;
    auto world = rt.world();
    sum(world);
    int level = 0;
    MPI_Query_thread(&level);
    CHECK(level == MPI_THREAD_MULTIPLE);
  }
  CHECK(finalised());
}

// The program starts and ends MPI: any number of runtimes fit in between.
void initialised() {
  initialise();
  sucl::communicator left_over;
  for (int round = 0; round < 3; ++round) {
    sucl::runtime rt;
    auto world = rt.world();
    sum(world);
    left_over = world.dup();
    CHECK(world.size() == rt.size());
  }
  CHECK(!finalised());
  expect_error(sucl::errc::shut_down, "shut down", [&] { left_over.barrier(); });
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  left_over = {};
}

// The program ends MPI while SuCL lives, and with an operation in flight.
void finalised_before() {
  initialise();
  sucl::runtime rt;
  auto world = rt.world();
  auto dup = world.dup();
  const sycl::queue q{sycl::cpu_selector_v};
  const auto several = rt.world({q, q});
  sum(world);
  std::vector<int> x(100000, world.rank());
  auto done = dup.allreduce(x.data(), x.size(), sucl::op::max);
  MPI_Finalize();
  done.wait();
  CHECK(x.back() == world.size() - 1);
  expect_error(sucl::errc::shut_down, "", [&] { world.blocking().barrier(); });
  expect_error(sucl::errc::shut_down, "", [&] { dup.barrier(); });
  for (const auto& c : several)
    expect_error(sucl::errc::shut_down, "", [&] { c.blocking().barrier(); });
  expect_error(sucl::errc::shut_down, "", [&] { (void)rt.world(); });
}

MPI_Comm part_of(int colour, int key = 0) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, colour, key, &part);
  return part;
}

// Ranks that all take themselves for the root: none waits, and what is called next for all
// compares.
void differing_roots(const std::string& when) {
  initialise();
  {
    sucl::runtime rt;
    auto world = rt.world();
    sum(world);
    int x = 0;
    world.blocking().broadcast(&x, 1, world.rank());
  }
  if (when == "next runtime") {
    sucl::runtime rt;
    auto world = rt.world();
    sum(world);
  }
  MPI_Finalize();
}
void differing_at_finalize() { differing_roots("MPI_Finalize"); }
void differing_at_next() { differing_roots("next runtime"); }

// The same in runtimes of parts, which end in another order on each rank. Each process is in two of
// them, of which one differs, and ranks 0 and 1 are told.
void differing_parts() {
  initialise();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm halves = part_of(rank / 2), others = part_of(rank % 2);
  std::optional<sucl::runtime> half, other;
  half.emplace(sucl::runtime::from(halves));
  other.emplace(sucl::runtime::from(others));
  {
    auto of_half = half->world(), of_other = other->world();
    sum(of_half);
    sum(of_other);
    int x = 0;
    of_half.blocking().broadcast(&x, 1, rank < 2 ? of_half.rank() : 0);
  }
  if (rank == 0) half.reset();
  other.reset();
  half.reset();
  MPI_Comm_free(&halves);
  MPI_Comm_free(&others);
  MPI_Finalize();
}

void finalised_already() {
  initialise();
  MPI_Finalize();
  expect_error(sucl::errc::shut_down, "finalised already", [] { sucl::runtime rt; });
}

// MPI for one thread: everything that one thread calls works, and the rest says why not.
void one_thread() {
  int provided = 0, rank = 0, size = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  {
    sucl::runtime rt;
    sycl::queue queue{sycl::cpu_selector_v};
    auto world = rt.world(queue).dup();
    sum(world);
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (const std::size_t n : {1u, 1000u, 200000u}) {
      std::vector<int> mine(n, rank + 1), got(n, 0);
      world.allreduce(mine, got, sucl::op::sum).wait();
      CHECK(got[n - 1] == size * (size + 1) / 2);
      sycl::buffer<int> from(mine.data(), sycl::range<1>(n)), to{sycl::range<1>(n)};
      world.sendrecv(from, next, to, last);
      CHECK(sycl::host_accessor(to)[n - 1] == last + 1);
      sucl::group g(world);
      g.recv(got, last);
      g.send(mine, next);
      g.submit().wait();
      CHECK(got[0] == last + 1);
      auto persistent = world.persistent().broadcast(got, 0);
      persistent.start().wait();
      CHECK(got[n / 2] == size);
    }
    if (provided < MPI_THREAD_MULTIPLE) {
      int value = 0;
      expect_error(sucl::errc::unavailable, "MPI_THREAD_MULTIPLE",
                   [&] { (void)world.recv(&value, 1, last); });
      expect_error(sucl::errc::unavailable, "several ranks in a process need",
                   [&] { (void)rt.world({queue, queue}); });
      setenv("SUCL_TIMEOUT", "60", 1);
      expect_error(sucl::errc::unavailable, "SUCL_TIMEOUT needs",
                   [] { (void)sucl::runtime::from(MPI_COMM_WORLD); });
    }
  }
  CHECK(!finalised());
  MPI_Finalize();
}

// Ranks of two nodes that call different operations, with MPI for one thread: found in their waits.
void one_thread_disagrees() {
  int provided = 0, rank = 0, size = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  CHECK(provided < MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  sucl::runtime rt;
  auto world = rt.world(sycl::queue{sycl::cpu_selector_v});
  std::vector<int> x(3000, 1), y = x;
  for (const int odd : {size - 1, 0}) {
    auto comm = world.dup();
    for (int i = 0; i < 100; ++i) comm.allreduce(x, y, sucl::op::sum).wait();
    char text[1024] = "";
    try {
      if (rank == odd)
        comm.blocking().reduce(x.data(), y.data(), 20, sucl::op::sum, 0);
      else
        comm.blocking().allreduce(x.data(), y.data(), 10, sucl::op::sum);
      sum(comm);
      CHECK(!"an operation after a mismatch has worked");
    } catch (const sucl::error& e) {
      CHECK(e.code() == sucl::errc::mismatch);
      std::strncpy(text, e.message().c_str(), sizeof text - 1);
    }
    const std::string one = "rank " + std::to_string(odd) + " called reduce of 20 int32";
    CHECK(std::strstr(text, one.c_str()) && std::strstr(text, "called allreduce of 10 int32"));
    std::vector<char> all(sizeof text * static_cast<std::size_t>(size));
    MPI_Allgather(text, sizeof text, MPI_CHAR, all.data(), sizeof text, MPI_CHAR, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) CHECK(!std::strcmp(&all[sizeof text * std::size_t(r)], text));
    sum(world);  // others go on
  }
  std::printf("rank %d had %d failures\n", rank, g_failures);
  std::fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  std::_Exit(g_failures != 0);  // MPI may wait for messages that no rank receives
}

void adopt() {
  initialise();
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  {
    sucl::runtime rt;
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    auto comm = rt.adopt(part);
    int part_rank = 0;
    MPI_Comm_rank(part, &part_rank);
    CHECK(comm.rank() == part_rank);
    sycl::queue q{sycl::cpu_selector_v};
    const auto several = rt.adopt(part, std::vector<sycl::queue>{q, q});
    MPI_Comm_free(&part);  // it stays the caller's
    sum(comm);
    CHECK(several.size() == 2 && several.front().size() == 2 * comm.size());
    CHECK(several.back().rank() == 2 * part_rank + 1);
    sucl::each_rank(several, [](sucl::communicator& c) { sum(c); });
    auto world = rt.adopt(MPI_COMM_WORLD, q);
    CHECK(world.rank() == rank && world.size() == size);
    sum(world);
    auto self = rt.adopt(MPI_COMM_SELF);
    sum(self);
    expect_error(sucl::errc::invalid_argument, "MPI_COMM_NULL",
                 [&] { (void)rt.adopt(MPI_COMM_NULL); });
    if constexpr (std::is_same_v<MPI_Comm, int>)  // others are pointers, which MPI reads
      expect_error(sucl::errc::invalid_argument, "none of a communicator of MPI",
                   [&] { (void)rt.adopt(5); });
    struct {
      char bytes[3];
    } foreign{};
    expect_error(sucl::errc::invalid_argument, "3 bytes", [&] { (void)rt.adopt(foreign); });
    // Messages of the program and of SuCL do not meet, whatever their tags.
    const int to = (rank + 1) % size;
    const int from = (rank + size - 1) % size;
    int mine = rank, theirs[2] = {-1, -1};
    MPI_Request request;
    MPI_Irecv(&theirs[0], 1, MPI_INT, from, 7, MPI_COMM_WORLD, &request);
    auto received = world.recv(&theirs[1], 1, from, 7);
    int again = 100 + rank;
    world.send(&again, 1, to, 7).wait();
    MPI_Send(&mine, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
    received.wait();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(theirs[0] == from && theirs[1] == 100 + from);
  }
  MPI_Finalize();
}

// Rank 0 adopts while the others wait for it in another call, until another thread makes that.
void adopt_crossed() {
  initialise();
  {
    sucl::runtime rt;
    sycl::queue q{sycl::cpu_selector_v};
    auto world = rt.world(q);
    (void)rt.adopt(MPI_COMM_SELF, q);
    std::thread late;
    std::optional<sucl_test::printed_errors> errors;
    if (world.rank() == 0) {
      (void)rt.adopt(MPI_COMM_SELF, q);  // adoptions of other members are counted apart
      errors.emplace();
      late = std::thread([&] {
        errors->await("ranks wait for each other");
        sum(world);
      });
    } else {
      sum(world);
    }
    auto adopted = rt.adopt(MPI_COMM_WORLD, q);
    if (late.joinable()) late.join();
    errors.reset();
    sum(adopted);
  }
  MPI_Finalize();
}

// The last rank ends its runtime while the others adopt.
void adopt_left() {
  initialise();
  int rank = 0;
  {
    sucl::runtime rt;
    auto world = rt.world();
    rank = world.rank();
    sum(world);
    if (rank != world.size() - 1)
      expect_error(sucl::errc::peer_lost,
                   "adopt() of ranks 0-2 cannot be done: rank " + std::to_string(rt.size() - 1),
                   [&] { (void)rt.adopt(MPI_COMM_WORLD); });
  }
  std::printf("rank %d had %d failures\n", rank, g_failures);
  std::fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  std::_Exit(g_failures != 0);  // an adoption is under way
}

// What SuCL's order of operations is for: the same as order_test.cpp does, by MPI calls in host
// tasks. Even ranks make the first one's dependency ready first, odd ranks the second's. This must
// go wrong.
struct latch {
  std::atomic<bool> open{false};
  sycl::event on(sycl::queue& q) {
    return q.submit([&](sycl::handler& h) {
      sucl::testing::host_command(h, [this] {
        while (!open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    });
  }
};

// Ranks 2 and 3 of 4 never call SuCL: they compute while the others start, work and end.
void coupled() {
  initialise();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm part = part_of(rank < 2 ? 0 : MPI_UNDEFINED, -rank);
  if (part != MPI_COMM_NULL) {
    auto rt = sucl::runtime::from(part);
    CHECK(rt.size() == 2 && rt.rank() == 1 - rank);  // in the order of the communicator
    auto world = rt.world();
    sum(world);
    auto on_queue = rt.world(sycl::queue{sycl::cpu_selector_v});
    sum(on_queue);
    auto adopted = rt.adopt(part);
    sum(adopted);
    auto alone = rt.adopt(MPI_COMM_SELF);
    sum(alone);
    auto* shared = world.allocate<int>(16);
    CHECK(shared != nullptr);
    world.deallocate(shared);
    CHECK(world.members()[static_cast<std::size_t>(1 - rank)].rank == 1 - rank);
    MPI_Comm_free(&part);
  }
  // Those that wait leave the processors to the others.
  MPI_Request over = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &over);
  for (int done = 0; !done; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    MPI_Test(&over, &done, MPI_STATUS_IGNORE);
  CHECK(!finalised());
  MPI_Finalize();
}

// One of a part is killed: the other is told who, though most of the program knows nothing of SuCL.
void lost() {
  initialise();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm part = part_of(rank % 2 == 0 ? 0 : MPI_UNDEFINED);
  if (part != MPI_COMM_NULL) {
    auto rt = sucl::runtime::from(part);
    auto world = rt.world();
    sum(world);
    if (rt.rank() == 1) std::raise(SIGKILL);
    int x = 1;
    expect_error(sucl::errc::peer_lost, "rank 1", [&] {
      while (true) world.blocking().allreduce(&x, 1, sucl::op::max);
    });
    std::printf("the part had %d failures\n", g_failures);
    std::fflush(stdout);
  }
  std::_Exit(g_failures);  // MPI_Finalize would wait for the rank that is lost
}

// Runtimes of disjoint and of overlapping communicators, and the one of all, side by side.
void runtimes() {
  initialise();
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm halves = part_of(rank / 2), others = part_of(rank % 2);
  std::optional<sucl::runtime> half, other;
  // Each thread is collective over its own communicator only.
  std::thread aside([&] { other.emplace(sucl::runtime::from(others)); });
  half.emplace(sucl::runtime::from(halves));
  aside.join();
  sucl::runtime all;
  CHECK(half->size() == 2 && other->size() == 2 && all.size() == size);
  auto of_half = half->world(), of_other = other->world(), of_all = all.world();
  std::thread worker([&] {
    for (int i = 0; i < 50; ++i) sum(of_other);
  });
  for (int i = 0; i < 50; ++i) sum(of_half);
  worker.join();
  sum(of_all);
  // A process of another runtime is not taken for one of this.
  expect_error(sucl::errc::invalid_argument, "belongs to another runtime",
               [&] { (void)(rank % 2 == 0 ? *half : all).adopt(MPI_COMM_WORLD); });
  half.reset();
  sum(of_other);
  sum(of_all);
  expect_error(sucl::errc::shut_down, "", [&] { sum(of_half); });
  other.reset();
  all.shut_down();
  MPI_Comm_free(&halves);
  MPI_Comm_free(&others);
  CHECK(!finalised());
  MPI_Finalize();
}

// A library has room for a limited number of communicators. Each runtime gives back what it has
// had: as many start one after another as the program likes.
void many() {
  initialise();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  std::vector<MPI_Comm> taken;
  for (MPI_Comm comm; taken.size() < 5000 && MPI_Comm_dup(MPI_COMM_SELF, &comm) == MPI_SUCCESS;)
    taken.push_back(comm);
  CHECK(taken.size() < 5000);  // the library is full
  constexpr std::size_t room = 4;
  for (std::size_t i = 0; i < room; ++i, taken.pop_back()) MPI_Comm_free(&taken.back());
  for (std::size_t i = 0; i < room + 2; ++i) {
    auto rt = sucl::runtime::from(MPI_COMM_WORLD);
    auto world = rt.world();
    sum(world);
  }
  for (MPI_Comm& comm : taken) MPI_Comm_free(&comm);
  MPI_Finalize();
}

// What is to be done at MPI's end is there after the first runtime, and does not add up.
void keyvals() {
  initialise();
  const auto next = [] {  // that MPI gives away
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    const int given = key;
    MPI_Comm_free_keyval(&key);
    return given;
  };
  int first = MPI_KEYVAL_INVALID;
  for (int i = 0; i < 4; ++i) {
    {
      auto rt = sucl::runtime::from(MPI_COMM_WORLD);
      auto world = rt.world();
      sum(world);
    }
    if (i == 0) first = next();
    CHECK(next() == first);
  }
  MPI_Finalize();
}

void naive() {
  using namespace std::chrono_literals;
  initialise();
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  sycl::queue q{sycl::cpu_selector_v};
  latch for_a, for_b;
  int a = rank + 1, b = 1000 * (rank + 1);
  std::atomic<int> finished{0};
  const auto naive_allreduce = [&](int& x, const sycl::event& ready) {
    q.submit([&](sycl::handler& h) {
      h.depends_on(ready);
      sucl::testing::host_command(h, [&] {
        MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        ++finished;
      });
    });
  };
  naive_allreduce(a, for_a.on(q));
  naive_allreduce(b, for_b.on(q));
  const auto wait_for = [&](int count) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (finished < count && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(1ms);
    return finished >= count;
  };
  (rank % 2 == 0 ? for_a : for_b).open = true;
  bool ended = wait_for(1);
  (rank % 2 == 0 ? for_b : for_a).open = true;
  ended = ended && wait_for(2);
  const int sum = size * (size + 1) / 2;
  const bool right = ended && a == sum && b == 1000 * sum;
  std::printf("rank %d: naive %s: %d and %d\n", rank,
              right   ? "is right"
              : ended ? "is wrong"
                      : "hangs",
              a, b);
  std::fflush(stdout);
  CHECK(!right);
  if (!ended) MPI_Abort(MPI_COMM_WORLD, g_failures);
  MPI_Finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> cases{{"uninitialised", uninitialised},
                                                {"initialised", initialised},
                                                {"finalised_before", finalised_before},
                                                {"finalised_already", finalised_already},
                                                {"differing_at_finalize", differing_at_finalize},
                                                {"differing_at_next", differing_at_next},
                                                {"differing_parts", differing_parts},
                                                {"one_thread", one_thread},
                                                {"one_thread_disagrees", one_thread_disagrees},
                                                {"adopt", adopt},
                                                {"adopt_crossed", adopt_crossed},
                                                {"adopt_left", adopt_left},
                                                {"coupled", coupled},
                                                {"lost", lost},
                                                {"many", many},
                                                {"keyvals", keyvals},
                                                {"runtimes", runtimes},
                                                {"naive", naive}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  try {
    found->second();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return g_failures == 0 ? 0 : 1;
}
