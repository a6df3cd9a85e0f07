// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend that carries collectives by kernels of SuCL's own, on the devices of one
/// node. Who has the SYCL objects launches them: see kernel_device.
#pragma once

#include "runtime/kernels/jobs.hpp"
#include "runtime/kernels/lane_memory.hpp"

#include <sucl/export.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// Settings of [backends.kernels].
struct kernel_settings {
  std::uint64_t small;     ///< largest message that goes in lines with flags
  std::uint64_t staging;   ///< staging memory for each peer, of each half
  std::uint64_t two_shot;  ///< from here ranks share the work of allreduce, reduce and broadcast
  std::uint64_t direct = 1 << 20;
  std::uint64_t groups = kernels::most_groups;
  std::uint64_t operations = 0;  ///< that count as done; for trying what comes after very many

  /// What is good for so many ranks on one node: each sends to all others.
  explicit kernel_settings(int ranks);

  /// Throws errc::configuration.
  static kernel_settings read(const std::vector<std::pair<std::string, std::string>>& table,
                              int ranks);
};

/// A communicator's kernels.
class kernel_comm {
 public:
  /// Collective; throws sucl::error.
  kernel_comm(const channel& lender, const sucl_oob& oob, kernel_device& device, int rank, int size,
              const kernel_settings& settings);
  ~kernel_comm();
  kernel_comm(const kernel_comm&) = delete;
  kernel_comm& operator=(const kernel_comm&) = delete;

  /// Launches the kernels of an operation; `target` as of kernel_device::launch().
  void* start(const sucl_operation& operation, void* target);
  bool test(void* token) { return m_device.test(token); }
  /// All kernels end soon, whatever they wait for.
  void abort();

  kernel_device& device() const { return m_device; }
  lane_memory& memory() { return m_memory; }

 private:
  std::uint32_t* abort_word() const { return static_cast<std::uint32_t*>(m_abort.get()); }
  void next_epoch();
  void* launch(kernel_launch& kernel, void* target);
  void* aside(std::uint64_t bytes);

  kernel_device& m_device;
  lane_memory m_memory;
  job_setting m_setting;
  std::shared_ptr<void> m_abort;  ///< a word in the host's memory
  std::vector<std::shared_ptr<void>> m_aside;
  std::uint64_t m_aside_bytes = 0;
  std::uint64_t m_epoch = 0, m_previous = 0;
  bool m_heard_all = true;  ///< in the operation before
};

/// The largest number of ranks.
inline constexpr int most_kernel_ranks = kernels::most_ranks;

/// Its table; `state` of its channels is the kernel_comm.
SUCL_CORE_API const sucl_backend& kernel_backend() noexcept;
channel kernel_channel(std::unique_ptr<kernel_comm> comm);
kernel_comm& kernels_of(const channel& c);

}  // namespace sucl::core
