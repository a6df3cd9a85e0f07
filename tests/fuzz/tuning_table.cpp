// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Tuning tables.
#include "fuzz/target.hpp"
#include "tune/table/table.hpp"

using namespace sucl;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::one_input(
      data, size, [](const std::string& text) { return tune::table_from_toml(text, "input"); },
      [](const tune::table& t) {
        const std::string text = tune::to_toml(t);
        const tune::table again = tune::table_from_toml(text, "again");
        fuzz::require(again.rows == t.rows && again.machine == t.machine &&
                          again.author == t.author && again.measured == t.measured,
                      "a table is read back as it is written");
        fuzz::require(tune::hash(again) == tune::hash(t), "its hash is the same");
        for (const tune::table_row& r : t.rows)
          tune::find(t, r.what, tune::call_form::blocking, r.memory, 4, 1, r.bytes.low);
      });
}
