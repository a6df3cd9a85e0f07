// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that differ in the last call of a communicator, for which none of them has to wait:
//
//   faults_last OPERATION HOW FORM
//
// HOW: roots, each is the root of what roots send, and none of what they receive;
//   none, the last rank passes a count of 0;
//   more, one that only sends makes one call more than the others;
//   before, as roots, in the second of four calls;
//   late, rank 1 receives, but when the others have ended, who have broadcast instead;
//   behind, as roots, but the last rank when the others have ended;
//   slow, rank 1 takes part in a broadcast of all long after the others have ended, called late, or
//     as an event that waits for a command of the program, which is right;
//   caught, as roots, but the last rank leaves by an exception of its own;
//   each, every rank is the root of what roots send, and none of what they receive, again and
//   again:
//     each is told in one of these calls;
//   same, all do the same.
// OPERATION: broadcast, scatter, scatterv, reduce, gather or gatherv; FORM: blocking, event,
// persistent, dup (on a communicator that ends before the runtime) or ranks (two in each process).
#include "support/host_command.hpp"

#include <sucl/sucl.hpp>

#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t length = 10;

struct scene {
  std::string operation, how, form;

  bool roots_send() const {
    return operation == "broadcast" || operation == "scatter" || operation == "scatterv";
  }

  template <class Calls>
  auto call(Calls& calls, std::size_t size, std::size_t n, int root, float* x, float* y) const {
    if (operation == "broadcast") return calls.broadcast(x, n, root);
    if (operation == "scatter") return calls.scatter(x, y, n, root);
    if (operation == "reduce") return calls.reduce(x, n, sucl::op::sum, root);
    if (operation == "gather") return calls.gather(x, y, n, root);
    const std::vector<std::size_t> counts(size, n);
    std::vector<std::size_t> displacements;
    for (std::size_t r = 0; r < size; ++r) displacements.push_back(r * n);
    if (operation == "gatherv") return calls.gatherv(x, n, y, counts, displacements, root);
    return calls.scatterv(x, counts, displacements, y, n, root);
  }

  void act(sucl::communicator& comm, std::size_t n, int root) const {
    const auto size = static_cast<std::size_t>(comm.size());
    std::vector<float> x(size * length, 1.0f), y(size * length);
    if (form == "event") {
      call(comm, size, n, root, x.data(), y.data()).wait();
    } else if (form == "persistent") {
      auto calls = comm.persistent();
      call(calls, size, n, root, x.data(), y.data()).run();
    } else {
      auto calls = comm.blocking();
      call(calls, size, n, root, x.data(), y.data());
    }
  }

  void take_part_slowly(sucl::communicator& comm) const {
    const auto pause = [&] {
      if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
    };
    float x = comm.rank() == 0 ? 5 : 0;
    if (form == "event") {
      const auto paused =
          comm.queue().submit([&](sycl::handler& h) { sucl::testing::host_command(h, pause); });
      comm.broadcast(&x, 1, 0, {paused}).wait();
    } else {
      pause();
      comm.blocking().broadcast(&x, 1, 0);
    }
    if (x != 5) throw std::runtime_error("the broadcast gave something else");
  }

  // Which call tells each rank that they differ from the third on.
  void repeat(sucl::communicator& comm, int root) const {
    constexpr int many = 1000;
    for (int i = 1; i <= many; ++i) {
      try {
        act(comm, length, i > 2 ? root : 0);
      } catch (const sucl::error& e) {
        std::printf("call %d told rank %d: %s\n", i, comm.rank(), e.what());
        return;
      }
    }
    std::printf("rank %d was not told\n", comm.rank());
  }

  void run(sucl::communicator& comm) const {
    const int last = comm.size() - 1;
    const int other = roots_send() ? comm.rank() : (comm.rank() + 1) % comm.size();
    if (how == "each") return repeat(comm, other);
    const bool differ = how == "roots" || how == "caught" || how == "behind";
    const int calls = how == "before" ? 4 : 2;
    for (int i = 0; i < calls; ++i) act(comm, length, how == "before" && i > 0 ? other : 0);
    if (how == "late" && comm.rank() != 1) scene{"broadcast", how, form}.act(comm, length, 0);
    if (how == "late" && comm.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      act(comm, length, 1);
    }
    if (how == "slow") take_part_slowly(comm);
    if (how == "behind" && comm.rank() == last)
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    if (differ) act(comm, length, other);
    if (how == "none") act(comm, comm.rank() == last ? 0 : length, roots_send() ? 0 : last);
    if (how == "more" && comm.rank() == (roots_send() ? 0 : last)) act(comm, length, 0);
    if (how == "caught" && comm.rank() == last) throw std::runtime_error("the last rank's own");
  }
};

int run(const scene& s, int& argc, char**& argv) {
  sucl::runtime rt(argc, argv);
  sycl::queue queue{sycl::cpu_selector_v};
  if (s.form == "ranks") {
    auto comms = rt.world({queue, queue});
    std::vector<std::thread> threads;
    for (auto& c : comms) threads.emplace_back([&s, &c] { s.run(c); });
    for (auto& t : threads) t.join();
    return 0;
  }
  auto comm = rt.world(queue);
  if (s.form == "dup") {
    auto copy = comm.dup();
    s.run(copy);
    copy = {};
    comm.blocking().barrier();
    return 0;
  }
  s.run(comm);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    return run({argv[1], argv[2], argv[3]}, argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
