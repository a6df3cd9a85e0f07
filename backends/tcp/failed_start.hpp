// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How ranks that look for each other learn that the job cannot start.
#pragma once

#include "net/problem.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::tcp {

/// Where the reason is in the store.
inline const std::string failed_key = "failed";

/// The reason as a value of the store, and back.
std::string packed(const problem& p);
problem unpacked(const std::string& text);

/// Where the store is through which the ranks find each other.
struct store_location {
  std::vector<std::string> hosts;
  std::uint16_t port = 0;  ///< 0: the hosts have ports
  std::string secret;
  std::chrono::milliseconds timeout{};
};

/// Gives the reason to all that come there, as a process that is no rank. Where nothing serves the
/// store at this machine and its port, that may be because this process should have: it does so for
/// some seconds.
void report_failed_start(const store_location& where, const problem& why) noexcept;

}  // namespace sucl::tcp
