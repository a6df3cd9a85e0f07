// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>

namespace sucl::tools {
namespace {

// An abstract address: its first byte is 0, and it goes with its socket.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

int open_socket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

}  // namespace

report_inbox::report_inbox() {
  std::random_device random;
  const std::string name = "sucl-run-" + std::to_string(getuid()) + "-" + std::to_string(getpid()) +
                           "-" + std::to_string(random()) + std::to_string(random());
  sockaddr_un address;
  const socklen_t length = address_of(name, address);
  m_socket = open_socket();
  if (m_socket < 0 || bind(m_socket, generic(address), length) != 0 ||
      listen(m_socket, SOMAXCONN) != 0)
    return;
  m_name = name;
}

report_inbox::~report_inbox() {
  for (const line& l : m_lines) close(l.socket);
  if (m_socket >= 0) close(m_socket);
}

// Of this user's processes only.
void report_inbox::take_new() {
  for (;;) {
    const int s =
        m_name.empty() ? -1 : accept4(m_socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s < 0) return;
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == getuid())
      m_lines.push_back({s, -1, false});
    else
      close(s);
  }
}

std::optional<rank_report> report_inbox::next() {
  take_new();
  for (line& l : m_lines) {
    rank_report report;
    if (recv(l.socket, &report, sizeof report, 0) != static_cast<ssize_t>(sizeof report)) continue;
    l.rank = report.rank;
    l.over = report.event == rank_report::what::ended;
    return report;
  }
  return std::nullopt;
}

void report_inbox::end(int rank) {
  const char word = 1;
  for (const line& l : m_lines)
    if (l.rank == rank) (void)!send(l.socket, &word, 1, MSG_NOSIGNAL);
}

void report_inbox::release() {
  std::erase_if(m_lines, [](const line& l) { return l.over && close(l.socket) == 0; });
}

report_line::report_line(const std::string& inbox) {
  sockaddr_un address;
  const socklen_t length = address_of(inbox, address);
  m_socket = open_socket();
  if (m_socket < 0 || (!inbox.empty() && connect(m_socket, generic(address), length) == 0)) return;
  close(m_socket);
  m_socket = -1;
}

report_line::~report_line() {
  if (m_socket >= 0) close(m_socket);
}

bool report_line::send(const rank_report& report) {
  return m_socket >= 0 && ::send(m_socket, &report, sizeof report, MSG_NOSIGNAL) ==
                              static_cast<ssize_t>(sizeof report);
}

report_line::word report_line::listen() {
  char text = 0;
  if (m_socket < 0) return word::gone;
  const ssize_t bytes = recv(m_socket, &text, 1, 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return word::none;
  return bytes == 1 ? word::end : word::gone;
}

int shell_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string describe_end(int status) {
  if (!WIFSIGNALED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const char* short_name = sigabbrev_np(number);
  const char* words = sigdescr_np(number);
  return "was ended by signal " + std::to_string(number) + " (" +
         (short_name ? "SIG" + std::string(short_name) : "") + (words ? ", " : "") +
         (words ? words : "") + ")";
}

std::string describe_late_end(int rank, int failed) {
  return "sucl: rank " + std::to_string(rank) + " still runs, long after rank " +
         std::to_string(failed) + " has failed: it is ended\n";
}

}  // namespace sucl::tools
