// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Finding and opening the vendor's library.
#pragma once

#include "api.hpp"

#include <string>
#include <vector>

namespace sucl::xccl {

/// What differs between the vendors: names.
struct vendor {
  const char* name;            ///< of the backend
  const char* title;           ///< of the library, human-readable
  const char* library;         ///< file that is looked for
  const char* device_library;  ///< file of the device's own library
  const char* hint;            ///< what to do when the library is missing
  bool is_hip;
};
extern const vendor nccl;
extern const vendor rccl;

/// An opened library. Never closed: device libraries do not survive it.
struct loaded {
  library_api api{};
  device_api device{};
  int version = 0;
  std::string path;                 ///< of the file that was opened
  std::vector<std::string> others;  ///< further copies of it in this process
};

/// Why it could not be opened; an empty message if it was.
struct complaint {
  std::string message;
  std::string hint;
};

/// Opens the library: `file`, or if that is empty one that the process has already, or else what
/// the dynamic linker finds.
complaint open(const vendor& v, const std::string& file, loaded& result);

/// A version as people write it, as in 2.28.9.
std::string print_version(int version);

}  // namespace sucl::xccl
