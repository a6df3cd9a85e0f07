// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The version of the library.
#pragma once

#define SUCL_VERSION_MAJOR 0
#define SUCL_VERSION_MINOR 1
#define SUCL_VERSION_PATCH 0
#define SUCL_VERSION_STRING "0.1.0"
