// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that are killed or stopped at random moments of running plans and of messages:
//
//   faults_plans killed|stopped host|device [SEED]
//
// With `device` the communicators have the CPU device, and SuCL's kernels must execute them.
// All ranks run the same random operations, on ordinary memory and on memory that all of them
// reach. A thread of the victim, whichever it is, ends or stops its process at some instruction.
// The others must get an error that names it, go on among themselves, and find nothing of it left
// behind. A death is seen without the watchdog, so the test gives that one more time than the test
// has itself.
#include <sucl/sucl.hpp>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

int g_failures = 0;

void fail(const std::string& text) {
  std::fprintf(stderr, "not as expected: %s\n", text.c_str());
  ++g_failures;
}

// One random operation, the same on every rank; now and then a rank comes late.
struct mill {
  sucl::communicator comm;
  std::mt19937_64 shared, own;
  std::vector<float> plain_in, plain_out;
  float *mapped_in, *mapped_out;

  mill(sucl::communicator c, std::uint64_t seed)
      : comm(c),
        shared(seed),
        own(seed + 77u * static_cast<unsigned>(c.rank())),
        plain_in(60000u * static_cast<unsigned>(c.size()), 1.f),
        plain_out(plain_in.size()),
        mapped_in(comm.allocate<float>(plain_in.size())),
        mapped_out(comm.allocate<float>(plain_in.size())) {}

  void turn() {
    const bool mapped = shared() % 2;
    float* in = mapped ? mapped_in : plain_in.data();
    float* out = mapped ? mapped_out : plain_out.data();
    const std::uint64_t what = shared() % 8, n = 1 + shared() % (std::uint64_t{1} << shared() % 16);
    const int root = static_cast<int>(shared() % static_cast<unsigned>(comm.size()));
    if (own() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 500));
    const int p = comm.size(), next = (comm.rank() + 1) % p, before = (comm.rank() + p - 1) % p;
    auto calls = comm.blocking();
    switch (what) {
      case 0: return calls.allreduce(in, out, n, sucl::op::sum);
      case 1: return calls.broadcast(out, n, root);
      case 2: return calls.allgather(in, out, n);
      case 3: return calls.reduce(in, out, n, sucl::op::max, root);
      case 4: return calls.alltoall(in, out, std::min<std::uint64_t>(n, 8192));
      case 5: return calls.sendrecv(in, n, next, out, n, before);
      case 6: {
        sucl::group messages(comm);
        messages.send(static_cast<const float*>(in), n, before, 1);
        messages.recv(out, n, next, 1);
        messages.submit().wait();
        return comm.check();
      }
      default:
        comm.allreduce(in, out, n, sucl::op::sum);
        comm.barrier().wait();
        comm.check();
    }
  }
};

// Segments of System V shared memory that ranks of the job have made.
int system_v_segments(const sucl::communicator& comm) {
  std::ifstream file("/proc/sysvipc/shm");
  std::string line;
  std::getline(file, line);
  int found = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::int64_t key = 0, id = 0, permissions = 0, size = 0, maker = 0;
    fields >> key >> id >> permissions >> size >> maker;
    for (const auto& m : comm.members()) found += m.process == maker;
  }
  return found;
}

void expect_nothing_left(const sucl::communicator& comm) {
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().rfind("sucl", 0) == 0)
      fail("left in /dev/shm: " + entry.path().string());
  if (system_v_segments(comm) > 0) fail("there is System V memory");
}

void be_the_victim(bool killed, std::chrono::microseconds after) {
  std::thread([=] {
    std::this_thread::sleep_for(after);
    kill(getpid(), killed ? SIGKILL : SIGSTOP);
  }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  sucl::runtime rt(argc, argv);
  const bool killed = argc > 1 && std::string(argv[1]) == "killed";
  const bool on_device = argc > 2 && std::string(argv[2]) == "device";
  auto world = on_device ? rt.world(sycl::queue(sycl::cpu_selector_v)) : rt.world();
  const std::string how = world.explain(sucl::kind::allreduce, 4096);
  const std::string who = world.selected_backend(sucl::kind::allreduce, 4096);
  if (on_device && (who != "kernels" || how.find("executed by kernels") == std::string::npos))
    fail(who + ": " + how);
  std::uint64_t seed = std::random_device{}();
  if (argc > 3) seed = std::strtoull(argv[3], nullptr, 10);
  world.blocking().broadcast(&seed, 1, 0);
  if (rt.rank() == 0) std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::mt19937_64 random(seed);
  // Rank 0 stays: it tells how it went.
  const int victim = 1 + static_cast<int>(random() % static_cast<unsigned>(rt.size() - 1));
  const auto after = std::chrono::microseconds(1000 + random() % 300000);
  auto survivors = world.split(rt.rank() == victim ? -1 : 0);
  auto comm = world.dup();
  mill m(comm, seed);
  const auto start = clock_type::now();
  try {
    for (int i = 0; i < 20; ++i) m.turn();  // under way; others may be in these still
    if (rt.rank() == victim) be_the_victim(killed, after);
    while (clock_type::now() - start < 60s) m.turn();
    fail("no rank noticed");
  } catch (const sucl::error& e) {
    const std::string text = e.what(), name = "rank " + std::to_string(victim);
    if (text.find(name) == std::string::npos) fail("no '" + name + "' in: " + text);
    const auto wanted = killed ? sucl::errc::peer_lost : sucl::errc::timeout;
    if (e.code() != wanted && e.code() != sucl::errc::peer_lost) fail("code of: " + text);
  }
  expect_nothing_left(world);
  survivors.blocking().allreduce(&g_failures, 1, sucl::op::sum);
  if (rt.rank() == 0) std::printf("%d ranks had %d failures\n", survivors.size(), g_failures);
  std::fflush(stdout);
  if (!killed && survivors.rank() == 0)
    kill(static_cast<pid_t>(world.members()[static_cast<std::size_t>(victim)].process), SIGKILL);
  survivors.blocking().barrier();
  std::_Exit(g_failures > 0 ? 1 : 0);
}
