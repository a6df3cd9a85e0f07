// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "process/end_comparison.hpp"

#include "core/operation/operation.hpp"
#include "core/record/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace sucl::core {
namespace {

constexpr std::uint64_t job_number = 77;

sucl_operation broadcast(std::uint64_t count, int root) {
  sucl_operation o = example_of(kind::broadcast, count * sizeof(float), type::fp32, op::none);
  o.root = root;
  o.tag = encode_tag(false, origin::call, 0);
  return o;
}

/// The calls of one rank of a communicator, as they are noted.
struct rank_of {
  ended_calls calls;
  pair_log pairs;
  record_writer record;

  rank_of(std::uint64_t communicator, int rank, int size, flight_recorder* to = nullptr) {
    calls.job = job_number;
    calls.communicator = communicator;
    calls.rank = rank;
    calls.size = size;
    calls.comparable = 1;
    if (to) record.begin(*to, communicator, rank, size);
  }
  void call(const sucl_operation& o, int times = 1) {
    for (int i = 0; i < times; ++i) {
      const std::uint64_t balance = pair_balance(o, calls.rank, calls.size);
      calls.totals.note(false, signature_of(o, calls.size).hash, balance);
      pairs.note(calls.totals, false, o.kind, balance);
      record.note(o, calls.totals.calls, record_state::done);
    }
  }
};

std::vector<call_checksum> checksums(const std::vector<end_comparison>& of) {
  std::vector<call_checksum> all;
  for (const auto& p : of) all.push_back(p.checksum());
  return all;
}

TEST(end_comparison, sums_cancel_out_where_all_have_called_the_same) {
  for (int size = 2; size <= 7; ++size) {
    std::vector<end_comparison> processes(static_cast<std::size_t>(size));
    // Communicators end in another order on each rank, and not all ranks are in all.
    for (std::uint64_t c = 1; c <= 100; ++c)
      for (int r = 0; r < size; ++r) {
        const std::uint64_t id = r % 2 ? c : 101 - c;
        const int members = id % 3 == 0 ? size - 1 : size;
        if (r >= members) continue;
        rank_of rank(id, r, members);
        rank.call(broadcast(id, 0), static_cast<int>(id));
        processes[static_cast<std::size_t>(r)].note(rank.calls);
      }
    EXPECT_FALSE(end_comparison::may_differ(checksums(processes))) << size;
  }
}

TEST(end_comparison, sums_show_one_that_differs) {
  for (int size = 2; size <= 7; ++size)
    for (int other = 0; other < size; ++other)
      for (const int how : {0, 1, 2}) {
        std::vector<end_comparison> processes(static_cast<std::size_t>(size));
        for (int r = 0; r < size; ++r) {
          rank_of rank(1, r, size);
          const bool differs = r == other;
          rank.call(broadcast(10, differs && how == 0 ? 1 : 0));
          if (!differs || how != 1) rank.call(broadcast(20, 0));
          if (differs && how == 2) rank.calls.totals.note(true, 5);
          processes[static_cast<std::size_t>(r)].note(rank.calls);
        }
        EXPECT_TRUE(end_comparison::may_differ(checksums(processes))) << size << other << how;
      }
}

/// Ranks of one process, which has no other one to exchange with.
struct one_process {
  std::vector<std::unique_ptr<flight_recorder>> records;
  end_comparison ends;

  explicit one_process(int ranks) {
    for (int r = 0; r < ranks; ++r) {
      records.push_back(std::make_unique<flight_recorder>());
      records.back()->begin(job_number, r, ranks, "none", false);
    }
  }
  flight_recorder* record(int r) { return records[static_cast<std::size_t>(r)].get(); }
  std::string find(bool with_records = true) {
    const auto found = ends.find({}, {ends.checksum()}, [&](const ended_calls& c) {
      return with_records ? record(c.rank)->memory() : nullptr;
    });
    return found.value_or("nothing");
  }
};

TEST(end_comparison, names_the_first_call_that_differs) {
  one_process p(3);
  for (int r = 0; r < 3; ++r) {
    rank_of before(4, r, 3, p.record(r)), rank(5, r, 3, p.record(r));
    before.call(broadcast(1, r == 1 ? 0 : 1));
    before.calls.totals = {};  // as if they agreed
    p.ends.note(before.calls);
    rank.call(broadcast(10, 0), 4);
    rank.call(broadcast(20, r == 1 ? 1 : 2));
    rank.call(broadcast(30, r));
    p.ends.note(rank.calls);
  }
  EXPECT_EQ(p.find(),
            "communicator 5 has ended, but its ranks have not called the same: operation 5: "
            "ranks 0,2 called broadcast of 20 fp32 from rank 2, rank 1 called broadcast of 20 fp32 "
            "from rank 1");
}

/// A call of a kind with counts that only pairs know: `between(from, to)` elements.
struct pairs_call {
  std::vector<std::uint64_t> sends, receives;
  sucl_operation operation;

  template <class F>
  pairs_call(kind k, int rank, int size, int root, F between) {
    for (int r = 0; r < size; ++r) {
      sends.push_back(between(rank, r));
      receives.push_back(between(r, rank));
    }
    operation = example_of(k, 0, type::fp32, op::none);
    operation.root = k == kind::alltoallv ? -1 : root;
    operation.tag = encode_tag(false, origin::call, 0);
    operation.send_counts = sends.data();
    operation.recv_counts = receives.data();
    if (k == kind::gatherv) operation.count = between(rank, root);
    if (k == kind::scatterv) operation.count = between(root, rank);
  }
};

std::string differ_in(const std::string& call) {
  return "communicator 5 has ended, but its ranks have not called the same: in " + call +
         " two of them have given different counts for each other, and SUCL_VALIDATE=1 tells which";
}

TEST(end_comparison, finds_counts_that_two_ranks_give_for_each_other) {
  constexpr int root = 1;
  for (const kind k : {kind::gatherv, kind::scatterv, kind::alltoallv})
    for (int size = 2; size <= 5; ++size)
      for (int wrong = -1; wrong < size; ++wrong) {
        if (wrong == root) continue;
        one_process p(size);
        for (int r = 0; r < size; ++r) {
          rank_of rank(5, r, size, p.record(r));
          rank.call(broadcast(10, 0));
          for (const int call : {2, 3, 4}) {
            const pairs_call all(k, r, size, root, [&](int from, int to) {
              const bool is_wrong = r == wrong && call >= 3 && (from == root || to == root);
              return static_cast<std::uint64_t>(10 * from + to + (is_wrong ? call : 0));
            });
            rank.call(all.operation);
          }
          p.ends.note(rank.calls, rank.pairs);
        }
        EXPECT_EQ(end_comparison::may_differ({p.ends.checksum()}), wrong >= 0);
        EXPECT_EQ(p.find(),
                  wrong < 0 ? "nothing" : differ_in("operation 3, " + std::string(name(k)) + ","));
      }
}

// A rank whose calls have no pairs that count forgets none.
TEST(end_comparison, says_so_where_the_call_is_forgotten) {
  constexpr int size = 3, many = 300;
  for (const int wrong : {1, 10, many}) {
    one_process p(size);
    for (int r = 0; r < size; ++r) {
      rank_of rank(5, r, size, p.record(r));
      for (int call = 1; call <= many; ++call) {
        const pairs_call all(kind::gatherv, r, size, 0, [&](int from, int) {
          return static_cast<std::uint64_t>(from + (r == 2 && call == wrong ? 1 : 0));
        });
        rank.call(all.operation);
      }
      p.ends.note(rank.calls, rank.pairs);
    }
    EXPECT_EQ(p.find(),
              wrong < many
                  ? differ_in("an alltoallv, gatherv or scatterv that is not remembered any more")
                  : differ_in("operation 300, gatherv,"));
  }
}

TEST(end_comparison, names_a_call_that_only_some_have_made) {
  one_process p(3);
  for (int r = 0; r < 3; ++r) {
    rank_of rank(5, r, 3, p.record(r));
    rank.call(broadcast(10, 0), r == 1 ? 3 : 2);
    p.ends.note(rank.calls);
  }
  EXPECT_EQ(p.find(),
            "communicator 5 has ended, but its ranks have not called the same: ranks 0,2 have "
            "ended it after 2 operations, and rank 1 called operation 3: broadcast of 10 fp32 from "
            "rank 0");
  EXPECT_EQ(p.find(false),
            "communicator 5 has ended, but its ranks have not called the same: ranks 0,2 called 2 "
            "operations, rank 1 called 3 operations, of which some differ that are not recorded "
            "any more");
}

TEST(end_comparison, leaves_out_what_has_not_ended_well) {
  one_process p(2);
  for (int r = 0; r < 2; ++r) {
    rank_of rank(5, r, 2, p.record(r));
    rank.call(broadcast(10, r));
    rank.calls.comparable = r;
    p.ends.note(rank.calls);
  }
  EXPECT_TRUE(end_comparison::may_differ({p.ends.checksum()}));
  EXPECT_EQ(p.find(), "nothing");
}

TEST(end_comparison, knows_of_a_difference_long_ago) {
  one_process p(2);
  for (int r = 0; r < 2; ++r)
    for (std::uint64_t c = 1; c <= 1000; ++c) {
      rank_of rank(c, r, 2);
      rank.call(broadcast(10, c == 1 ? r : 0));
      p.ends.note(rank.calls);
    }
  EXPECT_EQ(p.find(),
            "the ranks of a communicator that has ended long ago have called different operations");
}

}  // namespace
}  // namespace sucl::core
