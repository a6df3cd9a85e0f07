// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The backend hierarchical, with threads as ranks and the mock backend on both levels.
#include "backends/hierarchical/backend.hpp"
#include "process/process.hpp"

#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sucl::testing {
namespace {

using namespace std::chrono_literals;
using namespace core;
using values = std::vector<int>;

base::config settings(std::vector<std::uint64_t> node_size, std::uint64_t single_leader = 256) {
  auto c = base::load_config("/dev/null", {});
  c.default_backend = "mock";
  c.nodes.size = std::move(node_size);
  for (auto& b : c.backends) {
    b.enabled = b.name == "mock" || b.name == "hierarchical";
    if (b.name == "mock") b.path = SUCL_TEST_MOCK;
    if (b.name == "hierarchical") b.settings = {{"single_leader", std::to_string(single_leader)}};
  }
  base::rule hierarchical;
  hierarchical.backends = {"hierarchical"};
  c.rules = {hierarchical};
  return c;
}

void run(int ranks, const base::config& c, const std::function<void(communicator&)>& body) {
  run_processes(ranks, [&](const sucl_bootstrap& control, int) {
    auto p = process::start(c, &control);
    {
      auto world = p->world({});
      body(*world);
    }
    p->shut_down();
  });
}

sucl_operation operation(sucl_kind kind, const values& send, values& recv, std::uint64_t count,
                         int root = 0) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = kind;
  o.type = SUCL_TYPE_INT32;
  o.op = reduces(static_cast<sucl::kind>(kind)) ? SUCL_OP_SUM : SUCL_OP_NONE;
  o.element_size = sizeof(int);
  o.root = root;
  o.send = send.data();
  o.recv = recv.data();
  o.count = count;
  return o;
}

int input(int rank, std::size_t i) { return (rank + 1) * 1000 + static_cast<int>(i % 900); }
values inputs(int rank, std::size_t n) {
  values v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = input(rank, i);
  return v;
}
values sums(int ranks, std::size_t n) {
  values v(n, 0);
  for (int r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < n; ++i) v[i] += input(r, i);
  return v;
}

const std::vector<std::pair<int, std::vector<std::uint64_t>>> jobs{
    {3, {2, 1}}, {4, {2}}, {4, {3, 1}}, {5, {3, 2}}};

TEST(Hierarchical, ExecuteOperationsOfEveryForm) {
  for (const auto& [ranks, nodes] : jobs)
    run(ranks, settings(nodes), [](communicator& c) {
      const int p = c.size();
      for (const std::size_t n : {1u, 63u, 64u, 1000u}) {
        const values mine = inputs(c.rank(), n), total = sums(p, n);
        for (int root = 0; root < p; ++root) {
          values reduced(n), spread = c.rank() == root ? mine : values(n);
          c.run(operation(SUCL_KIND_REDUCE, mine, reduced, n, root), {});
          EXPECT_EQ(reduced, c.rank() == root ? total : values(n));
          c.run(operation(SUCL_KIND_BROADCAST, mine, spread, n, root), {});
          EXPECT_EQ(spread, inputs(root, n));
        }
        // Several in flight, in both forms.
        std::vector<values> results(6, values(n));
        std::vector<ticket> tickets;
        observer assisted;
        assisted.assisted = true;
        for (std::size_t i = 0; i + 1 < results.size(); ++i)
          tickets.push_back(
              c.issue(operation(SUCL_KIND_ALLREDUCE, mine, results[i], n), {}, true, assisted)
                  .operation);
        c.run(operation(SUCL_KIND_ALLREDUCE, mine, results.back(), n), {});
        for (auto& t : tickets) c.wait(t);
        for (const values& r : results) EXPECT_EQ(r, total);
      }
    });
}

TEST(Hierarchical, NameTheBackendOfEachStep) {
  run(4, settings({2}), [](communicator& c) {
    const auto text = c.backends().explain(kind::allreduce, 1 << 20, type::fp32, op::sum);
    EXPECT_NE(text.find("executed by hierarchical"), std::string::npos) << text;
    EXPECT_NE(text.find("reduce_scatter_block within the node by mock, then allreduce between "
                        "nodes by mock, then allgather within the node by mock"),
              std::string::npos)
        << text;
    const std::string between = c.rank() % 2 == 0 ? "allreduce between nodes by mock, then " : "";
    EXPECT_NE(c.backends()
                  .explain(kind::allreduce, 4, type::fp32, op::sum)
                  .find("on this rank: reduce within the node by mock, then " + between +
                        "broadcast within the node by mock\n"),
              std::string::npos);
    // What has to be rounded once is left to others, and is not converted for hierarchical.
    EXPECT_EQ(c.backends()
                  .explain(kind::allreduce, 4, type::fp16, op::sum)
                  .find("executed by hierarchical"),
              std::string::npos);
    EXPECT_EQ(c.backends()
                  .explain(kind::allreduce, 4, type::fp32, op::avg)
                  .find("executed by hierarchical"),
              std::string::npos);
    EXPECT_NE(c.backends()
                  .explain(kind::allreduce, 4, type::fp16, op::max)
                  .find("executed by hierarchical"),
              std::string::npos);
  });
  run(2, settings({2}), [](communicator& c) {
    EXPECT_NE(c.backends()
                  .explain(kind::allreduce, 4, type::fp32, op::sum)
                  .find("the ranks are on one node"),
              std::string::npos);
  });
  run(2, settings({1}), [](communicator& c) {
    EXPECT_NE(c.backends()
                  .explain(kind::allreduce, 4, type::fp32, op::sum)
                  .find("every rank is alone on its node"),
              std::string::npos);
  });
}

/// Executes steps as they come.
struct queue_in_this_thread final : hierarchical_queue {
  std::shared_ptr<void> attach(std::shared_ptr<communicator> part) override { return part; }
  void start(void* attached, const sucl_operation& record, const std::vector<step_operand>&,
             void* target) override {
    ++*static_cast<int*>(target);
    static_cast<communicator*>(attached)->run(record, {});
  }
};

TEST(Hierarchical, StepsGoToTheQueueOfAnOperation) {
  auto plain = settings({2});
  plain.rules.clear();
  run(4, plain, [](communicator& c) {
    const hierarchical_map where = map_nodes(c.where().node_of, c.rank());
    hierarchical_parts parts{c.split(where.node, where.local, {}),
                             c.split(where.local, where.node, {}), nullptr};
    scratch_pool pool;
    queue_in_this_thread queue;
    {
      hierarchical_comm hierarchical(where, {0, 256, 0}, std::move(parts), {&pool, nullptr},
                                     &queue);
      for (const std::size_t n : {2u, 100u, 101u}) {
        values x = inputs(c.rank(), n);
        int steps = 0;
        auto o = operation(SUCL_KIND_ALLREDUCE, x, x, n);
        o.send = nullptr;
        o.flags = SUCL_FLAG_IN_PLACE;
        EXPECT_FALSE(hierarchical.orders_on_stream(o)) << "mock does not";
        hierarchical.launch(o, &steps);
        EXPECT_EQ(x, sums(c.size(), n));
        EXPECT_EQ(steps, n == 2 && where.local > 0 ? 2 : 3);
      }
    }
  });
}

TEST(Hierarchical, FailuresOfStepsAreFailuresOfTheOperation) {
  auto failing = settings({2});
  for (auto& b : failing.backends)
    if (b.name == "mock") b.settings = {{"fail_at", "1"}};
  run(4, failing, [](communicator& c) {
    values x(4), y(4);
    try {
      c.run(operation(SUCL_KIND_ALLREDUCE, x, y, 4), {});
      ADD_FAILURE() << "it should have failed";
    } catch (const error& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("allreduce #1"), std::string::npos) << text;
      EXPECT_NE(text.find("reduce within the node failed"), std::string::npos) << text;
    }
    EXPECT_NO_THROW(c.check());
  });
}

TEST(Hierarchical, ARankThatDoesNotArriveIsNamed) {
  auto watched = settings({2});
  watched.watchdog.timeout = 300ms;
  run(4, watched, [](communicator& c) {
    values x(4), y(4);
    try {
      if (c.rank() != 3) {
        c.run(operation(SUCL_KIND_ALLREDUCE, x, y, 4), {});
        ADD_FAILURE() << "it should have failed";
      }
      const auto deadline = std::chrono::steady_clock::now() + 60s;
      while (std::chrono::steady_clock::now() < deadline) {
        c.check();
        std::this_thread::sleep_for(1ms);
      }
      ADD_FAILURE() << "rank 3 was not told";
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find("rank 3 has not arrived"), std::string::npos)
          << e.what();
    }
  });
}

}  // namespace
}  // namespace sucl::testing
