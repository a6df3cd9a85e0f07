// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/host_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace sucl::core {

std::string host_name() {
  std::array<char, 256> text{};
  return gethostname(text.data(), text.size() - 1) == 0 ? std::string(text.data()) : "unknown";
}

std::string host_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat space{};
  if (stat("/proc/self/ns/pid", &space) == 0) boot += "/" + std::to_string(space.st_ino);
  // Containers of one machine may share the kernel but not the network, nor memory.
  return boot + "/" + host_name();
}

}  // namespace sucl::core
