// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Communicators with a queue in a process that was started without SYCL.
#pragma once

#include <sucl/communicator.hpp>

#include <cstddef>
#include <memory>

namespace sucl::core {
class communicator;
class process;
}  // namespace sucl::core

namespace sucl::sycl_layer {

/// A communicator with a queue, of the ranks that `native` names, as for process::adopt(), and the
/// core's below it. Collective over them.
struct adopted {
  communicator outer;
  std::shared_ptr<core::communicator> core;
};
SUCL_API adopted adopt(const std::shared_ptr<core::process>& owner, const void* native,
                       std::size_t bytes, const ::sycl::queue& queue);

}  // namespace sucl::sycl_layer
