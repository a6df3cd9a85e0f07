// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations that are set up once and started many times.
#pragma once

#include <sucl/export.hpp>
#include <sucl/operations.hpp>

#include <memory>
#include <vector>

namespace sucl {

namespace glue {
class communicator_state;
struct prepared;
}  // namespace glue

/// One operation on fixed memory, checked when it was made. A handle: copies refer to the same
/// operation. Keeps buffers alive, and counts are its own; USM and system memory must stay.
///
/// Every rank makes it and starts it in the same order as other operations of the communicator. It
/// may be started again when it is done, from one thread at a time.
class SUCL_API persistent {
 public:
  /// Refers to nothing: every call is errc::shut_down.
  persistent() = default;

  /// Starts it. The event means done, as that of the operation itself does.
  ::sycl::event start(const std::vector<::sycl::event>& deps = {});
  /// Runs it: the blocking form.
  void run(const std::vector<::sycl::event>& deps = {});

  explicit operator bool() const noexcept { return m_operation != nullptr; }

  /// @cond internal
  explicit persistent(std::shared_ptr<glue::prepared> operation)
      : m_operation(std::move(operation)) {}
  /// @endcond

 private:
  glue::prepared& operation() const;
  std::shared_ptr<glue::prepared> m_operation;
};

/// The persistent form of a communicator's calls: each makes an operation and starts nothing.
/// Errors that a rank can see by itself are thrown here. Events that are passed are waited for by
/// every start.
class SUCL_API persistent_communicator
    : public detail::operations<persistent_communicator, persistent> {
 public:
  /// @cond internal
  persistent submit(detail::request& request, const events& deps);
  std::size_t share(kind k, std::size_t elements);
  /// @endcond

 private:
  friend class communicator;
  explicit persistent_communicator(std::shared_ptr<glue::communicator_state> state)
      : m_state(std::move(state)) {}
  std::shared_ptr<glue::communicator_state> m_state;
};

}  // namespace sucl
