// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// environment.toml: what SYCL and each MPI need in the environment, as the build has found it.
#pragma once

#include "command.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sucl::tools {

/// Changes to a set of environment variables.
struct variable_changes {
  std::vector<std::pair<std::string, std::string>> set;  ///< unless the user has set them
  std::vector<std::pair<std::string, words>> prepend;    ///< folders in front of path lists
  std::vector<std::pair<std::string, std::string>> replace = {};  ///< whatever the user has set
};

/// One MPI library.
struct mpi_flavour {
  std::string name;
  std::string family;  ///< openmpi, mpich or impi
  std::string version;
  std::string module;  ///< path of SuCL's module for it
  std::string launcher;
  words arguments;          ///< of the launcher, always
  words survive_arguments;  ///< to keep ranks alive when another one dies
  variable_changes variables;
};

struct environment {
  std::string file;
  std::string module_folder;  ///< where the modules and Python files of SuCL lie
  std::string problem;        ///< why the file could not be read; the rest is empty then
  std::string python;
  std::string sycl_provider;
  std::string sycl_root;
  variable_changes sycl;
  std::string default_flavour;
  std::vector<mpi_flavour> flavours;
  /// What there is of MPI where no launcher is known: which modules, or that there are none.
  [[nodiscard]] std::string about_missing_mpi() const;
};

/// Reads SUCL_ENVIRONMENT, or else environment.toml beside the modules. A file that is missing or
/// wrong is in `problem`, so that `sucl info` can still show the rest.
environment load_environment();

/// The flavour to use: `wanted`, or SUCL_MPI_FLAVOUR, or the default. Throws exit_error that names
/// the nearest flavour, or says what to do if there is none.
const mpi_flavour& choose_flavour(const environment& env, const std::string& wanted);

/// Makes the changes in this process. Returns whether the dynamic linker's path has changed, which
/// only a new program notices.
bool apply(const variable_changes& changes);

/// Makes what SYCL needs so in this process; starts the program again if it has to.
void prepare_sycl(const environment& env);

/// The path of this program.
std::string own_path();

}  // namespace sucl::tools
