// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How many processes a launcher says that it has started. Of headers alone: the modules for MPI
/// link nothing of the core.
#pragma once

#include "base/system/process_stat.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>

namespace sucl::base {

/// A variable that says so, and its value.
struct started_ranks {
  std::string variable;
  int size = 0;

  std::string text() const {
    return "the launcher started " + std::to_string(size) + " processes (" + variable + ")";
  }
};

/// Variables of a launcher: `size` counts only where the others are set too.
struct launcher_variables {
  const char* size;
  std::initializer_list<const char*> with;
};

/// The first of these launchers that has started several processes. `variable(name)` is the value,
/// or null.
template <class Lookup>
std::optional<started_ranks> several_started(std::initializer_list<launcher_variables> launchers,
                                             const Lookup& variable) {
  const auto value = [&](const char* name) -> std::string {
    const char* const text = variable(name);
    return text ? text : "";
  };
  for (const launcher_variables& l : launchers) {
    bool complete = true;
    for (const char* name : l.with) complete = complete && !value(name).empty();
    const std::string text = value(l.size);
    int size = 0;
    const auto [stop, wrong] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (complete && wrong == std::errc{} && stop == text.data() + text.size() && size > 1)
      return started_ranks{l.size, size};
  }
  return std::nullopt;
}

/// Of the launchers of MPI. Hydra, of MPICH and Intel MPI, also says how many are on this node,
/// which is what is left where the environment has lost what is of PMI.
template <class Lookup>
std::optional<started_ranks> several_by_mpi(const Lookup& variable) {
  return several_started({{"OMPI_COMM_WORLD_SIZE", {}}, {"PMI_SIZE", {}}, {"MPI_LOCALNRANKS", {}}},
                         variable);
}

/// Of those whose processes find each other without MPI.
template <class Lookup>
std::optional<started_ranks> several_without_mpi(const Lookup& variable) {
  return several_started({{"SUCL_TCP_SIZE", {"SUCL_TCP_RANK"}},
                          {"WORLD_SIZE", {"RANK", "MASTER_ADDR"}},
                          {"SLURM_STEP_NUM_TASKS", {"SLURM_PROCID", "SLURM_STEP_ID"}},
                          {"PALS_SIZE", {"PALS_RANKID"}}},
                         variable);
}

/// `sucl run` gives the processes that start its ranks this name, followed by the number of ranks.
inline constexpr const char name_of_sucl_run[] = "sucl run ";

/// The number of ranks of the `sucl run` that this process comes from, whatever its environment
/// says; 0: it comes from none.
inline int ranks_of_sucl_run() {
  constexpr int scripts_between = 4;
  pid_t process = getppid();
  for (int i = 0; i <= scripts_between && process > 1; ++i) {
    const auto known = stat_of(process);
    if (!known) return 0;
    constexpr std::size_t length = sizeof name_of_sucl_run - 1;
    if (known->name.compare(0, length, name_of_sucl_run) == 0)
      return std::atoi(known->name.c_str() + length);
    process = known->parent;
  }
  return 0;
}

}  // namespace sucl::base
