// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Our own declarations of what DLPack's capsules hold, versions 0 and 1.
#pragma once

#include <cstdint>

namespace sucl::python {

enum : std::int32_t { dlpack_cpu = 1, dlpack_cuda_host = 3 };

struct dlpack_tensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t per_element;  ///< numbers of a vector; mostly 1
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

/// In a capsule "dltensor".
struct dlpack_managed {
  dlpack_tensor tensor;
  void* context;
  void (*deleter)(dlpack_managed*);
};

/// In a capsule "dltensor_versioned".
struct dlpack_versioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(dlpack_versioned*);
  std::uint64_t flags;
  dlpack_tensor tensor;
};

}  // namespace sucl::python
