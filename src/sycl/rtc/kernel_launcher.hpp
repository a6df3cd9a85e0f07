// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Launches the kernels of operations on queues.
#pragma once

#include "backends/device_kernels/memory/device.hpp"
#include "core/failure/device_errors.hpp"
#include "sycl/common/implementation.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace sucl::sycl_layer {

/// The kernels of one communicator's device.
class kernel_launcher final : public core::kernel_device {
 public:
  /// `tracker` orders what is launched without a target; null: nothing else is on streams.
  kernel_launcher(const ::sycl::queue& of, stream_tracker* tracker);

  void prepare() override;
  std::shared_ptr<void> allocate(std::uint64_t bytes) override;
  std::shared_ptr<void> allocate_host(std::uint64_t bytes) override;
  void write(void* to, const void* from, std::uint64_t bytes) override;
  void* pin(void* memory, std::uint64_t bytes) override;
  void release(void* memory) override;
  void* launch(const core::kernel_launch& kernel, void* target) override;
  void* launch(const core::message_launch& kernel, void* target) override;
  void* launch(const core::plan_launch& kernel, void* target) override;
  bool test(void* token) override;
  void drain() override;
  identity_type identity() override;
  bool keeps_ll128_stores_whole(const identity_type& peer) override;

 private:
  ::sycl::event submit(::sycl::queue& queue, const core::kernel_launch& kernel,
                       const std::vector<::sycl::event>& deps,
                       const std::vector<buffer_use>& buffers);
  ::sycl::event submit(::sycl::queue& queue, const core::message_launch& kernel,
                       const std::vector<::sycl::event>& deps,
                       const std::vector<buffer_use>& buffers);
  ::sycl::event submit(::sycl::queue& queue, const core::plan_launch& k,
                       const std::vector<::sycl::event>& deps,
                       const std::vector<buffer_use>& buffers);
  template <class Launch>
  void* launch_on(const Launch& kernel, void* target);
  template <class Submit>
  ::sycl::event checked(bool here, Submit&& submit);
  void load_kernels();

  ::sycl::queue m_queue;  ///< in order, of its own
  stream_tracker m_own_tracker;
  stream_tracker& m_tracker;
  const core::device_errors* m_errors = nullptr;  ///< of a device with native streams
  std::vector<std::pair<void*, void*>> m_pinned;  ///< as the device and as the host reach it
};

/// Whether this library may have kernels for a device; prepare() finds out.
bool has_kernels_for(const ::sycl::device& d);

}  // namespace sucl::sycl_layer
