// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a rank's end becomes known to `sucl run`, whatever the launcher makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sucl::tools {

/// What the process that watches over a rank reports.
struct rank_report {
  enum class what : std::int32_t { started = 1, ended = 2, stopped = 3, continued = 4 };
  what event = what::started;
  std::int32_t rank = -1;
  std::int32_t status = 0;  ///< of waitpid, where it has ended
  std::int32_t reserved = 0;
  std::int64_t when = 0;  ///< ns of the machine's steady clock
};

/// Where the ranks of this machine report: a socket without a path in the file system, so that
/// nothing is left behind, whichever process is killed.
class report_inbox {
 public:
  /// Without a name where the system gives no socket; then nothing arrives.
  report_inbox();
  ~report_inbox();
  report_inbox(const report_inbox&) = delete;
  report_inbox& operator=(const report_inbox&) = delete;

  const std::string& name() const { return m_name; }
  /// The next report that is here.
  std::optional<rank_report> next();
  /// Has a rank killed.
  void end(int rank);
  /// Lets go of those that watch over ranks which have ended.
  void release();

 private:
  void take_new();
  struct line {
    int socket;
    int rank;
    bool over;  ///< the rank has ended
  };
  int m_socket = -1;
  std::vector<line> m_lines;
  std::string m_name;
};

/// The other end.
class report_line {
 public:
  /// To the inbox of that name; there may be none, as on another machine.
  explicit report_line(const std::string& inbox);
  ~report_line();
  report_line(const report_line&) = delete;
  report_line& operator=(const report_line&) = delete;

  bool send(const rank_report& report);
  enum class word { none, end, gone };  ///< gone: the inbox is, or there was none
  word listen();

 private:
  int m_socket = -1;
};

/// The exit code that a shell would give for a status of waitpid.
int shell_code(int status);
/// "was ended by signal 9 (Killed)", "ended with status 3".
std::string describe_end(int status);
/// A line on a rank that is ended because another one has failed.
std::string describe_late_end(int rank, int failed);

}  // namespace sucl::tools
