// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations that run in the calling thread, past the queue.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/fast_path/call_cache.hpp"
#include "core/fast_path/prepared_calls.hpp"
#include "core/queue/issue_queue.hpp"
#include "core/selection/tuned_pace.hpp"

#include <sucl/export.hpp>

#include <cstdint>
#include <vector>

namespace sucl::core {

/// Blocking calls: the calling thread lets a backend block, which is the fastest way through an MPI
/// library, or runs what is prepared; where neither may be, it issues the operation and waits. Any
/// thread, without the lock of the queue.
class SUCL_CORE_API blocking_path {
 public:
  /// All arguments must outlive this object.
  blocking_path(communicator_context& c, issue_queue& queue, call_cache& calls,
                prepared_calls& prepared, tuned_pace& pace)
      : m_context(c), m_queue(queue), m_calls(calls), m_prepared(prepared), m_pace(pace) {}

  /// As communicator::run().
  void run(const sucl_operation& record, const layouts& layout, const sucl_operation* requested) {
    run(record, layout, requested, nullptr);
  }
  /// As communicator::run_cached().
  bool run_cached(const sucl_operation& requested);
  void run_cached(persistent_call& call);

  /// Waits for every rank before a call that blocks, and has them agree that it is the same on all;
  /// the watchdog names late ranks. Where one of them frees what it has not made, all others get
  /// errc::invalid_memory, and that one returns. Collective.
  void await_ranks(const arriving_call& before);

 private:
  using held_lock = issue_queue::held_lock;

  void run(const sucl_operation& record, const layouts& layout, const sucl_operation* requested,
           persistent_call* kept);
  bool may_run_directly(const sucl_operation& record) const;
  void await_turn(const sucl_operation& record, const backend_instance& c, held_lock& lock);
  const backend_instance* message_backend_for(const sucl_operation& record, const layouts& layout);
  void run_message(const sucl_operation& record, const backend_instance& c, held_lock& lock,
                   record_writer::mark* noted = nullptr);
  void repeat(persistent_call& call, held_lock& lock);
  void run_directly(sucl_operation& record, const layouts& layout, const backend_instance& c,
                    held_lock& lock, std::uint64_t signature = 0);
  void compare_arrivals(const arriving_call& mine);
  void check_blocks(const arriving_call& mine, std::vector<std::uint64_t>& all) const;
  bool progress_others(const sucl_operation& entered, const backend_instance& c);
  void run_native(const sucl_operation& direct, const backend_instance& c);
  void run_packed(const sucl_operation& direct, const layouts& layout, const backend_instance& c);

  communicator_context& m_context;
  issue_queue& m_queue;
  call_cache& m_calls;
  prepared_calls& m_prepared;
  tuned_pace& m_pace;
};

}  // namespace sucl::core
