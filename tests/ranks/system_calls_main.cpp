// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What the kernel sees of collectives on one node:
//
//   ranks_system_calls forbidden   processes may not read each other's memory: all is staged
//   ranks_system_calls small       short messages make no system call but to wait
//
// Exit status 77: this system has no filters for system calls.
#include <sucl/sucl.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

int g_failures = 0;
int g_unwanted = 0;  ///< a system call that should not have been, or 0
std::atomic<int> g_calls{0}, g_last_call{0};

void expect(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "not as expected: %s\n", what.c_str());
  ++g_failures;
}

// Has the kernel answer the system calls `listed` by `these`, all others by `others`: for this
// thread and those that it starts.
void filter_calls(const std::vector<int>& listed, std::uint32_t these, std::uint32_t others) {
  std::vector<sock_filter> code{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)}};
  for (const int number : listed) {
    code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(number)});
    code.push_back({BPF_RET | BPF_K, 0, 0, these});
  }
  code.push_back({BPF_RET | BPF_K, 0, 0, others});
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
    return;
  std::puts("skipped: the kernel takes no filter of system calls");
  std::fflush(stdout);
  std::_Exit(77);
}

void check_forbidden(sucl::communicator& comm) {
  const auto p = static_cast<std::size_t>(comm.size());
  const int rank = comm.rank();
  for (const std::size_t n : {std::size_t{5}, std::size_t{1} << 14, std::size_t{1} << 19}) {
    const std::string plan = comm.explain(sucl::kind::allgather, 4 * n);
    expect(plan.find("read_") == std::string::npos, plan);
    std::vector<int> mine(n), all(n * p);
    std::iota(mine.begin(), mine.end(), rank);
    comm.blocking().allgather(mine.data(), all.data(), n);
    comm.blocking().broadcast(mine.data(), n, 0);
    for (std::size_t r = 0; r < p; ++r)
      for (const std::size_t i : {std::size_t{0}, n / 2, n - 1}) {
        expect(all[r * n + i] == static_cast<int>(r + i), "allgather");
        expect(mine[i] == static_cast<int>(i), "broadcast");
      }
    comm.blocking().alltoall(all.data(), n);
    expect(all[n * p - 1] == rank + static_cast<int>(n) - 1, "alltoall");
  }
}

void count(int, siginfo_t* info, void*) {
  g_last_call = info->si_syscall;
  ++g_calls;
}

void check_small(sucl::communicator& comm) {
  float x[16] = {}, y[16] = {};
  auto calls = comm.blocking();
  auto sum = comm.persistent().allreduce(x, y, 16, sucl::op::sum);
  const auto work = [&] {
    for (int i = 0; i < 500; ++i) {
      calls.allreduce(x, y, 2, sucl::op::sum);
      calls.broadcast(x, 16, i % comm.size());
      sum.run();
    }
  };
  work();
  // As the filter stays, in a thread that ends. What starts and ends it is not counted, nor that it
  // takes the communicator over from this one.
  std::thread([&] {
    work();
    struct sigaction on_call{};
    on_call.sa_sigaction = count;
    on_call.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &on_call, nullptr);
    // While a peer is late a rank yields, sleeps, and polls whether that process has ended.
    filter_calls({__NR_sched_yield, __NR_clock_nanosleep, __NR_poll, __NR_rt_sigreturn, __NR_exit},
                 SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
    work();
    expect(g_calls == 0, "system call " + std::to_string(g_last_call) + ", " +
                             std::to_string(g_calls) + " in all");
    const int before = g_calls;
    if (before > 0) g_unwanted = g_last_call;
    syscall(__NR_getppid);
    expect(g_calls == before + 1, "calls are not counted");
  }).join();
}

}  // namespace

int main(int argc, char** argv) {
  const bool forbidden = argc > 1 && std::string(argv[1]) == "forbidden";
  if (forbidden)
    filter_calls({__NR_process_vm_readv}, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
  sucl::runtime rt(argc, argv);
  auto comm = rt.world();
  forbidden ? check_forbidden(comm) : check_small(comm);
  comm.blocking().allreduce(&g_failures, 1, sucl::op::sum);
  // A launcher may drop what a rank has said before it failed.
  comm.blocking().allreduce(&g_unwanted, 1, sucl::op::max);
  if (comm.rank() == 0)
    std::printf("%d failures; unwanted system call: %d\n", g_failures, g_unwanted);
  std::fflush(stdout);
  comm.blocking().barrier();
  return g_failures == 0 ? 0 : 1;
}
