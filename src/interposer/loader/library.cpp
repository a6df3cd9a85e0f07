// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/loader/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

namespace sucl::interposer::loader {
namespace {

std::vector<std::string> loaded_files() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
        return 0;
      },
      &files);
  return files;
}

std::string file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

// The files that define PMPI_Get_processor_name. A library may be loaded where only its users see
// it, so all are asked.
std::set<std::string> definitions() {
  std::set<std::string> found;
  for (const std::string& file : loaded_files()) {
    void* const handle = dlopen(file.empty() ? nullptr : file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    if (const void* const symbol = dlsym(handle, "PMPI_Get_processor_name"))
      found.insert(file_of(symbol));
    dlclose(handle);
  }
  return found;
}

// Of several files that define MPI's functions the one whose functions are called; "" where those
// are not for all to see, or the file is none of them. Tools do not define that name.
std::string called_of(const std::set<std::string>& files) {
  const void* const symbol = dlsym(RTLD_DEFAULT, "PMPI_Comm_rank");
  const std::string file = symbol ? file_of(symbol) : "";
  return files.count(file) ? file : "";
}

bool has_standard_abi(void* handle) {
  const auto get_version =
      reinterpret_cast<int (*)(int*, int*)>(dlsym(handle, "MPI_Abi_get_version"));
  int major = -1;
  int minor = -1;
  return get_version && get_version(&major, &minor) == 0 && major == 1;  // later ones may be others
}

std::string version_of(void* handle) {
  const auto get_version =
      reinterpret_cast<int (*)(char*, int*)>(dlsym(handle, "MPI_Get_library_version"));
  std::array<char, 16384> text{};  // as long as any library's
  int length = 0;
  if (!get_version || get_version(text.data(), &length) != 0) return {};
  const std::string_view all(text.data());
  return std::string(all.substr(0, all.find_first_of(",\n")));
}

std::string flavour_of(const std::string& version, const std::string& file) {
  if (version.find("Open MPI") != std::string::npos) return "openmpi";
  if (version.find("Intel(R) MPI") != std::string::npos) return "impi";
  // Libraries derived from MPICH promise its handles by this name: its ABI compatibility
  // initiative.
  const bool named = file.substr(file.rfind('/') + 1).rfind("libmpi.so.12", 0) == 0;
  return named || version.find("MPICH") != std::string::npos ? "mpich" : "";
}

// MPICH and what is derived from it have the same handles.
std::string interface_of(const std::string& flavour) {
  return flavour == "impi" ? "mpich" : flavour;
}

// One that defines MPI's functions.
library inspect(const std::string& file) {
  library found;
  found.file = file;
  void* handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) handle = dlopen(nullptr, RTLD_LAZY);  // the program itself, linked statically
  const std::string version = version_of(handle);
  found.flavour = has_standard_abi(handle) ? "abi" : flavour_of(version, file);
  if (found.flavour.empty())
    found.problem = "the MPI library " + file + " (" + version +
                    ") is unknown and does not have the standard ABI";
  dlclose(handle);
  return found;
}

void say_to_first_rank(const std::string& line) {
  for (const char* rank : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(rank); value && std::string_view(value) != "0") return;
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

library find_library() {
  library found;
  const std::set<std::string> files = definitions();
  if (files.empty()) {
    found.problem = "the process has no MPI library";
    return found;
  }
  if (files.size() == 1) return inspect(*files.begin());
  const std::string called = called_of(files);
  found = inspect(called.empty() ? *files.begin() : called);
  if (called.empty()) found.flavour.clear();
  found.problem = "the process has several MPI libraries:";
  for (const std::string& file : files) found.problem += " " + file;
  return found;
}

void refuse_other_interfaces(const std::string& flavour) {
  std::set<std::string> files = definitions();
  if (const std::string called = called_of(files); !called.empty()) files = {called};
  for (const std::string& file : files) {
    const library found = inspect(file);
    if (found.flavour.empty() || interface_of(found.flavour) == interface_of(flavour)) continue;
    say_to_first_rank("sucl error interposer: libsucl_pmpi_" + flavour +
                      ".so was loaded into a process that has " + found.file +
                      ", whose interface is another one (" + found.flavour +
                      "), so that arguments of MPI's functions are unknown; start the program "
                      "with `sucl run --interpose`, or load libsucl_pmpi" +
                      (found.flavour == "openmpi" ? "_openmpi.so" : ".so, which chooses") + "\n");
    // A launcher ends all ranks with the first one that exits, and drops what it has not read.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::_Exit(1);
  }
}

void say_once(const std::string& problem) {
  say_to_first_rank("sucl warn interposer: " + problem + "; everything is passed on to MPI\n");
}

}  // namespace sucl::interposer::loader
