// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/system/available_memory.hpp"

#include "base/sizes.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace sucl::base {
namespace {

std::uint64_t rest(std::uint64_t all, std::uint64_t used) { return all > used ? all - used : 0; }

// The number in a file that has nothing else; "max" is no limit.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (!(file >> text)) return std::nullopt;
  if (text == "max") return unlimited;
  std::uint64_t n = 0;
  const auto [stop, wrong] = std::from_chars(text.data(), text.data() + text.size(), n);
  return wrong == std::errc{} ? std::optional(n) : std::nullopt;
}

// The number behind a word at the begin of a line; 0: there is none.
std::uint64_t number_after(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line);
    std::string name;
    std::uint64_t n = 0;
    if (text >> name >> n && name == word) return n;
  }
  return 0;
}

/// The files of one version of control groups.
struct group_files {
  const char *folder, *limit, *used, *cache, *swap_limit, *swap_used;
};
constexpr group_files second{"/sys/fs/cgroup", "/memory.max",      "/memory.current",
                             "inactive_file",  "/memory.swap.max", "/memory.swap.current"};
constexpr group_files first{"/sys/fs/cgroup/memory",
                            "/memory.limit_in_bytes",
                            "/memory.usage_in_bytes",
                            "total_inactive_file",
                            "",
                            ""};

// What a group and those that it is in leave. The first one's files are those of the machine, or of
// the container.
std::uint64_t left_by(const std::string& root, const group_files& f, std::string path,
                      std::uint64_t free_swap) {
  std::uint64_t least = unlimited;
  for (;;) {
    const std::string folder = root + f.folder + path;
    const auto limit = number_in(folder + f.limit), used = number_in(folder + f.used);
    if (limit && used && *limit != unlimited) {
      const std::uint64_t cache = number_after(folder + "/memory.stat", f.cache);
      const auto most = number_in(folder + f.swap_limit), swapped = number_in(folder + f.swap_used);
      const std::uint64_t swap =
          most && swapped ? std::min(free_swap, rest(*most, *swapped)) : free_swap;
      least = std::min(least, sum(rest(*limit, rest(*used, cache)), swap));
    }
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

// Lines as "0::/user/job" and "4:cpu,memory:/job".
std::uint64_t left_by_groups(const std::string& root, std::uint64_t free_swap) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::uint64_t least = unlimited;
  for (std::string line; std::getline(file, line);) {
    const auto controllers = line.find(':');
    const auto path = controllers == line.npos ? line.npos : line.find(':', controllers + 1);
    if (path == line.npos) continue;
    const std::string names = "," + line.substr(controllers + 1, path - controllers - 1) + ",";
    std::string group = line.substr(path + 1);
    if (group == "/") group.clear();
    if (names == ",,")
      least = std::min(least, left_by(root, second, group, free_swap));
    else if (names.find(",memory,") != names.npos)
      least = std::min(least, left_by(root, first, group, free_swap));
  }
  return least;
}

}  // namespace

std::uint64_t available_memory(const std::string& root) {
  const std::string info = root + "/proc/meminfo";
  constexpr std::uint64_t unit = 1024;
  const std::uint64_t available = number_after(info, "MemAvailable:") * unit;
  const std::uint64_t swap = number_after(info, "SwapFree:") * unit;
  const std::uint64_t machine = available ? sum(available, swap) : unlimited;
  return std::min(machine, left_by_groups(root, swap));
}

void allocated_memory::add(const void* base, std::uint64_t bytes) {
  const std::lock_guard lock(m_mutex);
  m_ranges.push_back({base, bytes});
}

void allocated_memory::remove(const void* base) {
  const std::lock_guard lock(m_mutex);
  std::erase_if(m_ranges, [&](const range& r) { return r.base == base; });
}

// By a look at some pages of each range, at equal distances.
std::uint64_t allocated_memory::untouched() const {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr std::uint64_t looks = 4096;
  std::uint64_t bytes = 0;
  const std::lock_guard lock(m_mutex);
  for (const range& r : m_ranges) {
    const std::uint64_t distance = round_up(std::max(r.bytes / looks, page), page);
    for (std::uint64_t at = 0; at < r.bytes; at += distance) {
      unsigned char present = 0;
      auto* const address = static_cast<char*>(const_cast<void*>(r.base)) + at;
      if (mincore(address, page, &present) == 0 && (present & 1) == 0)
        bytes += std::min(distance, r.bytes - at);
    }
  }
  return bytes;
}

// Never destroyed: communicators may end after it.
allocated_memory& allocated_memory::of_process() {
  static auto* const all = new allocated_memory;
  return *all;
}

}  // namespace sucl::base
