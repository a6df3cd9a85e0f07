// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the control plane of this process is: an MPI library, or SuCL's own over TCP.
#pragma once

#include "base/config/config.hpp"
#include "core/control/launch.hpp"

#include <sucl/export.hpp>

#include <optional>
#include <string>

namespace sucl::core {

/// The flavour of MPI that this process belongs to, and how that was seen.
struct flavour {
  std::string name;  ///< "openmpi", "mpich", "impi"; "abi": a library with the standard ABI, whose
                     ///< handles are alike in all; "" if the process is not part of an MPI job
  std::string why;
};

/// Detects the MPI library that is loaded in this process, else from what its launcher left in the
/// environment. Calls no MPI function but MPI_Get_library_version.
SUCL_CORE_API flavour detect_flavour();

/// The name of the control plane without MPI.
inline constexpr const char* tcp_control_plane = "tcp";

/// A control plane, and how it was found.
struct control_plane_choice {
  std::string file;  ///< of its module; "": the process is alone
  std::string why;
  std::optional<launch> over_tcp;
};

/// By the configuration, by MPI if this process belongs to a job of it, else by what another
/// launcher has left in the environment. Throws errc::configuration, errc::unavailable.
SUCL_CORE_API control_plane_choice choose_control_plane(const base::config& settings);

/// Makes the id of a job without MPI, whose store this process serves until its ranks have found
/// each other. `network`: name or subnet of an interface; "": any; "loopback": this machine alone.
/// `ranks`: the number of ranks that alone may take it; 0: any.
SUCL_CORE_API std::string make_job_id(const std::string& network, std::uint16_t port,
                                      int ranks = 0);

/// Where a process without MPI finds the others, as its module takes it.
SUCL_CORE_API sucl_rendezvous rendezvous_of(const launch& l, const base::config& settings);

/// Throws what is wrong with how this process is to find the others of the next job, as a malformed
/// id or one that a job has used.
SUCL_CORE_API void check_next(const launch& l, const base::config& settings);

/// Has the ranks that still look for each other fail with this, in a job whose id this process has
/// made. Does not wait for them.
SUCL_CORE_API void fail_start(const std::string& id, sucl_status status, const std::string& why,
                              const std::string& hint) noexcept;

/// Why there is no MPI in a job with that control plane, which may be null; "" if there is.
SUCL_CORE_API std::string no_mpi(const sucl_bootstrap* control);

/// The file of the module that is the control plane.
SUCL_CORE_API std::string control_plane_file(const base::config& settings,
                                             const std::string& flavour);

}  // namespace sucl::core
