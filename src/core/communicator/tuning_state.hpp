// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The tuning table of a communicator.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/fast_path/call_cache.hpp"
#include "core/queue/issue_queue.hpp"
#include "core/selection/tuned_pace.hpp"
#include "tune/table/table.hpp"

#include <sucl/export.hpp>

#include <memory>
#include <string>
#include <utility>

namespace sucl::core {

/// Which tuning table a communicator goes by, and whether operations are as fast as it says. Owns
/// the table, together with other communicators.
class SUCL_CORE_API tuning_state {
 public:
  /// All must outlive this object. `table` is used, and by the backends that are made next; null:
  /// none.
  tuning_state(communicator_context& c, issue_queue& queue, call_cache& calls,
               std::shared_ptr<const tune::table> table)
      : m_context(c),
        m_queue(queue),
        m_calls(calls),
        m_table(std::move(table)),
        m_pace(m_table.get()) {}

  const tune::table* table() const { return m_table.get(); }
  /// The pace of blocking operations; to be called with the lock of the queue.
  tuned_pace& pace() { return m_pace; }
  /// Warns, once in a process, of a table that was measured on another device.
  void compare_device() const;

  /// Goes by another table from now on; null: by none. Collective; nothing is in flight.
  void use(std::shared_ptr<const tune::table> table);
  /// The same by the text of a table, which must be the same on every rank; empty: by none. Every
  /// rank has arrived. Throws on every rank, and changes nothing, if it is wrong on any.
  void use_text(const std::string& toml);

 private:
  communicator_context& m_context;
  issue_queue& m_queue;
  call_cache& m_calls;
  std::shared_ptr<const tune::table> m_table;
  tuned_pace m_pace;
};

}  // namespace sucl::core
