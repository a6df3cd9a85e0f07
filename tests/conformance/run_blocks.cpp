// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

namespace sucl::conformance {

#define SUCL_CONFORMANCE_CASE(index, name, T) \
  case index: return run_case<index, T>;

runner run_opaque(int element) {
  switch (element) {
    SUCL_CONFORMANCE_OPAQUE(SUCL_CONFORMANCE_CASE)
    default: return nullptr;
  }
}

runner run_pairs(int element) {
  switch (element) {
    SUCL_CONFORMANCE_PAIRS(SUCL_CONFORMANCE_CASE)
    default: return nullptr;
  }
}

runner run_tiny(int element) {
  switch (element) {
    SUCL_CONFORMANCE_TINY(SUCL_CONFORMANCE_CASE)
    default: return nullptr;
  }
}

#undef SUCL_CONFORMANCE_CASE

}  // namespace sucl::conformance
