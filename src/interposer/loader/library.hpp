// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The MPI library of a process that may have been built for any.
#pragma once

#include <string>

namespace sucl::interposer::loader {

/// What was found.
struct library {
  std::string file;     ///< of the library, of several the one that is called; "" if there is none
  std::string flavour;  ///< of the interposer for it: abi, openmpi, mpich, impi; "" if none is
  std::string
      problem;  ///< why calls can only be passed on: there is no flavour, or other libraries
};

/// Looks for the one library that defines MPI's functions.
library find_library();

/// Says on standard error why all is passed on: one line, of the first rank, as far as its launcher
/// tells which one that is.
void say_once(const std::string& problem);

/// Ends the process with an error if it calls a library of another interface than `flavour`'s: what
/// an interposer takes for arguments would be something else, so that calls could not even be
/// passed on. Before MPI begins.
void refuse_other_interfaces(const std::string& flavour);

}  // namespace sucl::interposer::loader
