// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Passes over schedules: each takes a schedule and returns one that computes the same.
#pragma once

#include "plan/ir/schedule.hpp"
#include "plan/verify/verify.hpp"

#include <cstdint>
#include <vector>

namespace sucl::plan {

/// The same collective with its input in recv. Where reading the input from there is right as it is
/// (which the verifier says), nothing is added; else each rank copies its input to scratch first.
schedule make_in_place(schedule s);

/// Whether a schedule for separate memory is right as it is where the input lies in recv: on all
/// ranks or, if peers touch neither of the two, on some.
bool serves_in_place(const schedule& s, entry how = entry::apart);

/// For ranks that begin with entry::together: leaves out the signals with which channels begin, as
/// they say only that the rank is there, and the waits for them. Right under that assumption only,
/// which the verifier has to know.
schedule enter_together(schedule s);

/// The same with each rank's input copied to scratch before anything else, so that it may lie in
/// recv. Not for scatters, whose root keeps its own block where it lies.
schedule take_input_first(schedule s);

/// Whether every contribution surely takes part in one reduction only, with all others, so that
/// results are rounded once: reductions are of inputs, or of copies of them.
bool folds_once(const schedule& s);

/// Scratch allocation: packs every rank's scratch by the life of what lies in it, first fit, so
/// that memory is used again as soon as no unfinished transfer touches it. Memory that peers or
/// several channels touch stays apart.
schedule pack_scratch(schedule s);

/// Fuses messages: where a rank starts several transfers of at most `bytes` bytes to the same peer
/// on the same level with no fence in between, and the peer receives them likewise, one message
/// replaces them. What does not lie next to each other is packed and unpacked in scratch.
schedule fuse_messages(schedule s, std::uint64_t bytes);

/// The name of the transport that is the shared memory of a node.
inline constexpr const char* shared_memory_transport = "ipc";

/// Messages within a node become copies through shared scratch: the sender copies into scratch of
/// its own and signals, the receiver waits and copies where its fence stood. These are the messages
/// between ranks of equal `node_of` on levels via "any" or "ipc"; throws invalid_argument where a
/// level via "ipc" joins ranks of different nodes.
schedule share_local_messages(schedule s, const std::vector<int>& node_of);

/// Deferred copies: a channel copies while what it started before and after is in flight, instead
/// of before it starts more, where nothing that comes before the next fence needs the copy. Plans
/// that reach into peers' memory stay as they are, because a message may have a peer read there.
schedule defer_copies(schedule s);

/// Rotated order: transfers that a channel starts right after each other are started in the order
/// of how far the peer is, in the digits of the rank by `factors` (outermost first), receives
/// before sends. So ranks do not all turn to the same peer first, and ranks with the same part in
/// different groups have programs that are alike. Transfers that a fence tells apart, and messages
/// of one pair and direction, keep their order.
schedule rotate_peers(schedule s, const std::vector<int>& factors);

/// Staggers the channels of each rank: a stage (what a fence finishes) starts when the same stage
/// of the channel before is done, by signals of the rank to itself. So the channels form a
/// pipeline, as HiCCL's do, instead of sharing each link at every moment. Ranks whose channels have
/// different numbers of stages stay as they are.
schedule stagger(schedule s);

}  // namespace sucl::plan
