// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

namespace sucl::base {
namespace {

constexpr std::array<const char*, 4> names{"error", "warn", "info", "debug"};

constexpr int not_read = -1;
std::atomic<int> current_level{not_read};
std::atomic<int> current_rank{-1};

int find_level(std::string_view text) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) return static_cast<int>(i);
  return not_read;
}

// A wrong SUCL_LOG is reported as an error when the configuration is loaded; until then, warn.
int read_level() noexcept {
  const char* text = secure_getenv("SUCL_LOG");
  const int found = text ? find_level(trim(text)) : not_read;
  const int level = found == not_read ? static_cast<int>(log_level::warn) : found;
  int expected = not_read;
  return current_level.compare_exchange_strong(expected, level) ? level : expected;
}

void write_all(const std::string& line) noexcept {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

const char* name(log_level level) noexcept {
  const auto index = static_cast<std::size_t>(level);
  return index < names.size() ? names[index] : "unknown";
}

log_level parse_log_level(std::string_view text) {
  const int level = find_level(trim(text));
  if (level == not_read)
    fail(errc::invalid_argument, "'" + std::string(text) + "' is not a log level",
         did_you_mean(text, std::vector<std::string>(names.begin(), names.end())));
  return static_cast<log_level>(level);
}

bool log_enabled(log_level level) noexcept {
  int most = current_level.load(std::memory_order_relaxed);
  if (most == not_read) most = read_level();
  return static_cast<int>(level) <= most;
}

void set_log_level(log_level level) noexcept {
  current_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void set_rank(int rank) noexcept { current_rank.store(rank, std::memory_order_relaxed); }

void log_text(log_level level, std::string_view component, std::string_view text) noexcept {
  if (!log_enabled(level)) return;
  try {
    const int rank = current_rank.load(std::memory_order_relaxed);
    std::string line = "sucl[" + (rank < 0 ? std::string("-") : std::to_string(rank)) + "] ";
    line += name(level);
    line += ' ';
    line += component;
    line += ": ";
    const std::size_t start = line.size();
    line += trim(text);
    for (std::size_t i = start; i < line.size(); ++i)
      if (line[i] == '\n' || line[i] == '\r') line[i] = ' ';
    line += '\n';
    write_all(line);
  } catch (...) {
    // Out of memory: a log line is not worth failing for.
  }
}

}  // namespace sucl::base
