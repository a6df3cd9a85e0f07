// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Symbol visibility: everything is hidden unless it is marked here.
#pragma once

#define SUCL_CORE_API [[gnu::visibility("default")]]  ///< exported by libsucl_core
#define SUCL_API [[gnu::visibility("default")]]       ///< exported by libsucl
