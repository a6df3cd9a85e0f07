// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Processes with two ranks each, in which something goes wrong, or only seems to. The first
// argument says what; every process that is left prints what it has been told.
//
//   oneself  a thread waits in one rank for the other one, for which it alone could act
//   message  the same with a message to the other one
//   helped   the same until another thread, which slept, acts for the other one
//   dup      the same in dup(), of one rank alone
//   slow     each rank has a thread, and one of them comes late
//   asleep   the same, and that one waits until it is woken
//   busy     the same, and that one computes before its first call
//   closed   the same, and no file can be opened
//   signal   the same, and a signal wakes it
//   library  the same, handled by a library
//   start    the last process is killed before it makes its ranks
//   split    the last process is killed while others split a communicator
//   work     the last process is killed while others wait for an operation of its ranks
//   throw    an exception ends the runtime of the last process
//   leave    the last process ends its runtime in good order, and lives on
#include <sucl/sucl.hpp>

#include <semaphore.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "alarm_library.hpp"
#include "support/printed_errors.hpp"

namespace {

using ranks = std::vector<sucl::communicator>;

bool is_last(const sucl::runtime& rt) { return rt.rank() == rt.size() - 1; }

ranks start(sucl::runtime& rt) {
  const sycl::device device(sycl::cpu_selector_v);
  return rt.world({sycl::queue(device), sycl::queue(device)});
}

void meet(const ranks& mine) {
  sucl::each_rank(mine, [](sucl::communicator& c) { c.blocking().barrier(); });
}

// Until it fails.
void work(const ranks& mine) {
  std::vector<int> x(mine.size(), 1);
  for (;;) {
    sucl::group all;
    for (std::size_t i = 0; i < mine.size(); ++i)
      all.on(mine[i]).allreduce(&x[i], 1, sucl::op::max);
    all.run();
  }
}

void sum(sucl::communicator& c) {
  int x = 1;
  c.blocking().allreduce(&x, 1, sucl::op::sum);
  if (x != c.size()) throw std::runtime_error("wrong sum " + std::to_string(x));
}

// The first process. Its other rank has the error too, and so have the ranks of the last process,
// which have a thread each.
void oneself(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  if (is_last(*rt)) return sucl::each_rank(mine, sum);
  try {
    sum(mine.front());
  } catch (const sucl::error& e) {
    if (e.code() != sucl::errc::timeout) throw;
    std::printf("process %d, first rank: %s\n", rt->rank(), e.what());
    sum(mine.back());
  }
}

void message(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  meet(mine);
  std::vector<double> x(1 << 20), y(x.size());  // too long to be sent eagerly
  mine.front().blocking().send(x.data(), x.size(), mine.back().rank());
  mine.back().blocking().recv(y.data(), y.size(), mine.front().rank());
}

void helped(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  sucl_test::printed_errors errors;
  std::thread other([&] {
    errors.await("which rank " + std::to_string(mine.back().rank()) + " of its process has not");
    sum(mine.back());
  });
  sum(mine.front());
  other.join();
}

void dup(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  sucl_test::printed_errors errors;
  sucl::communicator copy;
  std::thread other([&] {
    errors.await("which rank " + std::to_string(mine.back().rank()) + " of its process has not");
    copy = mine.back().dup();
  });
  auto own = mine.front().dup();
  other.join();
  meet({own, copy});
}

constexpr auto longer_than_searched = std::chrono::milliseconds(3500);

void slow(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  std::thread first([&] {
    for (int i = 0; i < 2; ++i) sum(mine.front());
  });
  std::thread second([&] {
    sum(mine.back());
    std::this_thread::sleep_for(longer_than_searched);
    sum(mine.back());
  });
  first.join();
  second.join();
}

void asleep(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  std::promise<void> goes;
  std::thread first([&] { sum(mine.front()); });
  std::thread second([&] {
    goes.get_future().wait();
    sum(mine.back());
  });
  std::this_thread::sleep_for(longer_than_searched);
  goes.set_value();
  first.join();
  second.join();
}

void busy(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  std::thread other([&] {
    const auto until = std::chrono::steady_clock::now() + longer_than_searched;
    while (std::chrono::steady_clock::now() < until) continue;
    sum(mine.back());
  });
  sum(mine.front());
  other.join();
}

// What the system says of threads is in files.
void closed(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  std::promise<void> first;
  std::thread other([&] {
    sum(mine.back());
    first.get_future().wait();
    std::this_thread::sleep_for(longer_than_searched);
    sum(mine.back());
  });
  sum(mine.front());
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlimit none{0, files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  first.set_value();
  sum(mine.front());
  setrlimit(RLIMIT_NOFILE, &files);
  other.join();
}

sem_t g_signalled;

void note_signal(int /*number*/) { sem_post(&g_signalled); }

// All threads sleep until another one wakes them, but for the handler.
void wait_for_alarm(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  std::thread other([&] {
    while (sem_wait(&g_signalled) != 0) continue;
    sum(mine.back());
  });
  alarm(4);  // later than the search
  sum(mine.front());
  other.join();
}

void woken_by_signal(std::unique_ptr<sucl::runtime>& rt) {
  sem_init(&g_signalled, 0, 0);
  std::signal(SIGALRM, note_signal);
  wait_for_alarm(rt);
}

void woken_by_library(std::unique_ptr<sucl::runtime>& rt) {
  sem_init(&g_signalled, 0, 0);
  sucl_test::post_at_alarm(&g_signalled);
  wait_for_alarm(rt);
}

void lose_at_start(std::unique_ptr<sucl::runtime>& rt) {
  if (is_last(*rt)) std::raise(SIGKILL);
  (void)start(*rt);
}

void lose_in_split(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (is_last(*rt)) std::raise(SIGKILL);
  (void)sucl::communicator::split(mine, {0, 1});
}

void lose_at_work(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (is_last(*rt)) std::raise(SIGKILL);
  work(mine);
}

void throw_at_work(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (is_last(*rt)) {
    sucl::runtime own = std::move(*rt);
    throw std::runtime_error("of the program");
  }
  work(mine);
}

void leave(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (!is_last(*rt)) work(mine);
  sucl::each_rank(mine, [](sucl::communicator& c) { c.wait(); });
  std::thread([&] { rt->shut_down(); }).detach();  // MPI waits for the others, who know by then
  std::this_thread::sleep_for(std::chrono::seconds(5));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(std::unique_ptr<sucl::runtime>&)> cases{
      {"oneself", oneself},
      {"message", message},
      {"helped", helped},
      {"dup", dup},
      {"slow", slow},
      {"asleep", asleep},
      {"busy", busy},
      {"closed", closed},
      {"signal", woken_by_signal},
      {"library", woken_by_library},
      {"start", lose_at_start},
      {"split", lose_in_split},
      {"work", lose_at_work},
      {"throw", throw_at_work},
      {"leave", leave}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  auto rt = std::make_unique<sucl::runtime>();
  const int process = rt->rank();
  try {
    found->second(rt);
    std::printf("process %d: no error\n", process);
  } catch (const std::exception& e) {
    std::printf("process %d: %s\n", process, e.what());
  }
  std::fflush(stdout);
  std::_Exit(0);
}
