// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From sends, receives and groups of them to kernels.
#pragma once

#include "backends/device_kernels/memory/device.hpp"

#include <sucl/abi/backend.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace sucl::core {

/// The messages of one communicator. One thread at a time.
class message_launcher {
 public:
  /// `control` must outlive this object. Throws sucl::error.
  message_launcher(kernel_device& device, const kernels::message_layout& layout,
                   kernels::kernel_control* control);

  /// The kernel of an operation, but for the addresses of buffers. `given` is what it sends if it
  /// is in place.
  message_launch make(const sucl_operation& operation, const void* given);

 private:
  /// Parts of an operation where the device reads them, until all groups of its kernel have.
  struct part_list {
    std::shared_ptr<kernels::message_part> parts;
    std::size_t room = 0;
    std::uint64_t number = 0;
    int groups = 0;
  };
  void collect(const sucl_operation& o, const void* given);
  int arrange();
  bool in_use(const part_list& s) const;
  void add_lists(std::size_t count, std::size_t room);
  part_list& take_list(std::size_t parts);

  kernel_device& m_device;
  kernels::message_layout m_layout;
  kernels::kernel_control* m_control;
  std::shared_ptr<void> m_counts;
  std::vector<kernels::message_part> m_parts;     ///< of an operation, as it has them
  std::vector<kernels::message_part> m_arranged;  ///< the first of each queue, then the others
  std::vector<part_list> m_lists;
  std::size_t m_next = 0;
  std::uint64_t m_number = 0;
};

/// What a kernel has found wrong with a message; nothing if all is well. Throws errc::mismatch.
void check_messages(const kernels::kernel_control& control, int ranks);

}  // namespace sucl::core
