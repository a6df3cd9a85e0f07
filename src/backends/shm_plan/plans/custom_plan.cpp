// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/plans/custom_plan.hpp"

#include "base/error.hpp"
#include "plan/passes/passes.hpp"

#include <limits>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

// The transports count in 32 bits where the library below does.
void check_messages(const plan::schedule& s) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  for (const plan::program& p : s.ranks)
    for (const plan::channel& c : p.channels)
      for (const plan::instruction& i : c)
        if (plan::is_posted(i.op) && i.bytes > most)
          base::fail(errc::unsupported,
                     "a message of " + std::to_string(i.bytes) + " bytes between nodes",
                     "Raise `pipeline`, or divide the slices");
}

}  // namespace

draft_plan compile_here(const compile_request& r, const placement& where, base::determinism level) {
  draft_plan d = compose(r, where.rank, where.size, level);
  d.schedule = plan::share_local_messages(std::move(d.schedule), where.node_of);
  check_messages(d.schedule);
  prove(d);
  return d;
}

std::unique_ptr<compiled_code> code_of(const draft_plan& d, const compile_request& r,
                                       const placement& where) {
  auto made = std::make_unique<compiled_code>();
  made->code = lower(d.schedule, where, {});
  made->how.code.push_back(&made->code);
  made->how.slices = 1;
  made->how.recipe = d.facts.text;
  made->element_size = r.element_size;
  if (d.reduction != op::none)
    made->fold = find_fold(static_cast<sucl_type>(r.element), static_cast<sucl_op>(d.reduction));
  return made;
}

}  // namespace sucl::core
