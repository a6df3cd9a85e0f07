// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Tuning tables: what is written is read again, what is wrong is refused with its location, and
// what they say is what selection and plans do.
#include "backends/built_ins.hpp"
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "core/selection/selection.hpp"
#include "core/selection/tuned_pace.hpp"

#include "unit/helpers.hpp"

#include <gtest/gtest.h>

namespace sucl::core {
namespace {

using tune::call_form;
using tune::memory_kind;
using tune::table_from_toml;
using tune::table_row;

const std::string head =
    "format = 2\ntimes = \"measured\"\n[machine]\nname = \"here\"\ncores = 2\n";

// What reading `text` says, on one line.
std::string refusal(const std::string& text) {
  try {
    table_from_toml(text, "t.toml");
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::configuration);
    return e.message() + " | " + e.hint();
  }
  return "read";
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

table_row row(kind what, base::range bytes, const char* backend, const char* recipe = "") {
  table_row r;
  r.what = what;
  r.bytes = bytes;
  r.backend = backend;
  if (*recipe) r.how = plan::recipe_from_text(recipe);
  r.origin = "file t.toml:7:1";
  return r;
}

TEST(TuningTable, IsReadAsItWasWritten) {
  tune::table t;
  t.author = "a test";
  t.machine = {"host \"one\"", "Processor 9000", 64, "mpich", "GPU 12"};
  t.rows = {row(kind::allreduce, {0, 1023}, "mpi"),
            row(kind::allreduce, {1024, ~std::uint64_t{0}}, "plan", "staged_two_shot")};
  t.rows.push_back(row(kind::allgather, {0, 4095}, "kernels"));
  t.rows[2].memory = memory_kind::device;
  t.rows[2].protocol = "ll_two_shot";
  t.rows[0].form = call_form::event;
  t.rows[0].ranks = {2, 2};
  t.rows[0].nodes = {1, 3};
  t.rows[1].memory = memory_kind::symmetric;
  t.rows[1].slice = 128 << 10;
  t.rows[1].seconds = 12.5 * 1e-6;
  t.rows[1].at = 2048;
  t.rows[1].verified = true;
  const tune::table again = table_from_toml(tune::to_toml(t), "t.toml");
  EXPECT_EQ(again.rows, t.rows);
  EXPECT_EQ(again.author, "a test");
  EXPECT_EQ(again.machine.name, "host  one ");  // quotes are not kept
  EXPECT_EQ(again.machine.cores, 64);
  EXPECT_EQ(again.machine.device, "GPU 12");
  EXPECT_EQ(tune::hash(again), tune::hash(t));
  EXPECT_EQ(tune::to_toml(again), tune::to_toml(table_from_toml(tune::to_toml(again), "u.toml")));
  tune::table other = again;
  other.rows[0].bytes.high = 1022;
  EXPECT_NE(tune::hash(other), tune::hash(t));
}

TEST(TuningTable, RefusesWhatIsWrongWithItsLocation) {
  const std::string choice = head + "[[choice]]\ncollective = \"reduce\"\nbackend = \"mpi\"\n";
  EXPECT_EQ(refusal(choice), "read");
  expect_words(refusal("format = 2\n[[choice\n"), {"t.toml:2", "not TOML"});
  expect_words(refusal("times = \"measured\"\n"), {"t.toml:1:1", "no format", "sucl tune"});
  expect_words(refusal("format = 1\n"), {"t.toml:1:10", "format is 1", "reads format 2"});
  expect_words(refusal("format = 2\nsorts = 1\n"), {"t.toml:2:1", "unknown key 'sorts'"});
  expect_words(refusal(choice + "recpie = \"ring\"\n"), {"t.toml:9:1", "recpie", "'recipe'"});
  expect_words(refusal(choice + "recipe = \"ring\"\n"), {"t.toml:6:1", "takes none"});
  expect_words(refusal(choice + "protocol = \"ll128\"\n"),
               {"t.toml:6:1", "has a protocol", "kernels"});
  expect_words(refusal(choice + "protocol = \"ll12\"\n"), {"t.toml:9:12", "'ll128'"});
  expect_words(refusal(choice + "form = \"blockng\"\n"), {"t.toml:9:8", "'blocking'"});
  expect_words(refusal(choice + "bytes = \"4Kj\"\n"), {"t.toml:9:9", "bytes"});
  expect_words(refusal(choice + "us = \"fast\"\n"), {"t.toml:9:6", "microseconds"});
  expect_words(refusal(choice + "us = 3.0\nat = \"4\"\nbytes = \"8..\"\n"),
               {"t.toml:6:1", "at = 4"});
  expect_words(refusal(choice + "memory = \"symmetric\"\n"), {"t.toml:6:1", "symmetric"});
  expect_words(refusal(head + "[[choice]]\nbackend = \"mpi\"\n"), {"t.toml:6:1", "no collective"});
  expect_words(refusal(head + "[[choice]]\ncollective = \"scan\"\n"), {"t.toml:6:1", "no backend"});
  expect_words(refusal(head + "[[choice]]\ncollective = \"scam\"\n"), {"t.toml:7:14", "'scan'"});
  expect_words(refusal(head + "[[choice]]\ncollective = \"reduce\"\nbackend = \"plan\"\n"
                              "recipe = \"rign\"\n"),
               {"t.toml:9:10", "'ring'"});
  EXPECT_THROW(tune::load_table("/nowhere/t.toml", "a test"), error);
}

TEST(TuningTable, SaysWhereItIsForeign) {
  const tune::table t = table_from_toml(
      "format = 2\n[machine]\nprocessor = \"A\"\ncores = 4\nmpi = \"mpich\"\n", "t.toml");
  EXPECT_EQ(tune::foreign(t, {"x", "A", 4, "mpich"}), "");
  expect_words(tune::foreign(t, {"x", "B", 4, "mpich"}), {"4 cores of A", "4 cores of B"});
  expect_words(tune::foreign(t, {"x", "A", 2, "mpich"}), {"4 cores", "2 cores"});
  expect_words(tune::foreign(t, {"x", "A", 4, "impi"}), {"mpich", "impi"});
  tune::table on_gpus = t;
  on_gpus.machine.device = "GPU 1";
  EXPECT_EQ(tune::foreign(on_gpus, {"x", "A", 4, "mpich"}), "");
  expect_words(tune::foreign(on_gpus, {"x", "A", 4, "mpich", "GPU 2"}), {"GPU 1", "GPU 2"});
  tune::table predicted = t;
  predicted.measured = false;
  EXPECT_EQ(tune::foreign(predicted, {"x", "B", 2, ""}), "");
}

TEST(TuningTable, CoversAllSizes) {
  std::vector<table_row> rows{row(kind::reduce, {}, "mpi"), row(kind::reduce, {}, "plan")};
  rows[0].at = 64;
  rows[1].at = 4096;
  rows = tune::cover_all_sizes(std::move(rows));
  EXPECT_EQ(rows[0].bytes, (base::range{0, 4095}));
  EXPECT_EQ(rows[1].bytes, (base::range{4096, base::range{}.high}));
}

base::config plain_config() {
  test::working_directory here;
  here.write("sucl.toml", "");
  return base::load_config("", {});
}

selection_query query(kind what, std::uint64_t bytes, bool blocking) {
  selection_query q;
  q.what = what;
  q.element = type::fp32;
  q.reduction = op::sum;
  q.bytes = bytes;
  q.blocking = blocking;
  return q;
}

TEST(TuningTable, SelectsTheBackend) {
  tune::table t;
  t.rows = {row(kind::reduce, {100, 200}, "mpi"), row(kind::reduce, {201, 300}, "mock")};
  t.rows[0].form = call_form::blocking;
  t.rows[0].seconds = 3e-6;
  t.rows[0].at = 128;
  t.rows[1].ranks = {2, 2};
  const base::config c = plain_config();
  const auto backend_instance = [&](int ranks, std::uint64_t bytes, bool blocking) {
    const selection_table table = compile(c, {"host", ranks, 1}, core::built_ins(), &t);
    const selection_query q = query(kind::reduce, bytes, blocking);
    const candidate* taken = choose(table, q, [](int) { return true; });
    const explanation e = explain(table, q, [](int) { return std::string(); });
    EXPECT_EQ(e.backend, table.backends[static_cast<std::size_t>(taken->backend)]);
    return e.backend + " by " + e.considered.back().source + ": " + e.considered.back().why;
  };
  EXPECT_EQ(backend_instance(2, 150, true),
            "mpi by tuning table (file t.toml:7:1): measured best: 3 us at 128");
  expect_words(backend_instance(2, 150, false), {"plan by built in"});
  expect_words(backend_instance(3, 250, true), {"plan by built in"});
  expect_words(backend_instance(2, 99, true), {"plan by built in"});
  // A backend that is off by default stays off: tables measure, they do not configure.
  expect_words(backend_instance(2, 250, true), {"plan by built in"});
}

TEST(TuningTable, DecidesByWhichPlan) {
  tune::table t;
  t.rows = {row(kind::allreduce, {0, 4096}, "plan", "staged_two_shot"),
            row(kind::allreduce, {4097, 8192}, "plan", "two_shot"),
            row(kind::broadcast, {0, 100}, "plan", "staged_one_shot")};
  t.rows[0].slice = 32 << 10;
  t.rows[2].ranks = {3, 3};
  const placement where{0, 2, {0, 0}, {}};
  const plan_cache cache(where, 256 << 10, tuning_of(&t, where));
  const auto describe = [&](sucl_kind what, std::uint64_t bytes) {
    sucl_operation o{};
    o.kind = what;
    o.element_size = 4;
    o.count = bytes / 4;
    return cache.describe(o);
  };
  expect_words(describe(SUCL_KIND_ALLREDUCE, 4096),
               {"staged_two_shot in slices of up to 32Ki, tuning table (file t.toml:7:1)"});
  // What does not run in shared memory is passed over, and said.
  expect_words(describe(SUCL_KIND_ALLREDUCE, 8192),
               {"staged_one_shot in slices of up to 64Ki\n",
                "not    two_shot (file t.toml:7:1): it needs memory of allocate()"});
  EXPECT_EQ(describe(SUCL_KIND_BROADCAST, 8).find("tuning table"), std::string::npos);
}

// A row counts on as many nodes as it names, and goes along those that there are.
TEST(TuningTable, DecidesByWhichPlanOnItsNodes) {
  tune::table t;
  t.rows = {row(kind::allreduce, {}, "plan", "staged_two_shot"),
            row(kind::allreduce, {}, "plan", "two_level(leaders=1;outer=doubling)"),
            row(kind::broadcast, {}, "plan", "staged_one_shot"),
            row(kind::allgather, {}, "plan", "ring"),
            row(kind::reduce, {}, "plan", "composed(hierarchy=2,2;via=fast,any)")};
  t.rows[0].nodes = {1, 1};
  t.rows[1].nodes = {2, 2};
  const auto describe = [&](std::vector<int> node_of, sucl_kind what) {
    const placement where{0, 4, std::move(node_of), {{"threads", {}}}};
    sucl_operation o{};
    o.kind = what;
    o.element_size = 4;
    o.count = 16;
    return plan_cache(where, 256 << 10, tuning_of(&t, where)).describe(o);
  };
  const std::vector<int> one{0, 0, 0, 0}, two{5, 3, 5, 3}, three{0, 1, 2, 2};
  expect_words(describe(one, SUCL_KIND_ALLREDUCE), {"by     staged_two_shot in", "tuning table"});
  expect_words(describe(two, SUCL_KIND_ALLREDUCE),
               {"by     two_level(nodes=5,3,5,3;leaders=1;outer=doubling) in", "tuning table"});
  EXPECT_EQ(describe(three, SUCL_KIND_ALLREDUCE).find("tuning table"), std::string::npos);
  // Between nodes only messages go, over transports that are there.
  expect_words(describe(two, SUCL_KIND_BROADCAST),
               {"by     node_shot(", "not    staged_one_shot", "on another node"});
  expect_words(describe(two, SUCL_KIND_ALLGATHER), {"by     ring in", "tuning table"});
  expect_words(describe(two, SUCL_KIND_REDUCE), {"by     node_shot(", "'fast', which is not"});
}

TEST(TuningTable, WarnsOnceWhereItIsMuchSlower) {
  tune::table t;
  t.rows = {row(kind::reduce, {}, "mpi")};
  t.rows[0].seconds = 1e-6;
  t.rows[0].at = 64;
  const auto run = [&](std::chrono::nanoseconds took) {
    tuned_pace pace(&t);
    ::testing::internal::CaptureStderr();
    int timed = 0;
    for (; pace.watches(&t.rows[0]) && timed < 1000; ++timed) pace.note(t.rows[0], 128, took);
    EXPECT_LT(timed, 1000);
    EXPECT_GT(timed, 5);
    return ::testing::internal::GetCapturedStderr();
  };
  using std::chrono::microseconds;
  EXPECT_EQ(run(microseconds(3)), "");  // twice the bytes may take twice the time
  expect_words(run(microseconds(5)), {"reduce of 128", "2.5 times", "t.toml:7:1"});
  EXPECT_EQ(run(microseconds(5)), "");
  EXPECT_FALSE(tuned_pace(&t).watches(nullptr));
  t.measured = false;
  EXPECT_FALSE(tuned_pace(&t).watches(&t.rows[0]));
}

}  // namespace
}  // namespace sucl::core
