// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Schedules as data: text, JSON, hash, problems.
#include "base/nesting.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/verify.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace sucl::plan {
namespace {

problem allreduce(int ranks, std::uint64_t count) {
  problem p;
  p.ranks = ranks;
  p.element_bytes = 4;
  p.counts = {count};
  return p;
}

schedule example(const char* recipe = "hierarchical(hierarchy=2,3;inner=peer;via=mpi,ipc)") {
  return build(allreduce(6, 100), recipe_from_text(recipe));
}

template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

const char* const small = R"(sucl-plan 1
collective allreduce ranks 2 element 4 counts 2  # a comment
algorithm by hand
level 0 all via any
rank 0 scratch 8
channel 0
  copy recv+0 send+0 8
  send 1 recv+0 8
  receive 1 scratch+0 8

  fence
  reduce recv+0 scratch+0 8
rank 1 scratch 8
channel 0
  copy recv+0 send+0 8
  send 0 recv+0 8
  receive 0 scratch+0 8
  fence
  reduce recv+0 scratch+0 8
)";

TEST(plan_text, reads_a_plan_written_by_hand) {
  const schedule s = from_text(small);
  EXPECT_EQ(s.algorithm, "by hand");
  ASSERT_EQ(s.ranks.size(), 2u);
  EXPECT_EQ(instruction_count(s), 10u);
  EXPECT_TRUE(verify(s)) << verify(s).message;
}

TEST(plan_text, loses_nothing) {
  for (const char* r : {"ring(pipeline=3)", "two_shot", "tree", "composed(steps=2;hierarchy=2,3)"})
    EXPECT_EQ(from_text(to_text(example(r))), example(r));
  EXPECT_EQ(from_text(to_text(example())), example());
}

TEST(plan_text, writes_every_instruction_as_documented) {
  EXPECT_EQ(to_text(instruction{opcode::put, space::peer_recv, space::scratch, 2, 3, 64, 8, 16}),
            "put 3 peer.recv+64 scratch+8 16 @2");
  EXPECT_EQ(to_text(instruction{opcode::wait, space::none, space::none, 0, 3, 5, 0, 0}),
            "wait 3 flag 5");
  EXPECT_EQ(to_text(instruction{opcode::fence, space::none, space::none, 0, -1, 0, 0, 2}),
            "fence 2");
  EXPECT_EQ(to_text(instruction{opcode::reduce, space::recv, space::peer_send, 0, 1, 0, 4, 8}),
            "reduce 1 recv+0 peer.send+4 8");
}

TEST(plan_text, complains_with_line_and_expectation) {
  std::string text = small;
  text.replace(text.find("receive 1"), 9, "recieve 1");
  const std::string why = message_of([&] { from_text(text); });
  EXPECT_NE(why.find("line 9"), std::string::npos) << why;
  EXPECT_NE(why.find("recieve"), std::string::npos) << why;
  for (const char* bad : {"", "sucl-plan 2", "sucl-plan 1\ncollective allreduce ranks",
                          "sucl-plan 1\ncollective sum ranks 2 element 4 counts 1",
                          "sucl-plan 1\ncollective allreduce ranks 1 element 4 counts 1\nfence",
                          "sucl-plan 1\ncollective allreduce ranks 0 element 4 counts 1"})
    EXPECT_NE(message_of([&] { from_text(bad); }), "") << bad;
}

TEST(plan_json, loses_nothing) {
  for (const char* r : {"ring(pipeline=3)", "two_shot", "tree", "composed(steps=2;hierarchy=2,3)"})
    EXPECT_EQ(from_json(to_json(example(r))), example(r));
  problem p = allreduce(4, 0);
  p.kind = kind::allgatherv;
  p.counts = {1, 0, 5, 2};
  p.recv_displs = {7, 0, 0, 5};
  ASSERT_TRUE(verify(build(p, recipe_from_text("ring"))));
  const schedule s = build(p, recipe_from_text("ring"));
  EXPECT_EQ(from_json(to_json(s)), s);
  EXPECT_EQ(from_text(to_text(s)), s);
}

TEST(plan_json, complains_with_path_and_expectation) {
  std::string text = to_json(example());
  EXPECT_NE(message_of([] { from_json("{"); }), "");
  EXPECT_NE(message_of([] { from_json("{}"); }), "");
  std::string other = text;
  other.replace(other.find("\"send\""), 6, "\"sent\"");
  EXPECT_NE(message_of([&] { from_json(other); }).find("sent"), std::string::npos);
  other = text;
  other.replace(other.find("\"scratch\": "), 11, "\"scratch\": 1");
  EXPECT_NE(message_of([&] { from_json(other); }).find("hash"), std::string::npos);
}

// Objects are many times as large as their text: what is read of it is bounded.
TEST(plan_text, is_refused_where_it_is_long) {
  const std::string blanks(std::size_t{32} << 20, ' ');
  EXPECT_NE(message_of([&] { from_text(blanks + "\n"); }).find("more than the 32Mi"),
            std::string::npos);
  EXPECT_NE(message_of([&] { from_text(blanks); }).find("'sucl-plan 1'"), std::string::npos);
}

TEST(plan_json, is_refused_where_it_is_long_or_deep) {
  const std::string blanks(std::size_t{16} << 20, ' ');
  EXPECT_NE(message_of([&] { from_json(blanks + "{}"); }).find("more than the 16Mi"),
            std::string::npos);
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return "{\"a\":" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  EXPECT_EQ(message_of([&] { from_json(nested(15)); }).find("deep"), std::string::npos);
  EXPECT_NE(message_of([&] { from_json(nested(16)); }).find("more than 16 deep"),
            std::string::npos);
}

TEST(nests_deeper, counts_what_is_no_text) {
  EXPECT_FALSE(base::nests_deeper(R"({"[[[[": ["\"[[[["]})", 2));
  EXPECT_TRUE(base::nests_deeper(R"({"": [[1]]})", 2));
  EXPECT_FALSE(base::nests_deeper("[[],[],[]]", 2));
}

TEST(plan_json, complains_with_path_and_line) {
  const std::string text = to_json(example());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const std::size_t at = other.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    other.replace(at, from.size(), to);
    return message_of([&] { from_json(other); });
  };
  const auto lines_before = [&](const std::string& what) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(text.find(what));
    return std::to_string(1 + std::count(text.begin(), end, '\n'));
  };
  const auto has = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  const std::string line = lines_before("[\"send\"");
  const std::string sent = with("[\"send\"", "[\"sent\"");
  has(sent, "at 'ranks[0].channels[0][");
  has(sent, "][0]' (line " + line + ") no known name in place of 'sent'");
  has(with("\"ranks\":6", "\"ranks\":\n0"),
      "the plan's JSON, line 5: collective.ranks = 0 is out of range");
  // The last thing of a line, of which the parser knows when it has read the line's end.
  has(with("\"sucl_plan\": 1,\n", "\"sucl_plan\": -1\n,"),
      "at 'sucl_plan' (line 2) no number that is a whole one");
  has(with("\"scratch\"", "\"scrap\""),
      "at 'ranks[0]' (line " + lines_before("\"scratch\"") + ") no member \"scratch\"");
  has(with("\"levels\": [{\"name\"", "\"levels\": [\n\n{\"nam\""),
      "at 'levels[0]' (line 8) no member \"name\"");
  has(with("\"hash\": \"", "\"hash\": \"0"), "the plan's hash (line 3) is not that");
  has(with("\"algorithm\"", "algorithm"), "no JSON: line 5, column 1: syntax error");
  has(with("\"ranks\":6", "\"ranks\":6e999"), "no JSON: number overflow");
}

TEST(plan_hash, follows_the_content_and_not_the_remark) {
  schedule a = example(), b = example();
  b.algorithm = "by another name";
  EXPECT_EQ(hash(a), hash(b));
  b.ranks[1].channels[0][0].bytes += 4;
  EXPECT_NE(hash(a), hash(b));
  b = example();
  b.what.element_bytes = 8;
  EXPECT_NE(hash(a), hash(b));
  b = example();
  b.levels[0].via = "nccl";
  EXPECT_NE(hash(a), hash(b));
}

TEST(plan_hash, does_not_change_between_versions) {
  EXPECT_EQ(hash(from_text(small)), 2238413681231802372u);
}

TEST(plan_recipe, is_written_and_read) {
  for (const char* text :
       {"ring", "exchange(radices=2,2,3;split=1;ports=2)",
        "hierarchical(hierarchy=4,2;leaders=1;inner=peer;outer=doubling;via=mpi,ipc)",
        "composed(hierarchy=2,4;pipeline=8;stripe=4;ring=2;steps=2)"})
    EXPECT_EQ(to_text(recipe_from_text(text)), text);
  EXPECT_NE(message_of([] { recipe_from_text("ring(pipelin=2)"); }).find("'pipeline'"),
            std::string::npos);
  for (const char* bad : {"ring(", "ring(pipeline)", "ring(pipeline=x)"})
    EXPECT_NE(message_of([&] { recipe_from_text(bad); }), "") << bad;
}

TEST(plan_recipe, is_refused_with_reason_and_cure) {
  const auto why = [](const char* r, problem p = allreduce(6, 10)) {
    return refusal(p, recipe_from_text(r));
  };
  EXPECT_EQ(why("ring"), "");
  EXPECT_NE(why("rings").find("'ring'"), std::string::npos);
  EXPECT_NE(why("pairwise").find("allreduce"), std::string::npos);
  EXPECT_NE(why("ring(segments=3)").find("'segments'"), std::string::npos);
  EXPECT_NE(why("exchange(radices=2,2,2)").find("8"), std::string::npos);
  EXPECT_NE(why("hierarchical(hierarchy=2,2)").find("4 ranks"), std::string::npos);
  EXPECT_NE(why("composed(hierarchy=2,3;stripe=7)").find("7 stripes"), std::string::npos);
  EXPECT_NE(why("composed(hierarchy=2,3;ring=3)").find("ring of 3"), std::string::npos);
  problem ranked = allreduce(6, 10);
  ranked.order = ordering::ranked;
  EXPECT_NE(why("ring", ranked).find("order"), std::string::npos);
}

TEST(plan_problem, is_checked) {
  problem p = allreduce(4, 10);
  EXPECT_NO_THROW(check(p));
  p.root = 4;
  EXPECT_THROW(check(p), error);
  p = allreduce(0, 10);
  EXPECT_THROW(check(p), error);
  p = allreduce(4, std::uint64_t{1} << 60);
  EXPECT_THROW(check(p), error);
  p = allreduce(4, 10);
  p.kind = kind::allgatherv;
  EXPECT_THROW(check(p), error);
  p = allreduce(4, 10);
  p.kind = kind::barrier;
  EXPECT_THROW(check(p), error);
}

TEST(plan_problem, refuses_output_blocks_that_overlap) {
  problem p;
  p.kind = kind::allgatherv;
  p.ranks = 3;
  p.counts = {2, 0, 3};
  p.recv_displs = {3, 4, 0};
  EXPECT_NO_THROW(check(p));
  p.recv_displs = {2, 4, 0};
  EXPECT_THROW(check(p), error);
}

TEST(plan_problem, knows_where_blocks_lie) {
  problem p;
  p.kind = kind::alltoallv;
  p.ranks = 2;
  p.element_bytes = 2;
  p.counts = {1, 2, 3, 4};  // from 0: 1 to 0, 2 to 1; from 1: 3 to 0, 4 to 1
  EXPECT_EQ(send_bytes(p, 1), 14u);
  EXPECT_EQ(recv_bytes(p, 0), 8u);
  EXPECT_EQ(input_block(p, 1, 1).offset, 6u);
  EXPECT_EQ(output_block(p, 1, 1).offset, 4u);
  EXPECT_EQ(output_block(p, 1, 1).bytes, 8u);
}

}  // namespace
}  // namespace sucl::plan
