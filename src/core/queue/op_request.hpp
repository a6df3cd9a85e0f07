// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An operation that has been issued: everything about it from the call to its completion.
#pragma once

#include "core/record/flight_recorder.hpp"
#include "core/staging/staged_operation.hpp"

#include <sucl/abi/backend.h>
#include <sucl/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sucl::core {

using clock = std::chrono::steady_clock;

/// What the issuer wants to know of an operation. Functions may be null; they are called without
/// any lock held, by whichever thread makes progress.
struct observer {
  void* context = nullptr;
  /// Whether the dependencies of the operation are complete; polled until they are. Null:
  /// mark_ready() is called.
  bool (*is_ready)(void* context) = nullptr;
  /// The caller calls communicator::assist() for the operation soon, so the progress thread is not
  /// needed for it. Failures are kept for communicator::check().
  bool assisted = false;
  /// The issuer's command throws the failure, so that SYCL hands it to an asynchronous handler.
  bool thrown = false;
  /// The operation is done, or failed with `error`. Called exactly once, and last.
  void (*done)(void* context, const error_info* error) = nullptr;
};

struct backend_instance;

/// One issued operation. Owned by its communicator and by tickets; recycled, never freed before
/// the communicator, so that the steady path allocates nothing.
struct op_request {
  enum class phase { waiting, posted, done };

  sucl_operation record{};
  std::vector<std::uint64_t> arrays;  ///< copies of the caller's counts and displacements
  std::vector<sucl_operation> parts;
  layouts layout;  ///< where memory is not contiguous
  /// Host memory of a message of device memory, which the issuer copies from or to; null: none.
  void* bounce_buffer = nullptr;
  const backend_instance* via =
      nullptr;  ///< which backend executes it, once posted: natively, or staged
  sucl_request* request = nullptr;
  std::unique_ptr<staged_operation> pipeline;
  observer watch;
  clock::time_point issued;
  clock::time_point posted;
  record_entry* noted = nullptr;  ///< in the record
  std::optional<error_info> failure;
  bool on_stream = false;  ///< posted by the caller that has the stream, not by the core
  std::uint64_t turn = 0;  ///< of a collective: its number among calls, or among replays
  std::atomic<bool> ready{false};
  std::atomic<phase> at{phase::waiting};
  std::atomic<int> references{0};
};

/// A counted reference to an issued operation.
class ticket {
 public:
  ticket() = default;
  explicit ticket(op_request* n) : m_request(n) {
    if (m_request) m_request->references.fetch_add(1, std::memory_order_relaxed);
  }
  ticket(const ticket& other) : ticket(other.m_request) {}
  ticket(ticket&& other) noexcept : m_request(std::exchange(other.m_request, nullptr)) {}
  ticket& operator=(ticket other) noexcept {
    std::swap(m_request, other.m_request);
    return *this;
  }
  ~ticket() {
    if (m_request) m_request->references.fetch_sub(1, std::memory_order_release);
  }
  explicit operator bool() const { return m_request != nullptr; }
  /// Whether the operation is done or has failed.
  bool done() const {
    return m_request->at.load(std::memory_order_acquire) == op_request::phase::done;
  }
  /// How it failed, once it is done.
  const std::optional<error_info>& failure() const { return m_request->failure; }
  op_request* get() const { return m_request; }

 private:
  op_request* m_request = nullptr;
};

/// What issue() did.
struct issue_result {
  ticket operation;
  bool done = false;  ///< it is done or has failed, and the observer will not be notified
};

}  // namespace sucl::core
