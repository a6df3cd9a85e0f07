// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include "command.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sucl::tools {
namespace {

[[noreturn]] void fail_on_input(const std::string& what) {
  throw exit_error(exit_code::failure, what + ": " + std::strerror(errno) + ".");
}

void write_all(int file, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_on_input("cannot keep standard input for all ranks");
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void leave_input() {
  if (!take_input(no_input)) fail_on_input("cannot open /dev/null");
}

std::string copy_input() {
  // It is gone with the last process that has it open, however that ends.
  const int copy = memfd_create("sucl-run-input", MFD_CLOEXEC);
  if (copy < 0) fail_on_input("cannot keep standard input for all ranks");
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t bytes = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (bytes == 0) break;
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) fail_on_input("cannot read standard input");
    write_all(copy, buffer.data(), static_cast<std::size_t>(bytes));
  }
  leave_input();
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(copy);
}

bool take_input(const char* path) noexcept {
  if (std::strcmp(path, no_copy) == 0) return true;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool taken = dup2(file, STDIN_FILENO) == STDIN_FILENO;
  // dup2 leaves a descriptor that is the right one already as it is, to be closed on exec.
  if (file == STDIN_FILENO) return fcntl(file, F_SETFD, 0) == 0;
  ::close(file);
  return taken;
}

}  // namespace sucl::tools
