// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/failure/setup_steps.hpp"
#include "core/failure/presence.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

// What a launcher says to a rank of three.
class launched_environment {
 public:
  launched_environment() {
    set("PMIX_NAMESPACE", "setup-steps-" + std::to_string(getpid()));
    set("PMI_SIZE", "3");
    set("MPI_LOCALNRANKS", "3");
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_RANK"})
      set(name, std::nullopt);
  }
  launched_environment(const launched_environment&) = delete;
  launched_environment& operator=(const launched_environment&) = delete;
  ~launched_environment() {
    while (!m_before.empty()) {
      const auto [name, value] = std::move(m_before.back());
      m_before.pop_back();
      put(name, value);
    }
  }
  void set(const char* name, const std::optional<std::string>& value) {
    const char* before = std::getenv(name);
    m_before.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
    put(name, value);
  }

 private:
  static void put(const char* name, const std::optional<std::string>& value) {
    value ? setenv(name, value->c_str(), 1) : unsetenv(name);
  }
  std::vector<std::pair<const char*, std::optional<std::string>>> m_before;
};

// The third rank does not come. The first one, which gives up before the second, must stay until
// that has done so as well, or be taken for missing.
TEST(setup_steps, a_rank_that_gives_up_at_the_start_stays_present) {
  launched_environment environment;
  environment.set("PMI_RANK", "1");
  const presence second;
  environment.set("PMI_RANK", "0");
  setup_steps steps;
  bool given_up = false;
  steps.begin(100ms, [&] {
    given_up = true;
    EXPECT_EQ(second.poll().missing, std::vector{2});
  });
  const auto begun = setup_steps::clock::now();
  setup_step step(steps, "the start");
  while (keep_waiting() == SUCL_SUCCESS) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(given_up);
  EXPECT_GE(setup_steps::clock::now() - begun, 100ms + 1s);
}

}  // namespace
}  // namespace sucl::core
