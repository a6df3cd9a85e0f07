// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A device whose kernels are threads, and ranks that have one.
#pragma once

#include "backends/device_kernels/backend.hpp"
#include "support/drive.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <vector>

namespace sucl::testing {

/// A device whose kernels are threads, one for each work item.
class thread_device final : public core::kernel_device {
 public:
  explicit thread_device(bool with_memory);
  void prepare() override {}
  std::shared_ptr<void> allocate(std::uint64_t bytes) override;
  std::shared_ptr<void> allocate_host(std::uint64_t bytes) override {
    ++host_allocations;
    return allocate(bytes);
  }
  void write(void* to, const void* from, std::uint64_t bytes) override;
  void* pin(void* memory, std::uint64_t) override { return memory; }
  void release(void*) override {}
  bool keeps_ll128_stores_whole(const identity_type&) override { return true; }
  void* launch(const core::kernel_launch& kernel, void*) override;
  void* launch(const core::message_launch& kernel, void*) override;
  void* launch(const core::plan_launch& kernel, void*) override;
  bool test(void* token) override;
  void drain() override {
    if (m_last.valid()) m_last.wait();
  }

  identity_type identity() override { return who; }

  identity_type who{};
  int allocations_left = 1 << 30;  ///< then there is no more memory
  std::uint64_t allocated = 0;     ///< bytes, so far
  const std::shared_ptr<std::atomic<std::uint64_t>> count_in_use =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  std::atomic<std::uint64_t>& in_use = *count_in_use;  ///< bytes, now
  std::array<std::atomic<int>, 6> used{};              ///< kernels of each protocol
  int host_allocations = 0;
  int resident = 1 << 10;  ///< work groups that run at once

  /// While it is not null, kernels of collectives go there instead of being run.
  using graph = std::vector<std::shared_ptr<core::kernel_launch>>;
  graph* captures = nullptr;
  /// Runs them, behind what was launched before.
  void replay(const graph& kernels);

 private:
  void* start(std::function<void()> kernel);

  std::shared_future<void> m_last;
};

/// How ranks reach each other's device memory.
enum class peer_access { all, some, none };

/// A rank with a device and the backends over it.
struct kernel_rank {
  core::backend_comm kernels, mock;
  thread_device& device;
  const sucl_comm_info& info;
  core::kernel_comm& comm() const { return core::kernels_of(kernels); }
};

/// A rank that makes communicators of kernels itself.
struct provider_rank {
  core::backend_comm memory_provider;
  sucl_oob& oob;
  int rank, size;
};
void for_providers(int size, const std::function<void(const provider_rank&)>& body);

/// Small buffers, so that small messages use all protocols.
core::kernel_settings small_buffers();

/// Runs ranks that are threads.
void for_devices(int size, peer_access how, const std::function<void(const kernel_rank&)>& body,
                 const core::kernel_settings& settings = small_buffers());

}  // namespace sucl::testing
