// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A growing JSON array of trace events in a file.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace sucl::core {

/// Nanoseconds of this process's steady clock.
std::int64_t steady_now() noexcept;

/// One file of events, shared by the communicators of a process. Any thread.
class trace_file {
 public:
  /// The file of this path, emptied at the first call for it, and kept until the process ends. One
  /// beside it, whose name has the number of this process, where another process has the file.
  /// Throws sucl::error (errc::configuration) if it cannot be written.
  static trace_file& at(const std::string& path);

  /// Adds an event: a JSON object without a line break.
  void add(std::string_view event) noexcept;
  void flush() noexcept;

  /// What to add to steady_now() to get the time of the job's clock; unset until it is known.
  std::optional<std::int64_t> offset() const;
  void set_offset(std::int64_t nanoseconds);

  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;

 private:
  trace_file(std::string path, int descriptor);
  void write_locked() noexcept;

  mutable std::mutex m_mutex;
  std::string m_path;
  int m_descriptor;
  std::int64_t m_end = 0;  // of the events in the file; the closing bracket follows
  bool m_first = true;
  bool m_broken = false;
  std::string m_pending;
  std::int64_t m_written_at = 0;
  std::optional<std::int64_t> m_offset;
};

}  // namespace sucl::core
