// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that come late, stop or die. The last rank is the victim; the first argument says of what.
// The others check what they are told and agree on the number of failures, which rank 0 prints.
#include "support/host_command.hpp"

#include <sucl/sucl.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

std::atomic<int> g_failures = 0;

void fail(const std::string& text) {
  std::fprintf(stderr, "not as expected: %s\n", text.c_str());
  ++g_failures;
}

// What the survivors are to be told: the code, and patterns of which each is in the text.
struct expected_error {
  sucl::errc code;
  std::vector<std::string> patterns;
};

void check_error(const std::string& what, const expected_error& v, const sucl::error& e) {
  const std::string text = e.what();
  if (e.code() != v.code) fail(what + ": code of: " + text);
  for (const auto& pattern : v.patterns)
    if (!std::regex_search(text, std::regex(pattern)))
      fail(what + ": no '" + pattern + "' in: " + text);
}

void expect_error(const char* what, const expected_error& v, const std::function<void()>& call) {
  try {
    call();
    fail(std::string(what) + ": no error");
  } catch (const sucl::error& e) {
    check_error(what, v, e);
  }
}

// Everything that a case needs, made while all ranks are well.
struct scene {
  sucl::runtime& rt;
  sycl::queue queue;
  std::vector<sycl::exception_list> asynchronous;
  sucl::communicator world;
  sucl::communicator survivors;  ///< empty on the victim
  std::vector<sucl::communicator> comms;
  std::size_t used = 0;
  bool victim_lives = false;  ///< to the end, as the others

  explicit scene(sucl::runtime& r) : rt(r) {
    queue = sycl::queue(sycl::cpu_selector_v,
                        [this](sycl::exception_list l) { asynchronous.push_back(std::move(l)); });
    world = rt.world(queue);
    survivors = world.split(is_victim() ? -1 : 0);
    for (int i = 0; i < 6; ++i) comms.push_back(world.dup());
    world.blocking().barrier();
  }
  int victim() const { return rt.size() - 1; }
  bool is_victim() const { return rt.rank() == victim(); }
  pid_t victims_process() const {
    return static_cast<pid_t>(world.members()[static_cast<std::size_t>(victim())].process);
  }
  sucl::communicator next() { return comms[used++]; }
};

// The victim does nothing until it is told that the others have given up.
void wait_for_error(const sucl::communicator& comm, sucl::errc code) {
  const auto deadline = clock_type::now() + 60s;
  while (clock_type::now() < deadline) {
    try {
      comm.check();
    } catch (const sucl::error& e) {
      if (e.code() != code) fail(std::string("the victim is told: ") + e.what());
      return;
    }
    std::this_thread::sleep_for(5ms);
  }
  fail("the victim is never told");
}

// Issues operations. A expected_error that is here before a call is thrown by the call: on a busy
// machine another survivor may have waited long enough by then.
void issue(const char* what, const expected_error& v, const std::function<void()>& calls) {
  try {
    calls();
  } catch (const sucl::error& e) {
    check_error(what, v, e);
  }
}

// The forms of an operation that the victim does not take part in. Those of the first kind are
// begun and return what is to happen after; those of the second kind block.
using ending = std::function<void()>;

ending begin_events(scene& s, sucl::communicator comm, const expected_error& v) {
  auto x = std::make_shared<std::vector<int>>(1000, 1);
  std::vector<sycl::event> issued;
  issue("an event", v, [&] {
    issued.push_back(comm.allreduce(x->data(), x->size(), sucl::op::sum));
    issued.push_back(comm.allreduce(x->data(), x->size(), sucl::op::max, {issued[0]}));
  });
  return [&s, comm, v, x, issued]() mutable {
    for (auto& done : issued) done.wait();
    expect_error("check", v, [&] { comm.check(); });
    expect_error("the next call", v, [&] { comm.allreduce(x->data(), 1, sucl::op::sum); });
    expect_error("the next blocking call", v, [&] { comm.blocking().barrier(); });
    expect_error("wait", v, [&] { comm.wait(); });
    s.queue.throw_asynchronous();
    if (!issued.empty() && s.asynchronous.empty()) fail("nothing reached the async_handler");
  };
}

ending begin_buffer(scene&, sucl::communicator comm, const expected_error& v) {
  sycl::buffer<int, 1> x{sycl::range<1>(1000)};
  {
    sycl::host_accessor to{x};
    to[0] = 1;
  }
  issue("a buffer", v, [&] { comm.allreduce(x, sucl::op::sum); });
  return [comm, v, x]() mutable {
    {
      sycl::host_accessor waits{x};
    }
    expect_error("check of a buffer", v, [&] { comm.check(); });
  };
}

void block(sucl::communicator comm, const expected_error& v) {
  std::vector<int> x(1000, 1);
  expect_error("the blocking call", v,
               [&] { comm.blocking().allreduce(x.data(), x.size(), sucl::op::sum); });
}

void split(sucl::communicator comm, expected_error v) {
  v.patterns[0] = R"(split\(\) #1 )";
  expect_error("split", v, [&] { (void)comm.split(0); });
}

// Every form at once, each on a communicator of its own, so that they wait for one timeout
// together. What happens to the victim happens when all survivors have begun.
void expect_failure(scene& s, const expected_error& v, const std::function<void()>& happens) {
  auto events = s.next(), buffer = s.next(), blocking = s.next(), parent = s.next();
  if (s.is_victim()) {
    for (const auto& comm : {events, buffer, blocking, parent}) wait_for_error(comm, v.code);
    return;
  }
  s.survivors.blocking().barrier();
  const ending endings[] = {begin_events(s, events, v), begin_buffer(s, buffer, v)};
  s.survivors.blocking().barrier();
  if (s.rt.rank() == 0) happens();
  std::thread divided(split, parent, v);
  block(blocking, v);
  divided.join();
  for (const auto& end : endings) end();
}

// A pattern that names the victim, whichever other ranks the text names.
std::string the_victim(const scene& s, const std::string& words) {
  return "ranks? ([0-9]+, )*" + std::to_string(s.victim()) + " " + words;
}

// A message that no rank sends.
void receive_nothing(sucl::communicator comm, int source) {
  const std::string peer = "recv from rank " + std::to_string(source) + " \\(tag 7\\)";
  int x = 0;
  expect_error("recv", {sucl::errc::timeout, {peer, "has not issued the matching operation"}},
               [&] { comm.blocking().recv(&x, 1, source, 7); });
}

void late(scene& s) {
  s.victim_lives = true;
  const std::string not_here = the_victim(s, "(has|have) not arrived");
  // A dependency of one's own that takes long is no hang, but a slow peer to the others: all are
  // told.
  auto slow = s.next();
  const expected_error slowness{sucl::errc::timeout, {not_here}};
  int x = 1;
  sycl::event held;
  if (s.is_victim())
    held = s.queue.submit([slow](sycl::handler& h) {
      sucl::testing::host_command(h, [slow] { wait_for_error(slow, sucl::errc::timeout); });
    });
  issue("a slow dependency", slowness,
        [&] { held = slow.allreduce(&x, 1, sucl::op::sum, {held}); });
  auto comm = s.next();
  std::thread receiver;
  if (s.rt.rank() == 0) receiver = std::thread(receive_nothing, comm, s.victim());
  expect_failure(s, {sucl::errc::timeout, {"allreduce #1 ", not_here, "SUCL_TIMEOUT"}}, [] {});
  if (s.rt.rank() == 0)
    receiver.join();
  else
    wait_for_error(comm, sucl::errc::timeout);
  held.wait();
  expect_error("a slow dependency", slowness, [&] { slow.check(); });
  s.world.blocking().barrier();  // other communicators go on
}

// Whether all of a process has stopped, as far as its first thread tells.
bool is_stopped(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.find(") T ") != std::string::npos;
}

void stopped(scene& s) {
  if (!s.is_victim())
    s.survivors.blocking().barrier();  // they are through what the victim has part in
  if (s.rt.rank() == 0) {
    kill(s.victims_process(), SIGSTOP);
    while (!is_stopped(s.victims_process())) std::this_thread::sleep_for(1ms);
  }
  if (s.is_victim())
    for (;;) pause();
  expect_failure(s, {sucl::errc::timeout, {"allreduce #1 ", the_victim(s, "is stopped")}}, [] {});
}

void killed(scene& s) {
  if (s.is_victim())
    for (;;) pause();
  const expected_error lost{sucl::errc::peer_lost,
                            {"allreduce #1 ", the_victim(s, "of [0-9]+ has died")}};
  expect_failure(s, lost, [&] { kill(s.victims_process(), SIGKILL); });
}

// In the middle of a replay: between two operations of a graph.
void replay(scene& s) {
  auto comm = s.next();
  std::vector<int> x(1000, 1), y(1000, 1);
  int left = s.is_victim() ? 50 : -1;
  auto sequence = comm.record(s.queue, [&, comm]() mutable {
    const auto first = comm.allreduce(x.data(), x.size(), sucl::op::max);
    const auto between = s.queue.submit([&](sycl::handler& h) {
      h.depends_on(first);
      sucl::testing::host_command(h, [&left] {
        if (left >= 0 && left-- == 0) kill(getpid(), SIGKILL);
      });
    });
    comm.allreduce(y.data(), y.size(), sucl::op::max, {between});
  });
  const std::string what = sequence.is_graph() ? "replayed from a graph" : "allreduce #";
  expect_error("a replay", {sucl::errc::peer_lost, {what, the_victim(s, "of [0-9]+ has died")}},
               [&] {
                 for (;;) {
                   sequence.replay().wait();
                   comm.check();
                 }
               });
  s.queue.wait_and_throw();
}

// SYCL orders replays of an executable graph, not those of two of the same operations: ranks would
// execute these in other orders.
void overlap([[maybe_unused]] scene& s) {
  s.victim_lives = true;
#ifdef SYCL_EXT_ONEAPI_GRAPH
  auto comm = s.next();
  std::vector<int> x(1000, 1);
  std::atomic<int> begun = 0;
  sucl::modifiable_graph graph(s.queue.get_context(), s.queue.get_device());
  auto in_graph = [&](const std::vector<sucl::graph_node>& after) {
    return comm.in_graph(graph, after).allreduce(x.data(), x.size(), sucl::op::max);
  };
  auto first = in_graph({});
  auto between = graph.add([&](sycl::handler& h) {
    h.host_task([&begun] {
      if (begun++ > 0) return;
      const auto limit = clock_type::now() + 20s;
      while (begun < 2 && clock_type::now() < limit) std::this_thread::sleep_for(1ms);
    });
  });
  graph.make_edge(first, between);
  in_graph({between});
  auto one = graph.finalize(), two = graph.finalize();
  sycl::event slow = s.queue.ext_oneapi_graph(one), fast = s.queue.ext_oneapi_graph(two);
  slow.wait();
  fast.wait();
  expect_error("replays that overlap", {sucl::errc::mismatch, {"replayed again before"}}, [&] {
    comm.check();
    comm.blocking().barrier();
  });
  s.queue.wait_and_throw();
#endif
}

// The victim ends by an exception of its own, with an operation in flight. Most
// launchers then end the others. What the others must not do is to wait for ever.
void thrown(scene& s) {
  auto comm = s.next();
  std::vector<int> x(1000, 1);
  if (s.is_victim()) {
    s.next().allreduce(x.data(), x.size(), sucl::op::sum);
    std::this_thread::sleep_for(100ms);
    throw std::runtime_error("the victim's own");
  }
  comm.blocking().allreduce(x.data(), x.size(), sucl::op::sum);
}

int run(const std::function<void(scene&)>& act, int argc, char** argv) {
  sucl::runtime rt{argc, argv};
  scene s(rt);
  act(s);
  if (!s.is_victim()) {
    int all = g_failures;
    s.survivors.blocking().allreduce(&all, 1, sucl::op::sum);
    if (rt.rank() == 0) {
      std::printf("%d ranks had %d failures\n", s.survivors.size(), all);
      std::fflush(stdout);
    }
  }
  // With a broken communicator a process ends without finalising MPI, and the launcher may end the
  // others then: not before that is printed.
  (s.victim_lives ? s.world : s.survivors).blocking().barrier();
  return g_failures;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(scene&)>> cases{
      {"late", late},     {"stopped", stopped}, {"killed", killed},
      {"replay", replay}, {"overlap", overlap}, {"thrown", thrown}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  int status = 1;
  try {
    status = run(found->second, argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  std::printf("a rank reached the end of main\n");
  std::fflush(stdout);
  return status;
}
