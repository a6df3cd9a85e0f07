// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

extern char** environ;

namespace sucl::tools {
namespace {

using variables = std::vector<std::pair<std::string, std::string>>;

// SuCL's own variables that say which MPI the ranks belong to.
variables flavour_variables(const mpi_flavour& flavour) {
  variables result{{"SUCL_MPI_FLAVOUR", flavour.family}};
  // A second MPI of one family has a module of its own name.
  if (flavour.name != flavour.family) result.emplace_back("SUCL_MPI_MODULE", flavour.module);
  return result;
}

void set_variables(const environment& env, const job& what) {
  apply(env.sycl);
  apply(what.flavour->variables);
  for (const auto& [name, value] : flavour_variables(*what.flavour))
    setenv(name.c_str(), value.c_str(), 1);
  for (const auto& [name, value] : what.variables) setenv(name.c_str(), value.c_str(), 1);
}

// The variables that ranks on other nodes need too.
std::set<std::string> names_to_forward(const environment& env, const mpi_flavour& flavour) {
  std::set<std::string> names;
  for (const variable_changes* changes : {&env.sycl, &flavour.variables}) {
    for (const auto& one : changes->set) names.insert(one.first);
    for (const auto& one : changes->prepend) names.insert(one.first);
  }
  for (char** entry = environ; entry && *entry; ++entry)
    if (std::strncmp(*entry, "SUCL_", 5) == 0)
      names.emplace(*entry, static_cast<std::size_t>(std::strchr(*entry, '=') - *entry));
  return names;
}

// A slip of the keyboard must not bring a machine down. Who has several of them knows how many
// ranks they bear.
void check_ranks(int ranks) {
  for (const char* job : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"})
    if (std::getenv(job)) return;
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int most = std::max(256, 64 * processors);
  if (ranks > most)
    throw exit_error(exit_code::failure,
                     std::to_string(ranks) + " ranks are too many for this machine, which has " +
                         std::to_string(processors) + " processors. Start at most " +
                         std::to_string(most) +
                         ", or, on several machines, start the program with mpiexec or srun.");
}

}  // namespace

words launcher_command(const environment& env, const job& what) {
  const mpi_flavour& flavour = *what.flavour;
  words command{flavour.launcher};
  const auto append = [&command](const words& more) {
    command.insert(command.end(), more.begin(), more.end());
  };
  append(flavour.arguments);
  if (what.survive) append(flavour.survive_arguments);
  // The launchers of the other families hand on the whole environment by themselves.
  if (flavour.family == "openmpi")
    for (const std::string& name : names_to_forward(env, flavour)) append({"-x", name});
  append({"-n", std::to_string(what.ranks)});
  append(what.program);
  return command;
}

void launch(const environment& env, const job& what) {
  check_ranks(what.ranks);
  const std::string& launcher = what.flavour->launcher;
  if (access(launcher.c_str(), X_OK) != 0)
    throw exit_error(exit_code::failure, "the launcher of " + what.flavour->name + ", '" +
                                             launcher +
                                             "', cannot be run: " + std::strerror(errno) +
                                             ". Install this MPI again ('make setup'), or correct "
                                             "'launcher' in " +
                                             env.file + ".");
  set_variables(env, what);
  const words command = launcher_command(env, what);
  execv(launcher.c_str(), raw_arguments(command).data());
  throw exit_error(exit_code::failure,
                   "cannot start '" + launcher + "': " + std::strerror(errno) + ".");
}

std::string describe(const environment& env, const job& what) {
  set_variables(env, what);
  std::set<std::string> names = names_to_forward(env, *what.flavour);
  std::string text;
  for (const std::string& name : names)
    if (const char* value = std::getenv(name.c_str()))
      text += "export " + name + "=" + shell_quoted(value) + "\n";
  return text + shell_quoted(launcher_command(env, what)) + "\n";
}

}  // namespace sucl::tools
