// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Buffers whose data is on the device already.
#pragma once

#include "sycl/common/implementation.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace sucl::sycl_layer {

/// The buffers of an operation, where they lie on the device, whole and up to date, and nothing but
/// earlier commands of the same in-order queue still uses them. Then the operation needs no
/// accessors: it takes addresses, and comes behind those commands by itself. With AdaptiveCpp,
/// whose commands with accessors go through two other threads, that is several times faster. There
/// is none with other implementations.
class resident_buffers {
 public:
  /// Null where a command with accessors is needed. Buffers with gaps are not for this.
  static std::unique_ptr<resident_buffers> find(const ::sycl::queue& queue,
                                                const std::vector<buffer_use>& buffers,
                                                const core::layouts& layout);
  virtual ~resident_buffers() = default;
  /// Writes the addresses into a record and the parts of a group.
  virtual void set(sucl_operation& record, std::vector<sucl_operation>& parts) const = 0;
  /// The operation has been enqueued: commands on the buffers come behind it from now on.
  virtual void note_use() = 0;
};

}  // namespace sucl::sycl_layer
