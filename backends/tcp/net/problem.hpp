// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What goes wrong inside the module; the functions of its table turn it into a status.
#pragma once

#include <sucl/abi/backend.h>

#include <string>

namespace sucl::tcp {

/// Fact and cause, and the cure.
struct problem {
  sucl_status status = SUCL_SUCCESS;
  std::string text;
  std::string hint;

  explicit operator bool() const { return status != SUCL_SUCCESS; }
};

}  // namespace sucl::tcp
