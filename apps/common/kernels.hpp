// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Kernels that the applications share.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>

namespace apps {

/// Packs: the elements that a list names, one behind the other.
template <class T>
struct gather {
  std::int64_t count;
  void operator()(sycl::nd_item<1> item, const T* from, const std::int32_t* list, T* to) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i < count) to[i] = from[list[i]];
  }
};

/// Unpacks: elements one behind the other to the indices that a list names.
template <class T>
struct scatter {
  std::int64_t count;
  void operator()(sycl::nd_item<1> item, const T* from, const std::int32_t* list, T* to) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i < count) to[list[i]] = from[i];
  }
};

/// Copies elements within an array, from the indices of one list to those of another.
template <class T>
struct copy_within {
  std::int64_t count;
  void operator()(sycl::nd_item<1> item, const std::int32_t* from, const std::int32_t* to,
                  T* data) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i < count) data[to[i]] = data[from[i]];
  }
};

}  // namespace apps
