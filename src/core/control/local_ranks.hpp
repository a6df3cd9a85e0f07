// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A control plane for ranks of which a process has several, on top of one that knows processes.
#pragma once

#include <sucl/abi/bootstrap.h>
#include <sucl/export.hpp>

#include <vector>

namespace sucl::core {

/// The name of this control plane.
inline constexpr const char* local_ranks_control_plane = "local ranks";

/// Its table. What ranks of one process exchange stays in its memory; one of them takes part in
/// exchanges with other processes for all. Groups come from make_rank_groups() and from splitting
/// these; a group is used by one thread at a time, and those of several ranks by as many threads.
SUCL_CORE_API const sucl_bootstrap& local_ranks_control();

/// Ranks of each process of a group.
struct rank_counts {
  int process = 0;           ///< this one
  std::vector<int> of_each;  ///< at least 1
};

/// The group of all ranks, numbered by process and then by position: one handle for each rank of
/// this process. `over`: the group of the processes, of the control plane `below`, which is taken
/// over and ends with the last handle; null where this process is alone. Local.
SUCL_CORE_API std::vector<sucl_group*> make_rank_groups(const sucl_bootstrap* below,
                                                        sucl_group* over,
                                                        const rank_counts& counts);

}  // namespace sucl::core
