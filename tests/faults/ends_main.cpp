// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// How ranks end that have not asked for their errors, and what children of ranks may do. Two ranks:
//
//   faults_ends unheard nothing|wait|buffer   the status is not 0, the error is printed
//   faults_ends unheard handler                  the queue's handler is told
//   faults_ends unheard check|call               the program is told, and ends well
//   faults_ends unreceived warned                a message that is never received is reported
//   faults_ends fork return|call|exec            the parent's job goes on
//   faults_ends task thrown                      a host task throws before an operation that waits
//                                                for it, which is executed
#include <sucl/sucl.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace {

int fail(const std::string& text) {
  std::fprintf(stderr, "not as expected: %s\n", text.c_str());
  return 1;
}

// Rank 1 receives more than it has room for: its own error, which rank 0 knows nothing of.
int unheard(const std::string& how, int& argc, char**& argv) {
  std::atomic<int> handled{0};
  {
    sucl::runtime rt{argc, argv};
    const auto handler = [&](sycl::exception_list list) {
      for (const auto& e : list) try {
          std::rethrow_exception(e);
        } catch (const sucl::error& e) {
          if (e.code() == sucl::errc::invalid_count) ++handled;
        }
    };
    std::optional<sycl::queue> queue;
    if (how == "handler")
      queue.emplace(sycl::cpu_selector_v, handler);
    else
      queue.emplace(sycl::cpu_selector_v);
    auto comm = rt.world(*queue);
    std::vector<double> x(100000, 1.0);
    const bool receiver = rt.rank() == 1;
    sycl::event done;
    // The receive is in flight when the message is sent, so that the call cannot throw.
    int begun = 0;
    if (!receiver) comm.blocking().recv(&begun, 1, 1, 9);
    {
      sycl::buffer<double, 1> b{sycl::range<1>(receiver ? 10 : 100)};
      if (how == "buffer")
        done = receiver ? comm.recv(b, 0) : comm.send(b, 1);
      else
        done = receiver ? comm.recv(x.data(), 50, 0) : comm.send(x.data(), 100, 1);
      if (receiver) comm.blocking().send(&begun, 1, 0, 9);
      if (how == "buffer") done.wait();
    }
    if (how != "nothing") done.wait();
    int told = 0;
    try {
      if (how == "check") comm.check();
      if (how == "call") comm.blocking().send(x.data(), 1, rt.rank());
    } catch (const sucl::error& e) {
      told = e.code() == sucl::errc::invalid_count;
    }
    if ((how == "check" || how == "call") && told != static_cast<int>(receiver))
      return fail("told " + std::to_string(told));
  }
  if (how == "handler") {
    int rank = 0;
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
      if (const char* value = std::getenv(name)) rank = std::atoi(value);
    if (handled != rank) return fail("the handler heard of " + std::to_string(handled.load()));
  }
  std::printf("the end of main\n");
  return 0;
}

// The barrier orders the message before the end of the communicator.
int unreceived(int& argc, char**& argv) {
  sucl::runtime rt{argc, argv};
  auto comm = rt.world();
  std::vector<int> x(3, 1);
  if (rt.rank() == 0) comm.blocking().send(x.data(), x.size(), 1, 5);
  comm.blocking().barrier();
  return 0;
}

// What the child does; its status. It returns from main() then.
int be_the_child(const std::string& how, sucl::communicator& comm) {
  if (how != "call") return 0;
  int x = 1, refused = 0;
  const auto expect = [&](auto&& call) {
    try {
      call();
    } catch (const sucl::error& e) {
      const std::string text = e.what();
      refused += e.code() == sucl::errc::shut_down && text.find("forked") != std::string::npos;
    }
  };
  expect([&] { comm.blocking().allreduce(&x, 1, sucl::op::sum); });
  expect([&] { comm.allreduce(&x, 1, sucl::op::sum).wait(); });
  expect([&] { (void)comm.dup(); });
  expect([&] { comm.check(); });
  expect([&] { (void)comm.allocate<int>(3); });
  expect([&] { sucl::runtime another; });
  return refused == 6 ? 0 : 7;
}

int forked(const std::string& how, int& argc, char**& argv) {
  sucl::runtime rt{argc, argv};
  auto comm = rt.world();
  int x = 1;
  auto persistent = comm.persistent().allreduce(&x, 1, sucl::op::sum);
  int* mapped = comm.allocate<int>(1000);
  for (int i = 0; i < 10; ++i) comm.blocking().allreduce(mapped, 1000, sucl::op::max);
  comm.allreduce(&x, 1, sucl::op::max).wait();
  int status = 0;
  if (how == "exec") {
    const std::string command = "true";
    if (std::system(command.c_str()) != 0) return fail("system()");
    char name[] = "true";
    char* words[] = {name, nullptr};
    pid_t child = 0;
    if (posix_spawnp(&child, name, nullptr, nullptr, words, environ) != 0) return fail("spawn");
    waitpid(child, &status, 0);
  } else {
    const pid_t child = fork();
    if (child == 0) return be_the_child(how, comm);
    waitpid(child, &status, 0);
  }
  if (status != 0) return fail("the child ended with " + std::to_string(status));
  x = 1;
  persistent.run();
  if (x != comm.size()) return fail("the sum is " + std::to_string(x));
  comm.blocking().barrier();
  comm.dup().blocking().barrier();
  if (comm.rank() == 0) std::printf("the job went on\n");
  return 0;
}

// The exception is for the handler of the task's queue; SYCL shows no operation that it was thrown.
int task(int& argc, char**& argv) {
  sucl::runtime rt{argc, argv};
  int handled = 0;
  sycl::queue queue(sycl::cpu_selector_v, [&](sycl::exception_list list) {
    for (const auto& e : list) try {
        std::rethrow_exception(e);
      } catch (const std::runtime_error& e) {
        handled += std::string(e.what()) == "the task's own";
      }
  });
  auto comm = rt.world(queue);
  std::vector<double> x(1000, comm.rank() + 1.0);
  const bool throws = comm.rank() == 1;
  sycl::event before = queue.submit([&](sycl::handler& h) {
    h.host_task([=] {
      if (throws) throw std::runtime_error("the task's own");
    });
  });
  comm.allreduce(x.data(), x.size(), sucl::op::sum, {before}).wait();
  comm.check();
  queue.wait_and_throw();
  if (x.back() != 3.0) return fail("the sum is " + std::to_string(x.back()));
  if (handled != static_cast<int>(throws)) return fail("handled: " + std::to_string(handled));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "", how = argc > 2 ? argv[2] : "";
  if (what == "unheard") return unheard(how, argc, argv);
  if (what == "unreceived") return unreceived(argc, argv);
  if (what == "fork") return forked(how, argc, argv);
  if (what == "task") return task(argc, argv);
  return 2;
}
