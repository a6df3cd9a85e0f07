// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plans of MSCCL, as schedules that can be proved.
#pragma once

#include "plan/ir/schedule.hpp"

#include <string_view>

namespace sucl::plan {

/// Reads an algorithm of MSCCL, its XML: allreduce, allgather, alltoall, reduce_scatter, broadcast
/// or reduce. A chunk becomes one element of 4 bytes. Messages are buffered without bound, as NCCL
/// buffers some: each is copied when it is sent. So what is proved is what ranks hold in the end
/// and that nothing is read too early, and not that NCCL's buffers are enough.
///
/// Throws invalid_argument, with the line, where the text is none, or has a number out of range.
schedule from_msccl_xml(std::string_view text);

}  // namespace sucl::plan
