// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include <sucl/error.hpp>
#include <sucl/types.hpp>

#include <cstring>

int main() {
  if (std::strcmp(sucl::name(sucl::kind::allreduce), "allreduce") != 0) return 1;
  try {
    throw sucl::error(sucl::error_info{sucl::errc::invalid_rank, "root 7 of 2 ranks"});
  } catch (const sucl::error& e) {
    return e.code() == sucl::errc::invalid_rank ? 0 : 2;
  }
}
