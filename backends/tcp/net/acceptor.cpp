// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sucl::tcp {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t max_pending = 64;
// A process that knows the secret proves it within two round trips.
constexpr auto handshake_limit = 250ms;
constexpr auto retry_interval = 50ms;

}  // namespace

acceptor::acceptor(std::shared_ptr<reactor> loop, int socket, std::string secret, limits allowed)
    : m_loop(std::move(loop)), m_socket(socket), m_secret(std::move(secret)), m_limits(allowed) {}

acceptor::~acceptor() {
  if (m_socket >= 0) ::close(m_socket);
}

void acceptor::start(accept_callback take) {
  m_callback = std::move(take);
  m_loop->add(m_socket, shared_from_this(), EPOLLIN);
}

void acceptor::close() {
  m_callback = nullptr;
  // The socket goes first, so that a client that is closed here cannot connect again.
  if (m_socket >= 0) {
    m_loop->remove(m_socket);
    ::close(m_socket);
    m_socket = -1;
  }
  for (const pending& n : m_pending) n.link->close();
  m_pending.clear();
}

// Drops the one that has been silent for longest, if that is long.
bool acceptor::make_room() {
  if (m_pending.size() < max_pending) return true;
  if (clock::now() - m_pending.front().since < handshake_limit) return false;
  m_pending.front().link->close();
  m_pending.pop_front();
  return true;
}

// The rest waits in the system's queue.
void acceptor::pause() {
  if (m_paused) return;
  m_paused = true;
  m_loop->change(m_socket, 0);
  m_loop->at(clock::now() + retry_interval, shared_from_this());
}

void acceptor::due() {
  if (m_socket < 0 || !m_paused) return;
  m_paused = false;
  m_loop->change(m_socket, EPOLLIN);
}

void acceptor::ready(std::uint32_t) {
  for (int turn = 0; turn < 16 && m_socket >= 0; ++turn) {
    if (m_held || !make_room()) return pause();
    const int s = accept4(m_socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return pause();
      continue;  // the client has closed the connection already
    }
    const auto link = std::make_shared<connection>(m_loop, m_secret, m_limits);
    m_pending.push_back({link, clock::now()});
    link->serve(s, shared_from_this());
  }
}

void acceptor::opened(connection& c) {
  const auto at = std::find_if(m_pending.begin(), m_pending.end(),
                               [&](const pending& n) { return n.link.get() == &c; });
  if (at == m_pending.end()) return;
  const auto link = at->link;
  m_pending.erase(at);
  // The reactor holds it: the other side would wait for an answer.
  if (!m_callback || !m_callback(link)) link->close();
}

void acceptor::ended(connection& c, ending how, const std::string&) {
  if (how == ending::unauthenticated) ++m_refused;
  std::erase_if(m_pending, [&](const pending& n) { return n.link.get() == &c; });
}

}  // namespace sucl::tcp
