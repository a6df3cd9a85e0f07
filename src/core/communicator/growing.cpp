// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/growing.hpp"

#include "base/error.hpp"
#include "core/control/control_plane.hpp"
#include "core/exchange/readiness.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace sucl::core {
namespace {

// Why this rank cannot join the new job so, and what to do.
std::optional<error_info> obstacle(const communicator_context& c, const launch& l, int joiners) {
  const auto because = [](errc code, std::string what, std::string hint) {
    error_info e;
    e.code = code;
    e.message = std::move(what);
    e.hint = std::move(hint);
    return e;
  };
  const sucl_bootstrap* control = c.owner->control();
  if (control && !(SUCL_HAS_FIELD(control, sucl_bootstrap, rendezvous) && control->rendezvous))
    return because(errc::unsupported,
                   c.label + " cannot grow: the control plane is " + control->name +
                       ", which knows the processes of its launcher alone",
                   "Start the job without MPI, as by `sucl run --launcher local` or runtime::join");
  if (joiners < 1 || joiners > std::numeric_limits<int>::max() - c.size())
    return because(errc::invalid_count, std::to_string(joiners) + " processes cannot join",
                   "Pass how many new processes call runtime::join, at least 1");
  if (l.rank != 0) return std::nullopt;
  if (l.id.empty())
    return because(errc::invalid_argument, "the id of rank 0 is empty",
                   "Make it with unique_id::make()");
  try {
    check_next(l, c.owner->settings());
  } catch (const error& e) {
    return e.info();
  }
  return std::nullopt;
}

}  // namespace

launch agree_to_grow(communicator_context& c, const std::string& id, int joiners) {
  const sucl_oob oob = c.oob();
  launch l;
  l.rank = c.rank();
  l.size = static_cast<int>(std::int64_t{c.size()} + joiners);
  l.id = id;
  l.why = "runtime::grow";
  auto wrong = obstacle(c, l, joiners);
  if (c.size() == 1) {
    if (wrong) throw error(*wrong);
    return l;
  }
  const int differs =
      agree(oob, c.rank(), c.size(), {std::to_string(joiners), std::move(wrong)}, "cannot grow");
  if (differs)
    base::fail(errc::mismatch,
               "ranks 0 and " + std::to_string(differs) + " of " + c.label +
                   " have passed different numbers of processes that join",
               "Pass the same number on every rank");
  l.id = exchange(oob, c.size(), c.rank() == 0 ? id : std::string()).front();
  return l;
}

}  // namespace sucl::core
