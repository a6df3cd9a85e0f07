// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The least that two processes can do to signal each other: the yardstick of small messages.
#pragma once

#include <sucl/communicator.hpp>

#include <atomic>
#include <cstdint>

namespace sucl::bench {

/// Flags in shared memory, one cache line a rank, without any library. Every rank raises its own
/// and waits until all others are as high. Ranks must be on one node.
class flag_exchange {
 public:
  /// Collective. Throws errc::unavailable where the ranks share no memory.
  explicit flag_exchange(const communicator& comm);
  ~flag_exchange();
  flag_exchange(const flag_exchange&) = delete;
  flag_exchange& operator=(const flag_exchange&) = delete;

  void run();

 private:
  struct alignas(64) line {
    std::atomic<std::uint64_t> flag;
  };
  line* m_lines = nullptr;
  std::size_t m_bytes = 0;
  int m_rank, m_size;
  int m_poll_limit;  ///< polls before the processor is yielded: many where each rank has its own
  std::uint64_t m_round = 0;
};

}  // namespace sucl::bench
