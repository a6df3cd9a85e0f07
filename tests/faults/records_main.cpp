// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks of which one goes astray, as the first argument says, for `sucl diagnose`. The second one
// is the form of the calls. With `calls`, it makes so many and ends well: what recording costs.
#include <sucl/sucl.hpp>

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t elements = 100;

struct ranks {
  sucl::communicator world;
  bool events;
  std::vector<float> x = std::vector<float>(elements, 1.0f);

  bool astray() const { return world.rank() == 1; }
  int root() const { return world.size() - 1; }

  void allreduce() {
    if (events)
      world.allreduce(x.data(), x.size(), sucl::op::sum).wait_and_throw();
    else
      world.blocking().allreduce(x.data(), x.size(), sucl::op::sum);
  }
  void broadcast() {
    if (events)
      world.broadcast(x.data(), x.size(), root()).wait_and_throw();
    else
      world.blocking().broadcast(x.data(), x.size(), root());
  }
};

[[noreturn]] void do_nothing() {
  for (;;) pause();
}

// Until it is told that the others have given up.
[[noreturn]] void look_on(const ranks& all) {
  for (;; usleep(5000)) all.world.check();
}

void go_astray(ranks& all, const std::string& how) {
  if (how == "late") look_on(all);
  if (how == "stall") do_nothing();
  if (how == "stop") raise(SIGSTOP);
  if (how == "kill") raise(SIGKILL);
  if (how == "crash") raise(SIGSEGV);
  if (how == "mismatch") return all.broadcast();
  if (how == "message") do_nothing();  // it sends none
}

void repeat(ranks& all, long calls, bool alternating) {
  for (long i = 0; i < calls; ++i) {
    all.allreduce();
    if (alternating) all.broadcast();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string how = argv[1];
  sucl::runtime runtime{argc, argv};
  sycl::queue queue{sycl::cpu_selector_v};
  ranks all{runtime.world(queue), std::strcmp(argv[2], "event") == 0};
  if (how == "calls") {
    all.x.resize(2);
    repeat(all, std::strtol(argv[3], nullptr, 10), argc > 4);
    return 0;
  }
  try {
    for (int i = 0; i < 3; ++i) all.allreduce();
    if (all.astray())
      go_astray(all, how);
    else if (how == "message" && all.world.rank() == 0)
      all.world.blocking().recv(all.x.data(), 7, 1, 3);
    else if (how == "message")
      do_nothing();
    else
      all.allreduce();
  } catch (const sucl::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
