// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that go on without others: launch_shrink CASE [RANK...], in jobs without MPI.
//
//   kill RANK      that rank is killed while an allreduce is in flight
//   two RANK RANK  and then the other one, in the new communicator
//   during RANK    while the others shrink without the last rank; whenever it comes, they end right
//   unaware RANK   a survivor waits for another survivor, which has heard of the death already
//   events RANK    operations that return events are in flight
//   half           one of two communicators loses a rank, the other one goes on
//   stuck RANK     and rank 1 then enters a call of a library that never returns
//   inside         no rank has died, but all enter such a call
//   stopped        the last rank is stopped, which is no death; then it goes on
//   well           no rank has died
//   left RANK      that rank has ended its runtime
//   grow RANK      and then two new processes come, of which one replaces the dead one
//   grow_twice     a process comes to a job that is well; it leaves, and another one comes
//   grow_wrong     calls of grow() that are wrong on some rank
//   grow_in_vain   one of two new processes does not come
//   grow_halved    each half of the ranks makes a job of its own, which is larger
//   joiner ID RANK SIZE
//   refused        by control planes that end the job
#include <sucl/sucl.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

int failures = 0;
std::vector<std::string> words;
const char* program = nullptr;

void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
  std::fflush(stdout);
}

int number(std::size_t i) { return i < words.size() ? std::atoi(words[i].c_str()) : -1; }

// What `body` throws: a code and a text. Success: nothing.
sucl::error_info failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const sucl::error& e) {
    return e.info();
  }
  sucl::error_info none;
  none.code = sucl::errc::success;
  return none;
}

bool is_lost(const sucl::error_info& e) { return e.code == sucl::errc::peer_lost; }

// Memory of allocate() is that of the device, where kernels work on it.
bool is_of_gpu(const sycl::queue& queue) { return queue.get_device().is_gpu(); }

void write(sycl::queue& queue, double* to, const std::vector<double>& values) {
  if (is_of_gpu(queue))
    queue.memcpy(to, values.data(), values.size() * sizeof(double)).wait();
  else
    std::copy(values.begin(), values.end(), to);
}

double read(sycl::queue& queue, const double* from) {
  double value = 0;
  if (is_of_gpu(queue))
    queue.memcpy(&value, from, sizeof value).wait();
  else
    value = *from;
  return value;
}

// Operations of all sorts among ranks that were `old` in a world; each with the right result.
void check_all(sucl::communicator comm, const std::vector<int>& old, int own) {
  const int rank = comm.rank(), size = comm.size();
  expect(size == static_cast<int>(old.size()), "size " + std::to_string(size));
  expect(rank < static_cast<int>(old.size()) && old[static_cast<std::size_t>(rank)] == own,
         "the old order");
  const double sum = std::accumulate(old.begin(), old.end(), 0.0);
  for (const std::size_t n : {1, 1000, 300'000}) {
    std::vector<double> x(n, own);
    comm.blocking().allreduce(x.data(), n, sucl::op::sum);
    expect(x.front() == sum && x.back() == sum, "allreduce of " + std::to_string(n));
  }
  std::vector<int> all(old.size(), -1);
  comm.blocking().allgather(&own, all.data(), 1);
  expect(all == old, "allgather");
  int got = -1;
  comm.blocking().sendrecv(&own, 1, (rank + 1) % size, &got, 1, (rank + size - 1) % size);
  expect(got == old[static_cast<std::size_t>((rank + size - 1) % size)], "sendrecv");
  sycl::queue queue = comm.queue();
  auto* shared = comm.allocate<double>(5000);
  write(queue, shared, std::vector<double>(5000, own));
  comm.blocking().allreduce(shared, 5000, sucl::op::sum);
  expect(read(queue, shared + 4999) == sum, "allreduce on shared memory");
  comm.deallocate(shared);
  auto* usm = sycl::malloc_shared<double>(64, queue);
  auto filled = queue.fill(usm, static_cast<double>(own), 64);
  comm.allreduce(usm, 64, sucl::op::sum, {filled}).wait_and_throw();
  expect(usm[63] == sum, "allreduce by event");
  sycl::free(usm, queue);
  const auto half = comm.split(rank % 2, rank);
  int ranks = 1;
  half.blocking().allreduce(&ranks, 1, sucl::op::sum);
  expect(ranks == half.size(), "split");
  comm.wait();
}

std::vector<int> without(int size, const std::vector<int>& lost) {
  std::vector<int> left;
  for (int r = 0; r < size; ++r)
    if (std::find(lost.begin(), lost.end(), r) == lost.end()) left.push_back(r);
  return left;
}

// Allreduces until one fails, in which `victim` ends as drawn by its own threads.
sucl::error_info reduce_until_lost(sucl::communicator comm, bool victim) {
  std::vector<double> x(1 << 18, 1.0);
  comm.blocking().barrier();
  std::atomic<bool> inside{false};
  std::thread killer;
  if (victim)
    killer = std::thread([&] {
      while (!inside) std::this_thread::yield();
      kill(getpid(), SIGKILL);
    });
  const auto info = failure_of([&] {
    for (int i = 0;; ++i) {
      inside = i >= 3;
      comm.blocking().allreduce(x.data(), x.size(), sucl::op::max);
    }
  });
  if (killer.joinable()) killer.join();
  return info;
}

void check_old(sucl::communicator old) {
  int x = 1;
  expect(is_lost(failure_of([&] { old.blocking().allreduce(&x, 1, sucl::op::sum); })),
         "calls on the old communicator fail");
  expect(is_lost(failure_of([&] { old.check(); })), "check() of the old communicator fails");
}

void lose(sucl::communicator world, const std::vector<int>& victims) {
  const int own = world.rank(), size = world.size();
  sucl::communicator now = world;
  std::vector<int> lost;
  for (const int victim : victims) {
    const auto info = reduce_until_lost(now, own == victim);
    expect(is_lost(info), "the loss of rank " + std::to_string(victim) + ": " + info.message);
    lost.push_back(victim);
    sucl::communicator old = now;
    now = now.shrink();
    check_all(now, without(size, lost), own);
    check_old(old);
  }
}

void lose_during(sucl::communicator world, int victim) {
  const int own = world.rank(), last = world.size() - 1;
  expect(is_lost(reduce_until_lost(world, own == last)), "the loss of the last rank");
  std::thread killer;
  if (own == victim)
    killer = std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(number(2)));
      kill(getpid(), SIGKILL);
    });
  sucl::communicator now = world.shrink();
  const auto left = without(last + 1, {victim, last});
  while (now.size() > static_cast<int>(left.size()))
    if (failure_of([&] { now.blocking().barrier(); }).code != sucl::errc::success)
      now = now.shrink();
  if (killer.joinable()) killer.join();
  check_all(now, left, own);
}

void lose_unaware(sucl::communicator world, int victim) {
  const int own = world.rank(), size = world.size();
  const auto left = without(size, {victim});
  failure_of([&] { world.blocking().barrier(); });  // in which some may be when it dies
  if (own == victim) kill(getpid(), SIGKILL);
  int x = 0;
  if (own == left.back()) {
    const auto info = failure_of([&] { world.blocking().recv(&x, 1, left.front()); });
    expect(is_lost(info), "recv from one that lives: " + info.message);
  } else {
    const auto info = failure_of([&] { world.blocking().recv(&x, 1, victim); });
    expect(is_lost(info), "recv from the dead: " + info.message);
  }
  check_all(world.shrink(), left, own);
}

void lose_with_events(sucl::communicator world, int victim) {
  sycl::queue queue = world.queue();
  const int own = world.rank();
  auto* x = sycl::malloc_shared<double>(1 << 16, queue);
  failure_of([&] { world.blocking().barrier(); });  // in which some may be when it dies
  if (own == victim) kill(getpid(), SIGKILL);
  std::vector<sycl::event> events;
  const auto issued = failure_of([&] {
    for (int i = 0; i < 8; ++i)
      events.push_back(world.allreduce(x, 1 << 16, sucl::op::max, events));
  });
  const auto info = failure_of([&] { world.wait(); });
  expect(is_lost(info) && (is_lost(issued) || issued.code == sucl::errc::success),
         "wait() throws: " + info.message);
  for (auto& e : events) e.wait();
  check_all(world.shrink(), without(world.size(), {victim}), own);
  sycl::free(x, queue);
}

void lose_half(sucl::communicator world) {
  const int own = world.rank();
  auto half = world.split(own % 2, own);
  failure_of([&] { world.blocking().barrier(); });  // all have theirs when a rank dies
  if (own % 2 == 0) {
    const int victim = 0;
    expect(is_lost(reduce_until_lost(half, own == victim)), "the loss in one half");
    half = half.shrink();
    check_all(half, {2}, own);
  } else {
    check_all(half, {1, 3}, own);
  }
  world = world.shrink();
  check_all(world, {1, 2, 3}, own);
}

// The configuration has the mock backend never return from call 40 of rank 1.
void lose_while_stuck(sucl::communicator world, int victim) {
  const int own = world.rank(), size = world.size();
  for (int call = 1; call < 40; ++call) world.blocking().barrier();
  if (own == victim) kill(getpid(), SIGKILL);
  const auto info = failure_of([&] { world.blocking().barrier(); });
  expect(own != 1 && is_lost(info), "the loss: " + info.message);
  const auto left = without(size, {victim, 1});
  sucl::communicator now = world.shrink();
  while (now.size() > static_cast<int>(left.size()))
    if (failure_of([&] { now.blocking().barrier(); }).code != sucl::errc::success)
      now = now.shrink();
  check_all(now, left, own);
}

void stay_inside(sucl::communicator world) {
  for (;;) world.blocking().barrier();
}

void stop_and_go_on(sucl::communicator world) {
  const int own = world.rank(), last = world.size() - 1;
  std::vector<int> processes(static_cast<std::size_t>(world.size()));
  const int process = getpid();
  world.blocking().allgather(&process, processes.data(), 1);
  const auto others = world.split(own == last ? -1 : 0);
  const std::string stopped = "rank " + std::to_string(last) + " is stopped";
  if (own == last) kill(getpid(), SIGSTOP);
  const auto info = failure_of([&] { world.blocking().barrier(); });
  // All others have arrived before the last one goes on, which may find that so.
  expect(own == last ||
             (info.code == sucl::errc::timeout && info.message.find(stopped) != info.message.npos),
         "a stopped rank is named: " + info.message);
  if (own != last) {
    for (int times = 0; times < 2; ++times) {
      const auto why = failure_of([&] { (void)world.shrink(); });
      expect(why.code == sucl::errc::timeout && why.message.find(stopped) != why.message.npos,
             "it is not left out: " + why.message);
    }
    others.blocking().barrier();
    if (own == 0) kill(processes.back(), SIGCONT);
  }
  sucl::communicator now;
  while (!now) {  // the others may give up waiting once more, before it has come
    const auto why = failure_of([&] { now = world.shrink(); });
    expect(now || why.code == sucl::errc::timeout, "it is waited for: " + why.message);
  }
  check_all(now, without(last + 1, {}), own);
}

void shrink_well(sucl::communicator world) {
  const auto all = without(world.size(), {});
  const auto now = world.shrink();
  check_all(now, all, world.rank());
  check_old(world);
  check_all(now.dup(), all, now.rank());
}

void leave(sucl::runtime& rt, sucl::communicator world, int victim) {
  const int own = world.rank();
  failure_of([&] { world.blocking().barrier(); });
  if (own == victim) {
    rt.shut_down();
    std::fflush(stdout);
    std::_Exit(0);
  }
  check_all(world.shrink(), without(world.size(), {victim}), own);
}

// Starts `count` processes, on rank 0 alone, that join the ranks of `members` by the id; `missing`
// more would have to.
std::vector<pid_t> start_joiners(const sucl::communicator& members, const sucl::unique_id& id,
                                 int count, int missing = 0) {
  std::vector<pid_t> all;
  const std::string text = id.to_string();
  const std::string size = std::to_string(members.size() + count + missing);
  for (int i = 0; i < count && members.rank() == 0; ++i) {
    const std::string rank = std::to_string(members.size() + i);
    const pid_t joiner = fork();
    if (joiner == 0) {
      execl(program, program, "joiner", text.c_str(), rank.c_str(), size.c_str(), nullptr);
      _exit(9);
    }
    all.push_back(joiner);
  }
  return all;
}

void await_joiners(const std::vector<pid_t>& joiners) {
  for (const pid_t joiner : joiners) {
    int status = 0;
    expect(waitpid(joiner, &status, 0) == joiner && status == 0, "the joiner is right");
  }
}

// All ranks, with `count` processes more. What is in flight ends before.
sucl::communicator grow_by(sucl::runtime& rt, sucl::communicator members, int count,
                           std::vector<pid_t>& joiners) {
  const int rank = members.rank(), size = members.size() + count;
  const auto id = rank == 0 ? sucl::unique_id::make("loopback") : sucl::unique_id{};
  joiners = start_joiners(members, id, count);
  sycl::queue queue;
  int* x = sycl::malloc_shared<int>(1, queue);
  *x = 1;
  members.allreduce(x, 1, sucl::op::sum);
  const int before = members.size();
  rt.grow(std::exchange(members, {}), id, count);
  expect(*x == before, "what was in flight is done");
  sycl::free(x, queue);
  expect(rt.rank() == rank && rt.size() == size, "the numbers of the larger job");
  auto world = rt.world(sycl::queue{});
  check_all(world, without(size, {}), rank);
  return world;
}

// A new process comes instead of a dead one, and another one.
void grow(sucl::runtime& rt, sucl::communicator world, int victim) {
  expect(is_lost(reduce_until_lost(world, world.rank() == victim)), "the loss");
  std::vector<pid_t> joiners;
  world = grow_by(rt, world.shrink(), 2, joiners);
  rt.shut_down();
  await_joiners(joiners);
}

// The joiner leaves before the second time, so that all that are left call grow().
void grow_twice(sucl::runtime& rt, sucl::communicator world) {
  std::vector<pid_t> first, second;
  world = grow_by(rt, std::move(world), 1, first);
  failure_of([&] { world.blocking().barrier(); });
  world = grow_by(rt, world.shrink(), 1, second);
  rt.shut_down();
  await_joiners(first);
  await_joiners(second);
}

// Nothing has changed afterwards.
void grow_wrong(sucl::runtime& rt, sucl::communicator world) {
  const auto refused = [&](sucl::errc code, const std::string& text,
                           const std::function<void()>& call) {
    const auto info = failure_of(call);
    expect(info.code == code && info.message.find(text) != info.message.npos,
           "refused: " + info.message);
    check_all(world, without(world.size(), {}), world.rank());
  };
  const sucl::unique_id none;
  const auto some = sucl::unique_id::make("loopback");
  const bool odd = world.rank() == 1;
  refused(sucl::errc::invalid_argument, "the id of rank 0 is empty",
          [&] { rt.grow(world, none, 1); });
  refused(sucl::errc::invalid_count, "0 processes cannot join", [&] { rt.grow(world, some, 0); });
  refused(sucl::errc::invalid_count, "-2 processes cannot join",
          [&] { rt.grow(world, some, odd ? -2 : 1); });
  refused(sucl::errc::mismatch, "different numbers", [&] { rt.grow(world, some, odd ? 2 : 1); });
  const auto named = [](const char* text) { return sucl::unique_id::from_string(text); };
  refused(sucl::errc::invalid_argument, "is no id of a job",
          [&] { rt.grow(world, named("nonsense"), 1); });
  refused(sucl::errc::invalid_argument, "found by this id already",
          [&] { rt.grow(world, named(std::getenv("SUCL_TCP_ID")), 1); });
  refused(sucl::errc::invalid_count, "larger than any",
          [&] { rt.grow(world, some, 2'000'000'000); });
  refused(sucl::errc::shut_down, "is empty", [&] { rt.grow({}, some, 1); });
}

// The rank that is missing is named, and the runtime has ended, and all that was made with it.
void grow_in_vain(sucl::runtime& rt, sucl::communicator world) {
  const int rank = world.rank(), size = world.size();
  const auto id = rank == 0 ? sucl::unique_id::make("loopback") : sucl::unique_id{};
  const auto joiners = start_joiners(world, id, 1, 1);
  const auto info = failure_of([&] { rt.grow(world, id, 2); });
  expect(info.code == sucl::errc::timeout &&
             info.message.find("rank " + std::to_string(size + 1)) != info.message.npos,
         "who is missing is named: " + info.message);
  const auto has_ended = [&](const std::function<void()>& call) {
    const auto why = failure_of(call);
    expect(why.code == sucl::errc::shut_down, "it has ended: " + why.message);
  };
  has_ended([&] { world.blocking().barrier(); });
  has_ended([&] { (void)rt.world(sycl::queue{}); });
  has_ended([&] { rt.grow(world, id, 2); });
  for (const pid_t joiner : joiners) {
    int status = 0;
    expect(waitpid(joiner, &status, 0) == joiner && status != 0, "the joiner has the error too");
  }
}

void grow_halved(sucl::runtime& rt, sucl::communicator world) {
  auto half = world.split(world.rank() % 2, -world.rank());
  std::vector<pid_t> joiners;
  const int rank = half.rank();
  auto grown = grow_by(rt, std::exchange(half, {}), 1, joiners);
  expect(grown.rank() == rank, "the numbers of the members");
  rt.shut_down();
  await_joiners(joiners);
}

int join() {
  auto rt = sucl::runtime::join(sucl::unique_id::from_string(words[1]), number(2), number(3));
  auto world = rt.world(sycl::queue{});
  check_all(world, without(number(3), {}), number(2));
  return failures;
}

void be_refused(sucl::runtime& rt, sucl::communicator world) {
  auto info = failure_of([&] { rt.grow(world, sucl::unique_id::make("loopback"), 1); });
  expect(info.code == sucl::errc::unsupported &&
             info.message.find("the processes of its launcher alone") != info.message.npos,
         "refused to grow: " + info.message);
  info = failure_of([&] { (void)world.shrink(); });
  expect(info.code == sucl::errc::unsupported &&
             info.message.find("ends the whole job") != info.message.npos,
         "refused: " + info.message);
  int x = 1;
  world.blocking().allreduce(&x, 1, sucl::op::sum);
  expect(x == world.size(), "the communicator goes on");
}

void run(sucl::runtime& rt, const std::string& what) {
  sycl::queue queue([](const sycl::exception_list&) {});  // check() and wait() throw them too
  sucl::communicator world = rt.world(queue);
  const int size = world.size();
  if (what == "kill") lose(world, {number(1)});
  if (what == "two") lose(world, {number(1), number(2)});
  if (what == "during") lose_during(world, number(1));
  if (what == "unaware") lose_unaware(world, number(1));
  if (what == "events") lose_with_events(world, number(1));
  if (what == "half") lose_half(world);
  if (what == "stuck") lose_while_stuck(world, number(1));
  if (what == "inside") stay_inside(world);
  if (what == "stopped") stop_and_go_on(world);
  if (what == "well") shrink_well(world);
  if (what == "left") leave(rt, world, number(1));
  if (what == "grow") grow(rt, std::exchange(world, {}), number(1));
  if (what == "grow_twice") grow_twice(rt, std::exchange(world, {}));
  if (what == "grow_wrong") grow_wrong(rt, world);
  if (what == "grow_in_vain") grow_in_vain(rt, world);
  if (what == "grow_halved") grow_halved(rt, std::exchange(world, {}));
  if (what == "refused") be_refused(rt, world);
  if (failures == 0) std::printf("%s: right on one of %d ranks\n", what.c_str(), size);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  words.assign(argv + 1, argv + argc);
  try {
    if (words.empty()) return 2;
    if (words[0] == "joiner") return join();
    sucl::runtime rt;
    run(rt, words[0]);
    rt.shut_down();
    return failures == 0 ? 0 : 4;
  } catch (const std::exception& e) {
    std::printf("error: %s\n", e.what());
    std::fflush(stdout);
    std::_Exit(3);
  }
}
