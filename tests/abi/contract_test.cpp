// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The words of the contract: what a layout cannot show, such as the arguments of a function.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string without_comments(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "/*") == 0)
      i = text.find("*/", i) + 2;
    else
      result += text[i++];
  }
  return result;
}

// The declarations alone, one to a line, whatever their layout in the file.
std::string declarations(const std::string& header) {
  std::string result;
  std::string line;
  int depth = 0;
  const auto end_line = [&] {
    if (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) result += line + "\n";
    line.clear();
  };
  const std::string text = without_comments(header);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool directive = !line.empty() && line[0] == '#';
    if (c == '\\' && text[i + 1] == '\n') continue;
    if (c == '\n' && directive && text[i - 1] != '\\') {
      end_line();
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(c))) {
      if (!line.empty() && line.back() != ' ') line += ' ';
      continue;
    }
    if (c == '#') end_line();
    line += c;
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (!directive && depth == 0 && (c == ';' || c == '{' || c == ',')) end_line();
  }
  end_line();
  return result;
}

TEST(contract, is_worded_as_it_was) {
  const std::string folder = SUCL_TEST_SOURCE_DIR "/include/sucl/abi/";
  const std::string now =
      declarations(read(folder + "backend.h")) + declarations(read(folder + "bootstrap.h"));
  const std::string frozen = read(SUCL_TEST_SOURCE_DIR "/tests/abi/contract.txt");
  const std::string written = SUCL_TEST_BINARY_DIR "/contract.txt";
  std::ofstream(written) << now;
  EXPECT_EQ(now, frozen) << "The contract with modules has changed. Modules that exist must keep "
                            "working: only append, and raise SUCL_ABI_MINOR. If that is so, copy "
                         << written << " to tests/abi/contract.txt and add to frozen.def.";
}

}  // namespace
