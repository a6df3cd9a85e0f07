// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a program calls by the names that Fortran has for MPI's functions.
#pragma once

#include <string>

namespace sucl::interposer {

/// A function for requests that a loaded file other than the library's refers to, and that
/// Fortran's part of the library carries out by a profiling name, so that the interposer does not
/// see it: all of Open MPI's (`all`), of others those of the module mpi_f08. "" if there is none.
std::string unseen_fortran(bool all);

}  // namespace sucl::interposer
