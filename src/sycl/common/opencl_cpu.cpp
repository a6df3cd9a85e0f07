// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// DPC++'s CPU device is an OpenCL driver that comes beside its runtime, in Python's packages too,
// where the OpenCL loader does not search. So that programs find the device however they are
// started, the loader's variable is set here, before it searches. What the user has set stays.
#include "sycl/common/implementation.hpp"

#ifndef SYCL_IMPLEMENTATION_ACPP

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

[[gnu::constructor]] void name_cpu_driver() {
  Dl_info runtime{};
  if (!dladdr(reinterpret_cast<void*>(&::sycl::platform::get_platforms), &runtime)) return;
  const std::string library = runtime.dli_fname ? runtime.dli_fname : "";
  const std::string driver = library.substr(0, library.rfind('/') + 1) + "libintelocl.so";
  if (access(driver.c_str(), R_OK) == 0) setenv("OCL_ICD_FILENAMES", driver.c_str(), 0);
}

}  // namespace

#endif
