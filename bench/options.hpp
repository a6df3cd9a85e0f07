// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What `sucl bench` is asked to do.
#pragma once

#include <sucl/types.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sucl::bench {

/// Memory that collectives are measured on.
enum class memory { system, host, shared, device, symmetric, registered, window, buffer };

/// A memory as the user has named it: as in `--memory`.
struct memory_choice {
  std::string label;
  memory where = memory::device;
};

struct options {
  std::vector<kind> collectives;
  std::vector<memory_choice> memories;
  bool blocking = true;  ///< forms of the library's calls
  bool event = true;
  bool persistent = false;
  bool against_mpi = true;
  bool against_host_accessor = true;
  bool against_nccl = false;
  bool to_completion = true;         ///< time calls until their result is there
  bool back_to_back = false;         ///< time calls that are issued without waiting, on average
  bool on_device = false;            ///< the same by the device's clock, without what issuing costs
  bool issuing = false;              ///< time what issuing costs, calls that nothing waits for
  bool replayed = false;             ///< time a sequence of calls that is recorded and replayed
  bool in_order = false;             ///< the queue
  std::vector<std::uint64_t> sizes;  ///< in bytes
  std::vector<type> types;
  std::vector<op> ops;
  int root = 0;
  std::optional<int> iterations;  ///< nothing: by size and time
  std::optional<int> warmup;
  double seconds = 0;                ///< most time for the iterations of one point
  std::vector<std::string> devices;  ///< "cpu" or "gpu" for each rank of a node; empty: the default
  std::string json;                  ///< files; empty: none
  std::string plot;
  bool terminal = false;  ///< standard error is a terminal that a user sees
  std::string command;    ///< for the header
};

}  // namespace sucl::bench
