// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tools/launcher/abandoned_names.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace {

namespace fs = std::filesystem;
using sucl::tools::remove_abandoned_names;

// Jobs that end beside this test remove what is left in /dev/shm itself.
class abandoned_names : public testing::TestWithParam<const char*> {
 protected:
  abandoned_names() {
    std::string pattern = (fs::canonical(fs::temp_directory_path()) / "sucl_shm_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder can be made");
    folder = pattern;
  }
  ~abandoned_names() override { fs::remove_all(folder); }

  void remove(std::time_t since) { remove_abandoned_names(since, folder); }

  fs::path folder;
  const std::time_t begun = std::time(nullptr);
};

// Shared memory as an MPI library makes it.
class segment {
 public:
  segment(const fs::path& folder, const std::string& prefix)
      : m_path(folder / (prefix + "1234")),
        m_file(open(m_path.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600)) {
    if (m_file < 0 || ftruncate(m_file, size) != 0) throw std::runtime_error("no shared memory");
    m_data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, m_file, 0);
    if (m_data == MAP_FAILED) throw std::runtime_error("it cannot be mapped");
  }
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;
  ~segment() {
    close_file();
    unmap();
  }
  void close_file() {
    if (m_file >= 0) close(m_file);
    m_file = -1;
  }
  void unmap() {
    if (m_data != nullptr) munmap(m_data, size);
    m_data = nullptr;
  }
  bool has_name() const { return fs::exists(m_path); }

 private:
  static constexpr std::size_t size = 4096;
  fs::path m_path;
  int m_file;
  void* m_data = nullptr;
};

TEST_P(abandoned_names, are_removed_once_no_process_has_the_memory) {
  segment memory(folder, GetParam());
  remove(begun);
  EXPECT_TRUE(memory.has_name()) << "it is open and mapped";
  memory.close_file();
  remove(begun);
  EXPECT_TRUE(memory.has_name()) << "it is mapped";
  memory.unmap();
  remove(std::time(nullptr) + 3600);
  EXPECT_TRUE(memory.has_name()) << "it is older than the job";
  remove(begun);
  EXPECT_FALSE(memory.has_name());
}

TEST_P(abandoned_names, stay_while_a_file_is_open) {
  segment memory(folder, GetParam());
  memory.unmap();
  remove(begun);
  EXPECT_TRUE(memory.has_name());
}

INSTANTIATE_TEST_SUITE_P(mpis, abandoned_names,
                         testing::Values("mpich_shm_", "Intel_MPI_", "ucx_shm_posix_"));

using names_of_other_programs = abandoned_names;

TEST_P(names_of_other_programs, stay) {
  segment memory(folder, GetParam());
  memory.close_file();
  memory.unmap();
  remove(0);
  EXPECT_TRUE(memory.has_name());
}

INSTANTIATE_TEST_SUITE_P(others, names_of_other_programs,
                         testing::Values("other_program_", "my_mpich_shm_", "mpich_"));

}  // namespace
