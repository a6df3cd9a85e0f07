// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "plan/verify/verify.hpp"

#include <array>

namespace sucl::plan {

const char* name(fault f) noexcept {
  static constexpr std::array<const char*, 14> names{
      "none",      "malformed", "out_of_bounds", "read_only", "unset_read", "race",   "length",
      "unmatched", "deadlock",  "unfinished",    "twice",     "order",      "result", "differs"};
  const auto i = static_cast<std::size_t>(f);
  return i < names.size() ? names[i] : "unknown";
}

std::string what_is_identical(const schedule& s, const verdict& v) {
  const bool composed = s.what.kind == kind::group;
  if (!v || (!reduces(s.what.kind) && !composed)) return {};
  if (s.what.order == ordering::fixed) return "all results folded in order of rank";
  if (!v.identical) return "ranks fold the same elements differently";
  return "the same expression for an element on all ranks that receive it";
}

verdict verify_or_fail(const schedule& s, entry how) {
  verdict v = verify(s, how);
  if (!v)
    base::fail(errc::internal, "the plan '" + s.algorithm + "' is wrong: " + v.message,
               "It was not executed. Please report the collective, ranks, sizes and algorithm.");
  return v;
}

}  // namespace sucl::plan
