// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What is in flight: operations, and the runs of plans that they are.
#pragma once

#include "backends/shm_plan/execution/copy_mode_tuner.hpp"
#include "backends/shm_plan/execution/plan_messages.hpp"
#include "backends/shm_plan/plans/compiled.hpp"
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "backends/shm_plan/shared/node_progress.hpp"
#include "backends/shm_plan/shared/shared.hpp"
#include "core/host_ops/fold.hpp"

#include <sucl/error.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sucl::core {

/// An operation in the executor.
struct execution {
  sucl_operation what{};
  call_signature signature;
  const plan_instance* how = nullptr;
  compiled_code* own = nullptr;  ///< of a compiled plan
  fold_function fold = nullptr;
  std::uint64_t element_size = 1;  ///< that folds count in
  std::byte* send = nullptr;       ///< where the input begins, in place too
  std::byte* recv = nullptr;
  std::uint64_t started = 0;   ///< slices
  std::uint64_t finished = 0;  ///< slices
  /// The ranks exchange first what only some know, and then decide how to go on.
  enum class notice : std::uint8_t { none, memory, counts } exchanging = notice::none;
  std::vector<std::uint64_t> own_metadata, all_metadata;  ///< of this rank, and of all
  std::vector<std::byte*> peer_send;                      ///< by rank, where memory is mapped
  std::vector<std::byte*> peer_recv;
  /// The blocks of operations whose blocks differ in length; in elements.
  const std::uint64_t *send_counts = nullptr, *send_displs = nullptr;
  bool reading = false;              ///< peers' memory is copied from, not mapped
  copy_mode_tuner* timed = nullptr;  ///< that wants to know how long it takes from now on
  std::chrono::steady_clock::time_point since;
  std::uint64_t first_run = 0;  ///< of those that read
  std::optional<error_info> failure;
  bool done() const { return exchanging == notice::none && finished == how->slices; }
};

/// A run of a plan: of one slice of an operation.
struct plan_run {
  execution* owner = nullptr;
  const program* code = nullptr;
  std::uint64_t number = 0;
  std::uint64_t history = 0;  ///< of the calls up to this one
  std::uint64_t flag = 0;     ///< run_flag::of() both
  std::uint64_t shift = 0;    ///< bytes from the begin of a block to the slice
  std::uint32_t slot = 0;
  std::byte* const* scratch = nullptr;  ///< by rank; it begins `scratch_at` bytes from there
  std::uint64_t scratch_at = 0;
  std::uint32_t ended = 0;  ///< channels
  std::array<std::uint32_t, max_channels> at{};
  std::array<posted_messages, max_channels> posted;

  /// Where an operand begins, for the rank `self` whose run this is.
  std::byte* address(const operand& o, int self) const;
  /// The bytes of a block from there on, where blocks have lengths of their own.
  std::uint64_t length(const operand& o, int self) const;
};

inline std::byte* plan_run::address(const operand& o, int self) const {
  if (o.where == plan::space::scratch) return scratch[o.rank] + scratch_at + o.offset;
  const execution& q = *owner;
  const bool sends = o.where == plan::space::send;
  std::byte* begin = sends ? q.send : q.recv;
  if (o.rank != self) begin = (sends ? q.peer_send : q.peer_recv)[static_cast<std::size_t>(o.rank)];
  std::byte* base = begin + shift + o.offset;
  if (o.block < 0) return base;
  const plan_instance& s = *q.how;
  const auto block = static_cast<std::size_t>(o.block);
  // The block descriptor of a peer says where its block for this rank lies.
  if (s.clipped && o.rank != self) return base;
  if (s.clipped)
    return base + (sends ? q.send_displs : q.what.recv_displs)[block] * q.what.element_size;
  if (sends && !s.positions.empty()) return base + s.positions[block];
  if (!sends && s.positions_scale) return base + q.what.recv_displs[block] * s.positions_scale;
  return base + block * s.block_bytes;
}

inline std::uint64_t plan_run::length(const operand& o, int self) const {
  if (o.where == plan::space::scratch || o.rank != self) return ~std::uint64_t{0};
  const execution& q = *owner;
  std::uint64_t count = q.what.count;
  if (o.block >= 0)
    count = (o.where == plan::space::send ? q.send_counts : q.what.recv_counts)[o.block];
  const std::uint64_t bytes = count * q.what.element_size, before = shift + o.offset;
  return bytes > before ? bytes - before : 0;
}

/// The root of a scatter in place keeps its block where it lies.
inline bool keeps_block(const execution& e, const step& s) {
  return s.own_block && (e.what.flags & SUCL_FLAG_IN_PLACE) &&
         e.exchanging == execution::notice::none &&
         (e.what.kind == SUCL_KIND_SCATTER || e.what.kind == SUCL_KIND_SCATTERV);
}

/// The operation that takes blocks of one length for granted, where they have one.
sucl_operation simplest(const sucl_operation& o, int size);

/// Sets where the operation's input and output begin.
void set_memory(execution& e, int rank, int size);

/// Gives all flags of a rank in the slot of a run this value, which is done once in very many runs:
/// no number that a flag still has is then taken for a later one.
void renew_flags(const shared_memory& memory, int rank, std::uint64_t number, std::uint64_t value);

}  // namespace sucl::core
