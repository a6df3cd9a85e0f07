// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One backend on one communicator.
#pragma once

#include <sucl/abi/backend.h>

namespace sucl::core {

/// One backend on one communicator: what operations are posted to.
///
/// A layer (validate, trace) is a channel too: its table forwards to the channel below, which its
/// `comm` holds, so layers stack and whoever posts does not know of them. A layer's table serves a
/// communicator that exists: it has query, comm_destroy, post, test and abort, but neither open,
/// close nor comm_create. Destroying a layer destroys the channel below it.
struct channel {
  const sucl_backend* table = nullptr;
  sucl_state* state = nullptr;
  sucl_backend_comm* comm = nullptr;
};

}  // namespace sucl::core
