// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The rank of this process and the size of a job that no MPI library knows of, as a launcher has
/// left it in the environment.
#pragma once

#include <sucl/abi/bootstrap.h>
#include <sucl/error.hpp>
#include <sucl/export.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sucl::core {

/// How a process finds the others of its job.
struct launch {
  int rank = 0;
  int size = 1;
  std::string id;       ///< of sucl::unique_id; or else
  std::string address;  ///< of the machine of rank 0, and
  std::uint16_t port = 0;
  std::string secret;               ///< what only processes of the job know
  std::optional<sucl_store> store;  ///< the program's own, instead of all that
  std::string why;                  ///< who has said so
  /// Why this process cannot be a rank of the job. What else is here says where the others learn
  /// it.
  std::optional<error_info> wrong;
};

/// A variable of the environment; null: it is not set.
using variable_lookup = std::function<const char*(const char*)>;

/// By SuCL's own variables, those of torchrun, Slurm and PALS, the first that are there. Nothing:
/// none of them. What they say of the rank may be `wrong`; throws errc::configuration where they do
/// not say where the others are.
SUCL_CORE_API std::optional<launch> find_launch(const variable_lookup& variable);

/// By SuCL's own variables alone. Some of them without the others is `wrong`.
SUCL_CORE_API std::optional<launch> find_own_launch(const variable_lookup& variable);

/// The first machine of a list as Slurm writes it: "n[03-07,9],login1" begins with n03.
SUCL_CORE_API std::string first_host(const std::string& list);

}  // namespace sucl::core
