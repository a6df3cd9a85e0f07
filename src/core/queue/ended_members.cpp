// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/queue/ended_members.hpp"

#include "core/operation/argument_comparison.hpp"
#include "core/operation/call_signature.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <utility>

namespace sucl::core {
namespace {

using manner = communicator_end::manner;

// A message may be in flight when its sender has ended, and so may the reason of one that fails.
constexpr auto grace = std::chrono::milliseconds(500);
// In which a rank that has left says why, on a busy machine.
constexpr auto grace_of_reasons = std::chrono::seconds(2);
// In which what all others had sent before they ended arrives and is used: through memory of this
// machine, and through any network.
constexpr auto grace_of_memory = std::chrono::seconds(2);
constexpr auto grace_of_networks = std::chrono::seconds(60);
constexpr auto death_check_interval = std::chrono::milliseconds(100);

std::string operations(std::uint64_t number) {
  return std::to_string(number) + (number == 1 ? " operation" : " operations");
}

// Whether an operation needs a member that has ended the communicator this way.
bool is_missing(int member, const communicator_end& end, const sucl_operation& o,
                std::uint64_t turn) {
  if (is_point_to_point(o.kind)) {
    const auto peers = peers_of(o);
    return std::find(peers.begin(), peers.end(), member) != peers.end();
  }
  return end.how >= manner::failed || turn > (is_replay(o) ? end.replays : end.calls);
}

std::string text_of(const sucl_operation& o, std::uint64_t turn, int size, bool with_root) {
  if (is_point_to_point(o.kind)) return describe(o);
  const std::string number = "operation " + std::to_string(turn) + ": ";
  // Other threads know only the kind of the call that a caller is inside of.
  if (o.element_size == 0 && o.kind != SUCL_KIND_BARRIER) return number + describe(o);
  call_signature s = signature_of(o, size);
  if (!with_root) s.root = -1;
  return number + describe(s);
}

bool are_alike(const communicator_end& a, const communicator_end& b) {
  return a.how == b.how && a.calls == b.calls && a.replays == b.replays;
}

}  // namespace

void ended_members::read(const peer_processes& peers, std::uint64_t ends) {
  m_seen = ends;
  const auto& ranks = m_context.where.world_ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int member = static_cast<int>(i);
    if (member == m_context.rank() || has_ended(member)) continue;
    if (const auto e = peers.end_of(ranks[i], m_context.id)) note(member, *e);
  }
}

// Looks for members that have died, unless the watchdog does, as with a timeout.
void ended_members::check_for_deaths(const peer_processes& peers, time_point now) {
  if (m_context.watched() || now - m_last_death_check < death_check_interval) return;
  m_last_death_check = now;
  const auto& ranks = m_context.where.world_ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int member = static_cast<int>(i);
    if (member != m_context.rank() && !has_ended(member) && peers.has_ended(ranks[i]) &&
        !peers.is_leaving(ranks[i]))
      note(member, {manner::died});
  }
}

void ended_members::note(int member, const communicator_end& e) {
  if (!has_ended(member)) m_ended.push_back({member, e, std::chrono::steady_clock::now()});
}

std::vector<int> ended_members::ended_regularly() const {
  std::vector<int> members;
  for (const ended& m : m_ended)
    if (m.end.how == manner::regular) members.push_back(m.member);
  return members;
}

bool ended_members::has_ended(int member) const {
  return std::any_of(m_ended.begin(), m_ended.end(),
                     [&](const ended& m) { return m.member == member; });
}

std::string ended_members::reason_of(const ended& m) const {
  if (m.end.how == manner::regular) return {};
  const peer_processes* peers = m_context.owner->peers();
  const int rank = m_context.where.world_ranks[static_cast<std::size_t>(m.member)];
  const auto why = peers ? peers->failure(rank) : std::nullopt;
  return why ? why->text : "";
}

std::optional<error_info> ended_members::obstacle(const sucl_operation& waits_in,
                                                  std::uint64_t turn, time_point posted,
                                                  time_point now) const {
  std::vector<int> missing;
  const ended* first = nullptr;
  for (const ended& m : m_ended) {
    if (!is_missing(m.member, m.end, waits_in, turn)) continue;
    if (!first) first = &m;
    if (are_alike(m.end, first->end)) missing.push_back(m.member);
  }
  if (!first) return std::nullopt;
  const std::string reason = reason_of(*first);
  const bool may_change = is_point_to_point(waits_in.kind) || first->end.how >= manner::failed ||
                          (first->end.how == manner::left && reason.empty());
  const bool may_say_why = first->end.how == manner::left && reason.empty();
  const auto pause = std::chrono::milliseconds(may_say_why ? grace_of_reasons : grace);
  if (may_change && now - std::max(first->seen, posted) < pause) return std::nullopt;
  return describe_end(*first, missing, reason, waits_in, turn);
}

// They send nothing more. A process that did not run may only now see what they had sent, so a
// pause between two looks counts as a short one.
std::optional<error_info> ended_members::left_alone(const sucl_operation& waits_in,
                                                    std::uint64_t turn, time_point now) {
  constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(100);
  const std::chrono::nanoseconds pause = now - std::exchange(m_last_poll, now);
  const bool all_in_order = m_ended.size() + 1 == m_context.where.world_ranks.size() &&
                            std::all_of(m_ended.begin(), m_ended.end(), [](const ended& m) {
                              return m.end.how == manner::regular;
                            });
  const bool by_host = m_context.where.device_memory_everywhere_on_host && !waits_in.stream &&
                       !waits_in.launch_target;  // no command of the program is before it
  if (!all_in_order || !by_host || is_point_to_point(waits_in.kind)) return std::nullopt;
  if (std::exchange(m_waits_in, turn) != turn)
    m_alone = {};
  else
    m_alone += std::min(pause, longest_pause);
  const peer_processes* peers = m_context.owner->peers();
  const auto is_here = [&](const ended& m) {
    return peers && peers->is_seen(m_context.where.world_ranks[static_cast<std::size_t>(m.member)]);
  };
  const bool all_here = std::all_of(m_ended.begin(), m_ended.end(), is_here);
  if (m_alone < (all_here ? grace_of_memory : grace_of_networks)) return std::nullopt;
  return mismatch_error("all other ranks have ended " + m_context.label + ", and " +
                        ranks_text({m_context.rank()}) + " waits for them in " +
                        text_of(waits_in, turn, m_context.size(), true));
}

error_info ended_members::describe_end(const ended& how, const std::vector<int>& members,
                                       const std::string& reason, const sucl_operation& waits_in,
                                       std::uint64_t turn) const {
  const std::string names = ranks_text(members) + (members.size() == 1 ? " has " : " have ");
  // Where a rank is lost, another one in the text would seem to be at fault.
  const bool is_lost = how.end.how != manner::regular;
  const std::string what = text_of(waits_in, turn, m_context.size(), !is_lost);
  const std::string after =
      " after " + (is_replay(waits_in) ? operations(how.end.replays) + " that it replayed"
                                       : operations(how.end.calls));
  // All waiting ranks get the text of the first of them.
  if (!is_lost)
    return mismatch_error(names + "ended " + m_context.label + after + ", and others wait in " +
                          what);
  error_info lost;
  lost.code = errc::peer_lost;
  const peer_processes* peers = m_context.owner->peers();
  const auto failure =
      peers && how.end.how == manner::failed ? peers->published(m_context.id) : std::nullopt;
  // The member may have left because of another one, which its reason names.
  if (failure)
    lost.message = failure->text;
  else if (!reason.empty())
    lost.message = m_context.label + " cannot be used any more: " + reason;
  else if (how.end.how == manner::died)
    lost.message = names + "died";
  else if (how.end.how == manner::left)
    lost.message = names + "left " + m_context.label + after + " without ending it";
  else
    lost.message = m_context.label + " has failed on " + ranks_text(members);
  lost.message += ", and this rank waits in " + what;
  lost.hint = "Look for the reason in the output of the named ranks";
  return lost;
}

}  // namespace sucl::core
