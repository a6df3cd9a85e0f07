// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The drivers of accelerators in this process.
#pragma once

#include "interposer/device/driver.hpp"

#include <link.h>

#include <atomic>
#include <optional>

namespace sucl::interposer::device {

namespace detail {

/// What a call reads. Programs load drivers when they use them first, behind all other libraries:
/// so nothing is new while the last one has no successor.
struct watch {
  std::atomic<bool> any{false};                ///< there are drivers
  std::atomic<const link_map*> last{nullptr};  ///< null: devices are not looked for
};
extern watch watched;
void look();

}  // namespace detail

/// From here on drivers are found, also those that are loaded later.
void enable();

/// Whether memory of devices may come. Two loads where the process has no driver.
inline bool present() {
  const link_map* const last = detail::watched.last.load(std::memory_order_acquire);
  if (!last) return false;
  if (__atomic_load_n(&last->l_next, __ATOMIC_ACQUIRE)) detail::look();
  return detail::watched.any.load(std::memory_order_acquire);
}

/// Memory that is the host's for certain, without asking a driver: this thread's stack, and the
/// heap of the process. Small messages are mostly there.
bool is_surely_of_host(const void* address);

/// The device that the memory is of; nothing if the host reaches it.
std::optional<owner> find(const void* address);

/// Host memory beside a device's, pinned by its driver, on a page of its own. It is used again, so
/// that the same calls get the same memory.
void* take_host_memory(driver& by, std::size_t bytes);
void give_back_host_memory(driver& by, void* memory, std::size_t bytes);

}  // namespace sucl::interposer::device
