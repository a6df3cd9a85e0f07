// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The settings of the backend.
#pragma once

#include <sucl/abi/backend.h>

#include <cstdint>
#include <string>

namespace sucl::fabric {

struct settings {
  std::string provider;   ///< as libfabric calls it; empty: the best one
  std::string library;    ///< path of libfabric; empty: where the system has it
  std::string interface;  ///< name of an interface or domain, a subnet, or "loopback"; empty: any
};

/// Throws problem.
settings read_settings(const sucl_setting* list, std::uint64_t count);

}  // namespace sucl::fabric
