// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Numbers that keep the messages of communicators apart. Each is one of the few that fit into the
/// tags of every provider, and free on all ranks of its communicator.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace sucl::fabric {

/// Of one rank. Threads may make communicators at once.
class contexts {
 public:
  static constexpr std::uint64_t count = std::uint64_t{1} << 16;

  /// Gathers a number of each rank of the communicator; throws what fails.
  using gather_function = std::function<std::vector<std::uint64_t>(std::uint64_t mine)>;

  /// A context that every rank of the communicator has free, and takes it; none if some rank has no
  /// free one left. Collective.
  std::optional<std::uint32_t> agree(const gather_function& gather);
  void give_back(std::uint32_t context);

 private:
  std::uint64_t propose(std::uint64_t from);
  void release(std::uint64_t number);

  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::mutex m_lock;
  std::vector<bool> m_taken = std::vector<bool>(count);
  std::uint64_t m_next = 0;  ///< number: context plus a multiple of count, so that it only grows
};

}  // namespace sucl::fabric
