// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that come late, stop or die. The last rank is the victim; the first argument says of what.
// The others check what they are told and agree on the number of failures, which rank 0 prints.
#include "support/host_command.hpp"

#include <sucl/sucl.hpp>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

int g_failures = 0;

void fail(const std::string& text) {
  std::fprintf(stderr, "not as expected: %s\n", text.c_str());
  ++g_failures;
}

// Expects this error, with these words in its text.
void expect_error(const char* what, sucl::errc code, const std::vector<std::string>& parts,
                  const std::function<void()>& call) {
  try {
    call();
    fail(std::string(what) + ": no error");
  } catch (const sucl::error& e) {
    if (e.code() != code) fail(std::string(what) + ": code of: " + e.what());
    for (const auto& part : parts)
      if (std::string(e.what()).find(part) == std::string::npos)
        fail(std::string(what) + ": no '" + part + "' in: " + e.what());
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

  explicit scene(sucl::runtime& r) : rt(r) {
    queue = sycl::queue(sycl::cpu_selector_v,
                        [this](sycl::exception_list l) { asynchronous.push_back(std::move(l)); });
    world = rt.world(queue);
    survivors = world.split(victim() ? -1 : 0);
    for (int i = 0; i < 8; ++i) comms.push_back(world.dup());
    world.blocking().barrier();
  }
  bool victim() const { return rt.rank() == rt.size() - 1; }
  sucl::communicator next() { return comms[used++]; }
  std::string culprit() const { return "rank " + std::to_string(rt.size() - 1); }
};

// The victim does nothing until it is told that the others have given up.
void wait_to_be_told(sucl::communicator& comm, sucl::errc code) {
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

// The forms of an operation that the victim does not take part in.
struct form {
  const char* name;
  std::function<void(scene&, sucl::communicator&, const std::vector<std::string>&, sucl::errc)> run;
};

void event_form(scene& s, sucl::communicator& comm, const std::vector<std::string>& parts,
                sucl::errc code) {
  std::vector<int> x(1000, 1);
  auto first = comm.allreduce(x.data(), x.size(), sucl::op::sum);
  auto second = comm.allreduce(x.data(), x.size(), sucl::op::max, {first});
  first.wait();
  second.wait();
  expect_error("check", code, parts, [&] { comm.check(); });
  expect_error("the next call", code, parts,
               [&] { comm.allreduce(x.data(), x.size(), sucl::op::sum); });
  expect_error("the next blocking call", code, parts, [&] { comm.blocking().barrier(); });
  expect_error("wait", code, parts, [&] { comm.wait(); });
  s.queue.throw_asynchronous();
  if (s.asynchronous.empty()) fail("nothing reached the async_handler");
}

void blocking_form(scene&, sucl::communicator& comm, const std::vector<std::string>& parts,
                   sucl::errc code) {
  std::vector<int> x(1000, 1);
  expect_error("the blocking call", code, parts,
               [&] { comm.blocking().allreduce(x.data(), x.size(), sucl::op::sum); });
}

void buffer_form(scene&, sucl::communicator& comm, const std::vector<std::string>& parts,
                 sucl::errc code) {
  sycl::buffer<int, 1> x{sycl::range<1>(1000)};
  {
    sycl::host_accessor to{x};
    to[0] = 1;
  }
  comm.allreduce(x, sucl::op::sum);
  {
    sycl::host_accessor waits{x};
  }
  expect_error("check", code, parts, [&] { comm.check(); });
}

void split_form(scene&, sucl::communicator& comm, const std::vector<std::string>& parts,
                sucl::errc code) {
  auto mine = parts;
  mine[0] = "barrier #1";
  expect_error("split", code, mine, [&] { comm.split(0); });
}

const std::vector<form> forms{{"event", event_form},
                              {"blocking", blocking_form},
                              {"buffer", buffer_form},
                              {"split", split_form}};

void late(scene& s) {
  for (const form& f : forms) {
    auto comm = s.next();
    if (s.victim())
      wait_to_be_told(comm, sucl::errc::timeout);
    else
      f.run(s, comm, {"allreduce #1", s.culprit() + " has not arrived", "SUCL_TIMEOUT"},
            sucl::errc::timeout);
    s.world.blocking().barrier();  // other communicators go on
  }
  // A message that nobody sends.
  auto comm = s.next();
  if (s.rt.rank() == 0) {
    int x = 0;
    expect_error("recv", sucl::errc::timeout,
                 {"recv from " + s.culprit() + " (tag 7)", "has not issued the matching operation"},
                 [&] { comm.blocking().recv(&x, 1, s.rt.size() - 1, 7); });
  } else {
    wait_to_be_told(comm, sucl::errc::timeout);
  }
  // A long dependency of one's own is no hang, but a slow peer to the others: then all are told.
  auto slow = s.next();
  int x = 1;
  sycl::event held;
  if (s.victim())
    held = s.queue.submit([](sycl::handler& h) {
      sucl::testing::host_command(h, [] { std::this_thread::sleep_for(3s); });
    });
  auto done = slow.allreduce(&x, 1, sucl::op::sum, {held});
  done.wait();
  expect_error("a slow dependency", sucl::errc::timeout, {s.culprit() + " has not arrived"},
               [&] { slow.check(); });
}

void stopped(scene& s) {
  auto comm = s.next();
  if (s.victim()) {
    kill(getpid(), SIGSTOP);
    _exit(0);
  }
  event_form(s, comm, {"allreduce #1", s.culprit() + " is stopped"}, sucl::errc::timeout);
  auto other = s.next();
  blocking_form(s, other, {"allreduce #1", s.culprit()}, sucl::errc::timeout);
}

void killed(scene& s) {
  auto comm = s.next();
  auto blocking = s.next();
  auto buffer = s.next();
  if (s.victim()) {
    std::this_thread::sleep_for(300ms);  // so that the others wait for it
    raise(SIGKILL);
  }
  const auto start = clock_type::now();
  const std::vector<std::string> parts{"allreduce #1", s.culprit(), "has died or left"};
  event_form(s, comm, parts, sucl::errc::peer_lost);
  blocking_form(s, blocking, parts, sucl::errc::peer_lost);
  buffer_form(s, buffer, parts, sucl::errc::peer_lost);
  if (clock_type::now() - start > 8s) fail("it took too long to find out");
}

// The victim ends by an exception that nobody else has a part in, with an operation in flight. Most
// launchers then end the others. What the others must not do is to wait for ever.
void thrown(scene& s) {
  auto comm = s.next();
  std::vector<int> x(1000, 1);
  if (s.victim()) {
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
  if (!s.victim()) {
    int all = g_failures;
    s.survivors.blocking().allreduce(&all, 1, sucl::op::sum);
    if (rt.rank() == 0) {
      std::printf("%d ranks had %d failures\n", s.survivors.size(), all);
      std::fflush(stdout);
    }
  }
  return g_failures;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(scene&)>> cases{
      {"late", late}, {"stopped", stopped}, {"killed", killed}, {"thrown", thrown}};
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
