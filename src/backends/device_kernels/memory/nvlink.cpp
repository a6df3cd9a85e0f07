// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/memory/nvlink.hpp"

#include "base/system/library.hpp"

#include <sucl/error.hpp>

#include <cstdio>
#include <string>

namespace sucl::core {
namespace {

using handle = void*;

/// Functions of NVML.
struct management {
  base::library library = base::library::open("libnvidia-ml.so.1");
  int (*find)(const char*, handle*) =
      library.symbol_as<int (*)(const char*, handle*)>("nvmlDeviceGetHandleByUUID");
  int (*query)(handle, handle, int, int*) =
      library.symbol_as<int (*)(handle, handle, int, int*)>("nvmlDeviceGetP2PStatus");

  management() { library.symbol_as<int (*)()>("nvmlInit_v2")(); }

  handle device(const kernel_device::identity_type& identity) const {
    std::string text = "GPU";
    for (std::size_t i = 0; i < identity.size(); ++i) {
      char byte[4];
      std::snprintf(byte, sizeof byte, "%02x", identity[i]);
      if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += "-";
      text += byte;
    }
    handle found = nullptr;
    return find(text.c_str(), &found) == 0 ? found : nullptr;
  }
};

}  // namespace

bool linked_by_nvlink(const kernel_device::identity_type& one,
                      const kernel_device::identity_type& other) noexcept {
  try {
    static const management nvml;
    const handle a = nvml.device(one), b = nvml.device(other);
    constexpr int over_nvlink = 2, yes = 0;
    int status = -1;
    return a && b && nvml.query(a, b, over_nvlink, &status) == 0 && status == yes;
  } catch (const error&) {
    return false;
  }
}

}  // namespace sucl::core
