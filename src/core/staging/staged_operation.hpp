// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Bridges what a backend does not support natively: an operation becomes slices, each of which is
/// loaded (copied, packed, converted) into scratch memory, executed there by an operation that the
/// backend has, and stored (converted, unpacked, copied) to where it belongs. The rules that keep
/// the ranks in step are in docs/design/operations/staging.md.
#pragma once

#include "base/elements/strided.hpp"
#include "core/operation/backend_comm.hpp"
#include "core/staging/scratch_pool.hpp"
#include "core/staging/transfer_format.hpp"

#include <sucl/abi/backend.h>
#include <sucl/export.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::core {

/// Asynchronous copies between host and device memory, provided by the device side.
struct device_copier {
  void* context = nullptr;
  /// Starts a copy; null: it is done already. Throws sucl::error.
  void* (*start)(void* context, void* to, const void* from, std::size_t bytes) = nullptr;
  /// Whether the copy is done, without blocking; frees the token when it is. Throws sucl::error.
  bool (*test)(void* context, void* token) = nullptr;
};

/// Where the elements of an operation lie, if not one after the other: `send` and `recv` of the
/// operation are then the start of the whole array, and every element number in the operation
/// (counts, displacements) counts along the block in dense order. `parts`: of a group, one entry a
/// part or none at all.
struct layouts {
  std::optional<base::strided> send;
  std::optional<base::strided> recv;
  std::vector<layouts> parts;
};

/// How a communicator is staged. Every field but `rank` must be the same on every rank.
struct staging {
  int rank = 0;
  int size = 1;
  /// Some rank may use device memory that the host cannot reach; with a backend that does not reach
  /// it either, every rank slices.
  bool comm_stages = false;
  sucl_memory scratch_memory = SUCL_MEMORY_SYSTEM;     ///< kind of the pool's memory
  std::uint64_t chunk_bytes = std::uint64_t{1} << 20;  ///< scratch of one slice, a side
  std::uint64_t min_block_bytes = 4096;  ///< least per rank, where a slice has a block a rank
  int depth = 4;                         ///< slices of a collective in progress at once
  std::int32_t message_tag = 32767;      ///< for collectives that are sent as messages; kept free
};

/// How one operation is staged; made by plan_staging().
struct staging_plan {
  bool needed = false;               ///< false: post the operation as it is
  bool as_messages = false;          ///< executed as sends and receives
  bool groups = false;               ///< and these may be posted as one group
  sucl_type type = SUCL_TYPE_BYTES;  ///< on the wire, as are op and element_size
  sucl_op op = SUCL_OP_NONE;
  std::uint64_t element_size = 0;
  const conversion* convert = nullptr;  ///< null: elements are sent as they are
  fold_function fold = nullptr;         ///< as in wire: contributions are moved and folded here
  sucl_kind moved = SUCL_KIND_ALLGATHER;
  bool scratch_send = false;  ///< elements go through scratch memory
  bool scratch_recv = false;
  bool stage_send = false;  ///< and get there, or from there, by the device copier
  bool stage_recv = false;
  std::optional<base::strided> send_layout;
  std::optional<base::strided> recv_layout;
  std::uint64_t slice_elements = 0;  ///< of each block; at least 1
  int depth = 1;
  int rank = 0;
  int size = 1;
  std::int32_t message_tag = 0;
  sucl_memory scratch_memory = SUCL_MEMORY_SYSTEM;
  std::vector<staging_plan> parts;  ///< of a group
};

/// Decides how `operation` is staged. Communicates nothing and keeps nothing but the table's
/// answers. Throws `unsupported`, naming backend, kind, type, op and memory, where nothing helps.
SUCL_CORE_API staging_plan plan_staging(const sucl_operation& operation, const layouts& where,
                                        transfer_formats& formats, const staging& settings);

/// Whether what a backend executes is cut into slices of scratch memory on every rank.
inline bool stages(const transfer_format& w, const staging& settings) noexcept {
  return settings.comm_stages && !w.reaches(SUCL_MEMORY_DEVICE);
}

/// A quick test that a dense operation needs no staging: true only where plan_staging() says
/// so too, and in the common case.
inline bool is_native(const sucl_operation& operation, const transfer_format& w,
                      const staging& settings) noexcept {
  // Only the root of a gatherv or scatterv has counts, but all ranks must come to the same answer.
  const bool counted = operation.send_counts != nullptr || operation.recv_counts != nullptr ||
                       operation.kind == SUCL_KIND_GATHERV || operation.kind == SUCL_KIND_SCATTERV;
  const auto reached = [&](const void* at, sucl_memory memory) {
    return w.reaches(memory) || (at == nullptr && memory == SUCL_MEMORY_SYSTEM);
  };
  return w.supported && w.convert == nullptr && w.fold == nullptr && w.type == operation.type &&
         !stages(w, settings) && !is_message(operation.kind) && operation.kind != SUCL_KIND_GROUP &&
         (w.max_count == 0 || (!counted && operation.count <= w.max_count)) &&
         reached(operation.send, operation.send_memory) &&
         reached(operation.recv, operation.recv_memory);
}

/// One running staged operation: a state machine that the thread in the communicator steps.
///
/// What the operation refers to must be ready when it is made, and stay until it is done: a stream
/// is not waited for. `copier` may be null where nothing is staged, else fails with `unsupported`.
/// The pool and the copier must outlive it. Destroying it before it is done gives it up: scratch
/// memory that the backend may still touch is not used again.
class SUCL_CORE_API staged_operation {
 public:
  staged_operation(const sucl_operation& operation, staging_plan how, const backend_comm& below,
                   const device_copier* copier, scratch_pool& pool);
  staged_operation(const staged_operation&) = delete;
  staged_operation& operator=(const staged_operation&) = delete;
  ~staged_operation();

  /// Progresses without blocking; true when done. Throws sucl::error, after which the operation
  /// can only be destroyed.
  bool step();

  /// Whether every slice has been posted. Messages get there without their peers; a collective of
  /// several slices does as the other ranks join.
  bool all_posted() const noexcept;

  /// Whether `next` may be posted to the same communicator now: once all is posted, so that
  /// collectives and their slices come in one order on every rank, and messages in the order that
  /// tells them apart. Messages need not wait for a collective: a rank may have to get one before
  /// it joins.
  bool may_follow(const sucl_operation& next) const noexcept;

 private:
  struct state;
  std::unique_ptr<state> m_state;
};

}  // namespace sucl::core
