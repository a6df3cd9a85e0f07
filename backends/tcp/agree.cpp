// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Agreements of a group whose members may fail, and the groups of the surviving members.
#include "job_process.hpp"

#include <algorithm>

namespace sucl::tcp {

using namespace std::chrono_literals;

namespace {

constexpr auto agreement_poll_interval = 5ms;

}  // namespace

// Without a connection to the coordinator its failure would go undetected.
void job_process::check_members(agreement& a, const sucl_group& group,
                                const std::vector<bool>& known) {
  for (int i = 0; i < group.size; ++i)
    if (known[static_cast<std::size_t>(i)] ||
        m_peers[group.members[static_cast<std::size_t>(i)]].lost_since)
      a.note_failed(i);
  const int first = group.members[static_cast<std::size_t>(a.coordinator())];
  peer& p = m_peers[first];
  if (first != rank() && !p.lost_since && !p.link && !p.connecting) connect(first);
}

void job_process::send_paxos(const sucl_group& group, std::uint64_t number,
                             const std::vector<paxos_message>& out) {
  for (const paxos_message& m : out) {
    writer out_frame(frame_type::agreement);
    out_frame.number(group.id).number(number);
    m.put_into(out_frame);
    send_to(group.members[static_cast<std::size_t>(m.to)], out_frame.frame());
  }
  if (!out.empty()) m_changed.notify_all();
}

// A member that stops waiting has entered nevertheless, and answers from here on.
decision job_process::agree(sucl_group& group, std::uint32_t flags,
                            const std::function<bool(int index)>& has_failed) {
  std::vector<bool> known(static_cast<std::size_t>(group.size));
  for (;;) {
    for (int i = 0; i < group.size; ++i)
      if (i != group.rank) known[static_cast<std::size_t>(i)] = has_failed(i);
    {
      std::unique_lock lock(m_loop->lock());
      agreement& a = m_agreements[{group.id, group.agreements}];
      if (!a.entered())
        a.enter(group.rank, group.size, flags,
                (static_cast<std::uint64_t>(rank()) + 1) << 32 | ++m_ids_made);
      check_members(a, group, known);
      send_paxos(group, group.agreements, a.advance());
      if (!a.result()) m_changed.wait_for(lock, agreement_poll_interval);
      if (a.result()) {
        ++group.agreements;
        group.agreed = a.result();
        return *group.agreed;
      }
    }
    if (const sucl_status status = m_settings.keep_waiting()) throw problem{status, "", ""};
  }
}

void job_process::handle_paxos(const sucl_group& group, std::uint64_t number, int from,
                               const paxos_message& m) {
  const auto at = std::find(group.members.begin(), group.members.end(), from);
  if (at == group.members.end()) return;
  agreement& a = m_agreements[{group.id, number}];
  send_paxos(group, number, a.take(static_cast<int>(at - group.members.begin()), m));
  if (a.result()) m_changed.notify_all();
}

void job_process::handle_agreement(connection& c, reader& message) {
  const auto id = message.number<std::uint64_t>();
  const auto number = message.number<std::uint64_t>();
  const auto m = paxos_message::take_from(message);
  if (!m || has_ended(id)) return;
  const auto group = m_groups.find(id);
  if (group == m_groups.end())
    m_early_paxos[id].push_back({number, c.tag, *m});
  else
    handle_paxos(*group->second, number, c.tag, *m);
}

void job_process::handle_early_paxos(const sucl_group& group) {
  const auto early = m_early_paxos.find(group.id);
  if (early == m_early_paxos.end()) return;
  const auto messages = std::move(early->second);
  m_early_paxos.erase(early);
  for (const early_paxos& b : messages) handle_paxos(group, b.number, b.from, b.message);
}

sucl_group* job_process::shrink(sucl_group& group) {
  const std::lock_guard lock(m_loop->lock());
  if (!group.agreed)
    throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                  "the members of a group have not agreed on which of them have failed",
                  "Call agree first"};
  std::vector<int> members;
  for (int i = 0; i < group.size; ++i)
    if (!group.agreed->failed[static_cast<std::size_t>(i)])
      members.push_back(group.members[static_cast<std::size_t>(i)]);
  if (group.agreed->failed[static_cast<std::size_t>(group.rank)])
    throw problem{SUCL_ERROR_PEER_LOST, "the others have lost the connection to this rank",
                  "Check the network; the others continue without this rank"};
  return make_group(group.agreed->id, std::move(members)).release();
}

}  // namespace sucl::tcp
