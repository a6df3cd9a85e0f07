// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tools/launcher/abandoned_names.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ctime>
#include <stdexcept>
#include <string>

namespace {

using sucl::tools::remove_abandoned_names;

// Shared memory as an MPI library makes it.
class segment {
 public:
  explicit segment(const std::string& prefix)
      : m_path("/dev/shm/" + prefix + "sucl_test_" + std::to_string(getpid())),
        m_file(open(m_path.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600)) {
    if (m_file < 0 || ftruncate(m_file, size) != 0) throw std::runtime_error("no shared memory");
    m_data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, m_file, 0);
    if (m_data == MAP_FAILED) throw std::runtime_error("it cannot be mapped");
  }
  ~segment() {
    close_file();
    unmap();
    unlink(m_path.c_str());
  }
  void close_file() {
    if (m_file >= 0) close(m_file);
    m_file = -1;
  }
  void unmap() {
    if (m_data != nullptr) munmap(m_data, size);
    m_data = nullptr;
  }
  bool has_name() const { return access(m_path.c_str(), F_OK) == 0; }

 private:
  static constexpr std::size_t size = 4096;
  std::string m_path;
  int m_file;
  void* m_data = nullptr;
};

class abandoned_names : public testing::TestWithParam<const char*> {};

TEST_P(abandoned_names, are_removed_once_no_process_has_the_memory) {
  const std::time_t begun = std::time(nullptr);
  segment memory(GetParam());
  remove_abandoned_names(begun);
  EXPECT_TRUE(memory.has_name()) << "it is open and mapped";
  memory.close_file();
  remove_abandoned_names(begun);
  EXPECT_TRUE(memory.has_name()) << "it is mapped";
  memory.unmap();
  remove_abandoned_names(std::time(nullptr) + 3600);
  EXPECT_TRUE(memory.has_name()) << "it is older than the job";
  remove_abandoned_names(begun);
  EXPECT_FALSE(memory.has_name());
}

TEST_P(abandoned_names, stay_while_a_file_is_open) {
  const std::time_t begun = std::time(nullptr);
  segment memory(GetParam());
  memory.unmap();
  remove_abandoned_names(begun);
  EXPECT_TRUE(memory.has_name());
}

INSTANTIATE_TEST_SUITE_P(mpis, abandoned_names,
                         testing::Values("mpich_shm_", "Intel_MPI_", "ucx_shm_posix_"));

TEST(names, of_other_programs_stay) {
  segment memory("other_program_");
  memory.close_file();
  memory.unmap();
  remove_abandoned_names(0);
  EXPECT_TRUE(memory.has_name());
}

}  // namespace
