// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the applications have in common on the command line.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace apps {

/// How a run communicates.
enum class variant {
  sucl,           ///< SuCL, on USM, with events
  host_accessor,  ///< MPI on the pointers of host_accessors, on buffers: Listing 1 of the SuCL
                  ///< paper
  usm             ///< MPI on USM pointers
};
const char* name(variant v);

/// Whether SuCL's calls return an event or when they are done.
enum class form {
  automatic,  ///< event on GPUs, whose queues wait without the host; blocking on CPU devices
  event,
  blocking
};

struct options {
  variant kind = variant::sucl;
  form calls = form::automatic;
  int iterations = 100;
  int recorded = 0;   ///< iterations that are recorded, and replayed together; 0: none
  int breakdown = 5;  ///< iterations of the run that times each phase by itself
  std::vector<std::string> devices;  ///< "cpu" or "gpu" for each rank; empty: SYCL's default
  std::string json;
  std::string plot;
  bool quiet = false;
};

/// What cannot be run; ends the program with exit code 2. Once there is a context, every rank
/// throws it.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using extents = std::array<std::int64_t, 3>;

std::string print(const extents& e);

}  // namespace apps
