// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which MPI library is the control plane of this process.
#pragma once

#include "base/config/config.hpp"

#include <sucl/export.hpp>

#include <string>

namespace sucl::core {

/// The flavour of MPI that this process belongs to, and how that was seen.
struct flavour {
  std::string name;  ///< "openmpi", "mpich", "impi"; "" if the process is not part of an MPI job
  std::string why;
};

/// Looks at the MPI library that is loaded in this process, else at what its launcher left in the
/// environment. Calls no MPI function but MPI_Get_library_version.
SUCL_CORE_API flavour detect_flavour();

/// The file of the MPI module that is the control plane.
SUCL_CORE_API std::string control_plane_file(const base::config& settings,
                                             const std::string& flavour);

}  // namespace sucl::core
