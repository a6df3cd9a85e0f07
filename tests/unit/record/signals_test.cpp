// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/record/flight_recorder.hpp"
#include "core/record/record_file.hpp"
#include "core/record/record_signals.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace sucl::core {
namespace {

struct sigaction action_of(int signal) {
  struct sigaction now{};
  sigaction(signal, nullptr, &now);
  return now;
}

bool is_default(int signal) { return action_of(signal).sa_handler == SIG_DFL; }

void program_handler(int) {}
void library_handler(int) { _exit(31); }

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction own{};
  own.sa_handler = handler;
  sigaction(signal, &own, nullptr);
}

// The same in what a death test forks.
const std::string& folder() {
  static const std::string name = testing::TempDir() + "signals_test." + std::to_string(getpid());
  return name;
}
std::string file() { return folder() + "/" + record_name(7, 0); }
bool is_written() { return access(file().c_str(), F_OK) == 0; }

void record_in(flight_recorder& recorder) { recorder.begin(7, 0, 2, folder(), true); }

sucl_operation barrier() {
  sucl_operation o{};
  o.kind = SUCL_KIND_BARRIER;
  return o;
}

class Signals : public testing::Test {
 protected:
  void SetUp() override {
    folder();
    for (const int s : {SIGSEGV, SIGTERM}) set_handler(s, SIG_DFL);
    note_own_signals();
  }
  void TearDown() override {
    for (const int s : {SIGSEGV, SIGTERM}) set_handler(s, SIG_DFL);
    std::remove(file().c_str());
    rmdir(folder().c_str());
  }
};

TEST_F(Signals, AreAsBeforeAfterTheLastRecorder) {
  {
    flight_recorder first, second;
    record_in(first);
    EXPECT_FALSE(is_default(SIGSEGV));
    EXPECT_FALSE(is_default(SIGTERM));
    record_in(second);
  }
  EXPECT_TRUE(is_default(SIGSEGV));
  EXPECT_TRUE(is_default(SIGTERM));
}

TEST_F(Signals, StayTheProgramsWhereItHandlesThem) {
  set_handler(SIGSEGV, program_handler);
  set_handler(SIGTERM, SIG_IGN);
  note_own_signals();
  flight_recorder recorder;
  record_in(recorder);
  EXPECT_EQ(action_of(SIGSEGV).sa_handler, program_handler);
  EXPECT_EQ(action_of(SIGTERM).sa_handler, SIG_IGN);
}

TEST_F(Signals, StayTheProgramsWhereItTakesThemLater) {
  {
    flight_recorder first, second;
    record_in(first);
    set_handler(SIGSEGV, program_handler);
    record_in(second);
    EXPECT_EQ(action_of(SIGSEGV).sa_handler, program_handler);
  }
  EXPECT_EQ(action_of(SIGSEGV).sa_handler, program_handler);
}

TEST_F(Signals, OfALibraryAreTakenForCrashesOnly) {
  set_handler(SIGTERM, library_handler);
  flight_recorder recorder;
  record_in(recorder);
  EXPECT_EQ(action_of(SIGTERM).sa_handler, library_handler);
}

using SignalsDeathTest = Signals;

TEST_F(SignalsDeathTest, ACrashIsWrittenAndHandedOn) {
  const auto crash = [] {
    set_handler(SIGSEGV, library_handler);
    flight_recorder recorder;
    record_in(recorder);
    void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile int*>(page) = 1;
  };
  EXPECT_EXIT(crash(), testing::ExitedWithCode(31), "last operations of this rank are in ");
  EXPECT_EQ(read_record(file()).signal, SIGSEGV);
}

TEST_F(SignalsDeathTest, ARequestIsWrittenIfAnOperationIsUnderWay) {
  const auto request = [](bool busy) {
    flight_recorder recorder;
    record_in(recorder);
    record_writer writer;
    writer.begin(recorder, 1, 0, 2);
    writer.note(barrier(), 1, busy ? record_state::posted : record_state::done);
    raise(SIGTERM);
  };
  EXPECT_EXIT(request(false), testing::KilledBySignal(SIGTERM), "");
  EXPECT_FALSE(is_written());
  EXPECT_EXIT(request(true), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(read_record(file()).signal, SIGTERM);
}

TEST_F(SignalsDeathTest, ARaisedCrashEndsTheProcessByIt) {
  const auto crash = [] {
    flight_recorder recorder;
    record_in(recorder);
    raise(SIGSEGV);
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGSEGV), "last operations of this rank are in ");
}

TEST_F(SignalsDeathTest, AChildOfTheRankWritesNothing) {
  const auto crash = [] {
    flight_recorder recorder;
    record_in(recorder);
    if (fork() == 0) raise(SIGSEGV);
    raise(SIGKILL);
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGKILL), "^$");
  EXPECT_FALSE(is_written());
}

}  // namespace
}  // namespace sucl::core
