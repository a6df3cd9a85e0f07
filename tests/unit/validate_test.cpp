// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/layers/validate.hpp"
#include "runtime/layers/agreement.hpp"
#include "support/drive.hpp"
#include "support/recorder.hpp"
#include "support/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

namespace {

using namespace sucl;
using namespace sucl::testing;

using counts = std::vector<std::uint64_t>;

// Memory for any operation of these tests.
struct memory {
  std::vector<std::int64_t> send = std::vector<std::int64_t>(64);
  std::vector<std::int64_t> recv = std::vector<std::int64_t>(64);
};

sucl_operation allreduce(memory& m, std::uint64_t count) {
  auto o = operation(kind::allreduce, type::int32, count, op::sum);
  o.send = m.send.data();
  o.recv = m.recv.data();
  return o;
}

struct verdict {
  std::set<sucl_status> statuses;
  std::set<std::string> messages;
  std::size_t forwarded = 0;  // operations that reached a backend, over all ranks
};

using change = std::function<void(int rank, sucl_operation& o)>;

// Posts an operation, which `alter` changes on some ranks, through the layer on `size` ranks.
verdict validate(int size, const sucl_operation& base, const change& alter) {
  verdict result;
  std::mutex mutex;
  run_ranks(size, [&](const sucl_comm_info& info) {
    recorder below;
    below.at_once = true;
    const core::channel c = core::wrap_validate(below.channel(), info);
    memory m;
    sucl_operation o = base;
    o.send = m.send.data();
    o.recv = m.recv.data();
    alter(info.rank, o);
    const flight done = run(c, o);
    destroy(c);
    const std::lock_guard lock(mutex);
    result.statuses.insert(done.status);
    result.messages.insert(done.error.message);
    result.forwarded += below.posted.size();
  });
  return result;
}

void expect_failure(const verdict& v, sucl_status status, const std::string& part) {
  EXPECT_EQ(v.statuses, std::set<sucl_status>{status});
  ASSERT_EQ(v.messages.size(), 1u) << "the ranks report different messages";
  EXPECT_NE(v.messages.begin()->find(part), std::string::npos) << *v.messages.begin();
  EXPECT_EQ(v.forwarded, 0u);
}

void expect_mismatch(kind k, op o, const change& alter, const std::string& part) {
  expect_failure(validate(6, operation(k, type::int32, 4, o), alter), SUCL_ERROR_MISMATCH, part);
}

TEST(validate, lets_matching_operations_through) {
  for (const int size : {1, 2, 5}) {
    const auto same = validate(size, operation(kind::allreduce, type::fp32, 4, op::sum),
                               [](int, sucl_operation&) {});
    EXPECT_EQ(same.statuses, std::set<sucl_status>{SUCL_SUCCESS});
    EXPECT_EQ(same.forwarded, static_cast<std::size_t>(size));
  }
}

TEST(validate, names_the_field_and_who_passed_what) {
  expect_mismatch(
      kind::allreduce, op::sum, [](int r, sucl_operation& o) { o.count = r == 1 ? 5 : 4; },
      "collective 1 of communicator 1 (operation #1) differs between ranks: "
      "count: 4 on ranks 0,2-5; 5 on rank 1");
  expect_mismatch(
      kind::allreduce, op::sum,
      [](int r, sucl_operation& o) { o.op = r < 2 ? SUCL_OP_MAX : SUCL_OP_SUM; },
      "op: max on ranks 0,1; sum on ranks 2-5");
  expect_mismatch(
      kind::allreduce, op::sum,
      [](int r, sucl_operation& o) {
        if (r == 3) o.type = SUCL_TYPE_FP64, o.element_size = 8;
      },
      "type: int32 on ranks 0-2,4,5; fp64 on rank 3");
  expect_mismatch(
      kind::broadcast, op::none, [](int r, sucl_operation& o) { o.root = r % 2; },
      "root: 0 on ranks 0,2,4; 1 on ranks 1,3,5");
  expect_mismatch(
      kind::allreduce, op::sum,
      [](int r, sucl_operation& o) {
        if (r == 5) o.kind = SUCL_KIND_SCAN;
      },
      "kind: allreduce on ranks 0-4; scan on rank 5");
  expect_mismatch(
      kind::alltoall, op::none,
      [](int r, sucl_operation& o) {
        if (r == 0) o.flags = SUCL_FLAG_IN_PLACE;
      },
      "in place: yes on rank 0; no on ranks 1-5");
  expect_mismatch(
      kind::broadcast, op::none,
      [](int r, sucl_operation& o) {
        o.type = SUCL_TYPE_BYTES;
        o.element_size = r == 2 ? 12 : 16;
      },
      "element size: 16 bytes on ranks 0,1,3-5; 12 bytes on rank 2");
}

TEST(validate, ignores_what_may_differ) {
  const auto v = validate(4, operation(kind::gather, type::int32, 2), [](int r, sucl_operation& o) {
    o.sequence = 10 + static_cast<std::uint64_t>(r);  // point-to-point counts too
    o.op = r;                                         // means nothing to a gather
    if (r == 0) o.flags = SUCL_FLAG_IN_PLACE;         // the root's own affair
  });
  EXPECT_EQ(v.statuses, std::set<sucl_status>{SUCL_SUCCESS});
  EXPECT_EQ(v.forwarded, 4u);
}

TEST(validate, fails_everywhere_for_arguments_one_rank_sees_to_be_wrong) {
  const auto local = [](kind k, op o, const change& alter, sucl_status status,
                        const std::string& part) {
    expect_failure(validate(3, operation(k, type::int32, 4, o), alter), status, part);
  };
  local(
      kind::broadcast, op::none, [](int, sucl_operation& o) { o.root = 3; },
      SUCL_ERROR_INVALID_RANK, "on ranks 0-2: root 3 is outside 0..2");
  local(
      kind::allreduce, op::sum,
      [](int r, sucl_operation& o) {
        if (r == 2) o.recv = nullptr;
      },
      SUCL_ERROR_INVALID_MEMORY, "on rank 2: the memory to receive into is null");
  local(
      kind::allreduce, op::sum,
      [](int r, sucl_operation& o) {
        if (r == 1) o.recv = static_cast<char*>(const_cast<void*>(o.send)) + 4;
      },
      SUCL_ERROR_INVALID_MEMORY, "on rank 1: the memory to send from and");
  local(
      kind::allreduce, op::minloc, [](int, sucl_operation&) {}, SUCL_ERROR_INVALID_TYPE,
      "op minloc is not defined for type int32");
  local(
      kind::allgather, op::none, [](int, sucl_operation& o) { o.element_size = 2; },
      SUCL_ERROR_INVALID_TYPE, "elements of 2 bytes are not int32");
  local(
      kind::alltoallv, op::none, [](int, sucl_operation&) {}, SUCL_ERROR_INVALID_ARGUMENT,
      "needs one entry for each of the 3 ranks");
  local(
      kind::allgather, op::none, [](int, sucl_operation& o) { o.count = UINT64_MAX / 4; },
      SUCL_ERROR_INVALID_COUNT, "is more than there is memory");
}

TEST(validate, compares_the_counts_of_each_pair) {
  const auto vary = [](kind k, std::uint64_t bad, bool expect_good, const std::string& part) {
    static const counts good{1, 2, 3}, displs{0, 4, 8};
    const auto v =
        validate(3, operation(k, type::int32, 0, op::sum), [&](int r, sucl_operation& o) {
          static thread_local counts altered;
          altered = good;
          if (r == 1) altered[2] = bad;
          o.count = good[static_cast<std::size_t>(r)];
          o.root = 1;
          o.send_counts = o.recv_counts = altered.data();
          o.send_displs = o.recv_displs = displs.data();
        });
    if (expect_good) {
      EXPECT_EQ(v.statuses, std::set<sucl_status>{SUCL_SUCCESS}) << *v.messages.rbegin();
    } else {
      expect_failure(v, SUCL_ERROR_MISMATCH, part);
    }
  };
  for (const kind k : {kind::allgatherv, kind::gatherv, kind::scatterv, kind::reduce_scatter})
    vary(k, 3, true, "");
  vary(kind::allgatherv, 4, false, "rank 2 gives 3 elements to rank 1, which expects 4");
  vary(kind::gatherv, 4, false, "rank 2 gives 3 elements to rank 1, which expects 4");
  vary(kind::scatterv, 4, false, "rank 1 gives 4 elements to rank 2, which expects 3");
  vary(kind::reduce_scatter, 4, false, "rank 1 gives 4 elements to rank 2, which expects 3");
}

TEST(validate, compares_alltoallv) {
  for (const bool wrong : {false, true}) {
    const auto v =
        validate(3, operation(kind::alltoallv, type::int32, 0), [&](int r, sucl_operation& o) {
          static thread_local counts to, from, displs;
          to = from = displs = counts(3);
          for (std::uint64_t j = 0; j < 3; ++j) {
            to[j] = static_cast<std::uint64_t>(r) + 2 * j;
            from[j] = j + 2 * static_cast<std::uint64_t>(r);
            displs[j] = 8 * j;
          }
          if (wrong && r == 2) ++from[0];
          o.send_counts = to.data();
          o.recv_counts = from.data();
          o.send_displs = o.recv_displs = displs.data();
        });
    if (wrong)
      expect_failure(v, SUCL_ERROR_MISMATCH, "rank 0 gives 4 elements to rank 2, which expects 5");
    else
      EXPECT_EQ(v.statuses, std::set<sucl_status>{SUCL_SUCCESS});
  }
}

TEST(validate, does_not_wait_in_post_and_never_lets_the_backend_wait) {
  run_ranks(1, [](const sucl_comm_info& info) {
    recorder below;
    const core::channel c = core::wrap_validate(below.channel(), info);
    memory m;
    auto o = allreduce(m, 1);
    o.flags = SUCL_FLAG_MAY_BLOCK;
    flight f = post(c, o);
    EXPECT_FALSE(sucl::testing::test(c, f));
    ASSERT_EQ(below.posted.size(), 1u);
    EXPECT_EQ(below.posted[0].flags, 0u);
    below.finished = 1;
    EXPECT_TRUE(sucl::testing::test(c, f));
    destroy(c);
    EXPECT_EQ(below.destroyed, 1);
  });
}

TEST(validate, keeps_the_order_of_everything) {
  run_ranks(2, [](const sucl_comm_info& info) {
    recorder below;
    below.at_once = true;
    const core::channel c = core::wrap_validate(below.channel(), info);
    memory m;
    std::vector<flight> flights;
    for (std::uint64_t i = 0; i < 20; ++i) {
      auto o = i % 3 == 1 ? operation(kind::send, type::int32, 1) : allreduce(m, 1);
      o.sequence = i + 1;
      flights.push_back(post(c, o));
    }
    // The last one first: all the others have to go before it.
    while (!flights.empty()) {
      EXPECT_EQ(wait(c, flights.back()).status, SUCL_SUCCESS);
      flights.pop_back();
    }
    ASSERT_EQ(below.posted.size(), 20u);
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(below.posted[i].sequence, i + 1);
    destroy(c);
  });
}

TEST(validate, goes_on_after_a_mismatch) {
  run_ranks(2, [](const sucl_comm_info& info) {
    recorder below;
    below.at_once = true;
    const core::channel c = core::wrap_validate(below.channel(), info);
    memory m;
    const flight bad = post(c, allreduce(m, info.rank == 0 ? 1 : 2));
    const flight good = post(c, allreduce(m, 3));
    const flight bad_done = wait(c, bad);
    EXPECT_EQ(bad_done.status, SUCL_ERROR_MISMATCH);
    EXPECT_NE(bad_done.error.message.find("collective 1 "), std::string::npos);
    EXPECT_EQ(wait(c, good).status, SUCL_SUCCESS);
    EXPECT_EQ(below.posted.size(), 1u);
    destroy(c);
  });
}

TEST(validate, hands_on_errors_of_the_backend) {
  run_ranks(2, [](const sucl_comm_info& info) {
    recorder below;
    const core::channel c = core::wrap_validate(below.channel(), info);
    memory m;
    below.fail_post = SUCL_ERROR_NATIVE;
    const flight at_post = run(c, allreduce(m, 1));
    EXPECT_EQ(at_post.status, SUCL_ERROR_NATIVE);
    EXPECT_EQ(at_post.error.native_code, 7);
    EXPECT_EQ(at_post.error.hint, "as told");
    below.fail_post = SUCL_SUCCESS;
    below.fail_test = SUCL_ERROR_TIMEOUT;
    const flight at_test = run(c, allreduce(m, 1));
    EXPECT_EQ(at_test.status, SUCL_ERROR_TIMEOUT);
    EXPECT_EQ(at_test.error.native_code, 8);
    destroy(c);
  });
}

TEST(validate, answers_queries_without_streams) {
  run_ranks(1, [](const sucl_comm_info& info) {
    recorder below;
    const core::channel c = core::wrap_validate(below.channel(), info);
    sucl_query q{};
    sucl_capability a{};
    EXPECT_EQ(c.table->query(c.state, &q, &a), SUCL_SUCCESS);
    EXPECT_EQ(a.supported, 1);
    EXPECT_EQ(a.flags, 0u);
    EXPECT_EQ(a.max_count, 99u);
    destroy(c);
  });
}

TEST(validate, passes_an_abort_on_while_a_peer_is_missing) {
  run_ranks(2, [](const sucl_comm_info& info) {
    recorder below;
    const core::channel c = core::wrap_validate(below.channel(), info);
    memory m;
    if (info.rank == 0) {
      flight f = post(c, allreduce(m, 1));
      EXPECT_FALSE(sucl::testing::test(c, f));
    }
    c.table->abort(c.comm);
    destroy(c);
    EXPECT_EQ(below.aborts, 1);
    EXPECT_EQ(below.destroyed, 1);
    EXPECT_TRUE(below.posted.empty());
  });
}

TEST(validate, works_over_the_mock_backend) {
  core::registry registry;
  const auto& handle = registry.open({"mock", SUCL_TEST_MODULES "/libsucl_backend_mock.so", {}});
  run_ranks(3, [&](const sucl_comm_info& info) {
    const core::channel c = core::wrap_validate(create_channel(handle, info), info);
    std::vector<flight> flights;
    std::vector<std::int32_t> in(10, info.rank + 1), out(10);
    for (std::size_t i = 0; i < in.size(); ++i) {
      auto o = operation(kind::allreduce, type::int32, i == 4 && info.rank == 1 ? 0 : 1, op::sum);
      o.send = &in[i];
      o.recv = &out[i];
      flights.push_back(post(c, o));
    }
    for (std::size_t i = 0; i < flights.size(); ++i) {
      EXPECT_EQ(wait(c, flights[i]).status, i == 4 ? SUCL_ERROR_MISMATCH : SUCL_SUCCESS);
      EXPECT_EQ(out[i], i == 4 ? 0 : 6);
    }
    destroy(c);
  });
}

TEST(agreement, writes_ranks_for_people) {
  EXPECT_EQ(core::ranks_text({3}), "rank 3");
  EXPECT_EQ(core::ranks_text({0, 1}), "ranks 0,1");
  EXPECT_EQ(core::ranks_text({0, 2, 3, 4, 7}), "ranks 0,2-4,7");
}

TEST(agreement, limits_the_values_it_lists) {
  std::vector<core::digest> all(20);
  for (std::size_t r = 0; r < all.size(); ++r) {
    all[r].kind = SUCL_KIND_ALLREDUCE;
    all[r].op = SUCL_OP_SUM;
    all[r].count = r;
  }
  const auto found = core::compare(all, 1, 1);
  ASSERT_TRUE(found);
  EXPECT_NE(found->message.find("7 on rank 7; and 12 more values"), std::string::npos)
      << found->message;
}

}  // namespace
