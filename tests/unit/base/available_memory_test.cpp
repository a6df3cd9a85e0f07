// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What the system says of memory, in trees of files as it has them.
#include "base/system/available_memory.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>

namespace sucl::base {
namespace {

class tree {
 public:
  explicit tree(const std::map<std::string, std::string>& files) {
    std::string name = (std::filesystem::temp_directory_path() / "sucl-memory-XXXXXX").string();
    m_root = mkdtemp(name.data());
    for (const auto& [path, text] : files) {
      const auto file = m_root / path;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file) << text;
    }
  }
  ~tree() { std::filesystem::remove_all(m_root); }
  std::uint64_t available() const { return available_memory(m_root.string()); }

 private:
  std::filesystem::path m_root;
};

const std::string machine =
    "MemTotal:       1000 kB\nMemAvailable:    500 kB\nSwapTotal: 50 kB\nSwapFree:   20 kB\n";
constexpr std::uint64_t kibi = 1024;

TEST(available_memory, is_that_of_the_machine_with_swap) {
  EXPECT_EQ(tree({{"proc/meminfo", machine}}).available(), 520 * kibi);
}

TEST(available_memory, is_unlimited_where_nothing_is_said) {
  EXPECT_EQ(tree({}).available(), std::numeric_limits<std::uint64_t>::max());
}

TEST(available_memory, ends_at_the_limit_of_any_group_above) {
  std::map<std::string, std::string> files{
      {"proc/meminfo", machine},
      {"proc/self/cgroup", "0::/job/step\n"},
      {"sys/fs/cgroup/job/step/memory.max", "max\n"},
      {"sys/fs/cgroup/job/step/memory.current", "90000\n"},
      {"sys/fs/cgroup/job/memory.max", "200000\n"},
      {"sys/fs/cgroup/job/memory.current", "100000\n"},
      {"sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 30000\n"},
      {"sys/fs/cgroup/job/memory.swap.max", "0\n"},
      {"sys/fs/cgroup/job/memory.swap.current", "0\n"}};
  EXPECT_EQ(tree(files).available(), 130000u);  // what the group has of files gives way
  files["sys/fs/cgroup/job/memory.swap.max"] = "max\n";
  EXPECT_EQ(tree(files).available(), 130000 + 20 * kibi);
  files["sys/fs/cgroup/job/memory.current"] = "300000\n";
  EXPECT_EQ(tree(files).available(), 20 * kibi);
}

TEST(available_memory, of_the_first_version_of_groups_and_in_a_container) {
  EXPECT_EQ(tree({{"proc/meminfo", machine},
                  {"proc/self/cgroup", "3:cpu,cpuacct:/a\n2:memory:/job\n"},
                  {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9000\n"},
                  {"sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000\n"},
                  {"sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 1000\n"}})
                .available(),
            6000 + 20 * kibi);
  // A path of outside is not there.
  EXPECT_EQ(tree({{"proc/self/cgroup", "0::/outside/job\n"},
                  {"sys/fs/cgroup/memory.max", "9000\n"},
                  {"sys/fs/cgroup/memory.current", "4000\n"}})
                .available(),
            5000u);
}

TEST(allocated_memory, counts_what_has_no_pages) {
  constexpr std::uint64_t bytes = 64 << 20, half = bytes / 2;
  void* const made =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(made, MAP_FAILED);
  allocated_memory all;
  all.add(made, bytes);
  EXPECT_EQ(all.untouched(), bytes);
  std::fill_n(static_cast<char*>(made), half, 'x');
  EXPECT_EQ(all.untouched(), half);
  all.remove(made);
  EXPECT_EQ(all.untouched(), 0u);
  munmap(made, bytes);
}

}  // namespace
}  // namespace sucl::base
