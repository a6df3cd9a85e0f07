// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Queues that record a command graph, and queues whose events tell of time.
#include "ranks/job.hpp"

#include <cstdlib>
#include <map>

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
    std::vector<int> everybody(static_cast<std::size_t>(comm.size()));
    for (int r = 0; r < comm.size(); ++r) everybody[static_cast<std::size_t>(r)] = r;
    all_to_first.reduction(all_to_first.send(0, n), all_to_first.recv(0, n), everybody, 0, op::sum);
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
  job& j = the_job();
  const int size = j.world.size();

  void expect_sum(communicator& comm, forms& f) {
    f.y[n - 1] = -1;
    comm.allreduce(f.x.get(), f.y.get(), n, op::sum).wait();
    comm.check();
    EXPECT_EQ(f.y[n - 1], sum_to(size));
  }
};

TEST_F(graph, every_form_refuses_and_the_communicator_goes_on) {
  for (auto* comm : {&j.world, &j.in_order_world}) {
    forms f(*comm, comm->queue());
    auto q = comm->queue();
    shared<int> word(1, q);
    modifiable g(q.get_context(), q.get_device());
    g.begin_recording(q);
    q.fill(word.get(), 5, 1);
    for (const auto& [name, call] : f.all()) {
      SCOPED_TRACE(name);
      const auto text = expect_error(errc::unsupported, [&, &call = call] { call({}); });
      EXPECT_NE(text.find("recording"), std::string::npos) << text;
    }
    g.end_recording(q);
    expect_sum(*comm, f);
    auto ready = g.finalize();
    q.ext_oneapi_graph(ready).wait();
    EXPECT_EQ(word[0], 5);
    expect_sum(*comm, f);
  }
}

// Such an event calls itself complete, and makes a queue whose command depends on it record.
TEST_F(graph, an_event_of_a_graph_is_refused_too) {
  sycl::queue recorded{j.queue.get_context(), j.queue.get_device()};
  for (const auto& name : {"allreduce", "buffer", "persistent", "group"}) {
    SCOPED_TRACE(name);
    sycl::queue own{j.queue.get_context(), j.queue.get_device()};
    auto comm = j.world_with(own);
    forms f(comm, own);
    modifiable g(own.get_context(), own.get_device(),
                 {graphs::property::graph::assume_buffer_outlives_graph{}});
    g.begin_recording(recorded);
    const auto e = recorded.fill(f.x.get(), 7, n);
    expect_error(errc::unsupported, [&] { f.all().at(name)({e}); });
    g.end_recording();
    expect_sum(comm, f);
  }
}

// With SUCL_VALIDATE=1, where ranks compare arguments.
TEST_F(graph, one_rank_alone_tells_the_others) {
  if (!std::getenv("SUCL_VALIDATE") || size == 1) GTEST_SKIP() << "with SUCL_VALIDATE=1";
  forms f(j.in_order_world, j.in_order);
  modifiable g(j.in_order.get_context(), j.in_order.get_device());
  const bool records = j.world.rank() == 1;
  if (records) g.begin_recording(j.in_order);
  if (records) {
    expect_error(errc::unsupported, [&] { f.all().at("allreduce")({}); });
  } else {
    const auto text = expect_error(errc::unsupported, [&] {
      auto e = j.in_order_world.allreduce(f.x.get(), f.y.get(), n, op::sum);
      j.in_order_world.wait();
      e.wait();
    });
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  }
  if (records) g.end_recording(j.in_order);
  expect_sum(j.in_order_world, f);
}

#endif

// Whatever the size, and whether the operation was done when its call returned.
TEST(profiling, every_event_tells_of_time) {
  job& j = the_job();
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

}  // namespace
}  // namespace sucl::testing
