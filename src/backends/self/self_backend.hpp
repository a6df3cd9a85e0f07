// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend of a process that is alone: every collective is a copy.
#pragma once

#include "core/operation/backend_comm.hpp"

namespace sucl::core {

/// Named "self". Executes every kind, on communicators of one rank.
const sucl_backend& self_backend() noexcept;

/// An instance on a communicator of one rank.
backend_comm make_self_comm();

}  // namespace sucl::core
