// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What this SYCL implementation and its backends are called.
#pragma once

#include "base/config/config.hpp"

#include <sycl/sycl.hpp>

#include <sstream>
#include <string>

namespace sucl::sycl_layer {

/// The implementation that this is compiled with.
inline constexpr base::sycl_implementation this_implementation =
#ifdef SYCL_IMPLEMENTATION_ACPP
    base::sycl_implementation::adaptivecpp;
#else
    base::sycl_implementation::dpcpp;
#endif

inline const char* implementation_name() {
  return this_implementation == base::sycl_implementation::adaptivecpp ? "adaptivecpp" : "dpcpp";
}

/// The name of a device's sycl::backend as this implementation spells it, without the scope.
inline std::string backend_name(const ::sycl::device& d) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  switch (d.get_backend()) {
    case ::sycl::backend::omp: return "omp";
    case ::sycl::backend::cuda: return "cuda";
    case ::sycl::backend::hip: return "hip";
    case ::sycl::backend::level_zero: return "level_zero";
    case ::sycl::backend::ocl: return "ocl";
  }
  return "unknown";
#else
  std::ostringstream text;
  text << d.get_backend();
  return text.str();
#endif
}

}  // namespace sucl::sycl_layer
