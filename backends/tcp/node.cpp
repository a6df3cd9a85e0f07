// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <algorithm>
#include <thread>

namespace sucl::tcp {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t any_size = std::uint64_t{1} << 40;
constexpr std::size_t max_who = 512;
constexpr auto goodbye_timeout = 1000ms;

}  // namespace

node::node(std::shared_ptr<reactor> loop, node_settings settings)
    : m_loop(std::move(loop)), m_settings(std::move(settings)) {}

// The reactor's thread may be the last one that knows it; then it has the lock.
node::~node() {
  std::unique_lock lock(m_loop->lock(), std::defer_lock);
  if (!m_loop->in_own_thread()) lock.lock();
  if (m_acceptor) m_acceptor->close();
  for (const auto& [at, l] : m_links) l.at->close();
}

std::size_t node::connections() {
  const std::lock_guard lock(m_loop->lock());
  return m_links.size();
}

bool node::is_neighbour(int rank) const {
  const auto& p = m_root->place;
  return rank == p.parent ||
         std::find(p.children.begin(), p.children.end(), rank) != p.children.end();
}

void node::accept_member(const std::shared_ptr<connection>& c) {
  c->set_listener(shared_from_this());
  m_links[c.get()] = {c, false, false, ""};
}

// The other side of a connection that this process has made has proved itself.
void node::opened(connection& c) {
  writer out(frame_type::hello);
  out.number(static_cast<std::int32_t>(rank())).number(static_cast<std::int32_t>(size()));
  out.number(static_cast<std::int32_t>(c.tag)).text(m_own.who());
  c.send(out.frame());
}

void node::refuse(connection& c, const problem& why) {
  c.send(writer(frame_type::failed).number(why.status).text(why.text).text(why.hint).frame());
}

void node::hello(connection& c, reader& message) {
  const auto rank = message.number<std::int32_t>();
  const auto size = message.number<std::int32_t>();
  const auto target = message.number<std::int32_t>();
  const std::string who = message.text(max_who);
  link& l = m_links[&c];
  // Meant for a process that had this address before, or sent by one of another job.
  if (!message.complete() || target != this->rank() || l.own || l.welcome || m_leaving) {
    c.close();
    m_links.erase(&c);
    return;
  }
  if (!is_right(c, rank, size, who)) return;
  c.tag = rank;
  c.allow_frames(any_size);
  l.welcome = true;
  l.who = who;
  c.send(writer(frame_type::welcome).frame());
  if (m_failed) refuse(c, m_failed);
  use(rank, c);
}

bool node::is_right(connection& c, int rank, int size, const std::string& who) {
  problem why;
  if (size != this->size()) {
    why = {SUCL_ERROR_MISMATCH,
           "rank " + std::to_string(rank) + " (" + who + ") says that the job has " +
               std::to_string(size) + " ranks, rank " + std::to_string(this->rank()) + " (" +
               m_own.who() + ") says " + std::to_string(this->size()),
           "Start every rank with the same size"};
  } else if (rank < 0 || rank >= size || rank == this->rank() ||
             (m_up && contact_of(rank).who() != who)) {
    c.close();
    m_links.erase(&c);
    return false;
  } else if (!m_up) {
    for (const auto& [at, l] : m_links)
      if (l.welcome && at->tag == rank && l.who != who)
        why = {SUCL_ERROR_MISMATCH,
               "two processes say that they are rank " + std::to_string(rank) + ": " + l.who +
                   " and " + who,
               "Give each process of the job a rank of its own, from 0 to size - 1"};
  }
  if (!why) return true;
  refuse(c, why);
  fail_start(why);
  return false;
}

void node::welcomed(connection& c) {
  link& l = m_links[&c];
  if (!l.own || l.welcome) return;
  l.welcome = true;
  c.allow_frames(any_size);
  use(c.tag, c);
}

// From now on frames for that process go by this connection, if there was none before.
void node::use(int rank, connection& c) {
  peer& p = m_peers[rank];
  if (m_links[&c].own) p.connecting = false;
  if (p.link) return;
  p.link = &c;
  for (const frame& f : p.waiting) c.send(f);
  p.waiting.clear();
}

void node::send_to(int rank, frame what) {
  peer& p = m_peers[rank];
  if (p.gone) return;
  if (p.link) return p.link->send(std::move(what));
  p.waiting.push_back(std::move(what));
  if (!p.connecting) connect(rank);
}

// The loopback is the other process's only where it is this one's.
std::vector<endpoint> node::endpoints_of(int rank) const {
  const contact c = contact_of(rank);
  std::vector<endpoint> endpoints;
  for (const bool near : {true, false})
    for (const endpoint& e : c.addresses)
      if (e.is_loopback() == near && (!near || c.machine == m_own.machine)) endpoints.push_back(e);
  return endpoints;
}

void node::connect(int rank) {
  peer& p = m_peers[rank];
  const auto endpoints = endpoints_of(rank);
  if (p.tried >= endpoints.size()) {
    const bool ended = p.refused && !endpoints.empty();
    return lose(rank, ended ? "has ended" : "cannot be reached (" + p.reasons + ")");
  }
  p.connecting = true;
  limits allowed;
  allowed.prove = m_settings.timeout;  // a process that is stopped may go on
  const auto c = std::make_shared<connection>(m_loop, m_settings.secret, allowed);
  c->tag = rank;
  m_links[c.get()] = {c, true, false, ""};
  c->connect_to(endpoints[p.tried], shared_from_this());
}

void node::ended(connection& c, ending how, const std::string& why) {
  const auto found = m_links.find(&c);
  if (found == m_links.end()) return;
  const link l = found->second;
  m_links.erase(found);
  m_changed.notify_all();
  if (m_leaving || c.tag < 0) return;
  peer& p = m_peers[c.tag];
  if (l.welcome) {
    if (p.link == &c) p.link = nullptr;
    return lose(c.tag,
                how == ending::closed ? "has died" : "cannot be reached any more (" + why + ")");
  }
  if (!l.own) return;
  p.connecting = false;
  p.refused = p.refused && how == ending::refused;
  p.reasons += (p.reasons.empty() ? "" : "; ") + text_of(c.remote()) + ": " + why;
  ++p.tried;
  if (!p.link && !p.gone) connect(c.tag);
}

void node::lose(int rank, const std::string& how) {
  peer& p = m_peers[rank];
  if (p.gone) return;
  p.gone = clock::now();
  p.how = how;
  p.waiting.clear();
  p.connecting = false;
  if (!m_up && is_neighbour(rank))
    fail_start({SUCL_ERROR_PEER_LOST,
                "rank " + std::to_string(rank) + " " + how + " while the ranks of the job found " +
                    "each other",
                "Look for the reason in the output of that rank"});
  m_changed.notify_all();
}

void node::received(connection& c, frame_type type, reader& message) {
  const auto found = m_links.find(&c);
  if (found == m_links.end()) return;
  if (type == frame_type::hello) return hello(c, message);
  if (type == frame_type::welcome) return welcomed(c);
  if (type == frame_type::failed) {
    problem why;
    why.status = message.number<sucl_status>();
    why.text = message.text(64 << 10);
    why.hint = message.text(64 << 10);
    if (message.complete() && why) fail_start(why);
    return;
  }
  if (!found->second.welcome) return;
  switch (type) {
    case frame_type::up: return up(c, message);
    case frame_type::down: return down(message);
    case frame_type::broken: return broken(c, message);
    case frame_type::control_message: return control_message(message);
    case frame_type::abort: return heard_abort(c, message);
    case frame_type::goodbye: return goodbye(c);
    case frame_type::agreement: return agreement_message(c, message);
    default: return;
  }
}

// All that the other side had to say is here; it waits for this end of the connection.
void node::goodbye(connection& c) {
  const int rank = c.tag;
  peer& p = m_peers[rank];
  if (p.link == &c) p.link = nullptr;
  c.close();
  m_links.erase(&c);
  if (!p.gone) {
    p.gone = clock::now();
    p.how = "has left";
    p.waiting.clear();
  }
  m_changed.notify_all();
}

void node::leave() {
  std::unique_lock lock(m_loop->lock());
  if (m_leaving) return;
  m_leaving = true;
  if (m_acceptor) m_acceptor->close();
  const auto leave_notice = writer(frame_type::goodbye).frame();
  std::vector<std::shared_ptr<connection>> unfinished;
  for (const auto& [at, l] : m_links) {
    if (!l.welcome) {
      unfinished.push_back(l.at);
      continue;
    }
    l.at->send(leave_notice);
    l.at->shut_after_sending();
  }
  for (const auto& c : unfinished) {
    m_links.erase(c.get());
    c->close();
  }
  m_changed.wait_for(lock, goodbye_timeout, [&] { return m_links.empty(); });
  for (const auto& [at, l] : m_links) l.at->close();
  m_links.clear();
}

void node::abort(int code) {
  std::unique_lock lock(m_loop->lock());
  writer out(frame_type::abort);
  out.number(static_cast<std::int32_t>(code)).number(static_cast<std::int32_t>(rank()));
  const auto word = out.frame();
  for (const auto& [at, l] : m_links)
    if (l.welcome) l.at->send(word);
  // What is sent is the system's; the rest gets a moment.
  const auto until = clock::now() + 300ms;
  const auto busy = [&] {
    return std::any_of(m_links.begin(), m_links.end(),
                       [](const auto& entry) { return entry.second.at->has_to_send(); });
  };
  while (busy() && clock::now() < until) {
    lock.unlock();
    std::this_thread::sleep_for(5ms);
    lock.lock();
  }
}

void node::heard_abort(connection& c, reader& message) {
  const int from = c.tag;
  const auto code = message.number<std::int32_t>();
  const auto rank = message.number<std::int32_t>();
  writer out(frame_type::abort);
  out.number(code).number(rank);
  const auto word = out.frame();
  for (const auto& [at, l] : m_links)
    if (l.welcome && at->tag != from && is_neighbour(at->tag)) l.at->send(word);
  m_settings.aborted(code);
}

}  // namespace sucl::tcp
