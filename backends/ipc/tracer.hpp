// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which processes may read this one's memory where the system (Yama) lets only relatives do so.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <vector>

namespace sucl::ipc {

/// A process and those that started it, the nearest first; 0 where there are no more. The first
/// process of the system, of which all processes descend, is left out.
using ancestry = std::array<std::int32_t, 8>;

/// That of the calling process, from /proc.
ancestry own_ancestry();

/// The one process that has to be allowed so that all `peers` are: an exception of Yama holds for
/// a process and those that it has started. That is the peer itself if there is one only, else the
/// nearest that all descend from, as a rule the launcher's. 0 where there is none.
std::int32_t tracer_of(const std::vector<ancestry>& peers);

/// Allows these peers in addition to those of earlier calls; all others stay out.
void allow_reading(const std::vector<ancestry>& peers);

}  // namespace sucl::ipc
