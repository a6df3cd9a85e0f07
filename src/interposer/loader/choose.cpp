// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// libsucl_pmpi.so: which interposer MPI's functions go to. It links nothing of MPI and of SuCL, so
// that it does nothing to a program that has no MPI.
#include "interposer/loader/functions.hpp"
#include "interposer/loader/library.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

extern "C" {
extern void* sucl_pmpi_targets[];
__attribute__((visibility("hidden"))) void sucl_pmpi_choose();
/// For interposers: the function of this name that comes after them.
__attribute__((visibility("default"))) void* sucl_pmpi_next(const char* name);
}

namespace sucl::interposer::loader {
namespace {

constexpr const char* names[] = {
#define SUCL_PMPI_NAME(name) "MPI_" #name,
#define SUCL_PMPI_PROFILING_NAME(name) "PMPI_" #name,
    SUCL_PMPI_FUNCTIONS(SUCL_PMPI_NAME) SUCL_PMPI_PROFILED(SUCL_PMPI_PROFILING_NAME)};

void* g_library = nullptr;  ///< the MPI library

// Where calls go that nothing else takes.
int absent() {
  std::fputs("sucl error interposer: the MPI library lacks a function that was called\n", stderr);
  std::abort();
}

std::string own_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&sucl_pmpi_choose), &info);
  const std::string file = info.dli_fname ? info.dli_fname : "";
  return file.substr(0, file.rfind('/') + 1);
}

bool is_of(void* symbol, void* module) {
  Dl_info of_symbol{};
  Dl_info of_module{};
  return symbol && dladdr(symbol, &of_symbol) &&
         dladdr(dlsym(module, "sucl_pmpi_module"), &of_module) &&
         of_symbol.dli_fbase == of_module.dli_fbase;
}

// A flavour that was built under a name of its own.
std::string own_flavour() {
  const char* set = std::getenv("SUCL_MPI_MODULE");
  const std::string module = set ? set : "";
  const std::string prefix = "libsucl_mpi_";
  const std::size_t at = module.rfind('/') == std::string::npos ? 0 : module.rfind('/') + 1;
  const std::size_t end = module.rfind(".so");
  if (module.compare(at, prefix.size(), prefix) != 0 || end == std::string::npos) return "";
  return module.substr(at + prefix.size(), end - at - prefix.size());
}

// The interposer for the library; null if there is none, and then it is said why. Also where it can
// only pass calls on: the other ranks must agree to that, and it takes part in their exchange.
void* open_module(const library& found) {
  std::string problem = found.problem;
  std::string flavours[] = {found.flavour == "abi" ? "" : own_flavour(), found.flavour};
  for (const std::string& flavour : flavours) {
    if (flavour.empty()) continue;
    const std::string file = own_folder() + "libsucl_pmpi_" + flavour + ".so";
    void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module) {
      const char* why = dlerror();
      problem = std::string("no interposer for the MPI library ") + found.file + ": " +
                (why ? why : file.c_str());
      continue;
    }
    Dl_info info{};
    if (dladdr(dlsym(module, "PMPI_Get_processor_name"), &info) && found.file == info.dli_fname)
      return module;
    problem = "the interposer " + file + " was built for another library than " + found.file;
  }
  say_once(problem);
  return nullptr;
}

void choose() {
  const library found = find_library();
  if (!found.file.empty()) g_library = dlopen(found.file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  void* const module = open_module(found);
  std::size_t i = 0;
  for (const char* name : names) {
    void* target = module ? dlsym(module, name) : nullptr;
    if (!module || !is_of(target, module)) target = sucl_pmpi_next(name);
    if (!target) target = reinterpret_cast<void*>(&absent);
    __atomic_store_n(&sucl_pmpi_targets[i++], target, __ATOMIC_RELEASE);
  }
}

}  // namespace
}  // namespace sucl::interposer::loader

void sucl_pmpi_choose() {
  static std::once_flag once;
  std::call_once(once, sucl::interposer::loader::choose);
}

void* sucl_pmpi_next(const char* name) {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  void* const library = sucl::interposer::loader::g_library;
  return library ? dlsym(library, name) : nullptr;
}
