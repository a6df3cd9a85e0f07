// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"
#include "core/staging/staged_operation.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

using namespace sucl;

// A backend of one rank whose answers the test gives.
struct script {
  sucl_status on_post = SUCL_SUCCESS;
  sucl_status on_test = SUCL_SUCCESS;
  bool done = true;
  int in_flight = 0;
  int max_in_flight = 0;
  std::vector<sucl_operation> posted;
};

sucl_status answer_query(sucl_state*, const sucl_query* q, sucl_capability* answer) {
  answer->supported = q->memory == SUCL_MEMORY_SYSTEM &&
                      (q->type != SUCL_TYPE_FP16 || q->kind == core::compiled_plan_kind);
  return SUCL_SUCCESS;
}

sucl_status start(sucl_backend_comm* comm, const sucl_operation* op, sucl_request** request) {
  auto& s = *reinterpret_cast<script*>(comm);
  if (s.on_post != SUCL_SUCCESS)
    return core::services().fail(s.on_post, 42, "the wire is cut", "Mend it.");
  if (op->recv && op->send) std::memcpy(op->recv, op->send, op->count * op->element_size);
  s.posted.push_back(*op);
  s.max_in_flight = std::max(s.max_in_flight, ++s.in_flight);
  *request = reinterpret_cast<sucl_request*>(comm);
  return SUCL_SUCCESS;
}

sucl_status look(sucl_backend_comm* comm, sucl_request*, std::int32_t* done) {
  auto& s = *reinterpret_cast<script*>(comm);
  if (s.on_test != SUCL_SUCCESS)
    return core::services().fail(s.on_test, 43, "the peer is gone", "Restart it.");
  *done = s.done;
  if (s.done) --s.in_flight;
  return SUCL_SUCCESS;
}

class staged_life : public testing::Test {
 protected:
  staged_life() {
    m_table.struct_size = sizeof(m_table);
    m_table.name = "script";
    m_table.query = answer_query;
    m_table.post = start;
    m_table.test = look;
    below = {&m_table, nullptr, reinterpret_cast<sucl_backend_comm*>(&backend)};
    op.struct_size = sizeof(op);
    op.kind = SUCL_KIND_ALLREDUCE;
    op.type = SUCL_TYPE_FP16;
    op.op = SUCL_OP_SUM;
    op.element_size = 2;
    op.count = 8;
    op.sequence = 17;
    op.send = from;
    op.recv = to;
    for (std::uint16_t i = 0; i < 8; ++i) from[i] = static_cast<std::uint16_t>(0x3c00 + i);
  }

  core::staging_plan plan() {
    core::transfer_formats formats(below, "host");
    return core::plan_staging(op, {}, formats, settings);
  }
  std::unique_ptr<core::staged_operation> make() {
    return std::make_unique<core::staged_operation>(op, plan(), below, nullptr, pool);
  }
  void finish() {
    auto running = make();
    int steps = 0;
    while (!running->step()) ASSERT_LT(++steps, 1000);
  }

 private:
  sucl_backend m_table{};

 public:
  core::backend_comm below;
  script backend;
  core::staging settings;
  core::scratch_pool pool;
  sucl_operation op{};
  std::uint16_t from[8];
  std::uint16_t to[8]{};
};

TEST_F(staged_life, executes) {
  finish();
  EXPECT_EQ(std::memcmp(from, to, sizeof to), 0);
  ASSERT_EQ(backend.posted.size(), 1u);
  EXPECT_EQ(backend.posted[0].type, SUCL_TYPE_FP32);
  EXPECT_EQ(backend.posted[0].sequence, 17u);
}

TEST_F(staged_life, keeps_no_more_slices_in_progress_than_it_may) {
  settings.chunk_bytes = 4;
  settings.depth = 3;
  finish();
  EXPECT_EQ(std::memcmp(from, to, sizeof to), 0);
  EXPECT_EQ(backend.posted.size(), 8u);
  EXPECT_EQ(backend.max_in_flight, 3);
}

TEST_F(staged_life, lets_only_whole_operations_block) {
  op.flags = SUCL_FLAG_MAY_BLOCK;
  finish();
  EXPECT_EQ(backend.posted[0].flags, std::uint32_t{SUCL_FLAG_MAY_BLOCK});
  backend.posted.clear();
  settings.chunk_bytes = 16;
  finish();
  ASSERT_EQ(backend.posted.size(), 2u);
  EXPECT_EQ(backend.posted[0].flags, 0u);
}

TEST_F(staged_life, allocates_no_scratch_the_second_time) {
  settings.chunk_bytes = 4;
  finish();
  const std::size_t blocks = pool.blocks();
  EXPECT_GT(blocks, 0u);
  for (int i = 0; i < 10; ++i) finish();
  EXPECT_EQ(pool.blocks(), blocks);
  pool.trim();
  EXPECT_EQ(pool.blocks(), 0u);
}

TEST_F(staged_life, passes_on_why_a_post_failed) {
  backend.on_post = SUCL_ERROR_NATIVE;
  auto running = make();
  try {
    running->step();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::native);
    EXPECT_EQ(e.native_code(), 42);
    EXPECT_EQ(e.message(), "the wire is cut");
    EXPECT_EQ(e.hint(), "Mend it.");
    EXPECT_EQ(e.backend(), "script");
    EXPECT_EQ(e.operation(), "allreduce #17");
    EXPECT_EQ(e.rank(), 0);
  }
  running.reset();
  pool.trim();
  EXPECT_EQ(pool.blocks(), 0u);
}

TEST_F(staged_life, passes_on_why_a_test_failed) {
  auto running = make();
  EXPECT_FALSE(running->step());
  backend.on_test = SUCL_ERROR_PEER_LOST;
  try {
    running->step();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::peer_lost);
    EXPECT_EQ(e.native_code(), 43);
  }
}

TEST_F(staged_life, does_not_reuse_memory_that_the_backend_may_still_touch) {
  backend.done = false;
  make()->step();
  pool.trim();
  const std::size_t kept = pool.blocks();
  EXPECT_EQ(kept, 2u);
  backend.done = true;
  finish();
  EXPECT_EQ(pool.blocks(), kept + 2);
}

TEST_F(staged_life, wants_a_copier_only_to_stage) {
  op.send_memory = SUCL_MEMORY_DEVICE;
  EXPECT_THROW(make(), error);
  op.send_memory = SUCL_MEMORY_SHARED;
  finish();
  EXPECT_EQ(std::memcmp(from, to, sizeof to), 0);
}

// A compiled plan may write a part of what it receives.
TEST_F(staged_life, brings_back_what_a_compiled_plan_leaves) {
  const core::device_copier copier{nullptr,
                                   [](void*, void* to, const void* from, std::size_t bytes) {
                                     std::memcpy(to, from, bytes);
                                     return static_cast<void*>(nullptr);
                                   },
                                   nullptr};
  op.kind = core::compiled_plan_kind;
  op.op = SUCL_OP_NONE;
  op.count = 3;
  op.recv_count = 8;
  op.recv_memory = SUCL_MEMORY_DEVICE;
  std::fill(std::begin(to), std::end(to), std::uint16_t{5});
  core::staged_operation running(op, plan(), below, &copier, pool);
  while (!running.step()) continue;
  ASSERT_EQ(backend.posted.size(), 1u);
  EXPECT_NE(backend.posted[0].recv, to);
  EXPECT_EQ(backend.posted[0].recv_count, 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(to[i], i < 3 ? from[i] : 5) << i;
}

TEST_F(staged_life, ends_at_once_where_there_is_nothing_to_exchange) {
  const std::uint64_t none[1]{};
  op.kind = SUCL_KIND_ALLTOALLV;
  op.op = SUCL_OP_NONE;
  op.send_counts = op.send_displs = op.recv_counts = op.recv_displs = none;
  core::staging_plan how = plan();
  how.as_messages = true;
  core::staged_operation running(op, how, below, nullptr, pool);
  EXPECT_TRUE(running.all_posted());
  EXPECT_TRUE(running.step());
  EXPECT_TRUE(backend.posted.empty());
}

TEST(scratch_pool, gives_what_it_is_asked_for) {
  core::scratch_pool pool;
  std::vector<core::scratch> all;
  for (const std::size_t bytes : {0, 1, 255, 256, 257, 1000, 65537, 1 << 20}) {
    all.push_back(pool.acquire(bytes));
    ASSERT_TRUE(all.back());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back().data()) % 64, 0u);
    std::memset(all.back().data(), 1, bytes);
  }
  EXPECT_EQ(pool.blocks(), all.size());
  const unsigned char* used = all[5].data();
  all[5].release();
  EXPECT_FALSE(all[5]);
  EXPECT_EQ(pool.acquire(1000).data(), used);
  pool.trim();
  EXPECT_EQ(pool.blocks(), all.size() - 1);
}

TEST(scratch_pool, uses_the_memory_it_is_given) {
  struct counts {
    int taken = 0;
    int freed = 0;
    bool empty = false;
  } c;
  {
    core::scratch_pool pool(
        &c,
        [](void* context, std::size_t bytes) -> void* {
          auto& mine = *static_cast<counts*>(context);
          if (mine.empty) return nullptr;
          ++mine.taken;
          return ::operator new(bytes);
        },
        [](void* context, void* memory) {
          ++static_cast<counts*>(context)->freed;
          ::operator delete(memory);
        });
    for (int i = 0; i < 5; ++i) pool.acquire(1000);
    core::scratch kept = pool.acquire(1000);
    kept.abandon();
    EXPECT_FALSE(kept);
    c.empty = true;
    try {
      pool.acquire(5000);
      FAIL();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::out_of_memory);
    }
  }
  EXPECT_EQ(c.taken, 1);
  EXPECT_EQ(c.freed, 1);
}

}  // namespace
