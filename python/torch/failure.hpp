// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// SuCL's errors on their way through torch to Python.
#pragma once

#include "port.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace sucl::torch {

/// An error of SuCL in parts; Python gets it as an exception of sucl.errors.
class failure : public std::runtime_error {
 public:
  failure(const sucl_port_failure& f)
      : std::runtime_error((f.code == SUCL_ERROR_TIMEOUT ? "sucl: Timed out waiting: " : "") +
                           std::string(f.text)),
        code(f.code),
        rank(f.rank),
        native_code(f.native_code),
        fact(f.fact),
        cure(f.cure),
        operation(f.operation),
        backend(f.backend) {}
  failure(sucl_status what, std::string why, std::string hint)
      : std::runtime_error(why + ". " + hint),
        code(what),
        fact(std::move(why)),
        cure(std::move(hint)) {}

  sucl_status code;
  int rank = -1;
  std::int64_t native_code = 0;
  std::string fact, cure, operation, backend;
};

}  // namespace sucl::torch
