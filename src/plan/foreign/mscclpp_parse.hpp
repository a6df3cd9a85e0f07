// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What an execution plan of MSCCL++ says, with its references resolved.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::plan::mscclpp {

/// Chunks of a buffer of a rank, or of the ranks that a switch connects.
struct buffer_range {
  char type = 'i';         ///< i, o or s
  std::vector<int> ranks;  ///< whose; the own one of a local buffer
  bool remote = false;     ///< reached by a channel
  std::uint64_t chunk = 0, chunks = 0;
};

/// An end of a connection of two ranks: the number of the connection among those of the two.
struct channel_end {
  int peer = 0;
  std::string type;
  int number = 0;
  auto operator<=>(const channel_end&) const = default;
};

struct operation {
  std::string name, where;  ///< `where`: as "GPU 0, thread block 1, operation 2"
  std::vector<buffer_range> from, to;
  std::vector<channel_end> channels;
  std::vector<int> semaphores;
  int barrier = 0, barrier_blocks = 0;
  int slice = 0, slices = 1;          ///< of a group of thread blocks
  int iteration = 0, iterations = 1;  ///< of a pipeline
};

struct gpu {
  std::uint64_t inputs = 0, outputs = 0, scratch = 0;  ///< chunks
  std::vector<int> semaphores;                         ///< their first values
  std::vector<std::vector<operation>> blocks;          ///< pipelines are unrolled
};

struct plan_text {
  std::string name, collective;
  bool in_place = false;
  std::vector<gpu> gpus;
};

/// Throws invalid_argument.
plan_text parse(std::string_view text);

/// Iterations of a pipeline that are proved.
inline constexpr int iterations = 2;

}  // namespace sucl::plan::mscclpp
