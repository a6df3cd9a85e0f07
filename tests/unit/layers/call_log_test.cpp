// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/call_log.hpp"
#include "core/operation/operation.hpp"

#include <gtest/gtest.h>

namespace sucl::core {
namespace {

call_signature barrier(std::uint64_t hash) {
  call_signature s;
  s.kind = SUCL_KIND_BARRIER;
  s.hash = hash;
  return s;
}

TEST(call_log, gives_the_requested_calls_that_it_has) {
  call_log log;
  EXPECT_EQ(log.excerpt(1, 1, 1).count, 0u);
  for (std::uint64_t i = 1; i <= 10; ++i) log.note(barrier(i));
  EXPECT_EQ(log.last(), 10u);
  EXPECT_EQ(log.excerpt(0, 1, 1).count, 0u);
  const call_excerpt some = log.excerpt(2, 3, 64);
  EXPECT_EQ(some.count, 3u);  // 2, 5 and 8
  EXPECT_EQ(some.call.hash, 2u);
  EXPECT_EQ(some.histories[1], log.excerpt(5, 1, 1).histories[0]);
  EXPECT_EQ(log.excerpt(1, 1, 1000).count, 10u);
}

TEST(call_log, forgets_the_oldest) {
  call_log log;
  for (std::uint64_t i = 1; i <= call_log::remembered + 5; ++i) log.note(barrier(i));
  EXPECT_EQ(log.excerpt(5, 1, 1).count, 0u);
  EXPECT_EQ(log.excerpt(6, 1, 1).call.hash, 6u);
  EXPECT_EQ(log.excerpt(log.last(), 1, 2).count, 1u);
}

TEST(call_log, history_tells_what_was_before) {
  call_log a, b, c;
  for (const std::uint64_t hash : {1, 2, 3}) a.note(barrier(hash));
  for (const std::uint64_t hash : {1, 2, 3}) b.note(barrier(hash));
  for (const std::uint64_t hash : {2, 1, 3}) c.note(barrier(hash));
  EXPECT_EQ(a.excerpt(3, 1, 1).histories[0], b.excerpt(3, 1, 1).histories[0]);
  EXPECT_NE(a.excerpt(3, 1, 1).histories[0], c.excerpt(3, 1, 1).histories[0]);
}

TEST(call_signature, has_op_and_root_where_the_kind_has) {
  for (sucl_kind k = 0; k < SUCL_KIND_COUNT; ++k) {
    sucl_operation o{};
    o.kind = k;
    o.op = SUCL_OP_SUM;
    o.root = 3;
    const std::uint64_t counts[] = {1};
    o.recv_counts = counts;
    const call_signature s = signature_of(o, 1);
    EXPECT_EQ(s.op != SUCL_OP_NONE, reduces(static_cast<kind>(k))) << k;
    EXPECT_EQ(s.root >= 0, rooted(static_cast<kind>(k))) << k;
  }
}

// A rank that has recorded more is told from the others by its next call.
TEST(call_signature, knows_what_was_recorded_before) {
  sucl_operation o{};
  o.kind = SUCL_KIND_BARRIER;
  const call_signature usual = signature_of(o, 1);
  o.tag = encode_tag(true);
  EXPECT_EQ(signature_of(o, 1).hash, usual.hash);
  o.tag = encode_tag(true, origin::call, 2);
  const call_signature later = signature_of(o, 1);
  EXPECT_NE(later.hash, usual.hash);
  EXPECT_EQ(describe_difference({{0, 1, usual}, {1, 2, later}}, 1),
            "rank 0 called barrier, rank 1 called barrier after it had recorded 2 operations");
  o.tag = encode_tag(false, origin::replay, 2);
  EXPECT_EQ(describe_difference({{0, 1, signature_of(o, 1)}, {1, 2, later}}, 1),
            "rank 0 called barrier replayed from a graph (recorded operation 2), rank 1 called "
            "barrier");
}

TEST(call_log, differences_name_ranks_and_calls) {
  call_signature sums;
  sums.kind = SUCL_KIND_ALLREDUCE;
  sums.type = SUCL_TYPE_INT32;
  sums.op = SUCL_OP_SUM;
  sums.count = 7;
  const std::vector<ranks_call> calls = {{0, 1, barrier(1)}, {1, 2, sums}, {2, 1, barrier(1)}};
  EXPECT_EQ(describe_difference(calls, 1),
            "ranks 0,2 called barrier, rank 1 called allreduce of 7 int32 with op sum");
  EXPECT_EQ(describe_difference({calls[0]}, 1),
            "rank 0 called barrier, another rank called something else");
  EXPECT_EQ(describe_difference({{0, 1, sums}, {1, 2, sums}}, 1),
            "rank 0 called allreduce of 7 int32 with op sum, rank 1 called allreduce of 7 int32 "
            "with op sum with other counts, or after other calls");
}

}  // namespace
}  // namespace sucl::core
