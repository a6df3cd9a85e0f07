// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The text and JSON forms of a schedule: both are written and read, and neither loses anything.
#pragma once

#include "plan/ir/schedule.hpp"

#include <string>
#include <string_view>

namespace sucl::plan {

/// The text form, one instruction a line:
///
///     sucl-plan 1
///     collective allreduce ranks 2 element 4 counts 1024
///     algorithm one_shot
///     level 0 node via ipc
///     rank 0 scratch 4096
///     channel 0
///       copy recv+0 send+0 4096
///       send 1 recv+2048 2048 @0
///       receive 1 scratch+0 2048 @0
///       fence 0
///       reduce recv+0 scratch+0 2048
///       put 1 peer.recv+0 recv+0 2048 @0
///       get 1 recv+2048 peer.recv+2048 2048 @0
///       reduce 1 recv+0 peer.send+0 2048 @0
///       signal 1 flag 3 @0
///       wait 1 flag 3 @0
std::string to_text(const schedule& s);

/// One instruction, as in to_text().
std::string to_text(const instruction& i);

/// Reads the text form. Throws invalid_argument with the line number and what was expected.
schedule from_text(std::string_view text);

/// Throws invalid_argument where names in a schedule cannot be written in both forms: they are of
/// printable characters of ASCII, without '#', and those of levels and transports are one word.
void check_names(const schedule& s);

/// The JSON form; src/plan/schedule.schema.json describes it.
std::string to_json(const schedule& s);

/// Reads the JSON form. Throws invalid_argument with the location and what was expected.
schedule from_json(std::string_view text);

}  // namespace sucl::plan
