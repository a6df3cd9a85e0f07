// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Groups, their exchanges and their control messages.
#include "job_process.hpp"

#include <algorithm>
#include <cstring>

namespace sucl::tcp {

using namespace std::chrono_literals;

namespace {

// The watchdog, which sees the processes of this machine, may report a more precise cause first.
constexpr auto link_grace = 1000ms;
constexpr std::size_t max_ended = 4096, max_early_messages = 4096;
constexpr std::uint64_t max_message_bytes = 4096;

// Set in ids that the members of a group have agreed on; ids of split() are smaller.
constexpr std::uint64_t own_ids = std::uint64_t{1} << 63;

// What a member contributes to split().
struct proposal {
  std::int32_t colour = 0;
  std::int32_t key = 0;
  std::int32_t rank = 0;  // in the job
  std::int32_t reserved = 0;
  std::uint64_t id = 0;
};

}  // namespace

std::unique_ptr<sucl_group> job_process::make_group(std::uint64_t id, std::vector<int> members) {
  auto made = std::make_unique<sucl_group>();
  made->owner = id == 0 ? nullptr : shared_from_this();
  made->id = id;
  made->members = std::move(members);
  made->size = static_cast<int>(made->members.size());
  const auto own = std::find(made->members.begin(), made->members.end(), rank());
  made->rank = static_cast<int>(own - made->members.begin());
  made->position = position_in_tree(made->rank, made->size);
  m_groups[id] = made.get();
  if (const auto early = m_early.find(id); early != m_early.end()) {
    m_early_messages -= early->second.size();
    made->control_messages = std::move(early->second);
    m_early.erase(early);
  }
  handle_early_paxos(*made);
  return made;
}

sucl_group* job_process::world() { return split(*m_root, 0, rank()); }

sucl_group* job_process::split(sucl_group& group, int colour, int key) {
  proposal mine{colour, key, rank(), 0, 0};
  {
    const std::lock_guard lock(m_loop->lock());
    mine.id = (static_cast<std::uint64_t>(rank()) + 1) << 32 | ++m_ids_made;
  }
  std::vector<proposal> all(static_cast<std::size_t>(group.size));
  finish(group, start_exchange(group, &mine, all.data(), sizeof mine));
  if (colour < 0) return nullptr;
  std::vector<const proposal*> list;
  for (const proposal& p : all)
    if (p.colour == colour) list.push_back(&p);
  std::stable_sort(list.begin(), list.end(),
                   [](const proposal* a, const proposal* b) { return a->key < b->key; });
  std::vector<int> members;
  for (const proposal* p : list) members.push_back(p->rank);
  const std::lock_guard lock(m_loop->lock());
  return make_group(list.front()->id, std::move(members)).release();
}

sucl_group* job_process::group_among(std::uint64_t id, std::vector<int> members) {
  if (std::find(members.begin(), members.end(), rank()) == members.end() ||
      std::any_of(members.begin(), members.end(), [&](int m) { return m < 0 || m >= size(); }))
    throw problem{SUCL_ERROR_INVALID_RANK,
                  "a group lists ranks that the job does not have, or not this one",
                  "List ranks of the job, and make the group on those alone"};
  const std::lock_guard lock(m_loop->lock());
  return make_group(id | own_ids, std::move(members)).release();
}

void job_process::free(sucl_group* group) {
  const std::lock_guard lock(m_loop->lock());
  m_groups.erase(group->id);
  std::erase_if(m_exchanges, [&](const auto& e) { return e.first.first == group->id; });
  m_ended.insert(group->id);
  m_ended_order.push_back(group->id);
  if (m_ended_order.size() > max_ended) {
    m_ended.erase(m_ended_order.front());
    m_ended_order.pop_front();
  }
  delete group;
}

bool job_process::has_ended(std::uint64_t group) const { return m_ended.contains(group); }

sucl_oob_request* job_process::start_exchange(sucl_group& group, const void* mine, void* all,
                                              std::uint64_t each) {
  const auto* from = static_cast<const std::byte*>(mine);
  const std::lock_guard lock(m_loop->lock());
  if (each == 0) return new sucl_oob_request{};
  return begin_exchange(group, bytes(from, from + each), all, each);
}

sucl_oob_request* job_process::begin_exchange(sucl_group& group, bytes mine, void* all,
                                              std::uint64_t each) {
  const std::uint64_t number = group.exchanges++;
  exchange& e = m_exchanges[{group.id, number}];
  e.started = true;
  e.since = clock::now();
  e.mine = std::move(mine);
  // Another rank has failed it before it began here: the neighbours get that error.
  if (e.failure) {
    const problem why = e.failure;
    e.failure = {};
    fail_exchange(&group, {group.id, number}, e, why, -1);
  } else {
    advance(group, number, e);
  }
  return all ? new sucl_oob_request{group.id, number, all, each} : nullptr;
}

void job_process::advance(const sucl_group& group, std::uint64_t number, exchange& e) {
  if (!e.started || e.sent_up || e.failure || e.result) return;
  for (const int child : group.position.children)
    if (!e.from.contains(group.members[static_cast<std::size_t>(child)])) return;
  if (group.position.parent >= 0) return send_up(group, number, e);
  bytes all = std::move(e.mine);
  for (const int child : group.position.children) {
    const bytes& part = e.from[group.members[static_cast<std::size_t>(child)]];
    all.insert(all.end(), part.begin(), part.end());
  }
  e.from.clear();
  send_down(group, number, all.data(), all.size());
  e.result = std::move(all);
  m_changed.notify_all();
}

void job_process::send_up(const sucl_group& group, std::uint64_t number, exchange& e) {
  e.sent_up = true;
  writer out(frame_type::up);
  out.number(group.id).number(number).raw(e.mine.data(), e.mine.size());
  for (const int child : group.position.children) {
    const bytes& part = e.from[group.members[static_cast<std::size_t>(child)]];
    out.raw(part.data(), part.size());
  }
  e.mine = {};
  e.from.clear();
  send_to(group.members[static_cast<std::size_t>(group.position.parent)], out.frame());
}

void job_process::send_down(const sucl_group& group, std::uint64_t number, const std::byte* all,
                            std::size_t n) {
  if (group.position.children.empty()) return;
  const auto notice = writer(frame_type::down).number(group.id).number(number).raw(all, n).frame();
  for (const int child : group.position.children)
    send_to(group.members[static_cast<std::size_t>(child)], notice);
}

void job_process::handle_up(connection& c, reader& message) {
  const auto id = message.number<std::uint64_t>();
  const auto number = message.number<std::uint64_t>();
  if (!message.good() || has_ended(id)) return;
  exchange& e = m_exchanges[{id, number}];
  e.from[c.tag].assign(message.rest(), message.rest() + message.left());
  if (const auto group = m_groups.find(id); group != m_groups.end())
    advance(*group->second, number, e);
}

void job_process::handle_down(reader& message) {
  const auto id = message.number<std::uint64_t>();
  const auto number = message.number<std::uint64_t>();
  const auto group = m_groups.find(id);
  const auto found = m_exchanges.find({id, number});
  if (!message.good() || group == m_groups.end() || found == m_exchanges.end()) return;
  exchange& e = found->second;
  if (!e.sent_up || e.result || e.failure) return;
  send_down(*group->second, number, message.rest(), message.left());
  e.result.emplace(message.rest(), message.rest() + message.left());
  m_changed.notify_all();
}

void job_process::handle_broken(connection& c, reader& message) {
  const auto id = message.number<std::uint64_t>();
  const auto number = message.number<std::uint64_t>();
  problem why;
  why.status = message.number<sucl_status>();
  why.text = message.text(64 << 10);
  if (!message.complete() || !why || has_ended(id)) return;
  const auto group = m_groups.find(id);
  fail_exchange(group == m_groups.end() ? nullptr : group->second, {id, number},
                m_exchanges[{id, number}], why, c.tag);
}

// Fails an exchange here and at the neighbours.
void job_process::fail_exchange(const sucl_group* group, exchange_key key, exchange& e,
                                const problem& why, int except) {
  if (e.result || e.failure) return;
  e.failure = why;
  m_changed.notify_all();
  if (!group || !e.started) return;  // begin_exchange() reports it to them
  writer out(frame_type::broken);
  const auto notice =
      out.number(key.first).number(key.second).number(why.status).text(why.text).frame();
  auto near = group->position.children;
  if (group->position.parent >= 0) near.push_back(group->position.parent);
  for (const int index : near) {
    const int to = group->members[static_cast<std::size_t>(index)];
    if (to != except) send_to(to, notice);
  }
}

// Fails the exchange if a rank that it waits for is lost.
void job_process::check_neighbours(const sucl_group& group, std::uint64_t number, exchange& e) {
  if (e.result || e.failure) return;
  const auto now = clock::now();
  std::vector<int> awaited;
  if (e.sent_up) {
    awaited.push_back(group.position.parent);
  } else {
    for (const int child : group.position.children)
      if (!e.from.contains(group.members[static_cast<std::size_t>(child)]))
        awaited.push_back(child);
  }
  for (const int index : awaited) {
    const int peer_rank = group.members[static_cast<std::size_t>(index)];
    peer& p = m_peers[peer_rank];
    if (p.lost_since && now - *p.lost_since > link_grace)
      return fail_exchange(
          &group, {group.id, number}, e,
          {SUCL_ERROR_PEER_LOST, "rank " + std::to_string(index) + " " + p.lost_text,
           "Look for the reason in the output of that rank"},
          peer_rank);
    // Without a connection its failure would go undetected.
    if (!p.lost_since && !p.link && !p.connecting && now - e.since > link_grace) connect(peer_rank);
  }
}

job_process::exchange* job_process::find(const sucl_oob_request& request) {
  const auto found = m_exchanges.find({request.group, request.number});
  return found == m_exchanges.end() ? nullptr : &found->second;
}

bool job_process::test(sucl_group& group, sucl_oob_request* request) {
  const std::lock_guard lock(m_loop->lock());
  if (request->bytes == 0) {
    delete request;
    return true;
  }
  exchange* e = find(*request);
  if (!e) throw problem{SUCL_ERROR_SHUT_DOWN, "the exchange belongs to a group that has ended", ""};
  check_neighbours(group, request->number, *e);
  if (!e->result && !e->failure) return false;
  const std::unique_ptr<sucl_oob_request> over(request);
  const exchange done = std::move(*e);
  m_exchanges.erase({over->group, over->number});
  if (done.failure) throw done.failure;
  if (done.result->size() != over->bytes * static_cast<std::uint64_t>(group.size))
    throw problem{SUCL_ERROR_MISMATCH,
                  "the ranks of a group have exchanged different numbers of bytes: " +
                      std::to_string(over->bytes) + " here, " +
                      std::to_string(done.result->size()) + " by all",
                  "Make the same calls on every rank"};
  std::memcpy(over->all, done.result->data(), done.result->size());
  return true;
}

void job_process::finish(sucl_group& group, sucl_oob_request* request) {
  while (!test(group, request)) {
    if (const sucl_status status = m_settings.keep_waiting()) throw problem{status, "", ""};
    std::unique_lock lock(m_loop->lock());
    const exchange* e = find(*request);
    if (e && !e->result && !e->failure) m_changed.wait_for(lock, 5ms);
  }
}

void job_process::notify(sucl_group& group, int rank, const void* data, std::uint64_t n) {
  if (rank < 0 || rank >= group.size || n > max_message_bytes)
    throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                  "a control message of " + std::to_string(n) + " bytes to rank " +
                      std::to_string(rank) + " of " + std::to_string(group.size),
                  "At most 4096 bytes, to a rank of the group."};
  const auto* text = static_cast<const char*>(data);
  const std::lock_guard lock(m_loop->lock());
  if (rank == group.rank) {
    group.control_messages.push_back({rank, std::string(text, n)});
    return;
  }
  writer out(frame_type::control_message);
  out.number(group.id).number(static_cast<std::int32_t>(group.rank)).raw(text, n);
  send_to(group.members[static_cast<std::size_t>(rank)], out.frame());
}

void job_process::handle_control_message(reader& message) {
  const auto id = message.number<std::uint64_t>();
  const auto source = message.number<std::int32_t>();
  if (!message.good() || message.left() > max_message_bytes || has_ended(id)) return;
  sucl_group::control_message received{
      source, std::string(reinterpret_cast<const char*>(message.rest()), message.left())};
  const auto group = m_groups.find(id);
  if (group != m_groups.end()) {
    if (source >= 0 && source < group->second->size)
      group->second->control_messages.push_back(received);
    return;
  }
  // The group is not made here yet, or ended long ago; then its messages stay unread.
  if (m_early_messages >= max_early_messages) {
    m_early_messages -= m_early.begin()->second.size();
    m_early.erase(m_early.begin());
  }
  m_early[id].push_back(std::move(received));
  ++m_early_messages;
}

std::optional<sucl_group::control_message> job_process::poll(sucl_group& group,
                                                             std::uint64_t most) {
  const std::lock_guard lock(m_loop->lock());
  if (group.control_messages.empty()) return std::nullopt;
  if (group.control_messages.front().text.size() > most)
    throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                  "a control message of " +
                      std::to_string(group.control_messages.front().text.size()) +
                      " bytes does not fit into " + std::to_string(most),
                  "Give poll room for 4096 bytes."};
  sucl_group::control_message next = std::move(group.control_messages.front());
  group.control_messages.pop_front();
  return next;
}

}  // namespace sucl::tcp
