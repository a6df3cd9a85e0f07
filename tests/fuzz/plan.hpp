// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What must hold for a plan, whichever form it was read from.
#pragma once

#include "fuzz/target.hpp"
#include "plan/ir/schedule.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"

namespace sucl::fuzz {

inline const sim::machine& some_machine() {
  static const sim::machine m = sim::machine_from_toml(
      "name = \"some\"\n[[level]]\ngroups = 1024\nport_bandwidth = 10.0\n"
      "[[level.transport]]\nname = \"mpi\"\nlatency = 2.0\noverhead = 0.5\n"
      "[[level]]\ngroups = 4\nlink_bandwidth = 50.0\n"
      "[[level.transport]]\nname = \"ipc\"\nlatency = 1.0\n"
      "[memory]\nbandwidth = 100.0\ncopy_rate = 10.0\nreduce_rate = 5.0\n",
      "some");
  return m;
}

inline void check_plan(const plan::schedule& s) {
  require(plan::from_text(plan::to_text(s)) == s, "a plan is read back from its text");
  require(plan::from_json(plan::to_json(s)) == s, "a plan is read back from its JSON");
  const plan::verdict v = plan::verify(s);
  if (!v) {
    require(!v.message.empty(), "a verdict says what is wrong");
    return;
  }
  const sim::prediction p = sim::simulate(s, some_machine(), {true, true, true});
  require(p.seconds >= 0, "a time is not negative");
}

}  // namespace sucl::fuzz
