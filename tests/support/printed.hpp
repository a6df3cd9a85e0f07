// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace sucl_test {

// Launchers end all ranks as soon as one has failed. A rank that is about to fail calls this, and
// it returns once `ranks` of them have printed what the test looks for. The ranks meet by files in
// the folder that tests/support/ended.cmake makes for each command.
inline void wait_until_printed(int rank, int ranks) {
  namespace fs = std::filesystem;
  const char* folder = std::getenv("SUCL_TEST_FOLDER");
  if (folder == nullptr) return;
  std::ofstream(fs::path(folder) / ("printed." + std::to_string(rank))).close();
  const auto all = [&] {
    int there = 0;
    for (const auto& file : fs::directory_iterator(folder))
      there += file.path().filename().string().rfind("printed.", 0) == 0;
    return there >= ranks;
  };
  // The test fails by what is missing in its output, not here.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!all() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace sucl_test
