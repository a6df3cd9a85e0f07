// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the library supports, in its own terms.
#pragma once

#include <sucl/abi/backend.h>

namespace sucl::xccl {

/// How elements of a type are reduced: as `components` elements of the library's type of this
/// number, which is -1 if it has none.
struct native_element {
  int type;
  int components;
};
native_element native_type(sucl_type type);

/// The library's number of an operator; -1 if it has none.
int native_op(sucl_op op);

/// Settings that decide what is supported.
struct preferences {
  bool exact = false;     ///< only what is rounded as SuCL defines it
  bool messages = false;  ///< sends and receives, which then match in the order of their calls
};

bool reduces(sucl_kind kind);

/// Whether an operation is executed, in memory that the device reaches.
bool supports(const preferences& wanted, sucl_kind kind, sucl_type type, sucl_op op);

}  // namespace sucl::xccl
