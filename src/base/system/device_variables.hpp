// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Variables that hide devices from the SYCL runtime. Of a header alone: the program and libsucl
/// both say it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace sucl::base {

/// The first file that OCL_ICD_FILENAMES names by a path and that cannot be read; empty if there is
/// none. `variable(name)` is the value, or null. OpenCL's loader cuts the value after its first
/// entry where it stands, so only that one is seen once devices have been looked for.
template <class Lookup>
std::string unreadable_driver(const Lookup& variable) {
  const char* const value = variable("OCL_ICD_FILENAMES");
  const std::string files = value ? value : "";
  for (std::size_t at = 0; at < files.size();) {
    const std::size_t end = std::min(files.find(':', at), files.size());
    const std::string file = files.substr(at, end - at);
    // A name without a folder is searched for by the loader.
    if (file.find('/') != std::string::npos && access(file.c_str(), R_OK) != 0) return file;
    at = end + 1;
  }
  return {};
}

/// What to do where the runtime finds no device: a sentence without its full stop that names those
/// variables only that are set.
template <class Lookup>
std::string cure_for_no_device(const Lookup& variable) {
  std::string filters;
  for (const char* name :
       {"ONEAPI_DEVICE_SELECTOR", "SYCL_DEVICE_ALLOWLIST", "ACPP_VISIBILITY_MASK"})
    if (const char* value = variable(name); value && *value)
      filters += std::string(filters.empty() ? "" : " and ") + name + "=" + value;
  const std::string driver = unreadable_driver(variable);
  if (!driver.empty())
    return "OCL_ICD_FILENAMES names " + driver +
           ", which cannot be read: unset OCL_ICD_FILENAMES, or name the driver of the CPU device";
  if (!filters.empty()) return "unset what hides devices: " + filters;
  return "install the device's driver; that of the CPU device is libintelocl.so beside the SYCL "
         "runtime, or named by OCL_ICD_FILENAMES";
}

}  // namespace sucl::base
