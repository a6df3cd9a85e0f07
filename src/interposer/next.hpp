// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where calls are passed on to.
#pragma once

#include "interposer/interposer.hpp"

#include <dlfcn.h>

namespace sucl::interposer {

/// The function of this name that follows SuCL's in the order in which libraries are searched: that
/// of another tool if one is loaded, else the MPI library's.
template <class Function>
Function* find_next(const char* name, Function* of_library) {
  // Where libsucl_pmpi.so is in this one's place in that order.
  const auto in_order =
      reinterpret_cast<void* (*)(const char*)>(dlsym(RTLD_DEFAULT, "sucl_pmpi_next"));
  void* const found = in_order ? in_order(name) : dlsym(RTLD_NEXT, name);
  return found ? reinterpret_cast<Function*>(found) : of_library;
}

}  // namespace sucl::interposer

/// MPI_NAME as others have it. Tools see the program's calls, not those of SuCL itself.
#define SUCL_NEXT(name)                                                               \
  [] {                                                                                \
    static const auto next = sucl::interposer::find_next("MPI_" #name, &PMPI_##name); \
    return sucl::interposer::interposer::is_inside() ? &PMPI_##name : next;           \
  }()
