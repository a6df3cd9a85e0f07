// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans of MSCCL, its XML: each is refused, or becomes a schedule on which there is a verdict.
#include "plan/foreign/msccl_xml.hpp"
#include "fuzz/foreign_plan.hpp"

using namespace sucl;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::one_input(
      data, size, [](const std::string& text) { return plan::from_msccl_xml(text); },
      [](const plan::schedule& s) { fuzz::check_foreign_plan(s); });
}
