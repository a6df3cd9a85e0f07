// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The executor with threads as ranks: every operation that plans execute, drawn at random, against
// the backend mock, which follows the definitions.
#include "backends/shm_plan/execution/copy_mode_tuner.hpp"
#include "backends/shm_plan/plans/between_nodes.hpp"
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "core/exchange/core_services.hpp"
#include "core/selection/backend_creation.hpp"
#include "plan/ir/builder.hpp"
#include "unit/allocation_counter.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <set>

namespace {

using namespace sucl;
using namespace sucl::testing;

class executor_run : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, executor_run, ::testing::Values(1, 2, 3, 4, 7));

// Random operations of at least `least` elements.
void compare(const backends& b, int rank, int size, std::uint64_t draws, std::uint64_t least) {
  for (std::uint64_t seed = 1; seed <= draws; ++seed) {
    draw d = make_draw(seed + 1000u * static_cast<unsigned>(size), size, 20000);
    d.count += least;
    const bool in_place = (seed * 7 + static_cast<unsigned>(rank)) % 3 == 0;
    const bool blocking = seed % 2 == 0;
    memory mine, model;
    auto o = prepare(d, rank, size, in_place, mine);
    if (blocking) o.flags |= SUCL_FLAG_MAY_BLOCK;
    const flight done = run(b.plan, o);
    const auto same_operation = prepare(d, rank, size, in_place, model);
    const flight reference = run(b.mock, same_operation);
    EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
    EXPECT_EQ(reference.status, SUCL_SUCCESS) << reference.error.message;
    EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, rank, size, in_place);
    EXPECT_EQ(mine.send, model.send) << describe(d, rank, size, in_place);
  }
}

TEST_P(executor_run, agrees_with_the_definitions) {
  for_ranks(GetParam(), [&](const backends& b, const sucl_comm_info& info) {
    compare(b, info.rank, info.size, 120, 0);
  });
}

// Runs what a table's rows are for, and returns by how many kinds of collectives its recipe has
// been run. What it does not run is executed by another plan, and right too.
std::size_t compare_by(const backends& b, const sucl_comm_info& info, const tune::table& t) {
  std::set<kind> by_recipe;
  int left = 6;
  for (std::uint64_t seed = 1; seed < 400 && (left > 0 || by_recipe.empty()); ++seed) {
    draw d = make_draw(seed + 3000u * static_cast<unsigned>(info.size), info.size, 6000);
    const auto row = std::find_if(t.rows.begin(), t.rows.end(),
                                  [&](const tune::table_row& r) { return r.what == d.what; });
    if (row == t.rows.end() || !supports(b.plan, d)) continue;
    d.count += 2100;
    --left;
    const bool in_place = (seed * 7 + static_cast<unsigned>(info.rank)) % 3 == 0;
    memory mine, model;
    const auto o = prepare(d, info.rank, info.size, in_place, mine);
    if (core::plan_obstacle(b.plan, *row, o).empty()) by_recipe.insert(d.what);
    const flight done = run(b.plan, o);
    EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
    run(b.mock, prepare(d, info.rank, info.size, in_place, model));
    EXPECT_TRUE(same(d, mine.recv, model.recv))
        << plan::to_text(row->how) << ": " << describe(d, info.rank, info.size, in_place);
    EXPECT_EQ(mine.send, model.send) << plan::to_text(row->how);
  }
  return by_recipe.size();
}

const char* const recipes[] = {"ring",
                               "exchange",
                               "doubling",
                               "cyclic(radices=3)",
                               "direct(ports=2)",
                               "tree(radices=3)",
                               "chain(segments=5)",
                               "scatter_allgather",
                               "scatter_gather(inner=cyclic)",
                               "pairwise",
                               "bruck(radices=3)",
                               "hierarchical(hierarchy=4,2;outer=doubling)",
                               "composed(hierarchy=4,2;pipeline=3)",
                               "composed(steps=2)",
                               "recursive_scan",
                               "node_shot(leaders=1)",
                               "node_shot",
                               "two_level(outer=tree)",
                               "two_level(leaders=1;outer=cyclic)",
                               "staged_one_shot",
                               "staged_two_shot",
                               "read_one_shot",
                               "read_two_shot"};

// Tables choose the plans: every algorithm there is, on memory that no other rank touches.
TEST_P(executor_run, runs_every_algorithm) {
  for (const std::string recipe : recipes) {
    const tune::table t = table_of(recipe.c_str(), tune::memory_kind::system);
    for_ranks(
        GetParam(),
        [&](const backends& b, const sucl_comm_info& info) {
          EXPECT_GT(compare_by(b, info, t), 0u) << recipe;
        },
        {}, &t);
  }
}

TEST_P(executor_run, reads_nothing_where_that_is_forbidden) {
  const tune::table t = table_of("read_two_shot", tune::memory_kind::system);
  for_ranks(
      GetParam(),
      [&](const backends& b, const sucl_comm_info& info) { EXPECT_EQ(compare_by(b, info, t), 0u); },
      {{"reads", "false"}}, &t);
}

// Once every list has had its largest size, nothing is allocated any more: neither by repeated
// operations, more of them than the quick cache holds, nor by blocks of unequal lengths.
TEST(executor_steady, allocates_nothing) {
  constexpr int size = 3;
  std::barrier<> together(size);
  for_ranks(size, [&](const backends& b, const sucl_comm_info&) {
    std::vector<std::int32_t> in(60000, 1), out(in.size());
    const std::vector<std::uint64_t> displs{0, 20000, 40000};
    std::vector<std::uint64_t> counts(size);
    const auto call = [&](kind k, std::uint64_t n) {
      auto o = operation(k, type::int32, n, reduces(k) ? op::sum : op::none);
      o.send = in.data();
      o.recv = out.data();
      std::fill(counts.begin(), counts.end(), n);
      o.send_counts = o.recv_counts = counts.data();
      o.send_displs = o.recv_displs = displs.data();
      EXPECT_EQ(run(b.plan, o).status, SUCL_SUCCESS);
    };
    const auto all = [&] {
      for (std::uint64_t n = 1; n < 200; ++n) call(kind::allreduce, n);
      for (const kind k : {kind::barrier, kind::broadcast, kind::reduce_scatter, kind::allgatherv,
                           kind::alltoallv, kind::gatherv, kind::scatterv, kind::alltoall})
        for (const std::uint64_t n : {1u, 3u, 700u, 20000u}) call(k, n);
    };
    for (int i = 0; i < 3; ++i) all();
    together.arrive_and_wait();
    const long before = sucl::test::allocations();
    together.arrive_and_wait();
    for (int i = 0; i < 3; ++i) all();
    together.arrive_and_wait();
    EXPECT_EQ(sucl::test::allocations(), before);
    together.arrive_and_wait();  // no rank goes on to the end before
  });
}

// An operation that another one's progress has finished is still to be asked for. Plans that are
// forgotten meanwhile, because there are so many, must not take away what its answer depends on.
TEST(executor_plans, stay_while_an_operation_is_not_asked_for) {
  constexpr std::uint64_t many = 4096;  // as many as are kept
  mallopt(M_PERTURB, 0x5a);             // memory that is freed loses its contents at once
  std::barrier<> together(2);
  for_ranks(2, [&](const backends& b, const sucl_comm_info& info) {
    std::vector<std::int32_t> in(1 << 20, 1), out(in.size()), last(in.size());
    const auto sum = [&](std::uint64_t count, std::vector<std::int32_t>& to) {
      auto o = operation(kind::allreduce, type::int32, count, op::sum);
      o.send = in.data();
      o.recv = to.data();
      return o;
    };
    for (std::uint64_t n = 1; n <= many; ++n)
      EXPECT_EQ(run(b.plan, sum(n, out)).status, SUCL_SUCCESS);
    flight first;
    if (info.rank == 0) first = post(b.plan, sum(in.size(), last));  // of many slices
    EXPECT_EQ(first.request != nullptr, info.rank == 0);
    together.arrive_and_wait();
    if (info.rank == 1) run(b.plan, sum(in.size(), last));
    for (std::uint64_t n = 1; n <= many; ++n)
      EXPECT_EQ(run(b.plan, sum(n, out)).status, SUCL_SUCCESS);
    EXPECT_TRUE(sucl::testing::test(b.plan, first));
    EXPECT_EQ(std::count(last.begin(), last.end(), 2), static_cast<long>(last.size()));
    together.arrive_and_wait();  // no rank frees what another one still needs
  });
  mallopt(M_PERTURB, 0);
}

// Slices of a broadcast overlap two copies. Where there is only one they would cost.
TEST(executor_plans, are_cut_to_overlap_only_where_data_is_staged) {
  const core::placement where{0, 2, {0, 0}, {}};
  core::plan_cache cache(where, std::uint64_t{256} << 10, core::default_tuning());
  cache.allow_reads();
  for (const kind k : {kind::broadcast, kind::scatter, kind::gather, kind::allgather}) {
    const sucl_operation o = operation(k, type::fp32, 1 << 14);
    EXPECT_GT(cache.of(o, core::access_mode::staged).slices, k == kind::broadcast ? 1u : 0u);
    EXPECT_TRUE(cache.of(o, core::access_mode::read).there) << name(k);
    EXPECT_EQ(cache.of(o, core::access_mode::read).slices, 1u) << name(k);
    EXPECT_EQ(cache.of(o, core::access_mode::mapped).slices, 1u) << name(k);
  }
  const sucl_operation summed = operation(kind::allreduce, type::fp32, 1 << 14, op::sum);
  EXPECT_FALSE(cache.of(summed, core::access_mode::read).there);
}

// Counts that contradict each other are an error where they are received, and nothing hangs: with
// blocks that travel with their lengths, that are staged, and that are read.
TEST(executor_counts, that_differ_are_an_error) {
  for (const std::uint64_t n : {4, 100, 40000})
    for_ranks(3, [&](const backends& b, const sucl_comm_info& info) {
      if (core::can_read(b.ipc, info.size)) core::allow_reads(b.plan);
      sucl_oob meeting = core::oob_split(*info.oob, info.rank);  // no rank goes on before
      core::oob_free(meeting);
      const bool wrong = info.rank == 2;
      std::vector<std::uint64_t> send_counts{n, n, n}, recv_counts{n, wrong ? n + 1 : n, n};
      std::vector<std::uint64_t> displs{0, n + 1, 2 * (n + 1)};
      std::vector<std::int32_t> in(3 * (n + 1), info.rank), out(in.size(), -1);
      auto o = operation(kind::alltoallv, type::int32, 0);
      o.send = in.data();
      o.recv = out.data();
      o.send_counts = send_counts.data();
      o.recv_counts = recv_counts.data();
      o.send_displs = o.recv_displs = displs.data();
      flight done = run(b.plan, o);
      EXPECT_TRUE(!wrong || done.status == SUCL_ERROR_MISMATCH);
      // Who is not wrong is told at the latest by the next one.
      std::int32_t sum = 0;
      auto next = operation(kind::allreduce, type::int32, 1, op::sum);
      next.send = in.data();
      next.recv = &sum;
      if (done.status == SUCL_SUCCESS) done = run(b.plan, next);
      EXPECT_EQ(done.status, SUCL_ERROR_MISMATCH);
      const std::string found = "rank 1 called alltoallv with " + std::to_string(n) +
                                " int32 for rank 2, rank 2 called it with " +
                                std::to_string(n + 1) + " int32 from rank 1";
      EXPECT_NE(done.error.message.find(found), std::string::npos) << done.error.message;
    });
}

const std::vector<std::vector<int>> placements{
    {0, 0, 1, 1},          {0, 0, 0, 1},          {0, 1, 0},
    {0, 0, 1, 1, 2, 2, 2}, {3, 1, 3, 1, 2, 3, 2}, {0, 0, 0, 1, 2, 3, 4}};

class executor_nodes : public ::testing::TestWithParam<std::vector<int>> {};
INSTANTIATE_TEST_SUITE_P(placements, executor_nodes, ::testing::ValuesIn(placements));

TEST_P(executor_nodes, agrees_with_the_definitions) {
  const int size = static_cast<int>(GetParam().size());
  for_nodes(GetParam(), [&](const backends& b, const sucl_comm_info& info) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const draw d = make_draw(seed + 9000u * static_cast<unsigned>(size), size, 60000);
      if (!supports(b.plan, d)) continue;
      const bool in_place = (seed * 7 + static_cast<unsigned>(info.rank)) % 3 == 0;
      memory mine, model;
      auto o = prepare(d, info.rank, size, in_place, mine);
      if (seed % 2 == 0) o.flags |= SUCL_FLAG_MAY_BLOCK;
      const flight done = run(b.plan, o);
      run(b.mock, prepare(d, info.rank, size, in_place, model));
      EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
      EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, info.rank, size, in_place);
      EXPECT_EQ(mine.send, model.send) << describe(d, info.rank, size, in_place);
    }
  });
}

// Whatever a table says between nodes: messages go over the transport, the rest stays on the nodes.
TEST_P(executor_nodes, agrees_with_the_definitions_by_every_plan) {
  for (const std::string recipe : recipes) {
    if (recipe.starts_with("staged_") || recipe.starts_with("read_")) continue;
    const tune::table t = table_of(recipe.c_str(), tune::memory_kind::system);
    for_nodes(
        GetParam(),
        [&](const backends& b, const sucl_comm_info& info) {
          EXPECT_GT(compare_by(b, info, t), 0u) << recipe;
        },
        {}, &t);
  }
}

// Many operations in flight at once, ranks at different speeds, and no waiting in between.
void keep_the_order(const std::vector<int>& node_of) {
  const int size = static_cast<int>(node_of.size());
  for_nodes(node_of, [&](const backends& b, const sucl_comm_info& info) {
    std::mt19937_64 random(static_cast<unsigned>(info.rank) + 17);
    struct one {
      std::vector<std::int32_t> in, out;
      sucl_operation what;
      flight state;
      std::int32_t want;
    };
    constexpr std::size_t depth = 12;
    std::vector<one> slots(depth);
    for (int i = 0; i < 1500; ++i) {
      one& s = slots[static_cast<std::size_t>(i) % depth];
      s.state = wait(b.plan, s.state);
      EXPECT_EQ(s.state.status, SUCL_SUCCESS);
      if (!s.out.empty()) {
        EXPECT_EQ(s.out.back(), s.want) << "operation " << i;
        EXPECT_EQ(s.out.front(), s.want) << "operation " << i;
      }
      const std::size_t n = i % 50 == 7 ? 100000 : 1 + static_cast<std::size_t>(i) % 300;
      const bool sum = i % 3 != 0;
      s.in.assign(n, i + info.rank);
      s.out.assign(n, -1);
      s.what = operation(sum ? kind::allreduce : kind::broadcast, type::int32, n,
                         sum ? op::sum : op::none);
      s.what.root = i % size;
      s.what.send = s.in.data();
      s.what.recv = s.out.data();
      s.want = sum ? size * i + size * (size - 1) / 2 : i + s.what.root;
      if (!sum && info.rank == s.what.root) s.want = -1;
      s.state = post(b.plan, s.what);
      if (random() % 40 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    }
    for (one& s : slots) {
      s.state = wait(b.plan, s.state);
      EXPECT_EQ(s.out.back(), s.want);
    }
  });
}

TEST_P(executor_run, keeps_the_order_of_thousands_of_operations) {
  keep_the_order(std::vector<int>(static_cast<std::size_t>(GetParam()), 0));
}

TEST_P(executor_nodes, keeps_the_order_of_thousands_of_operations) { keep_the_order(GetParam()); }

// The same on memory that all ranks reach, on all of it or on some.
void compare_mapped(int size, const tune::table* tuned) {
  const auto body = [&](const backends& b, const sucl_comm_info& info) {
    const auto region = core::make_mapped(b.ipc, info.rank, 16u << 20);
    core::add_mapped(b.plan, region, 1, 0);
    auto* base = static_cast<std::byte*>(region.base);
    for (std::uint64_t seed = 1; seed <= 80; ++seed) {
      const draw d = make_draw(seed + 5000u * static_cast<unsigned>(size), size, 20000);
      const bool in_place = seed % 3 == 0 && (seed % 2 || info.rank % 2 == 0);
      memory mine, model;
      auto o = prepare(d, info.rank, size, in_place, mine);
      // Other offsets on each rank, and now and then a rank with ordinary memory.
      const std::uint64_t shift = 64 * static_cast<std::uint64_t>(info.rank) + d.misalignment;
      const bool plain = seed % 5 == 0 && info.rank == size / 2;
      std::byte* send = base + shift;
      std::byte* recv = base + (8u << 20) + shift;
      if (!plain) {
        std::copy(mine.send.begin(), mine.send.end(), send);
        std::copy(mine.recv.begin(), mine.recv.end(), recv);
        if (o.send) o.send = send + d.misalignment;
        o.recv = recv + d.misalignment;
      }
      const flight done = run(b.plan, o);
      EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
      if (!plain) std::copy_n(recv, mine.recv.size(), mine.recv.begin());
      run(b.mock, prepare(d, info.rank, size, in_place, model));
      EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, info.rank, size, in_place);
    }
    sucl_region gone{};
    EXPECT_FALSE(core::remove_mapped(b.plan, base + 1, ~0u, &gone));
    EXPECT_TRUE(core::remove_mapped(b.plan, base, ~0u, &gone));
    b.ipc.table->memory_destroy(b.ipc.comm, &gone);
  };
  for_ranks(size, body, {}, tuned);
}

TEST_P(executor_run, agrees_with_the_definitions_on_mapped_memory) {
  compare_mapped(GetParam(), nullptr);
}

TEST_P(executor_run, agrees_with_the_definitions_on_mapped_memory_by_searched_plans) {
  for (const char* recipe : {"two_shot(pipeline=2)", "peer_exchange"}) {
    const tune::table t = table_of(recipe, tune::memory_kind::symmetric);
    compare_mapped(GetParam(), &t);
  }
}

TEST(executor_handover, works_by_both_ways) {
  for (const char* how : {"proc", "socket", "any"}) {
    for_ranks(3,
              [&](const backends& b, const sucl_comm_info& info) {
                std::int32_t mine = info.rank, sum = -1;
                auto o = operation(kind::allreduce, type::int32, 1, op::sum);
                o.send = &mine;
                o.recv = &sum;
                EXPECT_EQ(run(b.plan, o).status, SUCL_SUCCESS);
                EXPECT_EQ(sum, 3);
              },
              {{"handover", how}});
  }
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A process that is killed in the middle of an operation leaves nothing: what it shares never has a
// name, and goes with its last process.
TEST(executor_killed, leaves_no_shared_memory_behind) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for_ranks(3, [&](const backends& b, const sucl_comm_info& info) {
      std::vector<float> in(100000, 1), out(in.size());
      auto o = operation(kind::allreduce, type::fp32, in.size(), op::sum);
      o.send = in.data();
      o.recv = out.data();
      for (int i = 0;; ++i) {
        if (run(b.plan, o).status != SUCL_SUCCESS) _exit(1);
        if (i == 10 && info.rank == 0 && write(ready[1], "r", 1) != 1) _exit(1);
      }
    });
  }
  char token = 0;
  ASSERT_EQ(read(ready[0], &token, 1), 1);
  const auto folder = "/proc/" + std::to_string(child);
  const std::string maps = read_file(folder + "/maps");
  std::size_t shared = 0;
  for (std::size_t at = 0; (at = maps.find("memfd:sucl (deleted)", at)) != maps.npos; ++at)
    ++shared;
  // For plans and for messages one part a rank, mapped once, and no file with a name.
  EXPECT_EQ(shared, 6u) << maps;
  EXPECT_EQ(maps.find("/dev/shm"), maps.npos);
  EXPECT_EQ(maps.find("SYSV"), maps.npos);
  // The descriptors are closed: the mappings are all that holds the memory.
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd")) {
    std::error_code gone;
    EXPECT_EQ(std::filesystem::read_symlink(entry, gone).string().find("memfd"), std::string::npos);
  }
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
}

// Fewest steps for small messages, fewest bytes for large ones.
TEST(executor_nodes_choice, weighs_steps_against_bytes) {
  const auto chosen = [](kind k, std::uint64_t bytes, int nodes) {
    std::vector<int> node_of;
    for (int r = 0; r < 2 * nodes; ++r) node_of.push_back(r / 2);
    return plan::to_text(core::recipe_between_nodes(k, bytes, node_of));
  };
  EXPECT_EQ(chosen(kind::allreduce, 8, 2), "node_shot(nodes=0,0,1,1;leaders=1)");
  EXPECT_EQ(chosen(kind::allreduce, 1 << 20, 2), "node_shot(nodes=0,0,1,1)");
  EXPECT_EQ(chosen(kind::allreduce, 1 << 20, 4), "two_level(nodes=0,0,1,1,2,2,3,3;outer=exchange)");
  EXPECT_EQ(chosen(kind::allreduce, 1 << 20, 5),
            "two_level(nodes=0,0,1,1,2,2,3,3,4,4;outer=cyclic)");
  EXPECT_EQ(chosen(kind::broadcast, 1 << 20, 4), "two_level(nodes=0,0,1,1,2,2,3,3)");
  EXPECT_EQ(chosen(kind::alltoall, 1 << 20, 4), "node_shot(nodes=0,0,1,1,2,2,3,3)");
}

// What a program composes may combine any number of pieces at one address.
TEST(executor_plan, combines_many_sources_in_several_folds) {
  plan::problem p;
  p.kind = kind::group;
  p.ranks = 1;
  p.counts = {400, 4};
  p.outcome.resize(1);
  plan::builder b(p);
  for (std::uint64_t i = 0; i < 100; ++i)
    b.reduce(0, {plan::space::recv, 0}, {plan::space::send, 4 * i}, 4);
  const core::program code = core::lower(b.finish("many"), {0, 1, {0}, {}}, {});
  std::size_t combined = 0;
  for (const core::step& s : code.channels.at(0)) {
    EXPECT_EQ(s.what, core::step::action::fold);
    EXPECT_LE(s.sources, core::max_sources);
    EXPECT_EQ(code.sources[s.first].where, plan::space::recv) << "what is there already";
    combined += s.sources - 1;
  }
  EXPECT_EQ(combined, 100u);
}

TEST(executor_plan, refuses_too_many_ranks_on_all) {
  core::registry registry;
  std::string obstacle;
  const core::backend_comm c =
      core::make_plan_comm({}, {0, core::max_plan_ranks + 1, {}, {}}, &obstacle);
  EXPECT_EQ(c.table, nullptr);
  EXPECT_NE(obstacle.find("ranks"), std::string::npos);
}

}  // namespace
