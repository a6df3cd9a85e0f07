// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include "unit/helpers.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>
#include <vector>

namespace sucl::base {
namespace {

// Standard error goes into a pipe while the object lives. Packets keep single writes apart.
class captured_writes {
 public:
  captured_writes() : m_before(::dup(STDERR_FILENO)) {
    if (::pipe2(m_pipe.data(), O_DIRECT | O_NONBLOCK) != 0) std::abort();
    ::dup2(m_pipe[1], STDERR_FILENO);
  }
  ~captured_writes() {
    restore();
    ::close(m_pipe[0]);
  }
  std::vector<std::string> lines() {
    restore();
    std::vector<std::string> result;
    std::array<char, 4096> text{};
    for (ssize_t n; (n = ::read(m_pipe[0], text.data(), text.size())) > 0;)
      result.emplace_back(text.data(), static_cast<std::size_t>(n));
    return result;
  }

 private:
  void restore() {
    if (m_before < 0) return;
    ::dup2(m_before, STDERR_FILENO);
    ::close(m_before);
    ::close(m_pipe[1]);
    m_before = -1;
  }
  int m_before;
  std::array<int, 2> m_pipe{};
};

struct Log : testing::Test {
  void TearDown() override {
    set_log_level(log_level::warn);
    set_rank(-1);
  }
};

TEST_F(Log, WritesALineInOneWrite) {
  captured_writes captured;
  set_log_level(log_level::debug);
  log(log_level::warn, "registry", "no ", 3, " of ", 4.5);
  set_rank(12);
  log(log_level::debug, "order", "two\nlines\n");
  EXPECT_EQ(captured.lines(), (std::vector<std::string>{"sucl[-] warn registry: no 3 of 4.5\n",
                                                        "sucl[12] debug order: two lines\n"}));
}

TEST_F(Log, LeavesOutWhatIsBelowItsLevel) {
  captured_writes captured;
  set_log_level(log_level::error);
  EXPECT_TRUE(log_enabled(log_level::error));
  EXPECT_FALSE(log_enabled(log_level::warn));
  log(log_level::warn, "x", "hidden");
  log_text(log_level::info, "x", "hidden");
  log(log_level::error, "x", "shown");
  EXPECT_EQ(captured.lines(), std::vector<std::string>{"sucl[-] error x: shown\n"});
}

TEST_F(Log, LinesOfThreadsDoNotMix) {
  captured_writes captured;
  set_log_level(log_level::info);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 3; ++i) log(log_level::info, "thread", "a line of its own");
    });
  for (auto& t : threads) t.join();
  const auto lines = captured.lines();
  EXPECT_EQ(lines.size(), 12u);
  for (const auto& line : lines) EXPECT_EQ(line, "sucl[-] info thread: a line of its own\n");
}

TEST(LogLevel, NamesAndBack) {
  for (const char* text : {"error", "warn", "info", "debug"})
    EXPECT_STREQ(name(parse_log_level(text)), text);
  EXPECT_EQ(test::error_of([] { parse_log_level("wran"); }),
            "sucl: 'wran' is not a log level [invalid_argument]. Did you mean 'warn'?");
}

TEST(LogLevelDeathTest, ComesFromTheEnvironment) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto say = [](const char* level) {
    if (level != nullptr)
      ::setenv("SUCL_LOG", level, 1);
    else
      ::unsetenv("SUCL_LOG");
    log(log_level::warn, "a", "warning");
    log(log_level::info, "a", "information");
    std::_Exit(0);
  };
  EXPECT_EXIT(say("info"), testing::ExitedWithCode(0), "warn a: warning\n.*info a: information\n");
  EXPECT_EXIT(say("error"), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(say(nullptr), testing::ExitedWithCode(0), "^sucl.-. warn a: warning\n$");
  EXPECT_EXIT(say("rubbish"), testing::ExitedWithCode(0), "^sucl.-. warn a: warning\n$");
}

}  // namespace
}  // namespace sucl::base
