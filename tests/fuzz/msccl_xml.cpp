// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans of MSCCL and MSCCL++: each is refused, or becomes a schedule on which there is a verdict.
#include "plan/foreign/msccl_xml.hpp"
#include "fuzz/target.hpp"
#include "plan/foreign/mscclpp_json.hpp"
#include "plan/verify/verify.hpp"

using namespace sucl;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::one_input(
      data, size,
      [](const std::string& text) {
        const bool json = !text.empty() && text.front() == '{';
        return json ? plan::from_mscclpp_json(text) : plan::from_msccl_xml(text);
      },
      [](const plan::schedule& s) {
        if (plan::instruction_count(s) > 20000) return;
        try {
          const plan::verdict v = plan::verify(s, plan::proof_limits{1'000'000, 100'000'000});
          fuzz::require(v || !v.message.empty(), "a fault has a message");
        } catch (const error& e) {
          fuzz::require(e.code() == errc::out_of_memory, "only a proof that is too large fails");
        }
      });
}
