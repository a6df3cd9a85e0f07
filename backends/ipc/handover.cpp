// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Descriptors on their way from one process to another.
#include "ipc.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

namespace sucl::ipc {
namespace {

constexpr std::chrono::seconds longest_wait{30};

// The name of a socket, as the kernel chose it: abstract, so that nothing lies in the file system.
struct socket_name {
  sockaddr_un address{};
  socklen_t length = 0;
};

int open_socket(socket_name& name) {
  const int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0) return -1;
  // The kernel vouches for the sender of what comes. That is what SO_PEERCRED is for sockets
  // that are connected.
  const int on = 1;
  if (setsockopt(s, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    close(s);
    return -1;
  }
  sockaddr_un any{};
  any.sun_family = AF_UNIX;
  name.length = sizeof name.address;
  if (bind(s, reinterpret_cast<sockaddr*>(&any), sizeof any.sun_family) == 0 &&
      getsockname(s, reinterpret_cast<sockaddr*>(&name.address), &name.length) == 0)
    return s;
  close(s);
  return -1;
}

union control_space {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

// Sends `descriptor` with the sender's rank. False: not now, see errno.
bool send_one(int s, const socket_name& to, std::int32_t rank, int descriptor) {
  iovec text{&rank, sizeof rank};
  control_space control{};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_un*>(&to.address);
  message.msg_namelen = to.length;
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return sendmsg(s, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof rank);
}

// What a message brought. Any process on this machine may send one to the socket.
struct delivery {
  int descriptor = -1;
  ucred sender{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
};

union delivery_space {
  char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
  cmsghdr align;
};

// Takes one message; without a descriptor if there is none, or none of the right form.
delivery receive_one(int s, std::int32_t& rank) {
  iovec text{&rank, sizeof rank};
  delivery_space control{};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  delivery got;
  const ssize_t bytes = recvmsg(s, &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0) return got;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET) continue;
    if (head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
      std::memcpy(&got.descriptor, CMSG_DATA(head), sizeof got.descriptor);
    if (head->cmsg_type == SCM_CREDENTIALS && head->cmsg_len == CMSG_LEN(sizeof(ucred)))
      std::memcpy(&got.sender, CMSG_DATA(head), sizeof got.sender);
  }
  if (bytes != static_cast<ssize_t>(sizeof rank)) rank = -1;
  return got;
}

// Whether it comes from the process that the rank says it is, of the same user, and is still
// missing.
bool is_expected(const sucl_backend_comm& c, const delivery& got, std::int32_t rank,
                 const std::vector<int>& descriptors) {
  if (got.descriptor < 0 || rank < 0 || rank >= c.size || !c.near(rank)) return false;
  const auto p = static_cast<std::size_t>(rank);
  return got.sender.uid == getuid() && got.sender.pid == static_cast<pid_t>(c.infos[p].pid) &&
         descriptors[p] < 0;
}

// Sends to each of `to` and takes as many; both at once, because queues of sockets are short.
int exchange(int s, const sucl_backend_comm& c, const std::vector<socket_name>& names,
             std::vector<std::int32_t> to, int own, std::vector<int>& descriptors) {
  const auto until = std::chrono::steady_clock::now() + longest_wait;
  std::size_t missing = to.size();
  while (missing > 0 || !to.empty()) {
    if (!to.empty() && send_one(s, names[static_cast<std::size_t>(to.back())], c.rank, own)) {
      to.pop_back();
      continue;
    }
    if (!to.empty() && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) return errno;
    std::int32_t rank = -1;
    const delivery got = receive_one(s, rank);
    if (is_expected(c, got, rank, descriptors)) {
      descriptors[static_cast<std::size_t>(rank)] = got.descriptor;
      --missing;
      continue;
    }
    if (got.descriptor >= 0) {
      close(got.descriptor);
      continue;
    }
    const sucl_core* core = c.state->core;
    if (SUCL_HAS_FIELD(core, sucl_core, keep_waiting) && core->keep_waiting &&
        core->keep_waiting() != SUCL_SUCCESS)
      return ETIMEDOUT;
    if (std::chrono::steady_clock::now() > until) return ETIMEDOUT;
    pollfd ready{s, POLLIN, 0};
    poll(&ready, 1, 1);
  }
  return 0;
}

}  // namespace

int take_by_proc(const sucl_backend_comm& c, const std::vector<segment_info>& infos,
                 std::vector<int>& descriptors) {
  for (std::int32_t r = 0; r < c.size; ++r) {
    const auto p = static_cast<std::size_t>(r);
    if (!c.near(r) || c.same_process(r)) continue;
    const auto path =
        "/proc/" + std::to_string(c.infos[p].pid) + "/fd/" + std::to_string(infos[p].descriptor);
    descriptors[p] = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptors[p] < 0) return errno;
  }
  return 0;
}

int take_by_socket(const sucl_backend_comm& c, int own, std::vector<int>& descriptors,
                   sucl_status* status) {
  socket_name mine;
  const int s = open_socket(mine);
  int problem = s < 0 ? errno : 0;
  std::vector<socket_name> names;
  *status = gather(c, mine, names);
  std::vector<std::int32_t> to;
  for (std::int32_t r = 0; r < c.size; ++r)
    if (c.near(r) && !c.same_process(r)) to.push_back(r);
  for (const auto r : to)
    if (names[static_cast<std::size_t>(r)].length == 0 && !problem) problem = ECONNREFUSED;
  if (*status == SUCL_SUCCESS && !problem)
    problem = exchange(s, c, names, std::move(to), own, descriptors);
  if (s >= 0) close(s);
  return problem;
}

}  // namespace sucl::ipc
