// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/decision/call_class.hpp"

#include "base/config/determinism.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <bit>

namespace sucl::interposer {

std::uint64_t class_key(const transfer& t, form f, std::uint64_t bytes) {
  constexpr std::uint64_t op_of_program = 0xff;
  const sucl_operation& o = t.record;
  const auto power = static_cast<std::uint64_t>(std::bit_width(bytes));
  const bool opaque = o.op == SUCL_OP_NONE;
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(f) << 48 |
         static_cast<std::uint64_t>(t.called) << 32 |
         static_cast<std::uint64_t>(opaque ? 0 : o.type) << 16 |
         (t.by_own_op ? op_of_program : static_cast<std::uint64_t>(o.op)) << 8 | power;
}

call_class make_class(const base::config& settings, core::communicator& on, const transfer& t,
                      form f) {
  const sucl_operation& o = t.record;
  constexpr std::uint64_t short_bytes = 64 << 10, long_bytes = 1 << 20;
  const std::uint64_t bytes = core::message_size_of(o, on.size()).bytes;
  // What does not wait is executed without MPI: then any thread may make the progress.
  bool offered = f == form::blocking
                     ? !settings.has_role(on.backends().name_of(o), base::backend_role::reference)
                     : on.backends().any_thread_executes(o) && on.where().nodes == 1;
  auto rounds = static_cast<int>(settings.interpose.trials);
  if (bytes > long_bytes) rounds = std::min(rounds, 3);
  // What is timed must not decide over bits; what MPI adds up in its own order is not strict.
  const auto level = base::determinism_named(settings.determinism);
  const bool ordered = t.order_matters();
  if (ordered && level != base::determinism::ranks) rounds = 0;
  if (ordered && level == base::determinism::strict && f == form::blocking) offered = true;
  if (!offered) rounds = 0;
  const int turn = f == form::blocking && bytes <= short_bytes ? 4 : 1;
  call_class c(ab_measurement(rounds, turn, offered ? choice::sucl : choice::mpi));
  c.offered = offered;
  c.ranks = on.size();
  c.reviewed = f == form::blocking;
  // Where some ranks need not wait they run further ahead of each other than turns show.
  if (f == form::blocking && rooted(static_cast<kind>(o.kind))) c.margin = 0.85;
  return c;
}

choice call_class::start() {
  if (shared && !tuner.decided()) {
    if (const auto agreed = shared->join(tuner.started()))
      decide(choice_of(*agreed), shared->slowest());
  }
  return tuner.start();
}

bool call_class::note(std::uint64_t number, double seconds) {
  if (!tuner.note(number, seconds)) return false;
  if (shared) shared->submit(tuner.medians(), ranks, margin);
  return !shared;
}

void call_class::decide_on(core::communicator& comm) {
  auto times = tuner.medians();
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = SUCL_KIND_ALLREDUCE;
  o.type = SUCL_TYPE_FP64;
  o.op = SUCL_OP_MAX;
  o.element_size = sizeof(double);
  o.count = times.size();
  o.flags = SUCL_FLAG_IN_PLACE;
  o.recv = times.data();
  core::normalise(o, comm.rank(), comm.size());
  comm.run(o, {}, nullptr);
  decide(faster(times, margin), times);
}

}  // namespace sucl::interposer
