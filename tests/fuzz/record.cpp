// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Flight records: each is refused, or there is a diagnosis of it, alone and beside that of a second
// rank that has done the same.
#include "fuzz/memory_file.hpp"
#include "fuzz/target.hpp"

#include "core/record/diagnose.hpp"

using namespace sucl;

namespace {

core::rank_history of_next_rank(core::rank_history h) {
  h.rank = (h.rank + 1) % h.size;
  for (core::record_member& m : h.members) m.rank = (m.rank + 1) % m.size;
  return h;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::one_input(
      data, size,
      [](const std::string& text) { return core::read_record(fuzz::memory_file(text).path()); },
      [](const core::rank_history& h) {
        fuzz::require(!core::diagnose({h}).sentence.empty(), "there is a diagnosis of one rank");
        if (h.size == 1) return;
        const core::record_diagnosis two = core::diagnose({h, of_next_rank(h)});
        fuzz::require(!two.sentence.empty(), "there is a diagnosis of two ranks");
      });
}
