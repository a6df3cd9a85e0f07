// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Collectives on one value of each rank, for the blocking facade.
#pragma once

#include <sucl/memory.hpp>
#include <sucl/types.hpp>

#include <type_traits>
#include <vector>

namespace sucl::detail {

/// Collectives on one value of each rank, which is returned when the operation is done:
/// `double total = comm.blocking().allreduce(mine, sucl::op::sum);`. The rules are those of
/// detail::operations, with one element. `T` is any trivially copyable type that is neither a
/// pointer nor a buffer, block or range of elements.
template <class Derived>
class single_values {
  template <class T>
  using if_value =
      std::enable_if_t<!is_memory<T> && !std::is_pointer_v<T> && std::is_trivially_copyable_v<T>>;

 public:
  /// The reduction, on every rank.
  template <class T, class = if_value<T>>
  T allreduce(const T& value, op o) {
    T result = value;
    self().allreduce(&result, 1, o);
    return result;
  }

  /// The reduction on rank `root`; elsewhere `value`.
  template <class T, class = if_value<T>>
  T reduce(const T& value, op o, int root) {
    T result = value;
    self().reduce(&result, 1, o, root);
    return result;
  }

  /// That of rank `root`, on every rank.
  template <class T, class = if_value<T>>
  T broadcast(const T& value, int root) {
    T result = value;
    self().broadcast(&result, 1, root);
    return result;
  }

  /// The reduction over ranks 0 to this one.
  template <class T, class = if_value<T>>
  T scan(const T& value, op o) {
    T result = value;
    self().scan(&result, 1, o);
    return result;
  }

  /// The reduction over the ranks before this one; T{} on rank 0.
  template <class T, class = if_value<T>>
  T exscan(const T& value, op o) {
    T result{};
    self().exscan(&value, &result, 1, o);
    return result;
  }

  /// Those of all ranks, in their order, on every rank.
  template <class T, class = if_value<T>>
  std::vector<T> allgather(const T& value) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory");
    std::vector<T> all(static_cast<std::size_t>(self().size()));
    self().allgather(&value, all.data(), 1);
    return all;
  }

  /// Those of all ranks, in their order, on rank `root`; elsewhere nothing.
  template <class T, class = if_value<T>>
  std::vector<T> gather(const T& value, int root) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory");
    std::vector<T> all(self().rank() == root ? static_cast<std::size_t>(self().size()) : 0);
    self().gather(&value, all.data(), 1, root);
    return all;
  }

 private:
  Derived& self() { return *static_cast<Derived*>(this); }
};

}  // namespace sucl::detail
