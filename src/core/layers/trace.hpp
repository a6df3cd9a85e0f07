// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A layer that writes a timeline of operations, one file a rank, which Perfetto and Chrome open.
#pragma once

#include "core/operation/backend_comm.hpp"

#include <sucl/export.hpp>

#include <cstdint>
#include <string>

namespace sucl::core {

struct trace_options {
  std::string path;     ///< "%r" in it becomes `world_rank`; ".<world_rank>" is added without one
  int world_rank = 0;   ///< the process, in all its communicators
  std::string backend;  ///< whose operations these are
};

/// Puts the layer over `below`, which belongs to it from then on (unless this throws). Collective
/// over the communicator that `info` describes; `info` is read during the call only. Throws on
/// every rank if one of them cannot write its file.
///
/// Each operation becomes one complete event from its post to its completion, of process
/// `world_rank` and of a thread that stands for the communicator; operations that overlap get
/// threads of their own. The arguments of an event are the operation's, the backend, and the times
/// at which it was issued (see trace_issue), posted and done, in microseconds of one clock: that of
/// the first communicator's rank 0, which the ranks compare theirs with while the layer is made.
///
/// The file is emptied when the process first names it, and after every write it is a complete
/// JSON array, so a process that dies leaves a file that opens. It is written when 64 KiB have come
/// together, once a second, and when a communicator ends.
SUCL_CORE_API backend_comm wrap_trace(backend_comm below, const sucl_comm_info& info,
                                      const trace_options& options);

/// Notes that the operation with this sequence number was issued now. Any thread. Does nothing if
/// the topmost layer is another one.
SUCL_CORE_API void trace_issue(const backend_comm& top, std::uint64_t sequence) noexcept;

}  // namespace sucl::core
