// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reductions by a function of the program.
#pragma once

#include <sucl/communicator.hpp>
#include <sucl/export.hpp>
#include <sucl/kernels.hpp>

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace sucl {

namespace detail {

/// A user_op after its types are erased: folds `count` elements of lower ranks into those of
/// higher ones, as `upper[i] = f(lower[i], upper[i])`.
struct erased_op {
  std::function<void(const void* lower, void* upper, std::size_t count)> on_host;
  /// The same as a command after `deps`; empty without a kernel.
  std::function<::sycl::event(::sycl::queue&, const void* lower, void* upper, std::size_t count,
                              const std::vector<::sycl::event>& deps)>
      on_device;
};

/// A reduction by a user_op, with pointers.
struct user_reduction {
  kind of;
  const void* send;
  void* recv;
  sucl::counts counts;  ///< of reduce_scatter: one a rank; of others one entry
  int root;
  type element;
  std::size_t element_size;
};

SUCL_API ::sycl::event reduce_by(const communicator& comm, const erased_op& o,
                                 const user_reduction& r, const std::vector<::sycl::event>& deps,
                                 bool blocking);

/// The sum of what `scale` makes of the contributions, as `upper[i] = factor * lower[i]`.
SUCL_API ::sycl::event sum_scaled(const communicator& comm, const erased_op& scale,
                                  const user_reduction& r, const std::vector<::sycl::event>& deps);

/// Throws errc::invalid_count where ranges have no room for shares of these counts, or for one
/// block for each rank.
SUCL_API void check_shares(const communicator& comm, const sucl::counts& counts, std::size_t sent,
                           std::size_t received);
SUCL_API void check_blocks_of_ranks(const communicator& comm, std::size_t block,
                                    std::size_t elements, const char* side);

}  // namespace detail

/// A reduction of the program's own: any associative function of two elements of any trivially
/// copyable type. It need not be commutative. The contributions are combined in the order of the
/// ranks, from the first to the last, so that the result is the same in every bit on all ranks,
/// with every backend, and for every number of nodes.
///
/// ```cpp
/// const sucl::user_op<point> nearest([](const point& a, const point& b) {
///   return b.distance < a.distance ? b : a;
/// });
/// nearest.allreduce(comm, mine, result, n).wait();
/// ```
///
/// An allreduce is an alltoall of the contributions, a fold of each rank's share and an allgather:
/// it moves about twice its memory, as a ring does, and needs scratch memory of its size; scans get
/// all contributions. The rules are those of detail::operations; ranks pass the same function,
/// which SuCL cannot check. The function must not throw: that ends the communicator on all ranks.
/// A call of SuCL's in it, which would wait for the reduction, throws errc::invalid_argument.
/// Where there is an event it is called from a thread of the SYCL runtime. On the host it runs in
/// the default floating-point mode, whichever thread calls it.
template <class T>
class user_op {
  template <class Send, class Recv>
  using if_ranges = std::enable_if_t<detail::are_ranges<T, Send, Recv>()>;

 public:
  using events = std::vector<::sycl::event>;

  /// `f(lower, upper)` gives the combination of an element of lower ranks with one of higher ranks.
  template <class F>
  explicit user_op(F f) {
    m_erased.on_host = [f = std::move(f)](const void* lower, void* upper, std::size_t count) {
      const T* a = static_cast<const T*>(lower);
      T* b = static_cast<T*>(upper);
      for (std::size_t i = 0; i < count; ++i) b[i] = f(a[i], b[i]);
    };
  }

  /// Also for memory of the device, which the host cannot read (errc::unsupported without): the
  /// kernel that `make_kernel(count)` returns is launched with sucl::kernels::launch for at least
  /// `count` items, on `const T* lower, T* upper`, and does the same as `f`.
  template <class F, class MakeKernel>
  user_op(F f, MakeKernel make_kernel) : user_op(std::move(f)) {
    m_erased.on_device = [make = std::move(make_kernel)](::sycl::queue& q, const void* lower,
                                                         void* upper, std::size_t count,
                                                         const events& deps) {
      return kernels::launch(q, kernels::items(count), deps, make(count),
                             static_cast<const T*>(lower), static_cast<T*>(upper));
    };
  }

  /// @name The reductions, which return an event that means done
  /// As those of detail::operations. `send` and `recv` may be the same memory, for in place.
  /// @{
  ::sycl::event allreduce(const communicator& comm, const T* send, T* recv, std::size_t count,
                          const events& deps = {}) const {
    return go(comm, kind::allreduce, send, recv, {count}, 0, deps, false);
  }
  ::sycl::event reduce(const communicator& comm, const T* send, T* recv, std::size_t count,
                       int root, const events& deps = {}) const {
    return go(comm, kind::reduce, send, recv, {count}, root, deps, false);
  }
  ::sycl::event reduce_scatter(const communicator& comm, const T* send, T* recv,
                               const counts& counts, const events& deps = {}) const {
    return go(comm, kind::reduce_scatter, send, recv, counts, 0, deps, false);
  }
  ::sycl::event scan(const communicator& comm, const T* send, T* recv, std::size_t count,
                     const events& deps = {}) const {
    return go(comm, kind::scan, send, recv, {count}, 0, deps, false);
  }
  /// The receive memory of rank 0 is left as it is.
  ::sycl::event exscan(const communicator& comm, const T* send, T* recv, std::size_t count,
                       const events& deps = {}) const {
    return go(comm, kind::exscan, send, recv, {count}, 0, deps, false);
  }
  /// @}

  /// @name The same on ranges of elements: std::vector, std::span and the like
  /// As many elements as `send` has; their sizes are checked (errc::invalid_count). `recv` counts
  /// on ranks that receive only.
  /// @{
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event allreduce(const communicator& comm, const Send& send, Recv&& recv,
                          const events& deps = {}) const {
    detail::check_room(send.size(), recv.size(), "receive");
    return allreduce(comm, send.data(), recv.data(), send.size(), deps);
  }
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event reduce(const communicator& comm, const Send& send, Recv&& recv, int root,
                       const events& deps = {}) const {
    if (comm.rank() == root) detail::check_room(send.size(), recv.size(), "receive");
    return reduce(comm, send.data(), recv.data(), send.size(), root, deps);
  }
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event reduce_scatter(const communicator& comm, const Send& send, Recv&& recv,
                               const counts& counts, const events& deps = {}) const {
    detail::check_shares(comm, counts, send.size(), recv.size());
    return reduce_scatter(comm, send.data(), recv.data(), counts, deps);
  }
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event scan(const communicator& comm, const Send& send, Recv&& recv,
                     const events& deps = {}) const {
    detail::check_room(send.size(), recv.size(), "receive");
    return scan(comm, send.data(), recv.data(), send.size(), deps);
  }
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event exscan(const communicator& comm, const Send& send, Recv&& recv,
                       const events& deps = {}) const {
    detail::check_room(send.size(), recv.size(), "receive");
    return exscan(comm, send.data(), recv.data(), send.size(), deps);
  }
  /// @}

  /// One value of each rank, combined, on every rank. Blocks.
  T allreduce(const communicator& comm, const T& value) const {
    T result = value;
    (void)go(comm, kind::allreduce, &value, &result, {1}, 0, {}, true);
    return result;
  }

 private:
  ::sycl::event go(const communicator& comm, kind k, const T* send, T* recv, sucl::counts counts,
                   int root, const events& deps, bool blocking) const {
    static_assert(std::is_trivially_copyable_v<T>, "elements are moved byte by byte");
    return detail::reduce_by(comm, m_erased,
                             {k, send, recv, std::move(counts), root, type_of_v<T>, sizeof(T)},
                             deps, blocking);
  }
  detail::erased_op m_erased;
};

/// Sums of contributions that each rank multiplies by a factor of its own first, rounded to `T`: as
/// ncclRedOpCreatePreMulSum. For averages by weight, and gradients of batches of different sizes.
/// The rules are those of detail::operations with op::sum. The factor is this rank's.
template <class T>
class scaled_sum {
  template <class Send, class Recv>
  using if_ranges = std::enable_if_t<detail::are_ranges<T, Send, Recv>()>;

 public:
  using events = std::vector<::sycl::event>;

  explicit scaled_sum(T factor) {
    m_erased.on_host = [factor](const void* from, void* to, std::size_t count) {
      const T* a = static_cast<const T*>(from);
      T* b = static_cast<T*>(to);
      for (std::size_t i = 0; i < count; ++i) b[i] = static_cast<T>(factor * a[i]);
    };
  }

  /// Also for memory of the device that the host cannot read (errc::unsupported without): the
  /// kernel that `make_kernel(count)` returns works on `const T* from, T* to`, as that of a
  /// user_op.
  template <class MakeKernel>
  scaled_sum(T factor, MakeKernel make_kernel) : scaled_sum(factor) {
    m_erased.on_device = [make = std::move(make_kernel)](::sycl::queue& q, const void* from,
                                                         void* to, std::size_t count,
                                                         const events& deps) {
      return kernels::launch(q, kernels::items(count), deps, make(count),
                             static_cast<const T*>(from), static_cast<T*>(to));
    };
  }

  /// `send` and `recv` may be the same memory.
  ::sycl::event allreduce(const communicator& comm, const T* send, T* recv, std::size_t count,
                          const events& deps = {}) const {
    return go(comm, kind::allreduce, send, recv, count, 0, deps);
  }
  ::sycl::event reduce(const communicator& comm, const T* send, T* recv, std::size_t count,
                       int root, const events& deps = {}) const {
    return go(comm, kind::reduce, send, recv, count, root, deps);
  }
  /// `count` is the block's.
  ::sycl::event reduce_scatter_block(const communicator& comm, const T* send, T* recv,
                                     std::size_t count, const events& deps = {}) const {
    return go(comm, kind::reduce_scatter_block, send, recv, count, 0, deps);
  }

  /// @name The same on ranges of elements, as those of a user_op
  /// @{
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event allreduce(const communicator& comm, const Send& send, Recv&& recv,
                          const events& deps = {}) const {
    detail::check_room(send.size(), recv.size(), "receive");
    return allreduce(comm, send.data(), recv.data(), send.size(), deps);
  }
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event reduce(const communicator& comm, const Send& send, Recv&& recv, int root,
                       const events& deps = {}) const {
    if (comm.rank() == root) detail::check_room(send.size(), recv.size(), "receive");
    return reduce(comm, send.data(), recv.data(), send.size(), root, deps);
  }
  /// The block is as long as `recv`; `send` has one for each rank.
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  ::sycl::event reduce_scatter_block(const communicator& comm, const Send& send, Recv&& recv,
                                     const events& deps = {}) const {
    detail::check_blocks_of_ranks(comm, recv.size(), send.size(), "send");
    return reduce_scatter_block(comm, send.data(), recv.data(), recv.size(), deps);
  }
  /// @}

 private:
  ::sycl::event go(const communicator& comm, kind k, const T* send, T* recv, std::size_t count,
                   int root, const events& deps) const {
    return detail::sum_scaled(comm, m_erased,
                              {k, send, recv, {count}, root, type_of_v<T>, sizeof(T)}, deps);
  }
  detail::erased_op m_erased;
};

}  // namespace sucl
