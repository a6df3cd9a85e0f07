// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Inputs whose association shows in the bits of their sums and products, and what the fixed order
/// makes of them: a plain loop over the ranks.
#pragma once

#include "bench/reference/delivery.hpp"
#include "bench/reference/fold.hpp"

namespace sucl::testing {

namespace detail {

/// Of element i of a rank: numbers of very different sizes that cancel, or factors near one.
inline double ordered_number(op reduction, int rank, std::uint64_t i) {
  const auto r = static_cast<std::uint64_t>(rank);
  if (reduction == op::prod) return 1.0 + static_cast<double>((r * 7 + i * 3) % 13) * 0.0123;
  constexpr double list[] = {1e20, 1, -1e20, 3.5e-3, 1e8, -1, 7e15, 0.1, -1e8};
  return list[(r * 2 + i) % 9] * static_cast<double>(1 + (i + r) % 5);
}

template <class T>
T ordered_element(op reduction, int rank, std::uint64_t i) {
  const double re = ordered_number(reduction, rank, i);
  if constexpr (reference::is_narrow<T>) {
    return reference::narrowed<T>(static_cast<float>(re));
  } else if constexpr (reference::is_complex<T>) {
    using V = typename T::value_type;
    return {static_cast<V>(re), static_cast<V>(ordered_number(reduction, rank, i + 4) - 1)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(re);
  } else {
    return {};
  }
}

}  // namespace detail

/// The input of a rank, of floats.
inline std::vector<std::byte> ordered_input(type t, op reduction, int rank, std::uint64_t count) {
  std::vector<std::byte> data(count * size_of(t));
  reference::with_type(t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::uint64_t i = 0; i < count; ++i) {
      const T v = detail::ordered_element<T>(reduction, rank, i);
      std::memcpy(data.data() + i * sizeof(T), &v, sizeof(T));
    }
  });
  return data;
}

/// What a rank holds at the begin of recv after a reduction of ordered_input() with so many
/// elements a rank or a block, ((x0 op x1) op x2) op ...; blocks of reduce_scatter have `count` + r
/// elements. Empty: nothing.
inline std::vector<std::byte> ordered_result(kind k, type t, op reduction, int rank, int size,
                                             std::uint64_t count, int root) {
  std::vector<std::uint64_t> counts;
  for (int r = 0; r < size; ++r) counts.push_back(count + static_cast<std::uint64_t>(r));
  sucl_operation o{};
  o.kind = static_cast<sucl_kind>(k);
  o.root = root;
  o.count = count;
  o.recv_counts = counts.data();
  std::vector<std::byte> data;
  for (const auto& piece : reference::delivered(o, rank, size))
    for (std::uint64_t i = piece.offset; i < piece.offset + piece.count; ++i)
      reference::with_type(t, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        const T v = reference::fold<T>(reduction, piece.last - piece.first + 1, [&](int r) {
          return detail::ordered_element<T>(reduction, r, i);
        });
        const auto bytes = reference::written(v);
        data.insert(data.end(), bytes.begin(), bytes.end());
      });
  return data;
}

}  // namespace sucl::testing
