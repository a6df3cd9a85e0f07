// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where calls are passed on to.
#pragma once

#include "interposer/interposer.hpp"
#include "interposer/requests/library_function.hpp"

#include <dlfcn.h>

namespace sucl::interposer {

/// The function of this name that follows SuCL's in the order in which libraries are searched: that
/// of another tool if one is loaded, else the MPI library's.
template <class Function>
Function* find_next(const char* name, Function* of_library) {
  // Where libsucl_pmpi.so stands for this library in that order.
  const auto in_order =
      reinterpret_cast<void* (*)(const char*)>(dlsym(RTLD_DEFAULT, "sucl_pmpi_next"));
  void* const found = in_order ? in_order(name) : dlsym(RTLD_NEXT, name);
  return found ? reinterpret_cast<Function*>(found) : of_library;
}

/// A function that is being passed on: by its profiling name what is called returns to SuCL, which
/// has done its part.
template <class Function>
struct passed_on {
  Function* to;
  template <class... Arguments>
  int operator()(Arguments... arguments) const {
    const passing under_way;
    return to(arguments...);
  }
};

}  // namespace sucl::interposer

/// MPI_NAME as others have it. Tools see the program's calls, not those of SuCL itself.
#define SUCL_NEXT(name)                                                               \
  [] {                                                                                \
    static const auto next = sucl::interposer::find_next("MPI_" #name, &PMPI_##name); \
    return sucl::interposer::interposer::is_inside() ? &PMPI_##name : next;           \
  }()

/// SUCL_NEXT of such a function.
#define SUCL_NEXT_OR_LIBRARY(name)                                                                \
  [] {                                                                                            \
    static const auto next = sucl::interposer::find_next("MPI_" #name, SUCL_LIBRARY(name));       \
    const bool straight =                                                                         \
        sucl::interposer::interposer::is_inside() || sucl::interposer::interposer::is_profiled(); \
    return sucl::interposer::passed_on{straight ? SUCL_LIBRARY(name) : next};                     \
  }()

/// The profiling name of a function that the interposer has. Tools and Fortran's modules call it to
/// complete what SuCL executes, or to end MPI, so it must reach SuCL. Calls that SuCL has passed on
/// go to the library. To be used after the function itself.
// NOLINTBEGIN(bugprone-macro-parentheses): they would be part of the declaration.
#define SUCL_PROFILED(name, parameters, arguments)                                               \
  extern "C"                                                                                     \
      __attribute__((visibility("hidden"), alias("MPI_" #name))) int sucl_own_##name parameters; \
  SUCL_MPI_FUNCTION PMPI_##name parameters {                                                     \
    if (sucl::interposer::interposer::is_passed_on()) return SUCL_LIBRARY(name) arguments;       \
    const sucl::interposer::profiled by_that_name;                                               \
    return sucl_own_##name arguments;                                                            \
  }
// NOLINTEND(bugprone-macro-parentheses)
