// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/foreign/mscclpp_json.hpp"
#include "plan/verify/verify.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

// Plans that are written here as MSCCL++ writes them, right and wrong.
namespace sucl::plan {
namespace {

using json = nlohmann::json;

json local(const char* type, int index, int size = 1) {
  return {{"type", type}, {"index", index}, {"size", size}};
}
json remote(int buffer, int index, int size = 1) {
  return {{"buffer_id", buffer}, {"index", index}, {"size", size}};
}
json sync(const char* name) {
  return {{"name", name}, {"channel_ids", {0}}, {"channel_type", "memory"}};
}
json act(const char* name, json from, json to) {
  return {{"name", name},
          {"channel_type", "memory"},
          {"src_buff", std::move(from)},
          {"dst_buff", std::move(to)}};
}

// A thread block that reaches the other of two GPUs by one channel, and buffers 0 and 1 of it.
json block(int id, json ops) {
  return {
      {"id", id},
      {"ops", std::move(ops)},
      {"channels", {{{"channel_type", "memory"}, {"channel_ids", {id}}}}},
      {"remote_buffer_refs", {{{"access_channel_type", "memory"}, {"remote_buffer_ids", {0, 1}}}}}};
}
json gpu(int id, int inputs, int outputs, int scratch, json blocks, json more = json::object()) {
  json g{{"id", id},
         {"input_chunks", inputs},
         {"output_chunks", outputs},
         {"scratch_chunks", scratch},
         {"threadblocks", std::move(blocks)},
         {"channels", {{{"channel_type", "memory"}, {"connected_to", {1 - id, 1 - id}}}}},
         {"remote_buffers",
          {{{"rank", 1 - id}, {"type", "i"}, {"access_channel_types", {"memory"}}},
           {{"rank", 1 - id}, {"type", "s"}, {"access_channel_types", {"memory"}}}}}};
  g.update(more);
  return g;
}
json plan_of(const char* collective, json gpus) {
  return {{"name", "two"},
          {"collective", collective},
          {"protocol", "Simple"},
          {"inplace", true},
          {"gpus", std::move(gpus)}};
}

// Each GPU sums one half, which it reads from the other and writes there.
json halves() {
  json gpus = json::array();
  for (int r = 0; r < 2; ++r)
    gpus.push_back(gpu(
        r, 2, 2, 0,
        json::array(
            {block(0, {sync("rlxsignal"), sync("rlxwait"),
                       act("rres", {local("i", r), remote(0, r)}, {local("i", r), remote(0, r)}),
                       json{{"name", "nop"}}, sync("signal"), sync("wait")})})));
  return plan_of("allreduce", gpus);
}

// Packets to the scratch of the other, which adds them.
json packets(int slices = 1) {
  json gpus = json::array();
  for (int r = 0; r < 2; ++r) {
    json blocks = json::array();
    for (int b = 0; b < slices; ++b) {
      json put = act("ppkt", json::array({local("i", 0)}), json::array({remote(1, 0)}));
      json add =
          act("repkt", json::array({local("i", 0), local("s", 0)}), json::array({local("i", 0)}));
      for (json* o : {&put, &add}) (*o)["tbg_info"] = {{"tb_id", b}, {"tbg_size", slices}};
      blocks.push_back(block(b, json::array({put, add})));
    }
    gpus.push_back(gpu(r, 1, 1, 1, blocks));
  }
  return plan_of("allreduce", gpus);
}

// A switch sums and stores; `barrier`: of two thread blocks, of which one meets the other GPU.
json switched() {
  json gpus = json::array();
  for (int r = 0; r < 2; ++r) {
    json meet = json::array({sync("signal"), sync("wait")});
    json sum{{"name", "glres"},
             {"channel_type", "switch"},
             {"src_buff", {{{"switch_channel_id", 0}, {"index", r}, {"size", 1}}}},
             {"dst_buff", {{{"switch_channel_id", 0}, {"index", r}, {"size", 1}}}}};
    json barrier{{"name", "barrier"}, {"barrier_id", 0}, {"num_threadblocks", 2}};
    json first = block(0, {meet[0], meet[1], barrier, barrier, meet[0], meet[1]});
    json second = block(1, json::array({barrier, sum, barrier}));
    second["channels"] = {{{"channel_type", "switch"}, {"channel_ids", {0}}}};
    json g = gpu(r, 2, 2, 0, {first, second});
    g["channels"].push_back({{"channel_type", "switch"},
                             {"buffer_type", "i"},
                             {"rank_groups", {{{"size", 2}, {"ranks", {0, 1}}}}}});
    gpus.push_back(g);
  }
  return plan_of("allreduce", gpus);
}

// Three thread blocks hand a chunk on in two iterations, by semaphores.
json pipelined(int first_value = 0) {
  json gpus = json::array();
  for (int r = 0; r < 2; ++r) {
    const auto sem = [](const char* name, int id) {
      return json{{"name", name}, {"semaphore_ids", {id}}};
    };
    const auto pipeline = [](json ops) {
      return json{{"name", "pipeline"},
                  {"iter_context", {{"unit_size", 1024}, {"num_chunks", 1}}},
                  {"ops", std::move(ops)}};
    };
    json own = act("copy", json::array({local("i", 0)}), json::array({local("s", 0)}));
    json out = act("put", json::array({local("s", 0)}), json::array({remote(1, 1 + r)}));
    gpus.push_back(gpu(
        r, 1, 2, 3,
        {block(0, json::array({pipeline({own, sem("sem_release", 0)})})),
         block(1, json::array({pipeline({sem("sem_acquire", 0), out, sync("signal"), sync("wait"),
                                         act("copy", json::array({local("s", 2 - r)}),
                                             json::array({local("o", 1 - r)}))})}))},
        {{"semaphores", {{{"init_value", first_value}}}}}));
  }
  return plan_of("allgather", gpus);
}

verdict verdict_on(const json& plan) { return verify(from_mscclpp_json(plan.dump())); }

json& operation(json& plan, int gpu, int block, int number) {
  return plan["gpus"][gpu]["threadblocks"][block]["ops"][number];
}

std::string refusal_of(const std::string& text) {
  try {
    from_mscclpp_json(text);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_FALSE(e.hint().empty());
    return e.message();
  }
  return "none";
}

TEST(mscclpp_json, right_plans_are_proved) {
  for (const json& plan : {halves(), switched(), pipelined()}) {
    const verdict v = verdict_on(plan);
    EXPECT_TRUE(v) << v.message;
    EXPECT_TRUE(v.identical);
  }
  EXPECT_TRUE(is_mscclpp_json(halves().dump()));
  EXPECT_FALSE(is_mscclpp_json("{\"kind\": \"allreduce\"}"));
}

TEST(mscclpp_json, packets_are_waited_for) {
  for (const int slices : {1, 3}) EXPECT_TRUE(verdict_on(packets(slices))) << slices;
}

TEST(mscclpp_json, faults_are_found) {
  json plan = halves();
  operation(plan, 0, 0, 1) = {{"name", "nop"}};  // writes before the other has begun
  EXPECT_EQ(verdict_on(plan).what, fault::race);

  plan = halves();
  operation(plan, 0, 0, 5) = {{"name", "nop"}};  // ends before the other has written
  EXPECT_EQ(verdict_on(plan).what, fault::unmatched);

  plan = halves();
  operation(plan, 1, 0, 2)["src_buff"].erase(1);
  EXPECT_EQ(verdict_on(plan).what, fault::result);

  plan = packets();
  operation(plan, 0, 0, 0) = {{"name", "nop"}};
  EXPECT_FALSE(verdict_on(plan));

  plan = switched();
  operation(plan, 0, 0, 0) = {{"name", "nop"}};
  EXPECT_FALSE(verdict_on(plan));

  EXPECT_FALSE(verdict_on(pipelined(1)));  // the first may pass before there is anything
}

TEST(mscclpp_json, says_where_it_is_wrong) {
  EXPECT_NE(refusal_of("{").find("no JSON"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(100, '[')).find("no JSON"), std::string::npos);
  EXPECT_NE(refusal_of("{}").find("there is no \"name\""), std::string::npos);
  json plan = halves();
  plan["collective"] = "test";
  EXPECT_NE(refusal_of(plan.dump()).find("'test' is no collective"), std::string::npos);
  plan = halves();
  operation(plan, 1, 0, 2)["name"] = "magic";
  EXPECT_NE(refusal_of(plan.dump()).find("GPU 1, thread block 0, operation 2 (magic)"),
            std::string::npos);
  plan = halves();
  operation(plan, 1, 0, 2)["src_buff"][1]["buffer_id"] = 7;
  EXPECT_NE(refusal_of(plan.dump()).find("no memory channel or buffer 7"), std::string::npos);
  plan = halves();
  plan["gpus"][0]["input_chunks"] = -1;
  EXPECT_NE(refusal_of(plan.dump()).find("input_chunks"), std::string::npos);
  plan = packets();
  operation(plan, 0, 0, 0)["dst_buff"][0]["index"] = 5;
  EXPECT_NE(refusal_of(plan.dump()).find("scratch buffer ends"), std::string::npos);
  plan = switched();
  operation(plan, 0, 1, 0)["num_threadblocks"] = 3;
  EXPECT_NE(refusal_of(plan.dump()).find("come to the barrier"), std::string::npos);
}

}  // namespace
}  // namespace sucl::plan
