// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which backend would execute an operation, without executing it.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/queue/issue_queue.hpp"
#include "tune/table/table.hpp"

#include <sucl/export.hpp>
#include <sucl/types.hpp>

#include <cstdint>
#include <string>

namespace sucl::core {

/// Questions about the choice of backends. Any thread, without the lock of the queue. Throws
/// errc::shut_down once the communicator has ended.
class SUCL_CORE_API backend_queries {
 public:
  /// Both must outlive this object.
  backend_queries(communicator_context& c, issue_queue& queue) : m_context(c), m_queue(queue) {}

  /// Which backend would execute this, on memory of the device where that is not the host's, and
  /// why.
  std::string explain(kind k, std::uint64_t bytes, type t, op o);
  /// The name of that backend, for the form that returns an event.
  std::string name_by_event(kind k, std::uint64_t bytes, type t, op o);
  /// The name, for a record whose arrays are complete and a call of the blocking form or not.
  std::string name_of(const sucl_operation& record, bool blocking = true);
  /// Whether that backend needs no MPI, so that any thread may make its progress.
  bool any_thread_executes(const sucl_operation& record, bool blocking = true);
  /// Why plans do not execute a record by a row of a tuning table, if that is the first one that
  /// fits; empty: they do. The same on every rank.
  std::string plan_obstacle(const tune::table_row& row, const sucl_operation& record);
  /// How many of the calls that ranks compare are over on this rank. Not once the communicator has
  /// ended.
  std::uint64_t calls_over() const;
  /// Whether one of the first so many is known to differ from another rank's, or that cannot be
  /// known as the communicator has ended.
  bool differs_within(std::uint64_t calls) const;

 private:
  sucl_operation example(kind k, std::uint64_t bytes, type t, op o) const;

  communicator_context& m_context;
  issue_queue& m_queue;
};

}  // namespace sucl::core
