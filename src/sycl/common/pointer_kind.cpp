// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "sycl/common/pointer_kind.hpp"

#include "base/error.hpp"
#include "base/system/library.hpp"

namespace sucl::sycl_layer {
namespace {

// Our own declarations of CUDA's driver.
using get_attributes = int (*)(unsigned count, const int* attributes, void** values,
                               unsigned long long pointer);
constexpr int memory_type = 2, is_managed = 8;
enum kind_of_memory : unsigned { unknown = 0, on_host = 1, on_device = 2 };

get_attributes find_function() noexcept {
  try {
    static const base::library driver = base::library::open("libcuda.so.1");
    return driver.symbol_as<get_attributes>("cuPointerGetAttributes");
  } catch (const error&) {
    return nullptr;
  }
}

}  // namespace

std::optional<sucl_memory> memory_by_driver(const void* pointer) noexcept {
  static const get_attributes get = find_function();
  if (!get) return std::nullopt;
  unsigned type = unknown, managed = 0;
  const int attributes[] = {memory_type, is_managed};
  void* values[] = {&type, &managed};
  if (get(2, attributes, values, reinterpret_cast<unsigned long long>(pointer)) != 0)
    return std::nullopt;
  if (managed) return SUCL_MEMORY_SHARED;
  switch (type) {
    case on_host: return SUCL_MEMORY_HOST;
    case on_device: return SUCL_MEMORY_DEVICE;
    case unknown: return SUCL_MEMORY_SYSTEM;
    default: return std::nullopt;
  }
}

}  // namespace sucl::sycl_layer
