// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/layers/validate.hpp"
#include "core/operation/argument_comparison.hpp"
#include "support/drive.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace {

using namespace sucl;
using namespace sucl::testing;

using counts = std::vector<std::uint64_t>;

struct outcome {
  std::set<sucl_status> statuses;
  std::set<std::string> messages;
};

using change = std::function<void(int rank, sucl_operation& o)>;

std::optional<error_info> wait(core::validator& v) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!v.test()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("no answer");
    std::this_thread::yield();
  }
  return v.failure();
}

// Compares an operation, which `alter` changes on some ranks, between `size` ranks. `wrong` is what
// `where` alone knows to be wrong.
outcome validate(int size, const sucl_operation& base, const change& alter,
                 const error_info& wrong = {}, int where = -1) {
  outcome result;
  std::mutex mutex;
  run_ranks(size, [&](const sucl_comm_info& info) {
    core::validator v(*info.oob, info.rank, info.size, info.id);
    sucl_operation o = base;
    alter(info.rank, o);
    v.start(o, info.rank == where ? &wrong : nullptr);
    const auto failure = wait(v);
    const std::lock_guard lock(mutex);
    result.statuses.insert(failure ? static_cast<sucl_status>(failure->code) : SUCL_SUCCESS);
    result.messages.insert(failure ? failure->message : "");
  });
  return result;
}

void expect_failure(const outcome& v, sucl_status status, const std::string& part) {
  EXPECT_EQ(v.statuses, std::set<sucl_status>{status});
  ASSERT_EQ(v.messages.size(), 1u) << "the ranks report different messages";
  EXPECT_NE(v.messages.begin()->find(part), std::string::npos) << *v.messages.begin();
}

void expect_mismatch(kind k, op o, const change& alter, const std::string& part) {
  expect_failure(validate(6, operation(k, type::int32, 4, o), alter), SUCL_ERROR_MISMATCH, part);
}

TEST(validate, lets_matching_operations_through) {
  for (const int size : {1, 2, 5}) {
    const auto same = validate(size, operation(kind::allreduce, type::fp32, 4, op::sum),
                               [](int, sucl_operation&) {});
    EXPECT_EQ(same.statuses, std::set<sucl_status>{SUCL_SUCCESS});
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
}

TEST(validate, fails_everywhere_for_what_one_rank_knows_to_be_wrong) {
  error_info wrong;
  wrong.code = errc::invalid_rank;
  wrong.message = "root 3 is not a rank";
  const auto nothing = [](int, sucl_operation&) {};
  const auto all = operation(kind::broadcast, type::int32, 4);
  expect_failure(validate(3, all, nothing, wrong, 2), SUCL_ERROR_INVALID_RANK,
                 "has a wrong argument on rank 2: root 3 is not a rank");
  // Nothing else of the operation matters then; nor is it read.
  const auto differ = [](int r, sucl_operation& o) {
    if (r == 1) o.kind = SUCL_KIND_ALLTOALLV;
  };
  expect_failure(validate(3, all, differ, wrong, 1), SUCL_ERROR_INVALID_RANK, "on rank 1: root 3");
  wrong.message = std::string(1000, 'x');
  expect_failure(validate(2, all, nothing, wrong, 0), SUCL_ERROR_INVALID_RANK, "on rank 0: xxx");
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

TEST(validate, goes_on_after_a_mismatch) {
  run_ranks(2, [](const sucl_comm_info& info) {
    core::validator v(*info.oob, info.rank, info.size, info.id);
    for (std::uint64_t i = 1; i <= 20; ++i) {
      const bool same = i % 3 != 0;
      v.start(operation(kind::allreduce, type::int32, same ? 1 : 1 + info.rank, op::sum), nullptr);
      const auto failure = wait(v);
      EXPECT_EQ(failure.has_value(), !same);
      if (failure) {
        EXPECT_EQ(failure->code, errc::mismatch);
        EXPECT_NE(failure->message.find("collective " + std::to_string(i) + " "),
                  std::string::npos);
      }
    }
  });
}

TEST(validate, ends_while_a_peer_is_missing) {
  run_ranks(2, [](const sucl_comm_info& info) {
    core::validator v(*info.oob, info.rank, info.size, info.id);
    if (info.rank == 0) {
      v.start(operation(kind::barrier, type::bytes, 0), nullptr);
      EXPECT_FALSE(v.test());
      EXPECT_TRUE(v.busy());
    }
    v.abort();
    EXPECT_FALSE(v.busy());
  });
}

TEST(argument_comparison, writes_ranks_as_ranges) {
  EXPECT_EQ(core::ranks_text({3}), "rank 3");
  EXPECT_EQ(core::ranks_text({0, 1}), "ranks 0,1");
  EXPECT_EQ(core::ranks_text({0, 2, 3, 4, 7}), "ranks 0,2-4,7");
}

TEST(argument_comparison, limits_the_values_it_lists) {
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
