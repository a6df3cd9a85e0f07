// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The last rank ends the communicator while the others still use it, after three operations each:
//
//   faults_members more FORM   the others start one more: event, blocking, persistent, replay,
//                              unheard (an event, and nothing asks for its error) or receive
//   faults_members dup         the others make a communicator of it
//   faults_members allocate    the others allocate memory
//   faults_members world       the others make one of all ranks, which the end of the job is not
//   faults_members exit HOW    the last rank calls exit() or _exit(), with status 0; `task`: exit()
//                              in a host task; `alone`: the same, and the others wait for its end
//   faults_members thrown      an exception has the last rank end, and the others start one more
//   faults_members thrown_root the same, and that is a reduction to rank 0
//   faults_members late        all do the same, the last rank long after the first has ended
//   faults_members absent      the last rank is for ever in code of its own; the others wait for it
//   faults_members deadlock FORM   the first and the last rank each receive from the other before
//                              they send (receive or group); those between them end
//
// Each of the others prints that it was told why, waits until the others have too, and ends with
// status 1.
#include <sucl/sucl.hpp>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/printed.hpp"
#include "support/printed_errors.hpp"

namespace {

using namespace std::chrono_literals;

struct scene {
  sucl::runtime rt;
  sycl::queue queue{sycl::cpu_selector_v};
  sucl::communicator comm = rt.world(queue);
  std::vector<float> x = std::vector<float>(100, 1.0f);
  sucl::persistent prepared = comm.persistent().allreduce(x.data(), x.size(), sucl::op::max);
  sucl::executable sequence;

  scene(int& argc, char**& argv) : rt(argc, argv) {}
  bool is_last() const { return comm.rank() == comm.size() - 1; }

  void record() {
    sequence = comm.record(queue, [this] { comm.allreduce(x.data(), x.size(), sucl::op::max); });
  }

  void act(const std::string& form) {
    if (form == "event" || form == "unheard")
      comm.allreduce(x.data(), x.size(), sucl::op::max).wait();
    else if (form == "persistent")
      prepared.start().wait();
    else if (form == "replay")
      sequence.replay().wait();
    else if (form == "reduce")
      comm.reduce(x.data(), x.data(), x.size(), sucl::op::max, 0).wait();
    else
      comm.blocking().allreduce(x.data(), x.size(), sucl::op::max);
  }
};

// `ranks` of them print; the status of one.
int print(const scene& s, int ranks, const std::string& said) {
  std::printf("rank %d was %s\n", s.comm.rank(), said.c_str());
  std::fflush(stdout);
  sucl_test::wait_until_printed(s.comm.rank(), ranks);
  return 1;
}

// What the others get.
int expect_error(scene& s, sucl::errc code, const std::vector<std::string>& parts,
                 const std::string& form) {
  try {
    if (form == "receive")
      s.comm.blocking().recv(s.x.data(), 10, s.comm.size() - 1);
    else if (form == "dup")
      (void)s.comm.dup();
    else if (form == "allocate")
      (void)s.comm.allocate<float>(10);
    else
      s.act(form);
    if (form == "unheard") return 0;  // the end of the runtime reports it
    s.comm.check();
  } catch (const sucl::error& e) {
    const std::string text = e.what();
    bool all = e.code() == code;
    for (const auto& part : parts) all = all && text.find(part) != std::string::npos;
    return print(s, s.comm.size() - 1, (all ? "told: " : "told something else: ") + text);
  }
  return print(s, s.comm.size() - 1, "not told");
}

int more(scene& s, const std::string& form) {
  if (form == "replay") s.record();
  for (int i = 0; i < 3; ++i) s.act(form);
  if (s.is_last()) return 0;
  const std::string last =
      "rank " + std::to_string(s.comm.size() - 1) + " has ended communicator 1 ";
  std::vector<std::string> parts{last + "after 3 operations", "others wait in operation 4: ",
                                 "allreduce of 100 fp32 with op max"};
  if (form == "replay") parts[0] += " that it replayed";
  if (form == "receive") parts = {last, "others wait in recv from rank"};
  return expect_error(s, sucl::errc::mismatch, parts, form);
}

int make(scene& s, const std::string& what) {
  s.act("blocking");
  if (s.is_last()) return 0;
  return expect_error(s, sucl::errc::mismatch,
                      {"has ended communicator 1 after 1 operation, and others wait in",
                       what == "dup" ? "operation 2: dup() [mismatch"
                                     : "operation 2: allocate() of elements of 4 bytes [mismatch"},
                      what);
}

int make_world(scene& s) {
  s.act("blocking");
  if (s.is_last()) return 0;
  try {
    (void)s.rt.world();
  } catch (const sucl::error& e) {
    return print(s, s.comm.size() - 1, std::string("told: ") + e.what());
  }
  return print(s, s.comm.size() - 1, "not told");
}

// The SYCL runtime waits at the exit for the thread of the task, and so for itself.
void exit_in_task(scene& s) {
  s.queue.submit([](sycl::handler& h) { h.host_task([] { std::exit(0); }); }).wait();
  std::abort();
}

int exit_early(scene& s, const std::string& how) {
  s.act("blocking");
  if (s.is_last() && (how == "task" || how == "alone")) exit_in_task(s);
  if (s.is_last() && how == "exit") std::exit(0);
  if (how == "alone") {
    while (kill(static_cast<pid_t>(s.comm.members().back().process), 0) == 0)
      std::this_thread::sleep_for(10ms);
    return 1;
  }
  if (s.is_last()) _exit(0);
  const std::string last = "rank " + std::to_string(s.comm.size() - 1);
  return expect_error(
      s, sucl::errc::peer_lost,
      {last + (how == "_exit" ? " has died" : " has called exit() before the end of its runtime"),
       "this rank waits in operation 2: allreduce of 100 fp32"},
      "blocking");
}

int thrown(scene& s, const std::string& form, const std::string& operation, int number = 4) {
  for (int i = 0; i < 3; ++i) s.act("event");
  if (s.is_last()) throw std::runtime_error("the last rank's own reason");
  return expect_error(
      s, sucl::errc::peer_lost,
      {"communicator 1", "destroyed during stack unwinding",
       "this rank waits in operation " + std::to_string(number) + ": " + operation + " ["},
      form);
}

// What frees memory on the way waits for no rank.
int thrown_past_memory(scene& s) {
  const auto free = [&](float* memory) { s.comm.deallocate(memory); };
  std::unique_ptr<float, decltype(free)> memory(s.comm.allocate<float>(100), free);
  if (!s.is_last()) (void)memory.release();
  return thrown(s, "event", "allreduce of 100 fp32 with op max", 5);
}

// On the rank whose function throws the blocking form throws the same.
int throw_in_user_op(scene& s, const std::string& form) {
  const sucl::user_op<float> sum([&s, &form](const float& a, const float& b) {
    if (s.is_last() && form == "calls") s.comm.blocking().barrier();
    if (s.is_last()) throw std::runtime_error("the function's own");
    return a + b;
  });
  std::vector<float> x(form == "small" ? 10 : 100000, 1.0f), sums(x.size());
  try {
    if (form == "blocking")
      (void)sum.allreduce(s.comm, x.front());
    else
      sum.allreduce(s.comm, x.data(), sums.data(), x.size()).wait();
    s.comm.check();
    s.act("blocking");
  } catch (const std::exception& e) {
    return print(s, s.comm.size(), std::string("told: ") + e.what());
  }
  return print(s, s.comm.size(), "not told");
}

int absent(scene& s) {
  s.act("blocking");
  if (s.is_last())
    for (;;) std::this_thread::sleep_for(1s);
  return expect_error(s, sucl::errc::timeout,
                      {"rank " + std::to_string(s.comm.size() - 1) + " has not arrived [timeout"},
                      "blocking");
}

int deadlock(scene& s, const std::string& form) {
  s.act("blocking");
  if (s.comm.rank() != 0 && !s.is_last()) return 0;
  const int other = s.is_last() ? 0 : s.comm.size() - 1;
  try {
    if (form == "group") {
      std::vector<float> y(10);
      sucl::group both(s.comm);
      both.recv(s.x.data(), 10, other, 1);
      both.recv(y.data(), 10, other, 2);
      both.run();
    } else {
      s.comm.blocking().recv(s.x.data(), 10, other);
    }
  } catch (const sucl::error& e) {
    return print(s, 2, std::string("told: ") + e.what());
  }
  return print(s, 2, "not told");
}

// A rank that has sent what the others need may end before they have begun to wait for it.
int late(scene& s) {
  s.act("blocking");
  if (s.is_last()) std::this_thread::sleep_for(1500ms);
  s.comm.broadcast(s.x.data(), s.x.size(), 0).wait();
  if (s.comm.rank() == 0) s.comm.send(s.x.data(), 10, s.comm.size() - 1).wait();
  if (s.is_last()) {
    std::this_thread::sleep_for(700ms);
    s.comm.recv(s.x.data(), 10, 0).wait();
  }
  s.comm.check();
  return 0;
}

// A static object has the runtime: one that is older, so that the exit comes to it after it has
// waited for the thread of the task, or one that is younger.
int exit_with_static_scene(int& argc, char**& argv, const std::string& how) {
  if (how == "older") {
    static std::optional<scene> older;
    return exit_early(older.emplace(argc, argv), "alone");
  }
  static scene s(argc, argv);
  std::optional<sucl_test::printed_errors> errors;
  if (s.is_last()) {
    errors.emplace();
    std::thread([&] {
      errors->await("exit() has not ended after");
      std::_Exit(1);
    }).detach();
  }
  return exit_early(s, "alone");
}

int run(const std::string& what, const std::string& form, int& argc, char**& argv) {
  if (what == "exit" && (form == "older" || form == "younger"))
    return exit_with_static_scene(argc, argv, form);
  scene s(argc, argv);
  if (what == "more") return more(s, form);
  if (what == "dup" || what == "allocate") return make(s, what);
  if (what == "world") return make_world(s);
  if (what == "exit") return exit_early(s, form);
  if (what == "absent") return absent(s);
  if (what == "thrown_memory") return thrown_past_memory(s);
  if (what == "user_op") return throw_in_user_op(s, form);
  if (what == "deadlock") return deadlock(s, form);
  if (what == "thrown") return thrown(s, "event", "allreduce of 100 fp32 with op max");
  // The error names no root, but the lost rank only.
  if (what == "thrown_root") return thrown(s, "reduce", "reduce of 100 fp32 with op max");
  return what == "late" ? late(s) : 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    return run(argv[1], argc > 2 ? argv[2] : "", argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
