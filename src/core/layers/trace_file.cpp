// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/layers/trace_file.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

namespace sucl::core {
namespace {

constexpr std::size_t buffered_bytes = 64 * 1024;
constexpr std::int64_t buffered_ns = 1'000'000'000;
constexpr std::string_view closing = "\n]\n";

}  // namespace

std::int64_t steady_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

int open_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor >= 0) return descriptor;
  base::fail(errc::configuration,
             "cannot write the trace file '" + path + "': " + std::strerror(errno),
             "Name a file in an existing directory that this user may write to.");
}

// Opens the file, or one beside it where another process writes it: processes that have several
// ranks number these otherwise than themselves, and may have communicators of both.
int open_own(std::string& path) {
  int descriptor = open_file(path);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor);
    const std::filesystem::path taken = path;
    path = taken.parent_path() / (taken.stem().string() + ".process-" + std::to_string(getpid()) +
                                  taken.extension().string());
    base::log(base::log_level::warn, "trace", "another process writes '", taken.string(),
              "', so this one's timeline is in '", path, "'");
    descriptor = open_file(path);
  }
  if (ftruncate(descriptor, 0) != 0)  // as of a pipe
    base::log(base::log_level::debug, "trace", "'", path, "' keeps what it has");
  return descriptor;
}

}  // namespace

trace_file& trace_file::at(const std::string& path) {
  static std::mutex mutex;
  // Never destroyed: a communicator may end after the statics of this library.
  static auto& files = *new std::map<std::string, std::unique_ptr<trace_file>>;
  const std::lock_guard lock(mutex);
  const auto found = files.find(path);
  if (found != files.end()) return *found->second;
  std::string own = path;
  const int descriptor = open_own(own);
  auto& entry = files[path];
  entry.reset(new trace_file(std::move(own), descriptor));
  return *entry;
}

trace_file::trace_file(std::string path, int descriptor)
    : m_path(std::move(path)),
      m_descriptor(descriptor),
      m_pending("["),
      m_written_at(steady_now()) {}

void trace_file::add(std::string_view event) noexcept {
  const std::lock_guard lock(m_mutex);
  if (m_broken) return;
  try {
    m_pending += m_first ? "\n" : ",\n";
    m_pending += event;
  } catch (...) {
    m_broken = true;  // no memory: what is in the file stays
    return;
  }
  m_first = false;
  if (m_pending.size() >= buffered_bytes || steady_now() - m_written_at >= buffered_ns)
    write_locked();
}

void trace_file::flush() noexcept {
  const std::lock_guard lock(m_mutex);
  if (!m_pending.empty()) write_locked();
}

// The new events replace the closing bracket, so that the file is an array after every write.
void trace_file::write_locked() noexcept {
  if (m_broken) return;
  const std::size_t events = m_pending.size();
  m_pending += closing;
  std::size_t written = 0;
  while (written < m_pending.size()) {
    const ssize_t bytes =
        ::pwrite(m_descriptor, m_pending.data() + written, m_pending.size() - written,
                 m_end + static_cast<std::int64_t>(written));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      m_broken = true;
      base::log(base::log_level::warn, "trace", "cannot write to '", m_path,
                "': ", std::strerror(errno), "; the timeline ends here");
      return;
    }
    written += static_cast<std::size_t>(bytes);
  }
  m_end += static_cast<std::int64_t>(events);
  m_pending.clear();
  m_written_at = steady_now();
}

std::optional<std::int64_t> trace_file::offset() const {
  const std::lock_guard lock(m_mutex);
  return m_offset;
}

void trace_file::set_offset(std::int64_t nanoseconds) {
  const std::lock_guard lock(m_mutex);
  m_offset = nanoseconds;
}

}  // namespace sucl::core
