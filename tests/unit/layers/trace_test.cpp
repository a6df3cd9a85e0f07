// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/layers/trace.hpp"
#include "core/layers/trace_file.hpp"
#include "support/drive.hpp"
#include "support/jobs/thread_ranks.hpp"
#include "support/recorder.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace {

using namespace sucl;
using namespace sucl::testing;
using nlohmann::json;

// A directory of this test's own, removed at its end.
class trace : public ::testing::Test {
 protected:
  trace() {
    std::string name = ::testing::TempDir() + "sucl_trace_XXXXXX";
    m_directory = ::mkdtemp(name.data());
  }
  ~trace() override { std::filesystem::remove_all(m_directory); }
  std::string path(const std::string& file) const { return m_directory + "/" + file; }
  static json read(const std::string& file) { return json::parse(std::ifstream(file)); }

 private:
  std::string m_directory;
};

json events(const json& all, const std::string& phase) {
  json result = json::array();
  for (const auto& e : all)
    if (e.at("ph") == phase) result.push_back(e);
  return result;
}

core::trace_options options(const std::string& path, int rank) { return {path, rank, "recorder"}; }

// Processes that have several ranks number these otherwise than themselves.
TEST_F(trace, has_a_file_of_its_own_where_another_process_has_the_name) {
  int opened[2], done[2];
  ASSERT_EQ(pipe(opened) | pipe(done), 0);
  const std::string name = path("t.1.json");
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  char byte = 0;
  if (other == 0) {
    core::trace_file& file = core::trace_file::at(name);
    const bool told = write(opened[1], &byte, 1) == 1 && ::read(done[0], &byte, 1) == 1;
    file.add(R"({"of": "the other"})");
    file.flush();
    _exit(told ? 0 : 1);
  }
  EXPECT_EQ(::read(opened[0], &byte, 1), 1);
  core::trace_file& file = core::trace_file::at(name);
  file.add(R"({"of": "this one"})");
  file.flush();
  EXPECT_EQ(write(done[1], &byte, 1), 1);
  int status = -1;
  EXPECT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  for (const int d : {opened[0], opened[1], done[0], done[1]}) close(d);
  EXPECT_EQ(&core::trace_file::at(name), &file);
  EXPECT_EQ(trace::read(name), json::parse(R"([{"of": "the other"}])"));
  const std::string own = path("t.1.process-" + std::to_string(getpid()) + ".json");
  EXPECT_EQ(trace::read(own), json::parse(R"([{"of": "this one"}])"));
}

TEST_F(trace, writes_operations_with_all_that_is_known) {
  run_ranks(1, [&](const sucl_comm_info& info) {
    recorder below;
    const core::backend_comm c =
        core::wrap_trace(below.channel(), info, options(path("t.%r.json"), 5));
    auto o = operation(kind::allreduce, type::fp32, 100, op::max);
    o.sequence = 17;
    core::trace_issue(c, 17);
    flight f = post(c, o);
    EXPECT_FALSE(sucl::testing::test(c, f));
    below.finished = 1;
    EXPECT_EQ(wait(c, f).status, SUCL_SUCCESS);
    destroy(c);
    EXPECT_EQ(below.destroyed, 1);
  });
  const json all = read(path("t.5.json"));
  const json e = events(all, "X").at(0);
  EXPECT_EQ(e.at("name"), "allreduce");
  EXPECT_EQ(e.at("cat"), "collective");
  EXPECT_EQ(e.at("pid"), 5);
  EXPECT_EQ(e.at("tid"), 1);
  const json& args = e.at("args");
  EXPECT_EQ(args.at("sequence"), 17);
  EXPECT_EQ(args.at("type"), "fp32");
  EXPECT_EQ(args.at("op"), "max");
  EXPECT_EQ(args.at("count"), 100);
  EXPECT_EQ(args.at("bytes"), 400);
  EXPECT_EQ(args.at("backend"), "recorder");
  EXPECT_EQ(args.at("status"), "success");
  EXPECT_LE(args.at("issued_us").get<double>(), args.at("posted_us").get<double>());
  EXPECT_LE(args.at("posted_us").get<double>(), args.at("done_us").get<double>());
  EXPECT_NEAR(e.at("ts").get<double>() + e.at("dur").get<double>(),
              args.at("done_us").get<double>(), 0.01);
  EXPECT_EQ(events(all, "M").at(0).at("args").at("name"), "rank 5");
}

TEST_F(trace, gives_overlapping_operations_threads_of_their_own) {
  run_ranks(1, [&](const sucl_comm_info& info) {
    recorder below;
    const core::backend_comm c =
        core::wrap_trace(below.channel(), info, options(path("tracks"), 0));
    std::vector<flight> flights;
    for (int i = 0; i < 3; ++i)
      flights.push_back(post(c, operation(kind::barrier, type::bytes, 0)));
    below.finished = 3;
    for (auto& f : flights) wait(c, f);
    below.at_once = true;
    run(c, operation(kind::barrier, type::bytes, 0));
    destroy(c);
  });
  const json all = read(path("tracks.0"));
  std::map<std::int64_t, double> end;  // of the last event on each thread
  const json spans = events(all, "X");
  ASSERT_EQ(spans.size(), 4u);
  for (const auto& e : spans) {
    const auto thread = e.at("tid").get<std::int64_t>();
    EXPECT_GE(e.at("ts").get<double>(), end[thread]);
    end[thread] = e.at("ts").get<double>() + e.at("dur").get<double>();
  }
  EXPECT_EQ(end.size(), 3u);
}

TEST_F(trace, counts_the_bytes_of_every_kind) {
  const std::uint64_t counts[] = {1, 2};
  run_ranks(2, [&](const sucl_comm_info& info) {
    recorder below;
    below.at_once = true;
    const core::backend_comm c =
        core::wrap_trace(below.channel(), info, options(path("b"), info.rank));
    auto o = operation(kind::allgatherv, type::int64, 1);
    o.recv_counts = counts;
    run(c, o);
    const sucl_operation parts[] = {operation(kind::send, type::int32, 3),
                                    operation(kind::recv, type::int16, 4)};
    o = operation(kind::group, type::bytes, 0);
    o.parts = parts;
    o.part_count = 2;
    run(c, o);
    destroy(c);
  });
  const json spans = events(read(path("b.1")), "X");
  EXPECT_EQ(spans.at(0).at("args").at("bytes"), 24);
  EXPECT_EQ(spans.at(1).at("args").at("bytes"), 20);
  EXPECT_EQ(spans.at(1).at("cat"), "point-to-point");
}

TEST_F(trace, records_failures_and_hands_them_on) {
  run_ranks(1, [&](const sucl_comm_info& info) {
    recorder below;
    const core::backend_comm c = core::wrap_trace(below.channel(), info, options(path("f"), 0));
    below.fail_post = SUCL_ERROR_NATIVE;
    const flight f = run(c, operation(kind::barrier, type::bytes, 0));
    EXPECT_EQ(f.status, SUCL_ERROR_NATIVE);
    EXPECT_EQ(f.error.native_code, 7);
    below.fail_post = SUCL_SUCCESS;
    below.fail_test = SUCL_ERROR_PEER_LOST;
    EXPECT_EQ(run(c, operation(kind::barrier, type::bytes, 0)).status, SUCL_ERROR_PEER_LOST);
    destroy(c);
  });
  const json spans = events(read(path("f.0")), "X");
  EXPECT_EQ(spans.at(0).at("args").at("status"), "native");
  EXPECT_EQ(spans.at(1).at("args").at("status"), "peer_lost");
}

TEST_F(trace, appends_later_communicators_of_the_process) {
  for (int round = 0; round < 2; ++round)
    run_ranks(1, [&](const sucl_comm_info& info) {
      recorder below;
      below.at_once = true;
      const core::backend_comm c =
          core::wrap_trace(below.channel(), info, options(path("again"), 0));
      run(c, operation(kind::barrier, type::bytes, 0));
      destroy(c);
    });
  EXPECT_EQ(events(read(path("again.0")), "X").size(), 2u);
}

TEST_F(trace, leaves_a_file_that_opens_when_the_process_dies) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    recorder below;
    below.at_once = true;
    sucl_comm_info info{};
    info.size = 1;
    const core::backend_comm c = core::wrap_trace(below.channel(), info, options(path("dead"), 0));
    for (int i = 0; i < 1000; ++i) run(c, operation(kind::barrier, type::bytes, 0));
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto spans = events(read(path("dead.0")), "X").size();
  EXPECT_GT(spans, 0u);
  EXPECT_LT(spans, 1000u) << "the death came after everything was written";
}

TEST_F(trace, fails_on_every_rank_where_one_cannot_write) {
  run_ranks(2, [&](const sucl_comm_info& info) {
    recorder below;
    const std::string file = info.rank == 1 ? path("none/t") : path("t");
    try {
      core::wrap_trace(below.channel(), info, options(file, info.rank));
      ADD_FAILURE() << "no error on rank " << info.rank;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::configuration);
      const char* part = info.rank == 1 ? "No such file" : "rank 1 cannot write";
      EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
    }
    EXPECT_EQ(below.destroyed, 0);
  });
}

TEST_F(trace, tells_the_ranks_one_clock) {
  // Rank 1's process came with a clock of its own, as one of an earlier communicator would have.
  core::trace_file::at(path("clock.1")).set_offset(5'000'000'000'000'000);
  run_ranks(3, [&](const sucl_comm_info& info) {
    recorder below;
    below.at_once = true;
    const core::backend_comm c =
        core::wrap_trace(below.channel(), info, options(path("clock"), info.rank));
    run(c, operation(kind::barrier, type::bytes, 0));
    destroy(c);
  });
  for (int r = 0; r < 3; ++r)
    EXPECT_EQ(core::trace_file::at(path("clock." + std::to_string(r))).offset(),
              5'000'000'000'000'000);
  EXPECT_GE(events(read(path("clock.2")), "X").at(0).at("ts").get<double>(), 5e12);
}

TEST_F(trace, notes_nothing_for_other_layers) {
  recorder below;
  core::trace_issue(below.channel(), 1);
  EXPECT_EQ(below.destroyed, 0);
}

}  // namespace
