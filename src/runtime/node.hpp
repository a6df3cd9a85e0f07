// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An operation that has been issued: everything about it from the call to its completion.
#pragma once

#include "base/strided.hpp"
#include "runtime/adapt.hpp"
#include "runtime/channel.hpp"

#include <sucl/abi/backend.h>
#include <sucl/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::core {

using clock = std::chrono::steady_clock;

/// Memory of one record that is not contiguous.
struct layouts {
  std::optional<base::strided> send;
  std::optional<base::strided> recv;
};

/// What the issuer wants to hear of an operation. Functions may be null; they are called without
/// any lock held, by whichever thread makes progress.
struct observer {
  void* context = nullptr;
  /// Whether what the operation waits for is done; asked until it is. Null: mark_ready() is called.
  bool (*is_ready)(void* context) = nullptr;
  /// The operation is done, or failed with `error`. Called exactly once, and last.
  void (*done)(void* context, const error_info* error) = nullptr;
};

/// Part of an operation that one backend carries: all of it, or a part of a group.
struct task {
  sucl_operation record{};
  channel via;
  const char* backend = "";
  sucl_request* request = nullptr;    ///< as it is
  std::unique_ptr<adapted> pipeline;  ///< or adapted
  bool done = false;
};

/// One issued operation. Owned by its communicator and by tickets; recycled, never freed before
/// the communicator, so that the steady path allocates nothing.
struct node {
  enum class phase { waiting, posted, done };

  sucl_operation record{};
  std::vector<std::uint64_t> arrays;  ///< copies of the caller's counts and displacements
  std::vector<sucl_operation> parts;
  std::vector<layouts> shape;  ///< one for each part, or one; empty: all contiguous
  std::vector<task> tasks;
  observer watch;
  clock::time_point issued;
  clock::time_point posted;
  std::optional<error_info> failure;
  std::atomic<bool> ready{false};
  std::atomic<phase> at{phase::waiting};
  std::atomic<int> references{0};
};

}  // namespace sucl::core
