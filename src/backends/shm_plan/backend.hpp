// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend that executes collectives by SuCL's own plans over memory that another
/// backend provides.
#pragma once

#include "backends/shm_common/placement.hpp"
#include "backends/shm_plan/plans/compiled.hpp"
#include "core/selection/call_board.hpp"
#include "core/selection/selection.hpp"

#include <sucl/export.hpp>

#include <memory>
#include <string>

namespace sucl::core {

/// The largest number of ranks of a communicator with this backend.
inline constexpr int max_plan_ranks = 64;

/// Its table within a node, for queries of what it supports: its query needs no state.
/// Between nodes the backend supports fewer operations.
SUCL_CORE_API const sucl_backend& plan_backend() noexcept;

/// A backend's instance for one communicator. Collective. `memory` provides the memory, and must
/// outlive it. The instance ends the transports in `where`, on an error too. Throws where there is
/// no memory;
/// `*obstacle` says why it cannot be used, on every rank alike, though nothing failed.
/// `tuned` may be null. `ordered`: where the order of operands matters, plans fold in the fixed
/// order.
backend_comm make_plan_comm(const backend_comm& memory, placement where, std::string* obstacle,
                            const tune::table* tuned = nullptr, bool ordered = false);

/// Ranks may copy from each other's memory, all of them. Before the first operation.
void allow_reads(const backend_comm& plans);

/// Goes by another tuning table, or by none (null). Nothing is in flight.
void retune(const backend_comm& plans, const tune::table* tuned);

/// By which plans an instance executes an operation, human-readable; empty if that is not known
/// beforehand.
std::string describe_plan(const backend_comm& plans, const sucl_operation& o);
/// Why an instance does not execute an operation by a row of a tuning table, if that is the first
/// one that fits; empty: it does. The same on every rank.
std::string plan_obstacle(const backend_comm& plans, const tune::table_row& row,
                          const sucl_operation& o);
/// Where the ranks of such an instance are.
const placement& plan_placement(const backend_comm& plans);
/// Makes the scratch that a compiled plan needs. Collective; blocks, and touches nothing that
/// operations use.
void provide_scratch(const backend_comm& memory_provider, int rank, int size, compiled_code& code);
/// Makes a compiled plan known, and forgets it. Not while another thread is in the instance;
/// nothing runs it.
void add_compiled(const backend_comm& plans, std::uint64_t number,
                  std::unique_ptr<compiled_code> code);
void remove_compiled(const backend_comm& plans, std::uint64_t number);

/// What the ranks of the node have called on such an instance. As long as the instance.
const call_board& board_of(const backend_comm& plans);
/// Of a board with an alarm: whether all is over here that comes before the call that differs. Any
/// thread.
bool meets_alarm(const backend_comm& plans);
/// And how many calls are over here. Any thread.
std::uint64_t calls_over(const backend_comm& plans);
/// Whether every rank of the node has finished what this one has begun, or a mismatch was found.
bool converged(const backend_comm& plans);

struct prepared_run;
/// Works out what running an operation over and over on the same memory needs; null where it cannot
/// be known before, or where the instance is not one of plans. Holds until retune(), add_mapped()
/// or remove_mapped().
std::shared_ptr<prepared_run> prepare_run(const backend_comm& plans, const sucl_operation& o);
/// Runs it, if nothing else is in flight and peers are near. Otherwise the same operation must be
/// posted next: it goes on where this has ended.
bool run_at_once(const backend_comm& plans, const prepared_run& p);

/// Memory that all ranks of such an instance reach: operations on it need no copies. `memory
/// provider` is the instance below. Collective; blocks, and touches nothing that operations use.
sucl_region make_mapped(const backend_comm& memory_provider, int rank, std::uint64_t bytes);
/// Makes it known: operations of a higher sequence number than `sequence` may be on it. `number` is
/// the same on every rank. Not while another thread is in the instance.
void add_mapped(const backend_comm& plans, const sucl_region& region, std::uint64_t number,
                std::uint64_t sequence);
/// Gives it back; operations of a higher sequence number than `sequence` are not on it. False if
/// `base` is not the begin of such memory.
bool remove_mapped(const backend_comm& plans, void* base, std::uint64_t sequence,
                   sucl_region* region);

}  // namespace sucl::core
