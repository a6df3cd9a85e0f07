// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plans that programs compile.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/queue/issue_queue.hpp"
#include "core/selection/built_in.hpp"
#include "core/selection/compile_request.hpp"

#include <sucl/export.hpp>

#include <cstdint>
#include <memory>

namespace sucl::core {

/// Compiles plans for one communicator, and numbers them. The backend that runs them owns them. Any
/// thread, without the lock of the queue.
class SUCL_CORE_API compiled_plans {
 public:
  /// Both must outlive this object.
  compiled_plans(communicator_context& c, issue_queue& queue) : m_context(c), m_queue(queue) {}

  /// The number of the next plan, the same on every rank. Throws errc::unavailable where none can
  /// be run.
  std::uint64_t number_next();
  /// Makes that plan of a composition, verified, with its scratch. Collective; every rank has
  /// arrived. Throws on every rank what is wrong on any.
  compiled_facts compile(std::uint64_t number, const compile_request& request);

  /// For a communicator that is a part of the one that the plan is for. Whether a backend runs
  /// parts of plans.
  bool runs_parts() const { return part_runner() != nullptr; }
  /// Lowers a part. No communication. Throws errc::unsupported.
  std::unique_ptr<plan_draft> draft_part(const plan_part& part) const;
  /// Makes its scratch. Collective; throws on every rank of this communicator.
  void allocate(plan_draft& draft) const { part_runner()->allocate_scratch(draft); }
  /// Operations of the number that is returned, the same on every rank, run it.
  std::uint64_t add_part(std::unique_ptr<plan_draft> draft);

  /// Frees the plan. Nothing in flight may run it.
  void forget(std::uint64_t number) noexcept;

 private:
  std::unique_ptr<plan_draft> draft(const compile_request& request, built_in_comm** runs) const;
  built_in_comm* part_runner() const;

  communicator_context& m_context;
  issue_queue& m_queue;
  std::uint64_t m_compiled = 0;  ///< so far; with the lock of the queue
};

}  // namespace sucl::core
