// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Execution plans of MSCCL++, as schedules that can be proved.
#pragma once

#include "plan/ir/schedule.hpp"

#include <string_view>

namespace sucl::plan {

/// Whether a text in JSON is such a plan, and not one of SuCL.
bool is_mscclpp_json(std::string_view text);

/// Reads an execution plan of MSCCL++, its JSON: allreduce, allgather, alltoall or reducescatter. A
/// chunk becomes as many elements of 4 bytes as thread blocks and iterations divide it into. A
/// thread block does one operation after the other, and what it sends has arrived when the next
/// one begins: `nop` and `flush`, and relaxed signals, are taken to be where they are needed.
/// Packets are waited for one by one.
///
/// Throws invalid_argument, with the GPU, thread block and operation, where the text is none, has a
/// number out of range, or something that is not read.
schedule from_mscclpp_json(std::string_view text);

}  // namespace sucl::plan
