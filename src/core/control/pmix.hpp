// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Jobs of launchers that serve PMIx to their processes: Slurm's, PRRTE, Open MPI's mpiexec.
#pragma once

#include "base/config/config.hpp"
#include "core/control/launch.hpp"

namespace sucl::core {

/// Whether the environment is that of a process which a PMIx launcher has started.
bool started_by_pmix(const variable_lookup& variable);

/// Rank and size of this process in the job of its PMIx launcher, with an id that rank 0 makes and
/// the launcher hands to the others. Collective over the job. The library of PMIx is loaded for
/// that, and its client ended again, so that it does not hinder a program that uses PMIx or MPI
/// itself. Throws errc::unavailable where it cannot be loaded, or the launcher refuses.
launch find_pmix_launch(const base::config& settings);

}  // namespace sucl::core
