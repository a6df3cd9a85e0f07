// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend that executes sends and receives: between ranks of a node through memory
/// that another backend provides, between nodes by a transport.
#pragma once

#include "backends/shm_common/placement.hpp"

#include <sucl/export.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace sucl::core {

/// The name of the backend in the configuration.
inline constexpr const char* message_backend_name = "messages";

/// Most ranks of a node that a communicator may have for it: each pair has memory of its own.
inline constexpr int max_message_ranks = 64;

/// Its table, for queries of what it supports: its query needs no state.
SUCL_CORE_API const sucl_backend& message_backend() noexcept;

/// A backend's instance for one communicator. Collective. `memory` provides the memory, and must
/// outlive it. `reads`: every rank may copy from the memory of every other one. The instance ends
/// the transports in `where`, on an error too. Throws where there is no memory; `*obstacle` says
/// why it cannot be used though nothing failed.
backend_comm make_message_comm(const backend_comm& memory, placement where, bool reads,
                               std::string* obstacle);

/// Memory of this number that every rank reaches is there: messages in it are copied once. The
/// number is the same on every rank. Not while another thread is in the instance.
void add_message_memory(const backend_comm& messages, const sucl_region& region,
                        std::uint64_t number);
/// Memory of this number is about to be freed.
void remove_message_memory(const backend_comm& messages, const void* base);

/// Whether an instance is one of these, with no layer above it.
bool supports_messages(const backend_comm& c);

/// Starts an operation for a caller that blocks until it is done, and makes progress for as long as
/// peers that are near need. Null: it is done. Throws what fails.
sucl_request* start_message(const backend_comm& messages, const sucl_operation& o);

/// Whether a message of that rank and tag is here; nothing: it cannot be known.
std::optional<bool> message_arrived(const backend_comm& messages, int from, int tag);

/// How messages are moved, human-readable.
std::string describe_messages(const backend_comm& messages);

}  // namespace sucl::core
