// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Queues that record a command graph, and queues whose events tell of time.
#include "ranks/fixture.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace sucl::testing {
namespace {

constexpr std::size_t n = 1000;

struct forms {
  communicator& comm;
  sycl::queue q;
  shared<int> x, y;
  sycl::buffer<int> buffer{sycl::range<1>(n)};
  persistent kept;
  compiled_plan plan;

  forms(communicator& c, const sycl::queue& on) : comm(c), q(on), x(n, q, c.rank() + 1), y(n, q) {
    kept = comm.persistent().allreduce(x.get(), y.get(), n, op::sum);
    composition all_to_first{comm.size()};
    std::vector<int> all(static_cast<std::size_t>(comm.size()));
    for (int r = 0; r < comm.size(); ++r) all[static_cast<std::size_t>(r)] = r;
    all_to_first.reduction(all_to_first.send(0, n), all_to_first.recv(0, n), all, 0, op::sum);
    plan = comm.compile<int>(all_to_first);
  }
  int next() const { return (comm.rank() + 1) % comm.size(); }
  int before() const { return (comm.rank() + comm.size() - 1) % comm.size(); }

  using calls = std::map<std::string, std::function<void(const std::vector<sycl::event>&)>>;
  calls all() {
    int* from = x.get();
    int* to = y.get();
    return {
        {"allreduce", [=, this](auto& d) { comm.allreduce(from, to, n, op::sum, d); }},
        {"in place", [=, this](auto& d) { comm.allreduce(from, n, op::sum, d); }},
        {"barrier", [=, this](auto& d) { comm.barrier(d); }},
        {"buffer", [=, this](auto& d) { comm.allreduce(buffer, op::sum, d); }},
        {"blocking", [=, this](auto& d) { comm.blocking().allreduce(from, to, n, op::sum, d); }},
        {"blocking buffer", [=, this](auto& d) { comm.blocking().allreduce(buffer, op::sum, d); }},
        {"persistent", [=, this](auto& d) { kept.start(d); }},
        {"persistent, blocking", [=, this](auto& d) { kept.run(d); }},
        {"compiled", [=, this](auto& d) { plan.start<int>(from, to, d); }},
        {"sendrecv", [=, this](auto& d) { comm.sendrecv(from, n, next(), to, n, before(), 0, d); }},
        {"send", [=, this](auto& d) { comm.send(from, n, next(), 0, d); }},
        {"recv", [=, this](auto& d) { comm.recv(to, n, before(), 0, d); }},
        {"group",
         [=, this](auto& d) {
           group g(comm);
           g.send(static_cast<const int*>(from), n, next(), 1);
           g.recv(to, n, before(), 1);
           g.submit(d);
         }},
    };
  }
};

#ifdef SYCL_EXT_ONEAPI_GRAPH

namespace graphs = sycl::ext::oneapi::experimental;
using modifiable = graphs::command_graph<graphs::graph_state::modifiable>;

struct graph : ::testing::Test {
  rank_fixture& j = fixture();
  const int size = j.world.size();

  void expect_sum(communicator& comm, forms& f) {
    f.y[n - 1] = -1;
    comm.allreduce(f.x.get(), f.y.get(), n, op::sum).wait();
    comm.check();
    EXPECT_EQ(f.y[n - 1], sum_to(size));
  }
  static modifiable empty(const sycl::queue& q) {
    return {
        q.get_context(), q.get_device(), {graphs::property::graph::assume_buffer_outlives_graph{}}};
  }
  template <class Calls>
  static auto recorded(sycl::queue q, Calls&& calls) {
    modifiable g = empty(q);
    g.begin_recording(q);
    calls();
    g.end_recording();
    return g.finalize();
  }
  // Its failures are kept here: the handler of a queue without one ends the program.
  std::vector<std::string> errors;
  sycl::queue in_order_with_handler() {
    const auto keep = [this](const sycl::exception_list& all) {
      for (const auto& e : all) try {
          std::rethrow_exception(e);
        } catch (const std::exception& x) {
          errors.emplace_back(x.what());
        }
    };
    return {j.queue.get_context(), j.queue.get_device(), keep, sycl::property::queue::in_order{}};
  }
  // Another input for each replay, and the sum of it over the ranks.
  static int input(int replay, int rank) { return 7 * replay + rank; }
  int sum(int replay) const { return size * 7 * replay + sum_to(size - 1); }
};

TEST_F(graph, replays_what_queues_have_recorded) {
  for (auto* comm : {&j.world, &j.in_order_world}) {
    auto q = comm->queue();
    shared<int> x(n, q), y(n, q), z(n, q);
    auto ready = recorded(q, [&] {
      auto reduced = comm->allreduce(x.get(), y.get(), n, op::sum);
      q.memcpy(z.get(), y.get(), n * sizeof(int), {reduced});
    });
    const int replays = comm == &j.world || size > 2 ? 50 : 1000;
    for (int i = 0; i < replays; ++i) {
      const int end = i % 2 ? static_cast<int>(n) - 1 : 0;
      x[end] = input(i, comm->rank());
      q.ext_oneapi_graph(ready).wait();
      ASSERT_EQ(z[end], sum(i)) << i;
    }
    comm->check();
  }
}

// What is kept of the calls before does not hide that a queue records now.
TEST_F(graph, records_calls_that_have_run_before) {
  auto& comm = j.world;
  shared<int> x(n, j.queue, comm.rank() + 1), y(n, j.queue);
  auto kept = comm.persistent().allreduce(x.get(), y.get(), n, op::max);
  for (int i = 0; i < 5; ++i) {
    comm.allreduce(x.get(), y.get(), n, op::sum).wait();
    kept.start().wait();
  }
  y[0] = -1;
  auto sums = recorded(j.queue, [&] { comm.allreduce(x.get(), y.get(), n, op::sum); });
  auto most = recorded(j.queue, [&] { kept.start(); });
  EXPECT_EQ(y[0], -1);
  for (int i = 0; i < 3; ++i) {
    j.queue.ext_oneapi_graph(sums).wait();
    EXPECT_EQ(y[0], sum_to(size));
    j.queue.ext_oneapi_graph(most).wait();
    EXPECT_EQ(y[0], size);
    comm.allreduce(x.get(), y.get(), n, op::sum).wait();
    EXPECT_EQ(y[0], sum_to(size));
  }
}

TEST_F(graph, of_every_form_that_returns_an_event) {
  for (auto* comm : {&j.world, &j.in_order_world}) {
    forms f(*comm, comm->queue());
    for (const auto& [name, call] : f.all()) {
      SCOPED_TRACE(name);
      if (name.find("blocking") != std::string::npos) continue;
      if (name == "send" || name == "recv") continue;
      auto ready = recorded(f.q, [&, &call = call] { call({}); });
      for (int i = 0; i < 5; ++i) f.q.ext_oneapi_graph(ready).wait();
      comm->check();
      for (std::size_t k = 0; k < n; ++k) f.x[k] = comm->rank() + 1;
    }
    for (int i = 0; i < 3; ++i) expect_sum(*comm, f);
  }
}

TEST_F(graph, blocking_forms_refuse_and_the_communicator_goes_on) {
  for (auto* comm : {&j.world, &j.in_order_world}) {
    forms f(*comm, comm->queue());
    auto q = comm->queue();
    shared<int> word(1, q);
    auto ready = recorded(q, [&] {
      q.fill(word.get(), 5, 1);
      for (const auto& [name, call] : f.all()) {
        if (name.find("blocking") == std::string::npos) continue;
        SCOPED_TRACE(name);
        const auto text = expect_error(errc::unsupported, [&, &call = call] { call({}); });
        EXPECT_NE(text.find("recording"), std::string::npos) << text;
      }
    });
    expect_sum(*comm, f);
    q.ext_oneapi_graph(ready).wait();
    EXPECT_EQ(word[0], 5);
    expect_sum(*comm, f);
  }
}

// Their memory between the steps lasts as long as the graph.
TEST_F(graph, of_ops_of_the_program) {
  const user_op<int> greater{[](const int& a, const int& b) { return std::max(a, b); }};
  for (auto* comm : {&j.world, &j.in_order_world})
    for (const std::size_t count : {std::size_t{10}, std::size_t{100000}}) {
      auto q = comm->queue();
      shared<int> x(count, q), y(count, q), z(count, q);
      auto ready = recorded(q, [&] {
        const auto e = greater.allreduce(*comm, x.get(), y.get(), count);
        greater.scan(*comm, y.get(), z.get(), count, {e});
      });
      for (int i = 0; i < 5; ++i) {
        x[count - 1] = input(i, comm->rank());
        q.ext_oneapi_graph(ready).wait();
        ASSERT_EQ(y[count - 1], input(i, size - 1));
        ASSERT_EQ(z[count - 1], input(i, size - 1));
      }
    }
}

// Each message waits for its peer's, which comes later on it: none may hold up the next one.
TEST_F(graph, messages_of_an_out_of_order_queue_wait_in_parallel) {
  constexpr std::size_t many = 200000;
  const int next = (j.world.rank() + 1) % size, before = (j.world.rank() + size - 1) % size;
  shared<int> x(many, j.queue), y(many, j.queue);
  auto ready = recorded(j.queue, [&] {
    const auto sent = j.world.send(x.get(), many, next);
    const auto got = j.world.recv(y.get(), many, before);
    j.world.barrier({sent, got});
  });
  for (int i = 0; i < 20; ++i) {
    x[many - 1] = input(i, j.world.rank());
    j.queue.ext_oneapi_graph(ready).wait();
    ASSERT_EQ(y[many - 1], input(i, before));
  }
}

TEST_F(graph, buffers_keep_their_order_with_other_commands) {
  sycl::buffer<int> x{sycl::range<1>(n)}, y{sycl::range<1>(n)};
  shared<int> out(1, j.queue);
  const auto fill = [&](int value) {
    j.queue.submit([&](sycl::handler& h) {
      sycl::accessor<int, 1, sycl::access_mode::write, sycl::target::host_task> to(x, h);
      h.host_task([=] {
        for (std::size_t i = 0; i < n; ++i) to[i] = value;
      });
    });
  };
  const auto read = [&] {
    j.queue.submit([&](sycl::handler& h) {
      sycl::accessor<int, 1, sycl::access_mode::read, sycl::target::host_task> from(y, h);
      h.host_task([=, to = out.get()] { *to = from[n - 1]; });
    });
    j.queue.wait();
  };
  auto ready = recorded(j.queue, [&] {
    j.world.allreduce(x, y, op::sum);
    j.world.allreduce(y, op::max);
  });
  for (int i = 0; i < 20; ++i) {
    fill(input(i, j.world.rank()));
    j.queue.ext_oneapi_graph(ready);
    read();
    ASSERT_EQ(out[0], sum(i)) << i;
  }
}

TEST_F(graph, two_in_turns_and_several_communicators_in_one) {
  forms f(j.in_order_world, j.in_order);
  communicator other = j.in_order_world.dup();
  shared<int> z(n, j.in_order);
  auto first = recorded(j.in_order, [&] {
    j.in_order_world.allreduce(f.x.get(), f.y.get(), n, op::sum);
    other.allreduce(f.y.get(), z.get(), n, op::max);
  });
  auto second = recorded(j.in_order, [&] {
    other.broadcast(z.get(), n, size - 1);
    j.in_order_world.allreduce(z.get(), n, op::sum);
  });
  for (int i = 0; i < 20; ++i) {
    f.x[n - 1] = input(i, j.world.rank());
    j.in_order.ext_oneapi_graph(first);
    j.in_order.ext_oneapi_graph(second);
    // Called while replays may not have begun; it waits for them, and they do not wait for it.
    auto last = j.in_order_world.allreduce(z.get(), 1, op::max);
    j.in_order.wait();
    ASSERT_EQ(z[n - 1], size * sum(i)) << i;
  }
}

TEST_F(graph, operations_are_added_as_nodes) {
  shared<int> x(n, j.queue), y(n, j.queue), z(n, j.queue);
  modifiable g = empty(j.queue);
  auto fill = g.add([&](sycl::handler& h) {
    h.host_task([to = x.get(), rank = j.world.rank()] { to[n - 1] += rank; });
  });
  auto sum = j.world.in_graph(g, {fill}).allreduce(x.get(), y.get(), n, op::sum);
  auto greatest = j.world.in_graph(g, {sum}).allreduce(y.get(), z.get(), n, op::max);
  EXPECT_EQ(greatest.get_type(), graphs::node_type::host_task);
  EXPECT_EQ(greatest.get_predecessors().size(), 1u);
  forms f(j.world, j.queue);
  auto kept = f.kept.add_to(g);
  group messages(j.world);
  messages.send(static_cast<const int*>(f.x.get()), n, f.next());
  messages.recv(f.y.get(), n, f.before());
  auto exchanged = messages.add_to(g, {kept});
  f.plan.add_to<int>(g, f.x.get(), f.y.get(), {exchanged});
  expect_error(errc::invalid_rank, [&] { j.world.in_graph(g).broadcast(x.get(), n, size); });
  expect_error(errc::unsupported, [&] {
    g.begin_recording(j.queue);
    j.world.barrier();
  });
  g.end_recording();
  auto ready = g.finalize();
  for (int i = 1; i < 20; ++i) {
    j.queue.ext_oneapi_graph(ready).wait();
    ASSERT_EQ(z[n - 1], i * sum_to(size - 1)) << i;
  }
}

TEST_F(graph, events_of_outside_are_refused_and_others_begin_to_record) {
  sycl::queue other{j.queue.get_context(), j.queue.get_device()};
  forms f(j.world, j.queue);
  modifiable g = empty(other);
  auto outside = other.fill(f.y.get(), 1, n);
  outside.wait();
  g.begin_recording(other);
  const auto inside = other.fill(f.x.get(), j.world.rank(), n);
  // As SYCL has it, the communicator's queue records from now on.
  const auto sum = j.world.allreduce(f.x.get(), f.y.get(), n, op::sum, {inside});
  const auto text = expect_error(errc::unsupported, [&] { j.world.barrier({outside}); });
  EXPECT_NE(text.find("not of that graph"), std::string::npos) << text;
  other.fill(f.x.get(), 3, n, {sum});
  g.end_recording();
  auto ready = g.finalize();
  for (int i = 0; i < 20; ++i) {
    f.y[n - 1] = -1;
    j.queue.ext_oneapi_graph(ready).wait();
    ASSERT_EQ(f.y[n - 1], sum_to(size - 1));
    ASSERT_EQ(f.x[n - 1], 3);
  }
}

TEST_F(graph, ends_after_its_communicator) {
  auto q = in_order_with_handler();
  shared<int> x(n, q);
  std::optional<communicator> comm = j.world_with(q);
  auto ready = recorded(q, [&] { comm->allreduce(x.get(), n, op::sum); });
  auto sequence = comm->record(q, [&] { comm->barrier(); });
  q.ext_oneapi_graph(ready).wait_and_throw();
  sequence.replay().wait_and_throw();
  EXPECT_TRUE(errors.empty());
  comm.reset();
  q.ext_oneapi_graph(ready).wait_and_throw();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("after the end of the operation's communicator"), std::string::npos)
      << errors[0];
  expect_error(errc::shut_down, [&] { sequence.replay(); });
}

// The other ranks call it: all get the error, and name who has done what.
TEST_F(graph, one_rank_that_records_alone_is_an_error_on_all) {
  if (size == 1) GTEST_SKIP() << "with several ranks";
  communicator comm = j.in_order_world.dup();
  shared<int> x(n, j.in_order);
  const bool records = comm.rank() == 1;
  std::string text;
  try {
    if (records) {
      auto ready = recorded(j.in_order, [&] { comm.allreduce(x.get(), n, op::sum); });
      comm.blocking().barrier();
    } else {
      comm.blocking().allreduce(x.get(), n, op::sum);
      comm.blocking().barrier();
    }
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::mismatch) << e.what();
    text = e.what();
  }
  EXPECT_NE(text.find("record"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
}

// Graphs of the same operations, replayed in another order on one rank.
TEST_F(graph, another_order_of_graphs_is_an_error_on_all) {
  if (size == 1) GTEST_SKIP() << "with several ranks";
  auto q = in_order_with_handler();
  auto comm = j.world_with(q);
  shared<int> x(n, q), y(n, q);
  const auto record = [&](int* data) {
    return comm.record(q, [&] { comm.allreduce(data, n, op::sum); });
  };
  std::string text;
  try {
    auto first = record(x.get()), second = record(y.get());
    for (int i = 0; i < 2; ++i) (comm.rank() == i ? second : first).replay().wait();
    comm.blocking().barrier();
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::mismatch) << e.what();
    text = e.what();
  }
  EXPECT_NE(text.find("(recorded operation 1)"), std::string::npos) << text;
  EXPECT_NE(text.find("(recorded operation 2)"), std::string::npos) << text;
  q.wait_and_throw();
}

#endif

// Whatever the size, and whether the operation was done when its call returned.
TEST(profiling, every_event_tells_of_time) {
  rank_fixture& j = fixture();
  for (const bool in_order : {false, true}) {
    sycl::property_list how{sycl::property::queue::enable_profiling{}};
    if (in_order)
      how = {sycl::property::queue::enable_profiling{}, sycl::property::queue::in_order{}};
    sycl::queue q{j.queue.get_context(), j.queue.get_device(), how};
    auto comm = j.world_with(q);
    forms f(comm, q);
    std::map<std::string, std::function<sycl::event()>> calls{
        {"allreduce", [&] { return comm.allreduce(f.x.get(), f.y.get(), n, op::sum); }},
        {"one element", [&] { return comm.allreduce(f.x.get(), f.y.get(), 1, op::sum); }},
        {"nothing", [&] { return comm.allreduce(f.x.get(), f.y.get(), 0, op::sum); }},
        {"barrier", [&] { return comm.barrier(); }},
        {"buffer", [&] { return comm.allreduce(f.buffer, op::sum); }},
        {"persistent", [&] { return f.kept.start(); }},
        {"compiled", [&] { return f.plan.start<int>(f.x.get(), f.y.get()); }},
        {"sendrecv",
         [&] { return comm.sendrecv(f.x.get(), n, f.next(), f.y.get(), n, f.before()); }},
    };
    for (const auto& [name, call] : calls)
      for (int i = 0; i < 10; ++i) {
        SCOPED_TRACE(name);
        auto e = call();
        e.wait();
        namespace times = sycl::info::event_profiling;
        try {
          EXPECT_GE(e.get_profiling_info<times::command_end>(),
                    e.get_profiling_info<times::command_start>());
        } catch (const sycl::exception& x) {
          ADD_FAILURE() << x.what();
          break;
        }
      }
  }
}

// On an in-order queue those that follow one another are one command.
TEST(executable, has_many_small_operations) {
  rank_fixture& j = fixture();
  const int size = j.world.size();
  shared<int> x(64, j.in_order), y(n, j.in_order);
  auto other = j.in_order_world.dup();
  auto made = j.in_order_world.record(j.in_order, [&] {
    for (std::size_t i = 0; i < 64; ++i) {
      j.in_order_world.allreduce(x.get() + i, 1, op::sum);
      if (i % 16 == 0) other.broadcast(x.get() + i, 1, 0);
      if (i % 32 == 0) j.in_order.memcpy(y.get() + i, x.get() + i, sizeof(int));
    }
    const auto last = j.in_order_world.barrier();
    j.in_order_world.allreduce(y.get(), 33, op::max, {last});
  });
  for (int k = 0; k < 10; ++k) {
    for (std::size_t i = 0; i < 64; ++i) x[i] = k;
    made.replay().wait();
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(x[i], k * size);
    ASSERT_EQ(y[0], k * size);
    ASSERT_EQ(y[32], k * size);
  }
  j.in_order_world.check();
}

#ifdef SYCL_EXT_ONEAPI_GRAPH
// Kernels after an operation that wait for each other, and for it: the graph would be executed in
// another order. Without the events it is one command after the other.
TEST(executable, refuses_an_order_that_graphs_do_not_keep) {
  rank_fixture& j = fixture();
  auto& q = j.in_order;
  shared<int> x(n, q, 1), y(n, q), z(n, q);
  const auto calls = [&](bool with_events) {
    return [&, with_events] {
      const auto reduced = j.in_order_world.allreduce(x.get(), n, op::max);
      std::vector<sycl::event> after;
      if (with_events) after = {reduced};
      q.memcpy(y.get(), x.get(), n * sizeof(int), after);
      q.memcpy(z.get(), y.get(), n * sizeof(int), after);
    };
  };
  expect_error(errc::unsupported, [&] { (void)j.in_order_world.record(q, calls(true)); });
  auto made = j.in_order_world.record(q, calls(false));
  for (int i = 1; i <= 20; ++i) {
    x[n - 1] = i;
    made.replay().wait();
    ASSERT_EQ(z[n - 1], i);
  }
  auto& free = j.queue;
  expect_error(errc::unsupported, [&] {
    (void)j.world.record(free, [&] {
      const auto filled = free.memset(y.get(), 0, sizeof(int));
      free.memset(z.get(), 0, sizeof(int), filled);
      j.world.allreduce(y.get(), n, op::max, {filled});
    });
  });
  j.world.allreduce(x.get(), n, op::max).wait();  // the communicators go on
  j.in_order_world.allreduce(x.get(), n, op::max).wait();
}
#endif

// With any SYCL implementation.
TEST(executable, replays_commands_and_operations) {
  rank_fixture& j = fixture();
  const int size = j.world.size();
  expect_error(errc::shut_down, [] { executable().replay(); });
  for (auto* comm : {&j.world, &j.in_order_world}) {
    auto q = comm->queue();
    shared<int> x(n, q), y(n, q), z(n, q);
    std::vector<executable> made;
    for (int* to : {y.get(), z.get()})
      made.push_back(comm->record(q, [=, &x, &comm = *comm]() mutable {
        const auto reduced = comm.allreduce(x.get(), to, n, op::sum);
        q.memcpy(to, to + n - 1, sizeof(int), {reduced});
      }));
    for (int i = 0; i < 40; ++i) {
      x[n - 1] = i * (comm->rank() + 1);
      auto& e = made[static_cast<std::size_t>(i % 2)];
      e.replay().wait();
      ASSERT_EQ((i % 2 ? z : y)[0], i * sum_to(size)) << i;
    }
    comm->check();
  }
}

// Other pointers and commands, also while a replay of what was there before is in flight; copies
// follow. What throws changes nothing.
TEST(executable, is_updated) {
  rank_fixture& j = fixture();
  const int size = j.world.size();
  expect_error(errc::shut_down, [] { executable().update([] {}); });
  for (auto* comm : {&j.world, &j.in_order_world}) {
    auto q = comm->queue();
    shared<int> x(n, q), y(n, q), z(n, q);
    const auto sum_to_memory = [&](int* to, op o) {
      return [=, &x, &comm = *comm] { comm.allreduce(x.get(), to, n, o); };
    };
    auto made = comm->record(q, sum_to_memory(y.get(), op::sum));
    const executable copy = made;
    x[n - 1] = comm->rank() + 1;
    auto before = made.replay();
    for (int i = 0; i < 5; ++i) {
      const bool greatest = i % 2 == 0;
      int* to = (greatest ? z : y).get();
      made.update(sum_to_memory(to, greatest ? op::max : op::sum));
      if (i == 0) {
        before.wait();
        ASSERT_EQ(y[n - 1], sum_to(size));
      }
      expect_error(errc::invalid_rank,
                   [&] { made.update([&] { comm->broadcast(x.get(), n, size); }); });
      to[n - 1] = -1;
      executable(copy).replay().wait();
      ASSERT_EQ(to[n - 1], greatest ? size : sum_to(size)) << i;
    }
    comm->check();
    comm->blocking().barrier();
  }
}

}  // namespace
}  // namespace sucl::testing
