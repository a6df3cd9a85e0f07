// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Compiled plans of several nodes by the backend hierarchical: ranks are threads, each with a
// device whose kernels are threads.
#include "backends/hierarchical/backend.hpp"
#include "process/process.hpp"
#include "support/jobs/thread_ranks.hpp"
#include "unit/device_kernels/thread_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sucl::testing {
namespace {

using namespace core;
using values = std::vector<int>;

base::config settings_with(const std::vector<std::string>& backends) {
  auto c = base::load_config("/dev/null", {});
  c.default_backend = "mock";
  for (auto& b : c.backends) {
    b.enabled = std::find(backends.begin(), backends.end(), b.name) != backends.end();
    if (b.name == "mock" || b.name == "ipc")
      b.path = std::string(SUCL_TEST_MODULES) + "/libsucl_backend_" + b.name + ".so";
  }
  return c;
}

base::config settings_within_nodes(std::vector<std::uint64_t> node_size) {
  auto c = settings_with({"mock", "ipc", "kernels"});
  c.nodes.size = std::move(node_size);
  for (auto& b : c.backends)
    if (b.name == "kernels") b.settings = {{"plans", "true"}, {"groups", "2"}, {"staging", "16Ki"}};
  base::rule kernels;
  kernels.backends = {"kernels"};
  c.rules = {kernels};
  return c;
}

/// A rank with the parts of a communicator of several nodes.
struct planning_rank {
  hierarchical_map where;
  hierarchical_parts parts;
  kernel_device& device;
  sucl_oob oob;
};

// Shared memory moves what goes between the nodes: to the communicator for it they are one.
void for_planning(int ranks, const std::vector<std::uint64_t>& node_size,
                  const std::function<void(const planning_rank&)>& body) {
  run_processes(ranks, [&](const sucl_bootstrap& control, int rank) {
    thread_device device(false);
    device.groups = 2;
    device.who[0] = static_cast<unsigned char>(rank + 1);
    device_services services;
    services.kernels = &device;
    auto within = process::start(settings_within_nodes(node_size), &control);
    auto between = process::start(settings_with({"mock", "ipc", "messages"}), &control);
    {
      auto world = within->world(services);
      const auto where = map_nodes(world->where().node_of, rank);
      body({where,
            {world->split(where.node, where.local, services), nullptr, between->world({})},
            device,
            {&control, world->control_group()}});
    }
    between->shut_down();
    within->shut_down();
  });
}

// Every rank's sums of what all have, by way of rank 0.
composition sums_by_way_of(int root, int ranks, std::size_t n) {
  composition c{ranks};
  c.reduction(c.send(0, n), c.scratch(0, n), all, root, op::sum);
  c.fence();
  c.multicast(c.scratch(0, n), c.recv(0, n), root, all);
  return c;
}

int contribution(int rank, std::size_t i) { return (rank + 1) * 1000 + static_cast<int>(i % 900); }

values sums_of(int ranks, std::size_t n) {
  values all(n, 0);
  for (int r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < n; ++i) all[i] += contribution(r, i);
  return all;
}

sucl_operation run_of(std::uint64_t plan, const values& send, values& recv) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = compiled_plan_kind;
  o.type = SUCL_TYPE_INT32;
  o.element_size = sizeof(int);
  o.plan = plan;
  o.send = send.data();
  o.recv = recv.data();
  o.count = send.size();
  o.recv_count = recv.size();
  return o;
}

values contributions(int rank, std::size_t n) {
  values mine(n);
  for (std::size_t i = 0; i < n; ++i) mine[i] = contribution(rank, i);
  return mine;
}

/// Executes steps as they come, and says how many.
struct counting_queue final : hierarchical_queue {
  std::shared_ptr<void> attach(std::shared_ptr<communicator> part) override { return part; }
  void start(void* attached, const sucl_operation& record,
             const std::vector<step_operand>& operands, void* target) override {
    ++*static_cast<int*>(target);
    for (const step_operand& o : operands)
      if (record.kind == SUCL_KIND_GROUP) {
        EXPECT_LT(o.part, record.part_count);
        EXPECT_EQ(record.parts[o.part].kind == SUCL_KIND_SEND, o.sends);
      }
    static_cast<communicator*>(attached)->run(record, {});
  }
};

TEST(HierarchicalPlans, RunOnAQueueAndFromTheHost) {
  for (const auto& [ranks, nodes] :
       {std::pair{3, std::vector<std::uint64_t>{2, 1}}, {2, {1}}, {4, {2}}})
    for_planning(ranks, nodes, [ranks = ranks](const planning_rank& j) {
      scratch_pool pool;
      counting_queue queue;
      hierarchical_comm under_test(j.where, {0, 256, 0}, j.parts, {&pool, &j.device}, &queue);
      under_test.add_plans(j.oob);
      hierarchical_plans& plans = *under_test.plans();
      for (const std::size_t n : {5u, 3000u}) {
        const composition what = sums_by_way_of(ranks - 1, ranks, n);
        auto draft = plans.draft({what, {}, type::int32, sizeof(int)}, base::determinism::ranks);
        EXPECT_NE(draft->facts.text.find("by kernels within nodes and by messages between them"),
                  std::string::npos)
            << draft->facts.text;
        plans.allocate(*draft);
        plans.add(n, std::move(draft));
        const values mine = contributions(j.where.rank, n);
        for (int round = 0; round < 3; ++round) {
          values got(n, -1);
          int steps = 0;
          under_test.launch(run_of(n, mine, got), &steps);
          EXPECT_EQ(got, sums_of(ranks, n));
          EXPECT_GE(steps, 2);
        }
        values got(n, -1);
        hierarchical_request* request = under_test.start(run_of(n, mine, got));
        while (request && !under_test.test(request)) {
        }
        EXPECT_EQ(got, sums_of(ranks, n));
        plans.remove(n);
        EXPECT_THROW((void)plans.steps(n), error);
      }
    });
}

}  // namespace
}  // namespace sucl::testing
