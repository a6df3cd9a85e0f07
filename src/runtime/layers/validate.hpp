// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A layer that compares the arguments of collectives between ranks before they run.
#pragma once

#include "runtime/channel.hpp"

#include <sucl/export.hpp>

namespace sucl::core {

/// Puts the layer over `below`, which belongs to it from then on (unless this throws). Collective
/// over the communicator that `info` describes; `info` is read during the call only.
///
/// A collective that is posted starts an exchange of its arguments and returns. Once every rank's
/// have come, they are compared: if they fit together the operation is posted below, otherwise it
/// fails on every rank with the same message, which names the first argument that differs and
/// which ranks passed what. Arguments that one rank alone can see to be wrong fail on every rank
/// too. Posting never blocks, so SUCL_FLAG_MAY_BLOCK is not passed on.
///
/// A collective that travels as messages comes here twice: first as issued, to be compared only
/// (see intent), then as its messages.
///
/// Other kinds are not compared. They keep their place in the order: what is posted after a
/// collective reaches the backend after it. Operations start from the host, so the layer hides
/// SUCL_CAP_STREAM_ORDERED.
SUCL_CORE_API channel wrap_validate(channel below, const sucl_comm_info& info);

}  // namespace sucl::core
