// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a rank's end becomes known to `sucl run`, whatever the launcher makes of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace sucl::tools {

/// What the process that watches over a rank tells.
struct rank_report {
  enum class what : std::int32_t { started = 1, ended = 2, stopped = 3, continued = 4 };
  what event = what::started;
  std::int32_t rank = -1;
  std::int32_t status = 0;  ///< of waitpid, where it has ended
};

/// Where reports of ranks on this machine arrive: a datagram socket without a place in the file
/// system, so that nothing is left behind, whoever is killed.
class report_inbox {
 public:
  /// Without a name where the system gives no socket; then nothing arrives.
  report_inbox();
  ~report_inbox();
  report_inbox(const report_inbox&) = delete;
  report_inbox& operator=(const report_inbox&) = delete;

  const std::string& name() const { return m_name; }
  /// The next one that is here, of this user's processes only.
  std::optional<rank_report> next();

 private:
  int m_socket = -1;
  std::string m_name;
};

/// Sends one to the inbox of that name. False if nobody is there, as on another machine.
bool send_report(const std::string& inbox, const rank_report& report);

/// The exit code that a shell would give for a status of waitpid.
int shell_code(int status);
/// "was ended by signal 9 (Killed)", "ended with status 3".
std::string describe_end(int status);

}  // namespace sucl::tools
