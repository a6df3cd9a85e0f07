// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include "problem.hpp"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace sucl::tcp {
namespace {

// "SuCL" and the version of the protocol.
constexpr std::array<unsigned char, 8> magic{'S', 'u', 'C', 'L', 1, 0, 0, 0};
constexpr std::size_t greeting_bytes = magic.size() + sizeof(nonce);
constexpr std::size_t answer_bytes = greeting_bytes + sizeof(digest);

// The machine at the other end may fail without closing its connections.
void set_options(int socket) {
  const int on = 1, idle = 10, between = 5, times = 4;
  const unsigned unanswered_ms = 30'000;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

}  // namespace

connection::connection(std::shared_ptr<reactor> loop, std::string secret, limits allowed)
    : m_loop(std::move(loop)), m_secret(std::move(secret)), m_limits(allowed) {}

connection::~connection() {
  if (m_socket >= 0) ::close(m_socket);
}

void connection::begin(int socket, std::uint32_t events) {
  m_socket = socket;
  set_options(socket);
  m_loop->add(socket, shared_from_this(), events);
}

void connection::connect_to(const endpoint& where, const std::shared_ptr<listener>& observer) {
  m_listener = observer;
  m_remote = where;
  m_stage = stage::connecting;
  m_deadline = clock::now() + m_limits.connect;
  const int s = socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  m_connect_error = s < 0 ? errno : 0;
  // The system may give this end the port at which rank 0 is about to listen; with this it still
  // can.
  const int yes = 1;
  if (s >= 0) setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (s >= 0 && connect(s, where.generic(), where.length()) != 0 && errno != EINPROGRESS)
    m_connect_error = errno;
  if (m_connect_error == 0) {
    m_watches_writable = true;
    begin(s, EPOLLOUT);
  } else {
    if (s >= 0) ::close(s);
    m_deadline = clock::now();  // due() reports it
  }
  m_loop->at(m_deadline, shared_from_this());
}

void connection::serve(int socket, const std::shared_ptr<listener>& observer) {
  m_listener = observer;
  m_server = true;
  m_stage = stage::authenticating;
  m_deadline = clock::now() + m_limits.authenticate;
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) == 0)
    m_remote = endpoint(reinterpret_cast<const sockaddr*>(&peer));
  begin(socket, EPOLLIN);
  m_loop->at(m_deadline, shared_from_this());
  m_server_nonce = random_nonce();
  auto greeting = std::make_shared<bytes>();
  const auto add = [&](const void* data, std::size_t n) {
    const auto* from = static_cast<const std::byte*>(data);
    greeting->insert(greeting->end(), from, from + n);
  };
  add(magic.data(), magic.size());
  add(m_server_nonce.data(), m_server_nonce.size());
  m_out.push_back(std::move(greeting));
  flush();
}

void connection::due() {
  if (m_stage == stage::open || m_stage == stage::closed || m_stage == stage::idle) return;
  if (clock::now() < m_deadline) {
    m_loop->at(m_deadline, shared_from_this());
    return;
  }
  if (m_connect_error != 0) return fail_to_connect(m_connect_error);
  end(ending::unreachable, m_stage == stage::connecting ? "there is no answer from that address"
                                                        : "it listens, but does not answer");
}

void connection::end(ending how, const std::string& why) {
  if (m_stage == stage::closed) return;
  const auto self = shared_from_this();
  close();
  if (const auto observer = m_listener.lock()) observer->ended(*this, how, why);
}

void connection::close() {
  if (m_stage == stage::closed) return;
  m_stage = stage::closed;
  m_out.clear();
  if (m_socket < 0) return;
  m_loop->remove(m_socket);
  ::close(m_socket);
  m_socket = -1;
}

endpoint connection::local() const {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (m_socket < 0 || getsockname(m_socket, reinterpret_cast<sockaddr*>(&own), &length) != 0)
    return {};
  return endpoint(reinterpret_cast<const sockaddr*>(&own));
}

void connection::ready(std::uint32_t events) try {
  const auto self = shared_from_this();
  if (m_stage == stage::connecting) {
    connected();
    return;
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive();
  if (m_stage != stage::closed && (events & EPOLLOUT)) flush();
} catch (const std::bad_alloc&) {
  end(ending::broken, "there is no memory for what has come");
}

void connection::fail_to_connect(int error) {
  if (error == ECONNREFUSED) return end(ending::refused, "no process listens there");
  end(ending::unreachable, std::strerror(error));
}

void connection::connected() {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(m_socket, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return fail_to_connect(error);
  // A socket can be connected to itself through a port of this machine without a listener.
  if (const endpoint own = local(); own.same_address(m_remote) && own.port() == m_remote.port())
    return end(ending::refused, "no process listens there");
  m_stage = stage::greeting;
  m_deadline = clock::now() + m_limits.authenticate;
  m_loop->at(m_deadline, shared_from_this());
  watch_writable(false);
}

digest connection::proof(const char* of) const {
  std::string message = of;
  message.append(reinterpret_cast<const char*>(m_server_nonce.data()), m_server_nonce.size());
  message.append(reinterpret_cast<const char*>(m_client_nonce.data()), m_client_nonce.size());
  return hmac(m_secret, message);
}

void connection::receive() {
  std::array<std::byte, 64 << 10> chunk;
  // Other connections get their turn too.
  for (int turn = 0; turn < 16 && m_stage != stage::closed; ++turn) {
    std::size_t room = chunk.size();
    // A client that has proved nothing gets no memory.
    if (m_stage != stage::open) room = std::min(room, answer_bytes - m_in.size());
    const ssize_t n = recv(m_socket, chunk.data(), room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) return end(ending::broken, std::strerror(errno));
    if (n == 0) {
      if (m_stage == stage::authenticating && !m_server)
        return end(ending::unauthenticated, "it has closed the connection instead of a proof");
      return end(ending::closed, "the other side has closed the connection");
    }
    m_in.insert(m_in.end(), chunk.data(), chunk.data() + n);
    while (m_stage != stage::open && m_stage != stage::closed && take_handshake()) {
    }
    if (m_stage == stage::open) parse_frames();
  }
}

// Parses the next message of the handshake, if it has arrived.
bool connection::take_handshake() {
  const auto* at = reinterpret_cast<const unsigned char*>(m_in.data()) + m_consumed;
  const std::size_t have = m_in.size() - m_consumed;
  const std::size_t wanted = m_server                     ? answer_bytes
                             : m_stage == stage::greeting ? greeting_bytes
                                                          : sizeof(digest);
  // The first bytes show a client of another protocol.
  const bool begins_so = !(m_stage == stage::authenticating && !m_server);
  if (begins_so && std::memcmp(at, magic.data(), std::min(have, magic.size())) != 0) {
    end(ending::foreign, "what answers is no SuCL of this version");
    return false;
  }
  if (have < wanted) return false;
  m_consumed += wanted;
  if (m_server) return check_answer(at);
  return check_greeting(at);
}

// The answer of a client, by the server.
bool connection::check_answer(const unsigned char* at) {
  std::copy_n(at + magic.size(), sizeof(nonce), m_client_nonce.begin());
  digest given;
  std::copy_n(at + greeting_bytes, given.size(), given.begin());
  const bool right = equal(given, proof("client"));
  // A refusal is all zeros, so that the other side can say why.
  const digest reply = right ? proof("server") : digest{};
  const auto* from = reinterpret_cast<const std::byte*>(reply.data());
  m_out.push_back(std::make_shared<bytes>(from, from + reply.size()));
  flush();
  if (m_stage == stage::closed) return false;
  if (!right) {
    end(ending::unauthenticated, "the other side does not know the secret");
    return false;
  }
  m_stage = stage::open;
  if (const auto observer = m_listener.lock()) observer->opened(*this);
  return true;
}

// What the server says first, or its proof, by the client.
bool connection::check_greeting(const unsigned char* at) {
  if (m_stage == stage::greeting) {
    std::copy_n(at + magic.size(), sizeof(nonce), m_server_nonce.begin());
    m_client_nonce = random_nonce();
    const digest own = proof("client");
    auto answer = std::make_shared<bytes>();
    const auto add = [&](const unsigned char* data, std::size_t n) {
      const auto* from = reinterpret_cast<const std::byte*>(data);
      answer->insert(answer->end(), from, from + n);
    };
    add(magic.data(), magic.size());
    add(m_client_nonce.data(), m_client_nonce.size());
    add(own.data(), own.size());
    m_out.push_back(std::move(answer));
    m_stage = stage::authenticating;
    flush();
    return m_stage == stage::authenticating;
  }
  digest given;
  std::copy_n(at, given.size(), given.begin());
  if (!equal(given, proof("server"))) {
    end(ending::unauthenticated, given == digest{}
                                     ? "it has refused this process: the secrets differ"
                                     : "it does not know the secret");
    return false;
  }
  m_stage = stage::open;
  if (const auto observer = m_listener.lock()) observer->opened(*this);
  return true;
}

void connection::parse_frames() {
  while (m_stage == stage::open && m_in.size() - m_consumed >= frame_header_bytes) {
    reader head(m_in.data() + m_consumed, frame_header_bytes);
    const auto length = head.number<std::uint64_t>();
    const auto type = static_cast<frame_type>(head.number<std::uint32_t>());
    if (length > m_limits.frame)
      return end(ending::broken, "a message of " + std::to_string(length) + " bytes has come");
    if (m_in.size() - m_consumed - frame_header_bytes < length) break;
    reader message(m_in.data() + m_consumed + frame_header_bytes, static_cast<std::size_t>(length));
    m_consumed += frame_header_bytes + static_cast<std::size_t>(length);
    if (const auto observer = m_listener.lock()) observer->received(*this, type, message);
  }
  if (m_consumed == m_in.size()) {
    m_in.clear();
    m_consumed = 0;
    constexpr std::size_t kept = 4096;
    if (m_in.capacity() > kept) bytes().swap(m_in);
  } else if (m_consumed > m_in.size() / 2) {
    m_in.erase(m_in.begin(), m_in.begin() + static_cast<std::ptrdiff_t>(m_consumed));
    m_consumed = 0;
  }
}

void connection::send(std::shared_ptr<const bytes> frame) {
  if (m_stage == stage::closed || m_shut) return;
  m_out.push_back(std::move(frame));
  if (m_stage == stage::open) flush();
}

void connection::shut_after_sending() {
  if (m_stage == stage::closed) return;
  m_shut = true;
  if (m_stage == stage::open) flush();
}

void connection::flush() {
  while (!m_out.empty()) {
    const bytes& first = *m_out.front();
    const ssize_t n = ::send(m_socket, first.data() + m_sent, first.size() - m_sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return watch_writable(true);
    // What has come before may still be read; the reactor sees the end.
    if (n < 0) {
      m_out.clear();
      break;
    }
    m_sent += static_cast<std::size_t>(n);
    if (m_sent < first.size()) continue;
    m_out.pop_front();
    m_sent = 0;
  }
  watch_writable(false);
  if (m_shut) ::shutdown(m_socket, SHUT_WR);
}

void connection::watch_writable(bool wanted) {
  if (m_watches_writable == wanted) return;
  m_watches_writable = wanted;
  m_loop->change(m_socket, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

}  // namespace sucl::tcp
