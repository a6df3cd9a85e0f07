// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans in their text form.
#include "fuzz/plan.hpp"

using namespace sucl;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::one_input(
      data, size, [](const std::string& text) { return plan::from_text(text); },
      [](const plan::schedule& s) { fuzz::check_plan(s); });
}
