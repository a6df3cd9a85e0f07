// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The executable `sucl`. What it does is in a library beside the modules, which needs the SYCL
// runtime: that one may have been moved or removed since SuCL was built, and then there is a user
// left to say so.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// Relative to the folder of the executable, in the build tree or in an installation.
constexpr std::array paths{SUCL_PROGRAM_PATH, "../lib/sucl/libsucl_program.so"};
constexpr const char* sycl_libraries = SUCL_SYCL_LIBRARIES;

std::string own_folder() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  // The runtime of DPC++ would look for its own name there for ever while it is loaded.
  if (length <= 0) {
    std::fprintf(stderr,
                 "sucl: there is no /proc, which SuCL and SYCL runtimes need (/proc/self/exe: %s). "
                 "Mount it: mount -t proc proc /proc\n",
                 std::strerror(errno));
    std::exit(EXIT_FAILURE);
  }
  const std::string text(path.data(), static_cast<std::size_t>(length));
  return text.substr(0, text.rfind('/') + 1);
}

std::string find_program() {
  for (const char* relative : paths)
    if (const std::string path = own_folder() + relative; access(path.c_str(), R_OK) == 0)
      return path;
  return own_folder() + paths.front();
}

// The library that the linker missed, of a message "NAME: cannot open shared object file: ...".
std::string missing_library(const std::string& message) {
  const auto end = message.find(": cannot open shared object file");
  return end == message.npos ? std::string() : message.substr(0, end);
}

[[noreturn]] void give_up(const std::string& program, const std::string& why, const char* root) {
  const std::string missing = missing_library(why);
  if (missing.empty() || missing == program)
    std::fprintf(stderr, "sucl: cannot load %s: %s. Install SuCL again.\n", program.c_str(),
                 why.c_str());
  else
    std::fprintf(
        stderr,
        "sucl: the library %s was not found. SuCL was built with a SYCL runtime in %s%s. "
        "If it has been moved, set SUCL_SYCL_ROOT to the folder whose lib/ holds it; if it "
        "has been removed, build and install SuCL again.\n",
        missing.c_str(), sycl_libraries,
        root ? (" and SUCL_SYCL_ROOT is " + std::string(root)).c_str() : "");
  std::exit(EXIT_FAILURE);
}

// Loads the program; libraries that the linker does not find are taken from SUCL_SYCL_ROOT.
void* load(const std::string& program) {
  const char* root = secure_getenv("SUCL_SYCL_ROOT");
  if (root && *root == '\0') root = nullptr;
  constexpr int max_missing = 32;
  std::string why;
  for (int i = 0; i < max_missing; ++i) {
    if (void* handle = dlopen(program.c_str(), RTLD_NOW)) return handle;
    const char* reason = dlerror();
    why = reason ? reason : "no reason given";
    const std::string missing = missing_library(why);
    if (!root || missing.empty() || missing.find('/') != missing.npos) break;
    if (!dlopen((std::string(root) + "/lib/" + missing).c_str(), RTLD_NOW)) break;
  }
  give_up(program, why, root);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string program = find_program();
  void* const library = load(program);
  void* const entry = dlsym(library, "sucl_program_main");
  if (!entry) give_up(program, "it has no sucl_program_main", nullptr);
  return reinterpret_cast<int (*)(int, char**)>(entry)(argc, argv);
}
