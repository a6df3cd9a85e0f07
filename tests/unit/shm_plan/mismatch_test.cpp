// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that call different operations of the executor: an error on each, which says what all have
// called, and no later result.
#include "backends/shm_common/flag_wait.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <thread>

namespace {

using namespace sucl;
using namespace sucl::testing;

// What one rank calls: operations, with the arrays that they need.
struct calls {
  std::vector<sucl_operation> list;
  std::vector<std::uint64_t> counts, displs;
};
using calls_of_rank = std::function<void(int rank, int size, calls& c)>;

sucl_operation with_root(sucl_operation o, int root) {
  o.root = root;
  return o;
}

sucl_operation sums(std::uint64_t count, op o = op::sum, type t = type::int32) {
  return operation(kind::allreduce, t, count, o);
}

struct difference {
  const char* name;
  calls_of_rank usual, other;
  std::string says, says_other;  // in the error
};

calls_of_rank call(const sucl_operation& o) {
  return [=](int, int, calls& c) { c.list = {o}; };
}
calls_of_rank call(const sucl_operation& a, const sucl_operation& b) {
  return [=](int, int, calls& c) { c.list = {a, b}; };
}

// A form with counts: `n` elements from and to each rank.
calls_of_rank varied(kind k, std::uint64_t n) {
  return [=](int rank, int size, calls& c) {
    c.counts.assign(static_cast<std::size_t>(size), n);
    for (int r = 0; r < size; ++r) c.displs.push_back(static_cast<std::uint64_t>(r) * n);
    auto o = operation(k, type::int32, k == kind::alltoallv || k == kind::reduce_scatter ? 0 : n,
                       k == kind::reduce_scatter ? op::sum : op::none);
    if (k != kind::scatterv) o.recv_counts = c.counts.data(), o.recv_displs = c.displs.data();
    if (k == kind::alltoallv || k == kind::scatterv)
      o.send_counts = c.counts.data(), o.send_displs = c.displs.data();
    if (rank != 0 && k == kind::gatherv) o.recv_counts = o.recv_displs = nullptr;
    if (rank != 0 && k == kind::scatterv) o.send_counts = o.send_displs = nullptr;
    c.list = {o};
  };
}

const std::vector<difference>& differences() {
  const auto of_bytes = [](std::uint64_t size) {
    auto o = operation(kind::broadcast, type::bytes, 100);
    o.element_size = size;
    return o;
  };
  const auto broadcast = [](std::uint64_t n, int root) {
    return with_root(operation(kind::broadcast, type::fp32, n), root);
  };
  static const std::vector<difference> table{
      {"count", call(sums(100)), call(sums(300)), "allreduce of 100 int32 with op sum",
       "allreduce of 300 int32 with op sum"},
      {"slices", call(sums(1000)), call(sums(300000)), "1000 int32", "300000 int32"},
      {"more slices", call(sums(200000)), call(sums(200001)), "200000 int32", "200001 int32"},
      {"nothing", call(sums(100)), call(sums(0)), "100 int32", "0 int32"},
      {"op", call(sums(100)), call(sums(100, op::max)), "with op sum", "with op max"},
      {"type", call(sums(100)), call(sums(100, op::sum, type::fp32)), "100 int32", "100 fp32"},
      {"type of the same bytes", call(sums(100)), call(sums(50, op::sum, type::int64)), "100 int32",
       "50 int64"},
      {"element size", call(of_bytes(3)), call(of_bytes(5)), "elements of 3 bytes",
       "elements of 5 bytes"},
      {"broadcast", call(broadcast(1000, 0)), call(broadcast(3000, 0)),
       "broadcast of 1000 fp32 from rank 0", "broadcast of 3000 fp32 from rank 0"},
      {"root", call(broadcast(100, 0)), call(broadcast(100, 1)), "from rank 0", "from rank 1"},
      {"root of reduce", call(operation(kind::reduce, type::fp32, 10, op::sum)),
       call(with_root(operation(kind::reduce, type::fp32, 10, op::sum), 1)), "to rank 0",
       "to rank 1"},
      {"kind", call(sums(100)), call(operation(kind::allgather, type::int32, 100)),
       "called allreduce", "called allgather"},
      {"barrier", call(operation(kind::barrier, type::bytes, 0)), call(sums(1)), "called barrier",
       "called allreduce of 1"},
      {"gather", call(operation(kind::gather, type::int8, 9)),
       call(operation(kind::gather, type::int8, 8)), "gather of 9 int8 to rank 0",
       "gather of 8 int8"},
      {"scatter", call(operation(kind::scatter, type::int8, 9)),
       call(operation(kind::scatter, type::int8, 8)), "scatter of 9 int8", "scatter of 8 int8"},
      {"order", call(sums(10), broadcast(10, 0)), call(broadcast(10, 0), sums(10)),
       "called allreduce", "called broadcast"},
      {"one call less", call(sums(10), broadcast(10, 0)), call(broadcast(10, 0)),
       "called allreduce", "called broadcast"},
      {"allgatherv", varied(kind::allgatherv, 5), varied(kind::allgatherv, 6), "allgatherv", ""},
      {"reduce_scatter", varied(kind::reduce_scatter, 5), varied(kind::reduce_scatter, 600),
       "called reduce_scatter", ""},
      {"alltoallv", varied(kind::alltoallv, 5), varied(kind::alltoallv, 6), "with 5 int32",
       "with 6 int32"},
      {"long alltoallv", varied(kind::alltoallv, 5000), varied(kind::alltoallv, 6000),
       "with 5000 int32", "with 6000 int32"},
      {"gatherv", varied(kind::gatherv, 5), varied(kind::gatherv, 700), "gatherv with ", "5 int32"},
      {"scatterv", varied(kind::scatterv, 5), varied(kind::scatterv, 700), "scatterv with ",
       "5 int32"},
  };
  return table;
}

// Runs the calls of one rank, and then one that is right on all; gives the first error.
std::string outcome(const core::backend_comm& plan, const calls& mine, bool prepares) {
  constexpr std::size_t room = std::size_t{1} << 21;
  std::vector<std::byte> send(room), recv(room);
  calls all = mine;
  all.list.push_back(sums(4));
  std::uint64_t sequence = 0;
  for (sucl_operation& o : all.list) {
    o.send = send.data();
    o.recv = recv.data();
    o.sequence = ++sequence;
    flight f;
    try {
      const auto p = prepares ? core::prepare_run(plan, o) : nullptr;
      if (p && core::run_at_once(plan, *p)) continue;
      f = run(plan, o);
    } catch (const error& e) {
      f.status = static_cast<sucl_status>(e.code());
      f.error = e.info();
    }
    if (f.status == SUCL_SUCCESS) continue;
    EXPECT_EQ(f.status, SUCL_ERROR_MISMATCH) << f.error.message;
    // It stays so.
    EXPECT_EQ(run(plan, o).status, SUCL_ERROR_MISMATCH);
    return f.error.message;
  }
  return "no error";
}

class mismatch : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, mismatch, ::testing::Values(2, 3, 4));

void differ(const difference& d, int size, int odd, bool prepares, bool late) {
  SCOPED_TRACE(std::string(d.name) + ", rank " + std::to_string(odd) + " of " +
               std::to_string(size) + (prepares ? ", prepared" : "") + (late ? ", late" : ""));
  std::mutex mutex;
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    calls mine;
    (info.rank == odd ? d.other : d.usual)(info.rank, size, mine);
    if (late && info.rank == odd) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const auto text = outcome(b.plan, mine, prepares);
    const std::lock_guard lock(mutex);
    texts[static_cast<std::size_t>(info.rank)] = text;
  });
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  EXPECT_NE(texts[0].find(d.says), std::string::npos) << texts[0];
  EXPECT_NE(texts[0].find(d.says_other), std::string::npos) << texts[0];
  EXPECT_NE(texts[0].find("rank " + std::to_string(odd) + " called"), std::string::npos)
      << texts[0];
}

TEST_P(mismatch, is_an_error_on_every_rank) {
  const int size = GetParam();
  for (const difference& d : differences())
    for (const int odd : {0, size - 1})
      for (const bool late : {false, true}) differ(d, size, odd, false, late);
}

TEST_P(mismatch, of_prepared_operations_is_an_error_on_every_rank) {
  const int size = GetParam();
  for (const difference& d : differences())
    for (const int odd : {0, size - 1}) differ(d, size, odd, true, false);
}

// Many right calls before: every slot and entry has been used, and ranks are apart.
TEST_P(mismatch, after_many_calls_is_an_error_on_every_rank) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    std::int32_t in = 1, out = 0;
    auto right = sums(1), wrong = operation(kind::broadcast, type::int32, 2);
    right.send = wrong.send = &in;
    right.recv = wrong.recv = &out;
    for (int i = 0; i < 1000; ++i) {
      // Others may be some calls ahead, and wrong.
      if (run(b.plan, right).status != SUCL_SUCCESS && i > 990) break;
      ASSERT_EQ(out, size);
    }
    std::int32_t two[2] = {};
    wrong.send = wrong.recv = two;
    flight f = run(b.plan, info.rank == 0 ? wrong : right);
    if (f.status == SUCL_SUCCESS) f = run(b.plan, right);
    EXPECT_EQ(f.status, SUCL_ERROR_MISMATCH);
    EXPECT_NE(f.error.message.find("rank 0 called broadcast of 2 int32 from rank 0"),
              std::string::npos)
        << f.error.message;
  });
}

// Several in flight at once, and only some of them wrong.
TEST_P(mismatch, among_operations_in_flight_is_an_error_on_every_rank) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    std::vector<std::int32_t> in(200000, 1), out(in.size());
    std::vector<flight> flights;
    bool failed = false;
    for (std::uint64_t n : {1000u, 150000u, 20u, 4000u, 5u}) {
      auto o = sums(n == 20 && info.rank == size - 1 ? 21 : n);
      o.send = in.data();
      o.recv = out.data();
      flights.push_back(post(b.plan, o));
      failed = failed || flights.back().status != SUCL_SUCCESS;
    }
    for (flight& f : flights) failed = wait(b.plan, f).status == SUCL_ERROR_MISMATCH || failed;
    EXPECT_TRUE(failed);
  });
}

TEST(run_flags, distinguish_calls_and_outlast_their_numbers) {
  using core::flag_state;
  using core::poll_flag;
  using core::run_flag;
  constexpr std::uint64_t wraps = std::uint64_t{1} << run_flag::run_bits;
  for (const std::uint64_t run :
       {std::uint64_t{1}, std::uint64_t{77}, wraps - 1, wraps, wraps + 5}) {
    const std::uint64_t mine = run_flag::of(run, 0x1234), other = run_flag::of(run, 0x1235);
    const auto see = [&](std::uint64_t word, std::uint64_t signal) {
      return poll_flag(std::atomic_ref(word), mine, signal, 0);
    };
    EXPECT_EQ(see(mine | 2, 1), flag_state::raised);
    EXPECT_EQ(see(mine | 2, 2), flag_state::raised);
    EXPECT_EQ(see(mine | 2, 3), flag_state::not_yet);
    EXPECT_EQ(see(mine | run_flag::max_signals, run_flag::max_signals), flag_state::raised);
    EXPECT_EQ(see(mine, 1), flag_state::not_yet);
    EXPECT_EQ(see(other | 2, 1), flag_state::other_call);
    EXPECT_EQ(see(other, 1), flag_state::other_call);
    EXPECT_EQ(see(run_flag::of(run - 4, 0x1234) | 9, 1), flag_state::not_yet);
    EXPECT_EQ(see(run_flag::of(run - 4, 0x1235) | 9, 1), flag_state::not_yet);
  }
  // Each slot, long before a number comes again.
  for (std::uint64_t slot = 0; slot < 4; ++slot) {
    EXPECT_TRUE(run_flag::renews(wraps / 16 * 3 + slot, 4));
    EXPECT_FALSE(run_flag::renews(wraps / 16 * 3 + 4 + slot, 4));
  }
}

}  // namespace
