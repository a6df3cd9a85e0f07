// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Calls that wait for each other, in a thread each.
#pragma once

#include <sucl/export.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace sucl::detail {

/// Entry point of libsucl: runs `work(0)` to `work(count - 1)` at once, in threads of their own.
SUCL_API void run_concurrently(std::size_t count, const std::function<void(std::size_t)>& work);

/// Throws errc::invalid_argument unless there is one for each rank.
SUCL_API void check_one_each(std::size_t ranks, std::size_t given, const char* what);

/// The same with what they return, in order.
template <class Work>
auto gather_concurrently(std::size_t count, Work&& work) {
  using result = decltype(work(std::size_t{}));
  if constexpr (std::is_void_v<result>) {
    run_concurrently(count, work);
  } else {
    std::vector<std::optional<result>> all(count);
    run_concurrently(count, [&](std::size_t i) { all[i].emplace(work(i)); });
    std::vector<result> results;
    for (auto& one : all) results.push_back(std::move(*one));
    return results;
  }
}

}  // namespace sucl::detail
