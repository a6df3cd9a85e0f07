// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend that carries collectives by SuCL's own plans over memory that another
/// backend lends.
#pragma once

#include "runtime/channel.hpp"
#include "runtime/selection.hpp"

#include <sucl/export.hpp>

#include <string>

namespace sucl::core {

/// Most ranks that a communicator may have for it.
inline constexpr int most_plan_ranks = 64;

/// Its table, for who wants to know what it carries: its query needs no state.
SUCL_CORE_API const sucl_backend& plan_backend() noexcept;

/// A channel for one communicator. Collective. `memory` lends the memory, and must outlive it.
/// Throws where there is none; `*obstacle` says why it cannot be used, on every rank alike, though
/// nothing failed.
channel plan_channel(const channel& memory, int rank, int size, std::string* obstacle);

/// Memory that all ranks of such a channel reach: operations on it need no copies. `lender` is the
/// channel below. Collective; blocks, and touches nothing that operations use.
sucl_region make_mapped(const channel& lender, int rank, std::uint64_t bytes);
/// Makes it known: operations of a higher sequence number than `sequence` may be on it. `number` is
/// the same on every rank. Not while another thread is in the channel.
void add_mapped(const channel& plans, const sucl_region& region, std::uint64_t number,
                std::uint64_t sequence);
/// Gives it back. False if `base` is not the begin of such memory.
bool remove_mapped(const channel& plans, const channel& lender, void* base);

}  // namespace sucl::core
