// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The MPI library's functions that the interposer has by the same name.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <type_traits>

namespace sucl::interposer {

/// The library's own function of this name, which the interposer may define too. `neighbour`: one
/// that it does not.
template <class Function>
Function* find_in_library(const char* name, const void* neighbour) {
  Dl_info library{};
  if (!dladdr(neighbour, &library)) return nullptr;
  void* const handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return handle ? reinterpret_cast<Function*>(dlsym(handle, name)) : nullptr;
}

}  // namespace sucl::interposer

/// PMPI_NAME of the library, where the interposer has one, too: SUCL_PROFILED.
#define SUCL_LIBRARY(name)                                                                \
  [] {                                                                                    \
    static const auto of_library =                                                        \
        sucl::interposer::find_in_library<std::remove_pointer_t<decltype(&PMPI_##name)>>( \
            "PMPI_" #name, reinterpret_cast<const void*>(&PMPI_Comm_size));               \
    return of_library;                                                                    \
  }()
