// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks hand memory to each other over sockets, while another process of the same user sends memory
// of its own to every socket it finds, in the name of each rank. It must not get between them.
#include <sucl/sucl.hpp>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace {

void send(int s, const std::string& name, std::int32_t rank, int descriptor) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::copy_n(name.begin(), std::min(name.size(), sizeof to.sun_path - 1), to.sun_path + 1);
  iovec text{&rank, sizeof rank};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  sendmsg(s, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The names that the kernel chooses have five digits.
[[noreturn]] void intrude() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int memory = memfd_create("intruder", MFD_CLOEXEC);
  if (ftruncate(memory, 1 << 26) != 0) _exit(1);
  while (true) {
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);) {
      const auto at = line.rfind('@');
      if (at == line.npos || line.size() - at != 6) continue;
      for (std::int32_t rank = 0; rank < 4; ++rank) send(s, line.substr(at + 1), rank, memory);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const pid_t child = fork();
  if (child == 0) intrude();
  int failures = 0;
  {
    sucl::runtime runtime{argc, argv};
    auto world = runtime.world();
    for (int i = 0; i < 10; ++i) {
      int* const memory = world.allocate<int>(1000);
      std::fill_n(memory, 1000, world.rank() + 1);
      world.allreduce(memory, 1000, sucl::op::sum).wait();
      const int sum = world.size() * (world.size() + 1) / 2;
      if (std::count(memory, memory + 1000, sum) != 1000) ++failures;
      world.deallocate(memory);
    }
    std::printf("rank %d: %d failures\n", world.rank(), failures);
  }
  kill(child, SIGKILL);
  return failures == 0 ? 0 : 1;
}
