// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the backend of kernels needs of the device of a communicator.
#pragma once

#include "kernels/collective/args.hpp"
#include "kernels/message/args.hpp"
#include "kernels/plan/args.hpp"

#include <sucl/abi/backend.h>

#include <array>
#include <cstdint>
#include <memory>

namespace sucl::core {

/// One kernel of a collective operation.
struct kernel_launch {
  kernels::collective_args what{};
  kernels::alike send{}, recv{};             ///< what goes where,
  std::unique_ptr<kernels::listed[]> lists;  ///< or, of two, the same for each rank; null: alike
  sucl_type type = SUCL_TYPE_BYTES;
  sucl_op op = SUCL_OP_NONE;
  const void* from = nullptr;  ///< memory of the operation; unused where a target has buffers
  void* to = nullptr;
  bool reduces = false;
  bool in_place = false;
  bool all_give = false;  ///< lists: every rank gives something to every other, as all of them know
  int groups = 1;
};

/// Calls `use` with the arguments of an operation that has lists, as short as its ranks allow.
template <class Use>
decltype(auto) with_lists(const kernel_launch& k, Use&& use) {
  using namespace kernels;
  static_assert(max_ranks == 4 * max_near_ranks);
  if (k.what.ranks > max_near_ranks)
    return use(exchange_args<listed>{k.what, k.lists[0], k.lists[1]});
  const auto few = [](const listed& all) {
    return listed_few{all.start.low.low, all.size.low.low};
  };
  return use(exchange_args<listed_few>{k.what, few(k.lists[0]), few(k.lists[1])});
}

/// One kernel of sends and receives.
struct message_launch {
  kernels::message_args what{};
  int groups = 1;
};

/// One run of a plan.
struct plan_launch {
  kernels::plan_args what{};
  sucl_type type = SUCL_TYPE_BYTES;
  sucl_op op = SUCL_OP_NONE;
  const void* from = nullptr;  ///< memory of the operation; unused where a target has buffers
  void* to = nullptr;
  bool reduces = false;
  int groups = 1;
};

/// Functions throw sucl::error. All are called by one thread at a time.
struct kernel_device {
  virtual ~kernel_device() = default;

  /// Makes the kernels ready; throws errc::unavailable if there are none for this device.
  virtual void prepare() = 0;
  /// Memory of the device, zeroed. It is given back with the last reference.
  virtual std::shared_ptr<void> allocate(std::uint64_t bytes) = 0;
  /// Host memory that the device reaches at the same address, zeroed.
  virtual std::shared_ptr<void> allocate_host(std::uint64_t bytes) = 0;
  /// Copies to memory of the device, and returns when that is done.
  virtual void write(void* to, const void* from, std::uint64_t bytes) = 0;
  /// Host memory as the device reaches it, until `release` of the same.
  virtual void* pin(void* memory, std::uint64_t bytes) = 0;
  virtual void release(void* memory) = 0;
  /// Launches behind all kernels launched before: on the queue that `target` names, with its
  /// dependencies, or, if it is null, on one of its own. Then the result is for test().
  virtual void* launch(const kernel_launch& kernel, void* target) = 0;
  virtual void* launch(const message_launch& kernel, void* target) = 0;
  virtual void* launch(const plan_launch& kernel, void* target) = 0;
  /// Whether it is done; forgets it then.
  virtual bool test(void* token) = 0;
  /// Returns when all kernels are done.
  virtual void drain() = 0;
  /// Unique among devices; zero if unknown.
  using identity_type = std::array<unsigned char, 16>;
  virtual identity_type identity() { return {}; }
  /// Whether a store of 128 bytes to memory of that device arrives as a whole.
  virtual bool keeps_ll128_stores_whole(const identity_type&) { return false; }

  int items = 1;        ///< of a work group
  int groups = 1;       ///< most that a kernel should have
  bool on_host = true;  ///< its memory is the host's
};

}  // namespace sucl::core
