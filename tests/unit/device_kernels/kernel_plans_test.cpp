// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans that kernels interpret, with threads as work items: compositions drawn at random, against
// what their primitives mean.
#include "backends/device_kernels/plans/align_scratch.hpp"
#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "support/ordered_sums.hpp"
#include "unit/device_kernels/drawn_plan.hpp"
#include "unit/device_kernels/thread_device.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace sucl;
using namespace sucl::testing;

std::unique_ptr<core::stored_plan> stored(const kernel_rank& j, const composition& c,
                                          const compile_options& how, type t,
                                          base::determinism level = base::determinism::ranks) {
  core::draft_plan d = core::compose({c, how, t, size_of(t)}, j.info.rank, j.info.size, level);
  core::prove(d);
  auto plan = std::make_unique<core::stored_plan>();
  plan->code = core::lower_for_device(d.schedule, j.info.rank, j.comm().plan_limits());
  plan->type = static_cast<sucl_type>(t);
  plan->op = static_cast<sucl_op>(d.reduction);
  j.comm().plans().allocate(*plan, j.info.size, *j.info.oob);
  return plan;
}

sucl_operation run_of(std::uint64_t number, type t, std::size_t send, std::size_t recv) {
  auto o = operation(kind::barrier, t, send);
  o.kind = core::compiled_plan_kind;
  o.plan = number;
  o.recv_count = recv;
  return o;
}

void run_drawn(const kernel_rank& j, unsigned seed) {
  const drawn d = draw_plan(j.info.size, seed);
  auto plan = stored(j, d.what, d.how, type::int32);
  const std::uint64_t number = seed + 1;
  j.comm().plans().add(number, std::move(plan));
  const auto self = static_cast<std::size_t>(j.info.rank);
  const std::vector<element>& in = d.outcome.of[0][self];
  for (int round = 0; round < 3; ++round) {
    std::vector<element> send = in, recv(d.recv_size, -5);
    auto o = run_of(number, type::int32, d.send_size, d.recv_size);
    o.send = send.data();
    o.recv = recv.data();
    const flight done = run(j.kernels, o);
    ASSERT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
    EXPECT_EQ(send, in);
    for (std::size_t i = 0; i < recv.size(); ++i) {
      const bool known = !d.outcome.known[1][self][i].empty();
      ASSERT_EQ(recv[i], known ? d.outcome.of[1][self][i] : -5)
          << "seed " << seed << ", rank " << j.info.rank << ", element " << i;
    }
  }
  j.comm().plans().remove(number);
}

class kernel_plans : public ::testing::TestWithParam<std::tuple<int, peer_access>> {};
INSTANTIATE_TEST_SUITE_P(
    ranks, kernel_plans,
    ::testing::Values(std::tuple{1, peer_access::none}, std::tuple{2, peer_access::all},
                      std::tuple{2, peer_access::none}, std::tuple{3, peer_access::all},
                      std::tuple{4, peer_access::some}, std::tuple{5, peer_access::all}));

TEST_P(kernel_plans, do_what_compositions_mean) {
  const auto [size, how] = GetParam();
  for_devices(size, how, [&](const kernel_rank& j) {
    for (unsigned seed = 0; seed < 25; ++seed) run_drawn(j, seed);
  });
}

// Work groups that start only when others have ended.
TEST_P(kernel_plans, need_no_more_than_one_group_at_a_time) {
  const auto [size, how] = GetParam();
  auto settings = small_buffers();
  settings.groups = 4;
  settings.staging = 32 << 10;
  for_devices(
      size, how,
      [&](const kernel_rank& j) {
        j.device.resident = 1;
        for (unsigned seed = 100; seed < 115; ++seed) run_drawn(j, seed);
      },
      settings);
}

// In order of rank, in the width that the type is folded in: bit for bit what a plain loop gives.
TEST(kernel_plan, folds_every_type_in_order) {
  constexpr std::size_t n = 700;
  constexpr int ranks = 3;
  composition c{ranks};
  for (int r = 0; r < ranks; ++r) {
    const slice block{slice::memory::send, static_cast<std::size_t>(r) * n, n};
    c.reduction(block, c.recv(block.offset, n), all, r, op::sum);
  }
  c.fence();
  for (int r = 0; r < ranks; ++r) {
    const slice block = c.recv(static_cast<std::size_t>(r) * n, n);
    c.multicast(block, block, r, {(r + 1) % ranks, (r + 2) % ranks});
  }
  for (const type t : {type::fp32, type::fp64, type::fp16, type::bf16, type::int8, type::uint64,
                       type::complex_fp32})
    for_devices(ranks, peer_access::all, [&](const kernel_rank& j) {
      j.comm().plans().add(1, stored(j, c, {}, t, base::determinism::strict));
      const auto send = ordered_input(t, op::sum, j.info.rank, ranks * n);
      std::vector<std::byte> recv(send.size());
      auto o = run_of(1, t, ranks * n, ranks * n);
      o.send = send.data();
      o.recv = recv.data();
      const flight done = run(j.kernels, o);
      ASSERT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
      EXPECT_EQ(recv, ordered_result(kind::allreduce, t, op::sum, j.info.rank, ranks, ranks * n, 0))
          << name(t);
    });
}

// Blocks of odd lengths, in parts and by way of scratch, still occupy many groups. A hierarchy
// sends several blocks as one message, close together: there their lengths have to be even.
TEST(kernel_plan, divides_messages_of_any_length_among_groups) {
  constexpr int ranks = 4;
  for (const std::size_t n : {100003, 262144})
    for (const bool twice : {false, true})
      for (const compile_options& how :
           {compile_options{}, compile_options{{}, {}, 1, 1, 4},
            compile_options{{2, 2}, {}, 2, 1, 2}, compile_options{{2, 2}, {}, 1, 2, 3}}) {
        if (twice && n % 4 != 0 && !how.hierarchy.empty()) continue;
        composition c{ranks};
        for (int r = 0; r < ranks; ++r) {
          const auto at = twice ? static_cast<std::size_t>(r) * n : 0;
          c.reduction(c.send(at, n), c.recv(at, n), all, r, op::sum);
        }
        if (twice) c.fence();
        for (int r = 0; twice && r < ranks; ++r) {
          const slice block = c.recv(static_cast<std::size_t>(r) * n, n);
          c.multicast(block, block, r, {(r + 1) % ranks, (r + 2) % ranks, (r + 3) % ranks});
        }
        core::draft_plan d =
            core::compose({c, how, type::int32, 4}, 0, ranks, base::determinism::ranks);
        core::prove(d);
        EXPECT_GE(core::lower_for_device(d.schedule, 0, {64, 1024}).groups, 8)
            << n << (twice ? " in two steps" : "") << ", pipeline " << how.pipeline;
        d.schedule = core::align_scratch(std::move(d.schedule));
        core::prove(d);
      }
}

// By LL128 a fold reads what arrives in its lines, unless elements are wider than the words of
// them.
TEST(kernel_plan, folds_lines_in_their_slots) {
  constexpr std::size_t n = 120;
  composition c{2};
  for (int r = 0; r < 2; ++r) c.reduction(c.send(0, n), c.recv(0, n), all, r, op::sum);
  for (const type t : {type::fp64, type::complex_fp64}) {
    const core::draft_plan d =
        core::compose({c, {}, t, size_of(t)}, 0, 2, base::determinism::ranks);
    const core::device_plan p = core::lower_for_device(d.schedule, 0, {2, 512, 700, 2048});
    int in_lines = 0, in_slots = 0;
    for (const auto& s : p.steps) {
      if (s.what == kernels::plan_action::take) {
        EXPECT_EQ(s.how, kernels::plan_protocol::ll128);
      }
      in_slots += s.what == kernels::plan_action::take && s.stays_in_slot;
      in_lines += s.what == kernels::plan_action::fold && s.how == kernels::plan_protocol::ll128;
    }
    EXPECT_EQ(in_slots, t == type::fp64) << name(t);
    EXPECT_EQ(in_lines, t == type::fp64) << name(t);
  }
}

TEST(kernel_plan, refuses_what_kernels_have_no_room_for) {
  plan::schedule s;
  s.what.kind = kind::group;
  s.what.ranks = 2;
  s.ranks.resize(2);
  s.ranks[1].channels.resize(17);
  for (int rank = 0; rank < 2; ++rank) try {
      (void)core::lower_for_device(s, rank, {4, 1024});
      ADD_FAILURE() << "no error";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::unsupported);
      EXPECT_NE(std::string(e.what()).find("17 channels"), std::string::npos) << e.what();
    }
}

// Not on GPUs, unless the configuration says so.
TEST(kernel_plan, is_for_devices_that_are_to_run_it) {
  const auto runs = [](peer_access how, std::optional<bool> wanted) {
    auto settings = small_buffers();
    settings.plans = wanted;
    std::atomic<int> count{0};
    for_devices(2, how, [&](const kernel_rank& j) { count += j.comm().runs_plans(); }, settings);
    return count.load();
  };
  EXPECT_EQ(runs(peer_access::none, std::nullopt), 2);
  EXPECT_EQ(runs(peer_access::all, std::nullopt), 0);
  EXPECT_EQ(runs(peer_access::all, true), 2);
  EXPECT_EQ(runs(peer_access::none, false), 0);
  EXPECT_EQ(core::kernel_settings::read({{"plans", "true"}}, 2).plans, true);
  EXPECT_EQ(core::kernel_settings::read({}, 2).plans, std::nullopt);
  EXPECT_THROW(core::kernel_settings::read({{"plans", "perhaps"}}, 2), error);
}

// Plans come and go, and their memory with them.
TEST(kernel_plan, gives_its_memory_back) {
  for_devices(2, peer_access::all, [&](const kernel_rank& j) {
    composition c{2};
    c.multicast(c.send(0, 1000), c.recv(0, 1000), 0, all);
    std::uint64_t after_first = 0;
    for (std::uint64_t n = 1; n <= 40; ++n) {
      j.comm().plans().add(n, stored(j, c, {}, type::int32));
      if (n == 2) after_first = j.device.in_use;
      EXPECT_LE(j.device.in_use, n > 2 ? after_first : j.device.in_use.load());
      j.comm().plans().remove(n);
    }
    auto o = run_of(40, type::int32, 1000, 1000);
    const flight done = post(j.kernels, o);
    EXPECT_EQ(done.error.code, errc::shut_down) << done.error.message;
  });
}

}  // namespace
