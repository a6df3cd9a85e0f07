// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// One rank of a job in which one rank is lost: see kills.py, which starts it.
//
//   victim PHASE ACTION VICTIM MICROSECONDS
//
// All ranks repeat what PHASE says. The victim is struck MICROSECONDS after it has begun, at
// whatever point of the phase it is. The others go on until the library tells them, and write what
// they were told into the folder that TORTURE_FOLDER names.
#include "support/own_device.hpp"

#include <sucl/sucl.hpp>

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::string g_phase, g_action;
int g_rank = -1, g_victim = -1;
std::atomic<bool> g_inside = false;  // a moment that belongs to the phase
std::atomic<bool> g_leave = false;   // the victim is to leave by itself

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void note(const std::string& name, const std::string& text) {
  const char* folder = std::getenv("TORTURE_FOLDER");
  const std::string path = std::string(folder ? folder : ".") + "/" + name;
  // In one piece: a process that finds the file finds all of it.
  if (std::FILE* file = std::fopen((path + ".new").c_str(), "w")) {
    std::fputs(text.c_str(), file);
    std::fclose(file);
    std::rename((path + ".new").c_str(), path.c_str());
  }
}

bool is_victim() { return g_rank == g_victim; }
void note_strike() { note("strike", std::to_string(now())); }

void strike() {
  note_strike();
  if (g_action == "kill") kill(getpid(), SIGKILL);
  if (g_action == "stop") kill(getpid(), SIGSTOP);
  if (g_action == "abort") std::abort();
  if (g_action == "segv") raise(SIGSEGV);
}

bool leaves_by_itself() { return g_action == "throw" || g_action == "exit"; }

void leave() {
  note_strike();
  if (g_action == "exit") std::exit(0);
  throw std::runtime_error("the victim's own error");
}

// Strikes from a thread of its own, so that the rank may be anywhere.
void arm(std::chrono::microseconds delay) {
  if (!is_victim()) return;
  std::thread([delay] {
    std::this_thread::sleep_for(delay);
    if (leaves_by_itself()) {
      g_leave = true;
      return;
    }
    while (!g_inside.load(std::memory_order_relaxed)) {
    }
    strike();
  }).detach();
}

// enter() comes before the part of a phase in which the victim may be killed, and after a round.
void enter() {
  if (is_victim() && g_leave) leave();
  g_inside = true;
}
void leave_phase() { g_inside = false; }

/// Memory of the host, or of the GPU where there is one.
class floats {
 public:
  floats(sycl::queue& q, std::size_t n) : m_host(q.get_device().is_gpu() ? 0 : n, 1.F) {
    if (!m_host.empty()) return;
    m_device = sycl::malloc_device<float>(n, q);
    q.fill(m_device, 1.F, n).wait();
  }
  float* data() { return m_host.empty() ? m_device : m_host.data(); }

 private:
  std::vector<float> m_host;
  float* m_device = nullptr;  // to the end of the process
};

struct scene {
  sucl::runtime& rt;
  sycl::queue queue;
  sucl::communicator world;
  floats in, out;
  std::vector<sucl::persistent> made;
  sucl::communicator in_order;
  std::optional<sucl::executable> recorded;
  std::size_t round = 0;

  explicit scene(sucl::runtime& r)
      : rt(r),
        queue(sucl::testing::own_device(r.rank())),
        world(rt.world(queue)),
        in(queue, 200000),
        out(queue, 200000) {}
  std::size_t size() const { return std::size_t{1} << (round * 5 % 15); }
};

sucl::composition two_steps(int ranks, std::size_t n) {
  sucl::composition c(ranks);
  const auto at = [n](int r) { return static_cast<std::size_t>(r) * n; };
  for (int r = 0; r < ranks; ++r)
    c.reduction(c.send(at(r), n), c.recv(at(r), n), sucl::all, r, sucl::op::sum);
  c.fence();
  for (int r = 0; r < ranks; ++r) c.multicast(c.recv(at(r), n), c.recv(at(r), n), r, sucl::all);
  return c;
}

void blocking(scene& s) {
  auto comm = s.world.blocking();
  const std::size_t n = s.size();
  const auto root = static_cast<int>(s.round % static_cast<std::size_t>(s.world.size()));
  switch (s.round % 5) {
    case 0: return comm.allreduce(s.in.data(), s.out.data(), n, sucl::op::sum);
    case 1: return comm.broadcast(s.out.data(), n, root);
    case 2: return comm.alltoall(s.in.data(), s.out.data(), n / 4);
    case 3: return comm.reduce(s.in.data(), s.out.data(), n, sucl::op::max, root);
    default: return comm.barrier();
  }
}

void asynchronous(scene& s) {
  std::vector<sycl::event> events;
  events.push_back(s.world.allreduce(s.in.data(), s.out.data(), s.size(), sucl::op::sum));
  events.push_back(s.world.broadcast(s.in.data(), s.size(), 0, events));
  sycl::event::wait(events);
  s.world.check();
}

void persistent(scene& s) {
  if (s.made.empty()) {
    auto comm = s.world.persistent();
    for (const std::size_t n : {2u, 5000u})
      s.made.push_back(comm.allreduce(s.in.data(), s.out.data(), n, sucl::op::sum));
  }
  for (auto& p : s.made) p.run();
  s.made[s.round % 2].start().wait();
  s.world.check();
}

// Where the program submits instantly the device's driver replays a graph.
void replay(scene& s) {
  if (!s.recorded) {
    s.in_order = s.rt.world(sycl::queue(s.queue.get_context(), s.queue.get_device(),
                                        sycl::property::queue::in_order()));
    s.recorded = s.in_order.record(s.in_order.queue(), [&s] {
      for (const std::size_t n : {2u, 5000u, 200000u}) {
        s.in_order.allreduce(s.in.data(), s.out.data(), n, sucl::op::sum);
        s.in_order.broadcast(s.out.data(), n, s.world.size() - 1);
      }
    });
  }
  for (int i = 0; i < 10; ++i) s.recorded->replay();
  s.in_order.queue().wait();
  s.in_order.check();
}

void messages(scene& s) {
  const int p = s.world.size(), me = s.world.rank();
  s.world.blocking().sendrecv(s.in.data(), s.size(), (me + 1) % p, s.out.data(), s.size(),
                              (me + p - 1) % p);
}

void grouped(scene& s) {
  sucl::group g(s.world);
  const auto n = s.size();
  for (int r = 0; r < s.world.size(); ++r) {
    g.recv(s.out.data() + static_cast<std::size_t>(r) * n, n, r);
    g.send(s.in.data(), n, r);
  }
  g.run();
}

void allocate(scene& s) {
  void* memory = s.world.allocate<double>(100 + s.size());
  s.world.deallocate(memory);
}

void deallocate(scene& s) {
  leave_phase();
  std::vector<double*> all;
  for (int i = 0; i < 8; ++i) all.push_back(s.world.allocate<double>(1000));
  enter();
  for (double* memory : all) s.world.deallocate(memory);
}

void first(scene& s) {
  leave_phase();
  auto fresh = s.world.dup();
  enter();
  fresh.blocking().allreduce(s.in.data(), s.out.data(), s.size(), sucl::op::sum);
}

void end(scene& s) {
  leave_phase();
  auto fresh = s.world.dup();
  fresh.blocking().barrier();
  enter();
  fresh = {};
}

using round = void (*)(scene&);
const std::map<std::string, round> rounds{
    {"world", [](scene& s) { (void)s.rt.world(s.queue); }},
    {"allocate", allocate},
    {"dup", [](scene& s) { (void)s.world.dup(); }},
    {"split", [](scene& s) { (void)s.world.split(0, s.world.rank()); }},
    {"compile",
     [](scene& s) { (void)s.world.compile<float>(two_steps(s.world.size(), 1 + s.round % 50)); }},
    {"first", first},
    {"blocking", blocking},
    {"async", asynchronous},
    {"persistent", persistent},
    {"replay", replay},
    {"messages", messages},
    {"group", grouped},
    {"deallocate", deallocate},
    {"end", end}};

void repeat(scene& s, std::chrono::microseconds delay) {
  const auto found = rounds.find(g_phase);
  if (found == rounds.end()) throw std::logic_error("no such phase");
  // Once without, so that everything is there that is set up by the first round.
  if (g_phase != "first" && g_phase != "world") found->second(s);
  s.world.blocking().barrier();
  arm(delay);
  const double end = now() + 120;
  for (; now() < end; ++s.round) {
    enter();
    found->second(s);
    leave_phase();
  }
  throw std::runtime_error("nothing has happened");
}

// Notes when a call has told this rank, which is before its runtime has ended.
void repeat_until_error(scene& s, std::chrono::microseconds delay) {
  try {
    repeat(s, delay);
  } catch (const sucl::error&) {
    note("heard." + std::to_string(g_rank), "");
    throw;
  }
}

// The phases that are passed once.
void begin(std::chrono::microseconds delay) {
  arm(delay);
  if (is_victim() && leaves_by_itself()) leave();
  enter();
}

void run(int argc, char** argv, std::chrono::microseconds delay) {
  if (g_phase == "init") begin(delay);
  sucl::runtime rt{argc, argv};
  if (g_phase == "init") {
    // Struck at the latest behind the end of it.
    if (is_victim()) std::this_thread::sleep_for(delay + 10s);
    rt.world().blocking().barrier();
    throw std::runtime_error("nothing has happened");
  }
  scene s(rt);
  if (g_phase != "finalise") return repeat_until_error(s, delay);
  blocking(s);
  s.world.blocking().barrier();
  begin(delay);
  rt.shut_down();
  // Struck at the latest behind the end of it.
  if (is_victim()) std::this_thread::sleep_for(delay + 10s);
  note("through." + std::to_string(g_rank), "");
}

int rank_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SUCL_TCP_RANK"})
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  g_phase = argv[1];
  g_action = argv[2];
  g_rank = rank_of_environment();
  g_victim = std::atoi(argv[3]);
  note("rank." + std::to_string(g_rank), std::to_string(getpid()));
  try {
    run(argc, argv, std::chrono::microseconds(std::atoi(argv[4])));
    return 0;
  } catch (const sucl::error& e) {
    note("told." + std::to_string(g_rank), std::string(sucl::name(e.code())) + "\n" + e.what());
  } catch (const std::exception& e) {
    note("other." + std::to_string(g_rank), e.what());
  }
  return 1;
}
