// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/shrinking.hpp"

#include "base/error.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/local_ranks.hpp"
#include "core/failure/setup_steps.hpp"

#include <string_view>
#include <utility>

namespace sucl::core {
namespace {

// One of the flags that members agree on.
constexpr std::uint32_t is_ready = 1;

// Whether a member is dead or ends its runtime, so that waiting for it is useless.
std::int32_t has_gone(void* context, std::int32_t member) {
  const auto& c = *static_cast<const communicator_context*>(context);
  const peer_processes* peers = c.owner->peers();
  const int rank = c.where.world_ranks[static_cast<std::size_t>(member)];
  return peers && (peers->has_ended(rank) || peers->is_leaving(rank)) ? 1 : 0;
}

}  // namespace

void shrinking::check() const {
  const sucl_bootstrap* control = m_context.owner->control();
  if (!control || (SUCL_HAS_FIELD(control, sucl_bootstrap, group_shrink) && control->agree &&
                   control->group_shrink))
    return;
  if (control->name == std::string_view(local_ranks_control_plane))
    base::fail(errc::unsupported,
               m_context.label + " cannot be shrunk: some process has several of its ranks",
               "Start a process for each rank");
  base::fail(errc::unsupported,
             m_context.label + " cannot be shrunk: the control plane is " + control->name +
                 ", and MPI ends the whole job when a rank dies",
             "Start the job without MPI, as by `sucl run --launcher local --enable-recovery` or "
             "runtime::join");
}

std::shared_ptr<communicator> shrinking::run(const device_services& device) {
  const std::lock_guard lock(m_mutex);
  if (!m_context.owner->control()) return m_context.owner->make_communicator(nullptr, device);
  if (!m_chosen) agree(true);
  m_chosen = true;
  for (;;) {
    if (!m_attempted) make(device);
    m_attempted = true;
    const auto left_out = m_failed;
    const bool all_have_it = agree(m_made != nullptr);
    m_attempted = false;
    const bool more_failed = m_failed != left_out;
    if (all_have_it && !more_failed) break;
    drop_made();
    if (more_failed) continue;
    m_chosen = false;
    throw_failure();
  }
  m_chosen = false;
  m_context.owner->note_recovered();
  return std::exchange(m_made, nullptr);
}

// Whether all living members are ready. The failed ones are known afterwards.
bool shrinking::agree(bool ready) {
  process_context& of = *m_context.owner;
  std::vector<std::uint8_t> failed = m_failed;
  failed.resize(m_context.where.members.size());
  sucl_agreement how{};
  how.struct_size = sizeof how;
  how.flags = ready ? is_ready : 0;
  how.failed = failed.data();
  how.context = &m_context;
  how.has_failed = has_gone;
  {
    step_counts own;  // ranks that were given up may have begun this step more often
    const setup_step step(of.steps(), label(), m_context.where.world_ranks, may_leave::any, &own);
    if (const auto status = of.control()->agree(m_context.group, &how))
      throw_last(status, of.control()->name, "shrink", m_context.rank());
  }
  ++m_agreements;
  m_failed = std::move(failed);
  if (m_failed[static_cast<std::size_t>(m_context.rank())])
    base::fail(errc::peer_lost, "the other ranks of " + m_context.label + " have lost this one",
               "Check the network between them; they continue without it");
  return (how.flags & is_ready) != 0;
}

// A failure is kept in m_failure, for all members to agree on.
void shrinking::make(const device_services& device) {
  process_context& of = *m_context.owner;
  m_failure.reset();
  try {
    sucl_group* group = nullptr;
    if (const auto status = of.control()->group_shrink(m_context.group, &group))
      throw_last(status, of.control()->name, "shrink", m_context.rank());
    std::vector<int> left;
    for (std::size_t i = 0; i < m_failed.size(); ++i)
      if (!m_failed[i]) left.push_back(m_context.where.world_ranks[i]);
    step_counts own;
    setup_step step(of.steps(), label() + ", attempt " + std::to_string(m_agreements),
                    std::move(left), may_leave::none, &own);
    m_made = in_step(step, [&] { return of.make_communicator(group, device); });
  } catch (const error& e) {
    m_failure = e.info();
  }
}

void shrinking::drop_made() {
  if (!m_made) return;
  error_info why;
  why.code = errc::peer_lost;
  why.message = "another rank could not make it";
  why.hint = "Use the communicator that shrink() returns";
  m_made->abandon(why);
  m_made.reset();
}

void shrinking::throw_failure() const {
  if (m_failure) throw error(*m_failure);
  base::fail(errc::unavailable,
             label() + " was given up: another rank could not make the new communicator",
             "See the error that shrink() has thrown there, and call it again");
}

}  // namespace sucl::core
