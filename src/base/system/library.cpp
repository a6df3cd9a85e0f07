// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/system/library.hpp"

#include "base/error.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace sucl::base {
namespace {

struct complaint {
  std::string message;
  std::string hint;
};

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

const complaint no_library{
    "it is not a shared library (no ELF header)",
    "Give the path of the shared library itself, not of a text file, script or archive."};

template <class Header>
bool read_header(std::ifstream& file, std::uint64_t offset, Header& header) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  return static_cast<bool>(file);
}

// Whether every segment lies inside the file. The linker maps them unseen and crashes otherwise.
bool complete(std::ifstream& file, const ElfW(Ehdr) & about, std::uint64_t size) {
  for (unsigned i = 0; i < about.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    if (!read_header(file, about.e_phoff + i * sizeof segment, segment)) return false;
    if (segment.p_filesz > size || segment.p_offset > size - segment.p_filesz) return false;
  }
  return true;
}

// What is wrong with the file itself; an empty message if nothing is. Checked first, because the
// linker reports a library for another machine as missing, and crashes on one cut short.
complaint file_complaint(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0)
    return {std::string(std::strerror(errno)), "Correct the path, or build or install the file."};
  if (S_ISDIR(about.st_mode)) return {"it is a directory", "Give the path of the library in it."};
  if (!S_ISREG(about.st_mode)) return no_library;  // opening a pipe would wait for its writer
  std::ifstream file(path, std::ios::binary);
  if (!file) return {std::string(std::strerror(errno)), "Make the file readable for this user."};
  std::array<char, EI_NIDENT> mark{};
  if (!read_header(file, 0, mark) || std::memcmp(mark.data(), ELFMAG, SELFMAG) != 0)
    return no_library;
  ElfW(Ehdr) found{};
  ElfW(Ehdr) own{};
  std::ifstream self("/proc/self/exe", std::ios::binary);
  if (!read_header(file, 0, found)) return no_library;
  if (read_header(self, 0, own) &&
      (found.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || found.e_machine != own.e_machine))
    return {"it was built for another machine (ELF class " +
                std::to_string(found.e_ident[EI_CLASS]) + ", machine " +
                std::to_string(found.e_machine) + "; this process has " +
                std::to_string(own.e_ident[EI_CLASS]) + ", " + std::to_string(own.e_machine) + ")",
            "Install or build the library for this machine."};
  if (!complete(file, found, static_cast<std::uint64_t>(about.st_size)))
    return {"the file is cut short", "Copy, install or build it again."};
  return {};
}

std::string after(std::string_view text, std::string_view mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + mark.size());
  return std::string(text);
}

// The linker's message, whose form is "FILE: WHAT", in terms of what to do about it.
complaint explain_open(const std::string& path, const std::string& linker) {
  const std::string needed_library = linker.substr(0, linker.find(": "));
  const bool missing = linker.find("cannot open shared object file") != std::string::npos;
  if (missing && needed_library != path)
    return {"it needs the library " + in_quotes(needed_library) + ", which was not found",
            "Install " + in_quotes(needed_library) + ", or add its directory to LD_LIBRARY_PATH."};
  if (missing)
    return {"no library of this name is on the linker's search path",
            "Install it, add its directory to LD_LIBRARY_PATH, or give a full path."};
  if (const std::string symbol = after(linker, "undefined symbol: "); !symbol.empty())
    return {"it needs the symbol " + in_quotes(symbol) + ", which no library offers",
            "It was built against another version of a library it uses: rebuild it, or put the "
            "matching version on LD_LIBRARY_PATH."};
  if (linker.find("version `") != std::string::npos)
    return {"it needs another version of a library: " + linker,
            "Install that version, or rebuild the library on this machine."};
  return {"the dynamic linker says: " + linker, "Check the file with ldd."};
}

}  // namespace

library::library(library&& other) noexcept
    : m_handle(std::exchange(other.m_handle, nullptr)), m_path(std::move(other.m_path)) {}

library& library::operator=(library&& other) noexcept {
  std::swap(m_handle, other.m_handle);
  std::swap(m_path, other.m_path);
  return *this;
}

library::~library() {
  if (m_handle != nullptr) ::dlclose(m_handle);
}

library library::open(const std::string& path) {
  if (path.empty())
    fail(errc::unavailable, "cannot load a library: its path is empty", "Give a path.");
  library result;
  result.m_path = path;
  complaint why;
  if (path.find('/') != std::string::npos) why = file_complaint(path);
  if (why.message.empty()) {
    result.m_handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (result.m_handle != nullptr) return result;
    const char* reason = ::dlerror();
    why = explain_open(path, reason != nullptr ? reason : "no reason given");
  }
  fail(errc::unavailable, "cannot load " + in_quotes(path) + ": " + why.message, why.hint);
}

void* library::symbol(const char* name) const {
  if (m_handle == nullptr)
    fail(errc::unavailable, "cannot find " + in_quotes(name) + ": no library is open",
         "Open the library first.");
  ::dlerror();
  void* address = ::dlsym(m_handle, name);
  if (address == nullptr)
    fail(errc::unavailable, in_quotes(m_path) + " has no symbol " + in_quotes(name),
         "It is not the library that was meant, or of another version: check the configured path.");
  return address;
}

}  // namespace sucl::base
