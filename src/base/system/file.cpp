// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/system/file.hpp"

#include "base/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sucl::base {
namespace {

class descriptor {
 public:
  // Without O_NONBLOCK a pipe without a writer would never be opened.
  explicit descriptor(const std::string& path)
      : m_number(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (m_number >= 0) ::close(m_number);
  }
  int number() const noexcept { return m_number; }

 private:
  int m_number;
};

bool is_dev_null(const struct stat& about) {
  return S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3);
}

// What stands in the way of reading what was opened; empty if nothing does.
std::string obstacle(const struct stat& about, std::size_t most) {
  if (S_ISDIR(about.st_mode)) return "it is a directory";
  if (S_ISFIFO(about.st_mode)) return "it is a pipe, not a regular file";
  if (!S_ISREG(about.st_mode) && !is_dev_null(about))
    return "it is a device or a socket, not a regular file";
  if (static_cast<std::size_t>(about.st_size) > most)
    return "it has " + std::to_string(about.st_size) + " bytes, more than the " +
           print_bytes(most) + " that are read";
  return {};
}

}  // namespace

file_content read_regular_file(const std::string& path, std::size_t most) {
  const descriptor file(path);
  struct stat about{};
  if (file.number() < 0 || ::fstat(file.number(), &about) != 0) return {{}, std::strerror(errno)};
  if (std::string why = obstacle(about, most); !why.empty()) return {{}, std::move(why)};
  // Files of /proc have a size of 0, and others may grow: they are read to their end.
  constexpr std::size_t piece = std::size_t{64} << 10;
  std::string text;
  std::size_t length = 0;
  while (true) {
    text.resize(std::max(length + piece, static_cast<std::size_t>(about.st_size) + 1));
    const ssize_t got = ::read(file.number(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {{}, std::strerror(errno)};
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
    if (length > most) return {{}, "it has more than the " + print_bytes(most) + " that are read"};
  }
  text.resize(length);
  return {std::move(text), {}};
}

std::string cache_folder() {
  const char* cache = secure_getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::string(cache) + "/sucl";
  const char* home = secure_getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/sucl" : std::string();
}

}  // namespace sucl::base
