// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Descriptions of machines, and a plan simulated on each.
#include "fuzz/target.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "sim/model/topology_json.hpp"
#include "sim/simulate.hpp"

#include <algorithm>

using namespace sucl;

namespace {

plan::schedule ring_of(int ranks) {
  plan::problem p;
  p.kind = kind::allreduce;
  p.ranks = ranks;
  p.element_bytes = 4;
  p.counts = {std::uint64_t{1} << 20};
  return plan::build(p, plan::recipe_from_text("ring"));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::one_input(
      data, size,
      [](const std::string& text) {
        const bool json = !text.empty() && text.front() == '{';
        return json ? sim::machine_from_json(text, "input") : sim::machine_from_toml(text, "input");
      },
      [](const sim::machine& m) {
        const std::string text = sim::to_toml(m);
        const sim::machine again = sim::machine_from_toml(text, "again");
        fuzz::require(again == m, "a machine is read back as it is written");
        fuzz::require(sim::to_toml(again) == text, "and written the same");
        const auto ranks = static_cast<int>(std::min<std::int64_t>(8, sim::rank_count(m)));
        const sim::prediction p = sim::simulate(ring_of(ranks), m, {true, true, true});
        fuzz::require(p.seconds >= 0, "a time is not negative");
      });
}
