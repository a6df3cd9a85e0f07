// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the core provides to backends: the log, error details, the out-of-band exchange.
#pragma once

#include <sucl/abi/bootstrap.h>
#include <sucl/error.hpp>

#include <cstdint>
#include <exception>
#include <new>
#include <string>

/// The out-of-band channel of one communicator, as given to one backend. Null `bootstrap`: a single
/// process without a control plane, where every exchange is a copy that is done at once.
///
/// Exchanges match between ranks by the order in which they are started, so a channel must have
/// one user only: see oob_split().
struct sucl_oob {
  const sucl_bootstrap* bootstrap = nullptr;
  sucl_group* group = nullptr;
};

namespace sucl::core {

/// The table that is given to every backend and bootstrap. Lives as long as libsucl_core.
SUCL_CORE_API const sucl_core& services() noexcept;

/// Details of a failure that a C function has just returned to this thread, and forgets them. If
/// the function has kept none, or those of another status, the message says so.
SUCL_CORE_API error_info take_last(sucl_status status);

/// Turns a failed status into sucl::error: take_last(), completed with the rank that failed and the
/// call.
[[noreturn]] SUCL_CORE_API void throw_last(sucl_status status, std::string backend = {},
                                           std::string operation = {}, int rank = -1);

/// Keeps the details of a C++ error for the caller of the C function that now returns its status.
SUCL_CORE_API sucl_status keep(const error_info& info) noexcept;

/// Runs what a C function of the core's own backends does. What it throws becomes the status.
template <class Work>
sucl_status guarded(const Work& work) noexcept {
  try {
    work();
    return SUCL_SUCCESS;
  } catch (const error& e) {
    return keep(e.info());
  } catch (const std::bad_alloc&) {
    return services().fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory for an operation's bookkeeping",
                           "Use fewer different sizes at once");
  } catch (const std::exception& e) {
    return services().fail(SUCL_ERROR_INTERNAL, 0, e.what(), nullptr);
  }
}

/// An out-of-band channel of its own over the same processes, for one more user. Collective.
SUCL_CORE_API sucl_oob oob_split(const sucl_oob& oob, int rank);

/// Frees the group of a channel made by oob_split(), unless the control plane has ended. Nothing
/// may be in flight on it.
SUCL_CORE_API void oob_free(sucl_oob& oob) noexcept;

/// Keeps the group for good instead: freeing it could wait for a peer that is gone.
SUCL_CORE_API void oob_keep(sucl_oob& oob);

}  // namespace sucl::core
