// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Configuration files. After a zero byte come variables of the environment, NAME=value, one a line.
#include "base/config/config.hpp"
#include "base/text.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/target.hpp"

using namespace sucl;

namespace {

base::variables variables_of(std::string_view text) {
  base::variables list;
  for (const std::string& line : base::split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string::npos)
      list.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return list;
}

base::config load(std::string_view text) {
  const auto end = text.find('\0');
  const fuzz::memory_file file(text.substr(0, end));
  const bool more = end != std::string_view::npos;
  return base::load_config(file.path(),
                           more ? variables_of(text.substr(end + 1)) : base::variables{});
}

// What a value is shown as sets the same value.
void check_row(const base::setting_row& row) {
  const bool of_all = row.key.find("backends.") != 0 && !row.environment.empty();
  const bool group = row.key.find('[') != std::string::npos || row.key.find("platforms.") == 0;
  if (!of_all || group || row.origin == "default" || row.value.empty()) return;
  for (const base::setting_row& again :
       base::load_config("/dev/null", {{row.environment, row.value}}).rows)
    if (again.key == row.key) fuzz::require(again.value == row.value, row.key.c_str());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::one_input(data, size, load, [](const base::config& c) {
    for (const base::setting_row& row : c.rows) {
      try {
        check_row(row);
      } catch (const error&) {
        // A backend or a platform that only this file knows.
        fuzz::require(row.key == "default_backend", row.key.c_str());
      }
    }
  });
}
