// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/call_signature.hpp"
#include "core/record/diagnose.hpp"
#include "core/record/flight_recorder.hpp"
#include "core/record/record_file.hpp"
#include "core/support/host_identity.hpp"

#include <sucl/error.hpp>
#include <sucl/types.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sucl::core {
namespace {

sucl_operation collective(sucl_kind kind, std::uint64_t count) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = kind;
  o.type = SUCL_TYPE_FP32;
  o.op = kind == SUCL_KIND_ALLREDUCE ? SUCL_OP_SUM : SUCL_OP_NONE;
  o.element_size = 4;
  o.count = count;
  return o;
}

// Where this process is, as sentences say it.
std::string process_and_host() {
  return "(process " + std::to_string(getpid()) + " on " + host_name() + ")";
}

// A rank's recorder that writes to a file of its own, which ends with it.
struct recorded {
  flight_recorder recorder;
  record_writer writer;
  std::string file;
  std::uint64_t calls = 0;

  recorded(int rank, int size, std::uint64_t job = 7) {
    const std::string folder = testing::TempDir() + "record_test." + std::to_string(getpid());
    file = folder + "/" + record_name(job, rank);
    recorder.begin(job, rank, size, folder, false);
    writer.begin(recorder, 1, rank, size);
  }
  ~recorded() {
    std::remove(file.c_str());
    rmdir(file.substr(0, file.rfind('/')).c_str());  // with the last one in it
  }
  record_entry* call(sucl_kind kind, std::uint64_t count, record_state state) {
    return writer.note(collective(kind, count), ++calls, state);
  }
  rank_history read() {
    recorder.write();
    return read_record(file);
  }
};

TEST(Record, RepeatedCallsTakeOneEntry) {
  recorded r(0, 2);
  const sucl_operation o = collective(SUCL_KIND_ALLREDUCE, 8);
  record_entry* const first = r.writer.note_blocking(o, 1, record_state::done);
  const auto noted = record_writer::mark_of(first, 1);
  for (std::uint64_t i = 2; i <= 5001; ++i) ASSERT_TRUE(record_writer::repeat(noted, i));
  EXPECT_EQ(r.writer.note_blocking(o, 5002, record_state::posted), first);
  const auto other = collective(SUCL_KIND_ALLREDUCE, 9);
  EXPECT_NE(r.writer.note_blocking(other, 5003, record_state::done), first);
  EXPECT_FALSE(record_writer::repeat(noted, 5004));
  // One that joined an entry is counted there from then on.
  record_entry* const joined = r.writer.note_blocking(other, 5004, record_state::done);
  EXPECT_TRUE(record_writer::repeat(record_writer::mark_of(joined, 5004), 5005));
  const rank_history h = r.read();
  ASSERT_EQ(h.entries.size(), 2u);
  EXPECT_EQ(h.entries[0].times, 5002u);
  EXPECT_EQ(h.entries[1].number, 5003u);
}

TEST(Record, CallsWithArraysAreComparedByTheirHash) {
  recorded r0(0, 2), r1(1, 2);
  const std::array<std::uint64_t, 2> counts{3, 5}, others{5, 3};
  sucl_operation o = collective(SUCL_KIND_ALLGATHERV, 3);
  o.recv_counts = counts.data();
  r0.writer.note(o, 1, record_state::done);
  o.recv_counts = others.data();
  r1.writer.note(o, 1, record_state::done);
  EXPECT_EQ(r0.read().entries.at(0).call.count, 8u);
  EXPECT_TRUE(diagnose({r0.read(), r1.read()}).trouble);
  EXPECT_FALSE(diagnose({r0.read()}).trouble);
}

TEST(Record, TheSignatureIsTheOneThatRanksCompare) {
  recorded r(0, 2);
  sucl_operation o = collective(SUCL_KIND_REDUCE, 8);
  o.root = 1;
  r.writer.note(o, 1, record_state::done);
  const call_signature expected = signature_of(o, 2), found = r.read().entries.at(0).call;
  EXPECT_EQ(found.hash, expected.hash);
  EXPECT_EQ(describe(found), describe(expected));
}

TEST(Record, WhatIsNotOverStays) {
  recorded r(0, 2);
  r.call(SUCL_KIND_BARRIER, 0, record_state::posted);
  EXPECT_TRUE(r.recorder.busy());
  for (std::uint64_t i = 0; i < 3 * flight_record::slots; ++i)
    r.call(SUCL_KIND_ALLREDUCE, i, record_state::done);
  const rank_history h = r.read();
  EXPECT_EQ(h.entries.front().number, 1u);
  EXPECT_GE(h.entries.size(), 1000u);
  EXPECT_EQ(h.entries.back().number, 3 * flight_record::slots + 1);
}

TEST(Record, WhereEverythingIsUnderWayNoSlotIsFree) {
  recorded r(0, 2);
  record_entry* last = nullptr;
  for (std::uint64_t i = 0; i < flight_record::slots + 5; ++i)
    last = r.call(SUCL_KIND_ALLREDUCE, i, record_state::posted);
  record_writer::set(last, record_state::failed);
  const rank_history h = r.read();
  EXPECT_EQ(h.entries.size(), flight_record::slots);
  for (const recorded_call& e : h.entries) EXPECT_EQ(e.state, record_state::posted);
}

TEST(Record, AnEntryOfOthersIsNotCounted) {
  recorded r(0, 2);
  const sucl_operation o = collective(SUCL_KIND_ALLREDUCE, 8);
  const auto old = record_writer::mark_of(r.writer.note_blocking(o, 1, record_state::done), 1);
  for (std::uint64_t i = 0; i < flight_record::slots; ++i)
    r.call(SUCL_KIND_BROADCAST, i, record_state::done);
  EXPECT_FALSE(record_writer::repeat(old, 2));
}

TEST(Record, WritersShareTheMemory) {
  recorded r(0, 2);
  record_writer second;
  second.begin(r.recorder, 2, 1, 2);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    r.call(SUCL_KIND_ALLREDUCE, i, record_state::done);
    second.note(collective(SUCL_KIND_BROADCAST, i), i, record_state::done);
  }
  std::uint64_t first = 0, other = 0;
  for (const recorded_call& e : r.read().entries) {
    std::uint64_t& last = e.communicator == 1 ? first : other;
    EXPECT_EQ(e.number, ++last);
  }
  EXPECT_EQ(first, 100u);
  EXPECT_EQ(other, 100u);
}

TEST(Record, TheSlowestWhoWaitsForNothingIsLate) {
  recorded r0(0, 3), r1(1, 3), r2(2, 3);
  r0.call(SUCL_KIND_ALLREDUCE, 5, record_state::done);
  r0.call(SUCL_KIND_BARRIER, 0, record_state::failed);
  r1.call(SUCL_KIND_ALLREDUCE, 5, record_state::done);
  r2.call(SUCL_KIND_ALLREDUCE, 5, record_state::posted);
  EXPECT_EQ(diagnose({r0.read(), r1.read(), r2.read()}).sentence,
            "ranks 1,2 are late: rank 0 waits in barrier, #2 of communicator 1, which ranks 1,2 "
            "have not called");
}

TEST(Record, NobodyWaits) {
  recorded r0(0, 2), r1(1, 2);
  r0.call(SUCL_KIND_ALLREDUCE, 5, record_state::done);
  r1.call(SUCL_KIND_ALLREDUCE, 5, record_state::done);
  const auto found = diagnose({r0.read(), r1.read()});
  EXPECT_FALSE(found.trouble) << found.sentence;
}

TEST(Record, OnAStreamWhoHasEnqueuedLessIsLate) {
  recorded r0(0, 2), r1(1, 2);
  r0.call(SUCL_KIND_ALLREDUCE, 5, record_state::enqueued);
  r0.call(SUCL_KIND_ALLREDUCE, 6, record_state::enqueued);
  r1.call(SUCL_KIND_ALLREDUCE, 5, record_state::enqueued);
  EXPECT_EQ(
      diagnose({r0.read(), r1.read()}).sentence,
      "rank 1 " + process_and_host() +
          " is late: rank 0 waits in allreduce of 6 fp32 with op sum, #2 of communicator "
          "1, which rank 1 has not called; its last call there was #1, allreduce of 5 fp32 with "
          "op sum");
}

TEST(Record, WhatACallDependsOnIsNotDone) {
  recorded r0(0, 2), r1(1, 2);
  r0.call(SUCL_KIND_ALLREDUCE, 5, record_state::posted);
  r1.call(SUCL_KIND_ALLREDUCE, 5, record_state::issued);
  EXPECT_EQ(diagnose({r0.read(), r1.read()}).sentence,
            "rank 1 " + process_and_host() +
                " has called allreduce of 5 fp32 with op sum, #1 of communicator "
                "1, but not begun it: what it depends on is not done there");
}

TEST(Record, NothingMovesWhereAllHaveBegun) {
  recorded r0(0, 2), r1(1, 2);
  r0.call(SUCL_KIND_ALLREDUCE, 5, record_state::posted);
  r1.call(SUCL_KIND_ALLREDUCE, 5, record_state::done);
  EXPECT_EQ(diagnose({r0.read(), r1.read()}).sentence,
            "all ranks have called allreduce of 5 fp32 with op sum, #1 of communicator 1, and rank "
            "0 has not finished it: the network, or the backend, makes no progress");
}

TEST(Record, AFailureIsTold) {
  recorded r0(0, 2), r1(1, 2);
  r0.writer.fail("the network is gone");
  const auto found = diagnose({read_record(r0.file), r1.read()});
  EXPECT_TRUE(found.trouble);
  EXPECT_EQ(found.sentence, "rank 0 of the job has failed: the network is gone");
}

// A rank that is killed while it writes once more, or has no room.
TEST(Record, AnUnfinishedFileReplacesNoWholeOne) {
  recorded r(0, 2);
  r.call(SUCL_KIND_ALLREDUCE, 100, record_state::posted);
  ASSERT_TRUE(r.recorder.write());
  r.call(SUCL_KIND_BROADCAST, 100, record_state::posted);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit room = before;
  room.rlim_cur = sizeof(record_header);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &room), 0);
  const bool written = r.recorder.write();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  const rank_history kept = read_record(r.file);
  ASSERT_EQ(kept.entries.size(), 1u);
  EXPECT_EQ(kept.entries[0].call.kind, SUCL_KIND_ALLREDUCE);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(r.file).parent_path()))
    ++files;
  EXPECT_EQ(files, 1u);
  EXPECT_EQ(r.read().entries.size(), 2u);
}

TEST(Record, RecordsOfOneJobBelongTogether) {
  recorded r0(0, 2), other(1, 2, 8);
  EXPECT_THROW(diagnose({r0.read(), other.read()}), error);
  EXPECT_THROW(diagnose({r0.read(), r0.read()}), error);
}

TEST(Record, DamagedFilesAreRefusedOrRead) {
  recorded r(0, 2);
  r.call(SUCL_KIND_ALLREDUCE, 5, record_state::posted);
  r.recorder.write();
  std::ifstream in(r.file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t at = 0; at < sizeof(record_header) + sizeof(record_entry); at += 23) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    std::ofstream(r.file, std::ios::binary) << damaged;
    try {
      EXPECT_FALSE(diagnose({read_record(r.file)}).sentence.empty());
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace sucl::core
