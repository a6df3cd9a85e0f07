// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Helpers of the unit tests.
#pragma once

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace sucl::test {

/// A fresh directory that is the working directory while the object lives.
class working_directory {
 public:
  working_directory() : m_before(std::filesystem::current_path()) {
    std::string pattern = (std::filesystem::temp_directory_path() / "sucl_test_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    m_path = pattern;
    std::filesystem::current_path(m_path);
  }
  ~working_directory() {
    std::error_code ignored;
    std::filesystem::current_path(m_before, ignored);
    std::filesystem::remove_all(m_path, ignored);
  }
  working_directory(const working_directory&) = delete;
  working_directory& operator=(const working_directory&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream file(m_path / name, std::ios::binary);
    file << text;
  }

 private:
  std::filesystem::path m_before;
  std::filesystem::path m_path;
};

/// The whole message of the sucl::error that `call` throws; "" if it throws none.
template <class Call>
std::string error_of(Call&& call, errc* code = nullptr) {
  try {
    call();
  } catch (const error& e) {
    if (code != nullptr) *code = e.code();
    return e.what();
  }
  return {};
}

}  // namespace sucl::test
