// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that wait for each other, or one that waits for itself, until what they print about it has
// another thread make the call that is missing; and ranks that only seem to. The first argument
// says which.
#include <sucl/sucl.hpp>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/printed_errors.hpp"

namespace {

using sucl_test::printed_errors;

int g_failures = 0;

void fail(const std::string& text) {
  std::fprintf(stderr, "not as expected: %s\n", text.c_str());
  ++g_failures;
}

// The collectives of two communicators in different orders, until another thread makes the call
// that is missing.
void crossed(sucl::runtime& rt) {
  auto world = rt.world(), first = world.dup(), second = world.dup();
  int x = 1, y = 1;
  const auto sum = [](sucl::communicator& c, int& value) {
    c.blocking().allreduce(&value, 1, sucl::op::sum);
  };
  if (world.rank() == 0) {
    printed_errors errors;
    std::thread late([&] {
      errors.await("ranks wait for each other");
      sum(second, y);
    });
    sum(first, x);
    late.join();
  } else {
    sum(second, y);
    sum(first, x);
  }
  if (x != world.size() || y != world.size()) fail("wrong sums");
}

// A circle through messages alone, or through messages and a collective, until another thread makes
// the call that is missing.
void crossed_messages(sucl::runtime& rt, bool collective) {
  auto world = rt.world(), other = world.dup();
  const int rank = world.rank(), size = world.size(), next = (rank + 1) % size;
  std::vector<double> out(1 << 20, rank + 1.0), in(out.size());  // too long to be sent eagerly
  std::thread late;
  std::optional<printed_errors> errors;
  const auto send = [&] { world.blocking().send(out.data(), out.size(), next, 3); };
  if (rank == 0) {
    errors.emplace();
    late = std::thread([&] {
      errors->await("ranks wait for each other");
      if (collective) return other.blocking().barrier();
      world.blocking().recv(in.data(), in.size(), size - 1, 3);
    });
    send();
    if (collective) world.blocking().recv(in.data(), in.size(), size - 1, 3);
  } else {
    if (collective) other.blocking().barrier();
    if (!collective) send();
    world.blocking().recv(in.data(), in.size(), rank - 1, 3);
    if (collective) send();
  }
  if (late.joinable()) late.join();
  if (in.back() != (rank + size - 1) % size + 1.0) fail("a wrong message");
}

// A rank makes a communicator of all while the others wait for it in one that exists, until another
// thread makes the call that is missing.
void crossed_world(sucl::runtime& rt) {
  auto world = rt.world();
  int x = 1;
  const auto sum = [&] { world.blocking().allreduce(&x, 1, sucl::op::sum); };
  std::thread late;
  std::optional<printed_errors> errors;
  if (world.rank() == 0) {
    errors.emplace();
    late = std::thread([&] {
      errors->await("ranks wait for each other");
      sum();
    });
  } else {
    sum();
  }
  auto second = rt.world();
  if (late.joinable()) late.join();
  if (x != world.size()) fail("a wrong sum");
  int y = 1;
  second.blocking().allreduce(&y, 1, sucl::op::sum);
  if (y != world.size()) fail("a wrong sum of the second");
}

// The same of a rank that waits for one which is late elsewhere: no circle.
void not_crossed_world(sucl::runtime& rt) {
  auto world = rt.world();
  int x = 0, sent = 7;
  if (world.rank() == 1) world.blocking().recv(&x, 1, 2, 3);
  if (world.rank() == 2) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    world.blocking().send(&sent, 1, 1, 3);
  }
  (void)rt.world();
  if (world.rank() == 1 && x != sent) fail("a wrong message");
}

// Messages of two ranks to each other, and a collective that the one does not call meanwhile.
void crossed_exchange(sucl::runtime& rt, bool group) {
  auto world = rt.world(), other = world.dup();
  const int rank = world.rank(), peer = 1 - rank;
  std::vector<double> out(1 << 20, rank + 1.0), in(out.size());
  std::thread late;
  std::optional<printed_errors> errors;
  if (rank == 0) {
    errors.emplace();
    late = std::thread([&] {
      errors->await("ranks wait for each other");
      other.blocking().barrier();
    });
  } else {
    other.blocking().barrier();
  }
  if (group) {
    sucl::group both;
    both.on(world).send(out.data(), out.size(), peer, 3);
    both.on(world).recv(in.data(), in.size(), peer, 3);
    both.run();
  } else {
    world.blocking().sendrecv(out.data(), out.size(), peer, in.data(), in.size(), peer, 3);
  }
  if (late.joinable()) late.join();
  if (in.back() != peer + 1.0) fail("a wrong message");
}

// A message to the rank itself, until another thread receives it.
void waits_for_itself(sucl::runtime& rt) {
  auto world = rt.world();
  const int rank = world.rank();
  std::vector<double> out(1 << 20, rank + 1.0), in(out.size());  // too long to be sent eagerly
  if (rank == 0) {
    printed_errors errors;
    std::thread late([&] {
      errors.await("a rank waits for itself");
      world.blocking().recv(in.data(), in.size(), rank, 3);
    });
    world.blocking().send(out.data(), out.size(), rank, 3);
    late.join();
    if (in.back() != 1.0) fail("a wrong message");
  }
  world.blocking().barrier();
}

// Messages to the rank itself by events, or in a group, that do not match, until another thread
// calls what does.
void events_of_itself(sucl::runtime& rt, bool group) {
  sycl::queue queue{sycl::cpu_selector_v};
  auto world = rt.world(queue);
  const int rank = world.rank();
  std::vector<double> out(1 << 20, rank + 1.0), in(out.size()), other(out.size());
  if (rank == 0) {
    printed_errors errors;
    std::thread late([&] {
      errors.await("a rank waits for itself");
      auto received = world.recv(other.data(), other.size(), rank, 1);
      world.send(out.data(), out.size(), rank, 2).wait();
      received.wait();
    });
    if (group) {
      sucl::group both(world);
      both.recv(in.data(), in.size(), rank, 2);
      both.send(out.data(), out.size(), rank, 1);
      both.run();
    } else {
      auto received = world.recv(in.data(), in.size(), rank, 2);
      world.send(out.data(), out.size(), rank, 1).wait();
      received.wait();
    }
    late.join();
    if (in.back() != 1.0 || other.back() != 1.0) fail("a wrong message");
  }
  world.blocking().barrier();
}

// A circle through receives by events, or through collectives by events.
void crossed_events(sucl::runtime& rt, bool collective) {
  sycl::queue queue{sycl::cpu_selector_v};
  auto world = rt.world(queue), first = world.dup(), second = world.dup();
  const int rank = world.rank(), size = world.size();
  std::vector<double> out(10, rank + 1.0), in(out.size());
  int x = 1, y = 1;
  const auto missing = [&] {
    if (collective)
      second.allreduce(&y, 1, sucl::op::sum).wait();
    else
      world.send(out.data(), out.size(), (rank + 1) % size, 3).wait();
  };
  const auto wait = [&] {
    if (collective)
      first.allreduce(&x, 1, sucl::op::sum).wait();
    else
      world.recv(in.data(), in.size(), (rank + size - 1) % size, 3).wait();
  };
  if (rank == 0) {
    printed_errors errors;
    std::thread late([&] {
      errors.await("ranks wait for each other");
      missing();
    });
    wait();
    late.join();
  } else {
    if (collective) missing();
    wait();
    if (!collective) missing();
  }
  if (collective ? x != size || y != size : in.back() != (rank + size - 1) % size + 1.0)
    fail("wrong data");
}

// A receive that is called early, before a rank waits for something else that takes long.
void not_crossed_by_event(sucl::runtime& rt, bool sleeps) {
  sycl::queue queue{sycl::cpu_selector_v};
  auto world = rt.world(queue);
  std::vector<double> out(10, world.rank() + 1.0), early(out.size()), in(out.size());
  if (world.rank() == 0) {
    auto received = world.recv(early.data(), early.size(), 1, 3);
    if (sleeps)
      std::this_thread::sleep_for(std::chrono::seconds(5));
    else
      world.recv(in.data(), in.size(), 2, 3).wait();
    world.send(out.data(), out.size(), 1, 3).wait();
    received.wait();
    if (early.back() != 2.0) fail("a wrong message");
  } else if (world.rank() == 1) {
    world.recv(in.data(), in.size(), 0, 3).wait();
    world.send(out.data(), out.size(), 0, 3).wait();
  } else if (!sleeps) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    world.send(out.data(), out.size(), 0, 3).wait();
  }
}

// A rank with an operation under way goes on, and comes late to the call that the other waits in.
void not_crossed(sucl::runtime& rt) {
  sycl::queue queue;
  auto first = rt.world(queue), second = first.dup();
  int x = 1;
  int* y = sycl::malloc_host<int>(1, queue);
  *y = 1;
  if (first.rank() != 0) {
    sycl::event sum = second.allreduce(y, 1, sucl::op::sum);
    std::this_thread::sleep_for(std::chrono::seconds(5));
    first.blocking().allreduce(&x, 1, sucl::op::sum);
    sum.wait();
  } else {
    first.blocking().allreduce(&x, 1, sucl::op::sum);
    second.allreduce(y, 1, sucl::op::sum).wait();
  }
  if (x != first.size() || *y != first.size()) fail("wrong sums");
  sycl::free(y, queue);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(sucl::runtime&)>> cases{
      {"crossed", crossed},
      {"crossed_sends", [](sucl::runtime& rt) { crossed_messages(rt, false); }},
      {"crossed_both", [](sucl::runtime& rt) { crossed_messages(rt, true); }},
      {"crossed_world", crossed_world},
      {"crossed_sendrecv", [](sucl::runtime& rt) { crossed_exchange(rt, false); }},
      {"crossed_group", [](sucl::runtime& rt) { crossed_exchange(rt, true); }},
      {"crossed_events", [](sucl::runtime& rt) { crossed_events(rt, false); }},
      {"crossed_collective_events", [](sucl::runtime& rt) { crossed_events(rt, true); }},
      {"waits_for_itself", waits_for_itself},
      {"events_of_itself", [](sucl::runtime& rt) { events_of_itself(rt, false); }},
      {"group_of_itself", [](sucl::runtime& rt) { events_of_itself(rt, true); }},
      {"not_crossed", not_crossed},
      {"not_crossed_world", not_crossed_world},
      {"not_crossed_by_event", [](sucl::runtime& rt) { not_crossed_by_event(rt, false); }},
      {"not_crossed_asleep", [](sucl::runtime& rt) { not_crossed_by_event(rt, true); }}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  try {
    sucl::runtime rt{argc, argv};
    found->second(rt);
    return g_failures == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
