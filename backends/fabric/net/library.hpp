// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// libfabric, loaded at run time. Its headers are enough to build this.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

namespace sucl::fabric {

/// The functions of libfabric that are not reached through its objects.
struct library {
  int (*getinfo)(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** info);
  void (*freeinfo)(fi_info* info);
  fi_info* (*dupinfo)(const fi_info* info);
  int (*open)(fi_fabric_attr* attributes, fid_fabric** made, void* context);
  const char* (*strerror)(int code);
  std::uint32_t (*version)();
  std::string path;  ///< of the file

  /// What an error code of libfabric means; of either sign.
  std::string text_of(std::int64_t code) const;
  /// As "1.17".
  std::string version_text() const;
};

/// Loads it, once in a process for each path; it is never unloaded. Empty: wherever the dynamic
/// linker finds it, or else where Intel MPI has its own. Throws problem.
const library& load_library(const std::string& path);

}  // namespace sucl::fabric
