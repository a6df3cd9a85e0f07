// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "job_process.hpp"

#include <algorithm>
#include <thread>

namespace sucl::tcp {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t any_size = std::uint64_t{1} << 40;
constexpr std::size_t max_process_text = 512;
constexpr auto goodbye_timeout = 1000ms;

}  // namespace

job_process::job_process(std::shared_ptr<reactor> loop, job_process_settings settings)
    : m_loop(std::move(loop)), m_settings(std::move(settings)) {}

// The reactor's thread may hold the last reference; then it has the lock.
job_process::~job_process() {
  std::unique_lock lock(m_loop->lock(), std::defer_lock);
  if (!m_loop->in_own_thread()) lock.lock();
  if (m_acceptor) m_acceptor->close();
  for (const auto& [at, l] : m_links) l.at->close();
}

std::size_t job_process::connections() {
  const std::lock_guard lock(m_loop->lock());
  return m_links.size();
}

bool job_process::is_neighbour(int rank) const {
  const auto& p = m_root->position;
  return rank == p.parent ||
         std::find(p.children.begin(), p.children.end(), rank) != p.children.end();
}

void job_process::accept_member(const std::shared_ptr<connection>& c) {
  c->set_listener(shared_from_this());
  m_links[c.get()] = {c, false, false, ""};
}

// The other side of a connection that this process has made has proved itself.
void job_process::opened(connection& c) {
  writer out(frame_type::hello);
  out.number(static_cast<std::int32_t>(rank())).number(static_cast<std::int32_t>(size()));
  out.number(static_cast<std::int32_t>(c.tag)).text(m_own.process_text());
  c.send(out.frame());
}

void job_process::refuse(connection& c, const problem& why) {
  c.send(writer(frame_type::failed).number(why.status).text(why.text).text(why.hint).frame());
}

void job_process::handle_hello(connection& c, reader& message) {
  const auto rank = message.number<std::int32_t>();
  const auto size = message.number<std::int32_t>();
  const auto target = message.number<std::int32_t>();
  const std::string process = message.text(max_process_text);
  link& l = m_links[&c];
  // It is meant for a process that had this address before, or comes from another job.
  if (!message.complete() || target != this->rank() || l.outgoing || l.welcome || m_leaving) {
    c.close();
    m_links.erase(&c);
    return;
  }
  if (!check_identity(c, rank, size, process)) return;
  c.tag = rank;
  c.allow_frames(any_size);
  l.welcome = true;
  l.process = process;
  c.send(writer(frame_type::welcome).frame());
  if (m_failed) refuse(c, m_failed);
  use_link(rank, c);
}

bool job_process::check_identity(connection& c, int rank, int size, const std::string& process) {
  problem why;
  if (size != this->size()) {
    why = {SUCL_ERROR_MISMATCH,
           "rank " + std::to_string(rank) + " (" + process + ") says that the job has " +
               std::to_string(size) + " ranks, rank " + std::to_string(this->rank()) + " (" +
               m_own.process_text() + ") says " + std::to_string(this->size()),
           "Start every rank with the same size"};
  } else if (rank < 0 || rank >= size || rank == this->rank() ||
             (m_set_up && contact_of(rank).process_text() != process)) {
    c.close();
    m_links.erase(&c);
    return false;
  } else if (!m_set_up) {
    for (const auto& [at, l] : m_links)
      if (l.welcome && at->tag == rank && l.process != process)
        why = {SUCL_ERROR_MISMATCH,
               "two processes say that they are rank " + std::to_string(rank) + ": " + l.process +
                   " and " + process,
               "Give each process of the job a rank of its own, from 0 to size - 1"};
  }
  if (!why) return true;
  refuse(c, why);
  fail_start(why);
  return false;
}

void job_process::handle_welcome(connection& c) {
  link& l = m_links[&c];
  if (!l.outgoing || l.welcome) return;
  l.welcome = true;
  c.allow_frames(any_size);
  use_link(c.tag, c);
}

// Frames for that process go through this connection from now on, unless it had one before.
void job_process::use_link(int rank, connection& c) {
  peer& p = m_peers[rank];
  if (m_links[&c].outgoing) p.connecting = false;
  if (p.link) return;
  p.link = &c;
  for (const frame& f : p.waiting) c.send(f);
  p.waiting.clear();
}

void job_process::send_to(int rank, frame what) {
  peer& p = m_peers[rank];
  if (p.lost_since) return;
  if (p.link) return p.link->send(std::move(what));
  p.waiting.push_back(std::move(what));
  if (!p.connecting) connect(rank);
}

// A loopback address reaches the other process only where both share a loopback.
std::vector<endpoint> job_process::endpoints_of(int rank) const {
  const contact c = contact_of(rank);
  std::vector<endpoint> endpoints;
  for (const bool near : {true, false})
    for (const endpoint& e : c.addresses)
      if (e.is_loopback() == near && (!near || c.machine == m_own.machine)) endpoints.push_back(e);
  return endpoints;
}

void job_process::connect(int rank) {
  peer& p = m_peers[rank];
  const auto endpoints = endpoints_of(rank);
  if (p.addresses_tried >= endpoints.size()) {
    const bool ended = p.refused && !endpoints.empty();
    return mark_lost(rank, ended ? "has ended" : "cannot be reached (" + p.reasons + ")");
  }
  p.connecting = true;
  limits allowed;
  allowed.authenticate = m_settings.timeout;  // a stopped process may continue
  const auto c = std::make_shared<connection>(m_loop, m_settings.secret, allowed);
  c->tag = rank;
  m_links[c.get()] = {c, true, false, ""};
  c->connect_to(endpoints[p.addresses_tried], shared_from_this());
}

void job_process::ended(connection& c, ending how, const std::string& why) {
  const auto found = m_links.find(&c);
  if (found == m_links.end()) return;
  const link l = found->second;
  m_links.erase(found);
  m_changed.notify_all();
  if (m_leaving || c.tag < 0) return;
  peer& p = m_peers[c.tag];
  if (l.welcome) {
    if (p.link == &c) p.link = nullptr;
    return mark_lost(
        c.tag, how == ending::closed ? "has died" : "cannot be reached any more (" + why + ")");
  }
  if (!l.outgoing) return;
  p.connecting = false;
  p.refused = p.refused && how == ending::refused;
  p.reasons += (p.reasons.empty() ? "" : "; ") + text_of(c.remote()) + ": " + why;
  ++p.addresses_tried;
  if (!p.link && !p.lost_since) connect(c.tag);
}

void job_process::mark_lost(int rank, const std::string& how) {
  peer& p = m_peers[rank];
  if (p.lost_since) return;
  p.lost_since = clock::now();
  p.lost_text = how;
  p.waiting.clear();
  p.connecting = false;
  if (!m_set_up && is_neighbour(rank))
    fail_start({SUCL_ERROR_PEER_LOST,
                "rank " + std::to_string(rank) + " " + how + " while the ranks of the job found " +
                    "each other",
                "Look for the reason in the output of that rank"});
  m_changed.notify_all();
}

void job_process::received(connection& c, frame_type type, reader& message) {
  const auto found = m_links.find(&c);
  if (found == m_links.end()) return;
  if (type == frame_type::hello) return handle_hello(c, message);
  if (type == frame_type::welcome) return handle_welcome(c);
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
    case frame_type::up: return handle_up(c, message);
    case frame_type::down: return handle_down(message);
    case frame_type::broken: return handle_broken(c, message);
    case frame_type::control_message: return handle_control_message(message);
    case frame_type::abort: return handle_abort(c, message);
    case frame_type::goodbye: return handle_goodbye(c);
    case frame_type::agreement: return handle_agreement(c, message);
    default: return;
  }
}

// The other side sends nothing more, and waits for this side to close the connection.
void job_process::handle_goodbye(connection& c) {
  const int rank = c.tag;
  peer& p = m_peers[rank];
  if (p.link == &c) p.link = nullptr;
  c.close();
  m_links.erase(&c);
  if (!p.lost_since) {
    p.lost_since = clock::now();
    p.lost_text = "has left";
    p.waiting.clear();
  }
  m_changed.notify_all();
}

void job_process::leave() {
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

void job_process::abort(int code) {
  std::unique_lock lock(m_loop->lock());
  writer out(frame_type::abort);
  out.number(static_cast<std::int32_t>(code)).number(static_cast<std::int32_t>(rank()));
  const auto notice = out.frame();
  for (const auto& [at, l] : m_links)
    if (l.welcome) l.at->send(notice);
  // The system sends what it has accepted; the rest gets a moment.
  const auto until = clock::now() + 300ms;
  const auto busy = [&] {
    return std::any_of(m_links.begin(), m_links.end(),
                       [](const auto& entry) { return entry.second.at->has_unsent(); });
  };
  while (busy() && clock::now() < until) {
    lock.unlock();
    std::this_thread::sleep_for(5ms);
    lock.lock();
  }
}

void job_process::handle_abort(connection& c, reader& message) {
  const int from = c.tag;
  const auto code = message.number<std::int32_t>();
  const auto rank = message.number<std::int32_t>();
  writer out(frame_type::abort);
  out.number(code).number(rank);
  const auto notice = out.frame();
  for (const auto& [at, l] : m_links)
    if (l.welcome && at->tag != from && is_neighbour(at->tag)) l.at->send(notice);
  m_settings.aborted(code, rank);
}

}  // namespace sucl::tcp
