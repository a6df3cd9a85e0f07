// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

}  // namespace

report_inbox::report_inbox() {
  std::random_device random;
  const std::string name = "sucl-run-" + std::to_string(getuid()) + "-" + std::to_string(getpid()) +
                           "-" + std::to_string(random()) + std::to_string(random());
  sockaddr_un address;
  const socklen_t length = address_of(name, address);
  m_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (m_socket < 0 || bind(m_socket, generic(address), length) != 0 ||
      setsockopt(m_socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return;
  m_name = name;
}

report_inbox::~report_inbox() {
  if (m_socket >= 0) close(m_socket);
}

std::optional<rank_report> report_inbox::next() {
  for (;;) {
    rank_report report;
    iovec data{&report, sizeof report};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t bytes = m_socket < 0 ? -1 : recvmsg(m_socket, &message, 0);
    if (bytes < 0) return std::nullopt;
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    ucred sender{};
    if (!head || head->cmsg_type != SCM_CREDENTIALS) continue;
    std::memcpy(&sender, CMSG_DATA(head), sizeof sender);
    if (bytes == sizeof report && sender.uid == getuid()) return report;
  }
}

bool send_report(const std::string& inbox, const rank_report& report) {
  if (inbox.empty()) return false;
  sockaddr_un address;
  const socklen_t length = address_of(inbox, address);
  const int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (out < 0) return false;
  const bool sent = sendto(out, &report, sizeof report, MSG_NOSIGNAL, generic(address), length) ==
                    static_cast<ssize_t>(sizeof report);
  close(out);
  return sent;
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

}  // namespace sucl::tools
