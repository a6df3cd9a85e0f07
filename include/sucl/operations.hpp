// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The collectives, written once for the asynchronous and the blocking facade.
#pragma once

#include <sucl/point_to_point.hpp>

namespace sucl::detail {

/// Every collective and point-to-point call. With `Result` sycl::event (communicator) a call
/// returns at once and the event means done: results may be read, sources reused. With `Result`
/// void (blocking_communicator) the call itself returns when that is so.
///
/// Common rules:
/// - A collective is called by every rank of the communicator, in the same order on each, with the
///   same kind, element type, op, root and, unless said otherwise, count; and in the same form,
///   asynchronous or blocking. docs/reference/contracts.md says where a mismatch is found.
/// - Operations of one communicator start in the order of the calls. An operation starts after the
///   events in `deps`, on an in-order queue also after what was submitted to it before, and for
///   buffers after every earlier command that uses them.
/// - Counts are in elements. `T` is any trivially copyable type; where data is reduced, one for
///   which the op is defined (see sucl::defined).
/// - Pointers are USM pointers of the queue's context or system memory; they and what they point
///   to stay valid until the operation is done. Buffers are kept alive by the library.
/// - Where a buffer is taken, so is a range of elements: std::vector, std::array, std::span and
///   whatever else has data() and size(). It is USM or system memory whose size is checked, and
///   stays valid, like what a pointer names. A temporary container cannot receive.
/// - A form with one memory argument instead of two works in place.
/// - Send and receive memory must not overlap, except in place, nor may the blocks that are
/// received
///   from different ranks.
/// - Errors that can be seen at the call are thrown there as sucl::error and nothing is started:
///   invalid_rank, invalid_count, invalid_type, invalid_memory, shut_down. Later ones are thrown by
///   the next call on the communicator and by communicator::check(), and reach the queue's
///   async_handler where the SYCL implementation has host tasks.
template <class Derived, class Result>
class operations : public point_to_point<Derived, Result> {
  using messages = point_to_point<Derived, Result>;
  using messages::go;
  template <class M>
  using if_memory = std::enable_if_t<can_receive<M>()>;
  template <class S, class R>
  using if_memories = std::enable_if_t<is_memory<S> && can_receive<R>()>;

 public:
  using events = typename messages::events;

  /// Done when every rank has called it. Orders nothing but itself and its `deps`.
  Result barrier(const events& deps = {}) {
    return go(make_request<std::byte>(kind::barrier, 0), {}, {}, deps);
  }

  /// @name Broadcast: `count` elements of rank `root` to every rank.
  /// @{
  template <class T>
  Result broadcast(T* data, std::size_t count, int root, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::broadcast, count, op::none, root), erase_pointer(data),
                       deps);
  }
  template <class M, class = if_memory<M>>
  Result broadcast(M&& data, int root, const events& deps = {}) {
    auto d = erase(data);
    const auto n = d.elements();
    return in_place<element_of<M>>(make_request<element_of<M>>(kind::broadcast, n, op::none, root),
                                   std::move(d), deps);
  }
  /// Part of a buffer, as in the SuCL paper.
  template <class T, int D>
  Result broadcast(const ::sycl::buffer<T, D>& data, ::sycl::id<D> offset, ::sycl::range<D> range,
                   int root, const events& deps = {}) {
    return broadcast(block<T, D>(data, offset, range), root, deps);
  }
  /// @}

  /// @name Reduce: element by element over the ranks, to `recv` of rank `root`.
  /// In place the result replaces the root's input; elsewhere `data` is only read.
  /// @{
  template <class T>
  Result reduce(const T* send, T* recv, std::size_t count, op o, int root,
                const events& deps = {}) {
    return go(make_request<T>(kind::reduce, count, o, root), erase_pointer(send),
              erase_pointer(recv), deps);
  }
  template <class T>
  Result reduce(T* data, std::size_t count, op o, int root, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::reduce, count, o, root), erase_pointer(data), deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result reduce(const S& send, R&& recv, op o, int root, const events& deps = {}) {
    return two_sided<S, R>(kind::reduce, send, recv, o, root, deps);
  }
  template <class M, class = if_memory<M>>
  Result reduce(M&& data, op o, int root, const events& deps = {}) {
    return one_sided<M>(kind::reduce, data, o, root, deps);
  }
  /// @}

  /// @name Allreduce: element by element over the ranks, to every rank.
  /// @{
  template <class T>
  Result allreduce(const T* send, T* recv, std::size_t count, op o, const events& deps = {}) {
    return go(make_request<T>(kind::allreduce, count, o), erase_pointer(send), erase_pointer(recv),
              deps);
  }
  template <class T>
  Result allreduce(T* data, std::size_t count, op o, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::allreduce, count, o), erase_pointer(data), deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result allreduce(const S& send, R&& recv, op o, const events& deps = {}) {
    return two_sided<S, R>(kind::allreduce, send, recv, o, 0, deps);
  }
  template <class M, class = if_memory<M>>
  Result allreduce(M&& data, op o, const events& deps = {}) {
    return one_sided<M>(kind::allreduce, data, o, 0, deps);
  }
  /// @}

  /// @name Inclusive scan: rank r gets the reduction over ranks 0 to r. `avg` is not defined.
  /// @{
  template <class T>
  Result scan(const T* send, T* recv, std::size_t count, op o, const events& deps = {}) {
    return go(make_request<T>(kind::scan, count, o), erase_pointer(send), erase_pointer(recv),
              deps);
  }
  template <class T>
  Result scan(T* data, std::size_t count, op o, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::scan, count, o), erase_pointer(data), deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result scan(const S& send, R&& recv, op o, const events& deps = {}) {
    return two_sided<S, R>(kind::scan, send, recv, o, 0, deps);
  }
  template <class M, class = if_memory<M>>
  Result scan(M&& data, op o, const events& deps = {}) {
    return one_sided<M>(kind::scan, data, o, 0, deps);
  }
  /// @}

  /// @name Exclusive scan: rank r gets the reduction over ranks 0 to r-1.
  /// The receive memory of rank 0 is left as it is. `avg` is not defined.
  /// @{
  template <class T>
  Result exscan(const T* send, T* recv, std::size_t count, op o, const events& deps = {}) {
    return go(make_request<T>(kind::exscan, count, o), erase_pointer(send), erase_pointer(recv),
              deps);
  }
  template <class T>
  Result exscan(T* data, std::size_t count, op o, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::exscan, count, o), erase_pointer(data), deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result exscan(const S& send, R&& recv, op o, const events& deps = {}) {
    return two_sided<S, R>(kind::exscan, send, recv, o, 0, deps);
  }
  template <class M, class = if_memory<M>>
  Result exscan(M&& data, op o, const events& deps = {}) {
    return one_sided<M>(kind::exscan, data, o, 0, deps);
  }
  /// @}

  /// @name Reduce-scatter with equal blocks: rank r gets block r of the reduction.
  /// `count` is the block's; `send` has size() blocks. In place, `data` has size() blocks and the
  /// result is at its start. With buffers the block is what `recv` holds.
  /// @{
  template <class T>
  Result reduce_scatter_block(const T* send, T* recv, std::size_t count, op o,
                              const events& deps = {}) {
    return go(make_request<T>(kind::reduce_scatter_block, count, o), erase_pointer(send),
              erase_pointer(recv), deps);
  }
  template <class T>
  Result reduce_scatter_block(T* data, std::size_t count, op o, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::reduce_scatter_block, count, o), erase_pointer(data),
                       deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result reduce_scatter_block(const S& send, R&& recv, op o, const events& deps = {}) {
    same_element<S, R>();
    auto to = erase(recv);
    const auto n = to.elements();
    return go(make_request<element_of<R>>(kind::reduce_scatter_block, n, o), erase(send),
              std::move(to), deps);
  }
  template <class M, class = if_memory<M>>
  Result reduce_scatter_block(M&& data, op o, const events& deps = {}) {
    return in_blocks<M>(kind::reduce_scatter_block, data, o, deps);
  }
  /// @}

  /// @name Reduce-scatter: rank r gets `counts[r]` elements; `counts` is the same on every rank.
  /// In place, the result is at the start of `data`.
  /// @{
  template <class T>
  Result reduce_scatter(const T* send, T* recv, const counts& counts, op o,
                        const events& deps = {}) {
    return go(with_recv_counts<T>(kind::reduce_scatter, counts, o), erase_pointer(send),
              erase_pointer(recv), deps);
  }
  template <class T>
  Result reduce_scatter(T* data, const counts& counts, op o, const events& deps = {}) {
    return in_place<T>(with_recv_counts<T>(kind::reduce_scatter, counts, o), erase_pointer(data),
                       deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result reduce_scatter(const S& send, R&& recv, const counts& counts, op o,
                        const events& deps = {}) {
    same_element<S, R>();
    return go(with_recv_counts<element_of<R>>(kind::reduce_scatter, counts, o), erase(send),
              erase(recv), deps);
  }
  /// @}

  /// @name Allgather: the `count` elements of each rank, in rank order, to every rank.
  /// In place, each rank's contribution is its own block of `data`. With buffers the block is what
  /// `send` holds.
  /// @{
  template <class T>
  Result allgather(const T* send, T* recv, std::size_t count, const events& deps = {}) {
    return go(make_request<T>(kind::allgather, count), erase_pointer(send), erase_pointer(recv),
              deps);
  }
  template <class T>
  Result allgather(T* data, std::size_t count, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::allgather, count), erase_pointer(data), deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result allgather(const S& send, R&& recv, const events& deps = {}) {
    return two_sided<S, R>(kind::allgather, send, recv, op::none, 0, deps);
  }
  template <class M, class = if_memory<M>>
  Result allgather(M&& data, const events& deps = {}) {
    return in_blocks<M>(kind::allgather, data, op::none, deps);
  }
  /// @}

  /// @name Allgather of blocks of different sizes: `counts[r]` elements of rank r to `displs[r]`.
  /// `count` is this rank's own; `counts` and `displs` are the same on every rank.
  /// @{
  template <class T>
  Result allgatherv(const T* send, std::size_t count, T* recv, const counts& counts,
                    const detail::counts& displs, const events& deps = {}) {
    return go(gathered<T>(kind::allgatherv, count, counts, displs, 0), erase_pointer(send),
              erase_pointer(recv), deps);
  }
  template <class T>
  Result allgatherv(T* data, const counts& counts, const detail::counts& displs,
                    const events& deps = {}) {
    return in_place<T>(gathered<T>(kind::allgatherv, 0, counts, displs, 0), erase_pointer(data),
                       deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result allgatherv(const S& send, R&& recv, const counts& counts, const detail::counts& displs,
                    const events& deps = {}) {
    same_element<S, R>();
    auto from = erase(send);
    const auto n = from.elements();
    return go(gathered<element_of<R>>(kind::allgatherv, n, counts, displs, 0), std::move(from),
              erase(recv), deps);
  }
  /// @}

  /// @name Alltoall: block s of rank r goes to block r of rank s; `count` elements each.
  /// With buffers the block is a size()-th of `send`.
  /// @{
  template <class T>
  Result alltoall(const T* send, T* recv, std::size_t count, const events& deps = {}) {
    return go(make_request<T>(kind::alltoall, count), erase_pointer(send), erase_pointer(recv),
              deps);
  }
  template <class T>
  Result alltoall(T* data, std::size_t count, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::alltoall, count), erase_pointer(data), deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result alltoall(const S& send, R&& recv, const events& deps = {}) {
    same_element<S, R>();
    auto from = erase(send);
    const auto n = per_rank(kind::alltoall, from.elements());
    return go(make_request<element_of<R>>(kind::alltoall, n), std::move(from), erase(recv), deps);
  }
  template <class M, class = if_memory<M>>
  Result alltoall(M&& data, const events& deps = {}) {
    return in_blocks<M>(kind::alltoall, data, op::none, deps);
  }
  /// @}

  /// @name Alltoall with a count and a displacement for each pair.
  /// What rank r sends to s (`send_counts[s]` on r) is what s receives from r.
  /// In place, only the receive arrays are given, and they describe both directions.
  /// @{
  template <class T>
  Result alltoallv(const T* send, const counts& send_counts, const counts& send_displs, T* recv,
                   const counts& recv_counts, const counts& recv_displs, const events& deps = {}) {
    auto r = gathered<T>(kind::alltoallv, 0, recv_counts, recv_displs, 0);
    r.send_counts = &send_counts;
    r.send_displs = &send_displs;
    return go(std::move(r), erase_pointer(send), erase_pointer(recv), deps);
  }
  template <class T>
  Result alltoallv(T* data, const counts& counts, const detail::counts& displs,
                   const events& deps = {}) {
    return in_place<T>(gathered<T>(kind::alltoallv, 0, counts, displs, 0), erase_pointer(data),
                       deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result alltoallv(const S& send, const counts& send_counts, const counts& send_displs, R&& recv,
                   const counts& recv_counts, const counts& recv_displs, const events& deps = {}) {
    same_element<S, R>();
    auto r = gathered<element_of<R>>(kind::alltoallv, 0, recv_counts, recv_displs, 0);
    r.send_counts = &send_counts;
    r.send_displs = &send_displs;
    return go(std::move(r), erase(send), erase(recv), deps);
  }
  /// @}

  /// @name Gather: the `count` elements of each rank, in rank order, to `recv` of rank `root`.
  /// `recv` is not touched elsewhere and may be null. In place (`data`): on the root all blocks,
  /// its own already in it; elsewhere the block to send.
  /// @{
  template <class T>
  Result gather(const T* send, T* recv, std::size_t count, int root, const events& deps = {}) {
    return go(make_request<T>(kind::gather, count, op::none, root), erase_pointer(send),
              erase_pointer(recv), deps);
  }
  template <class T>
  Result gather(T* data, std::size_t count, int root, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::gather, count, op::none, root), erase_pointer(data),
                       deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result gather(const S& send, R&& recv, int root, const events& deps = {}) {
    return two_sided<S, R>(kind::gather, send, recv, op::none, root, deps);
  }
  /// @}

  /// @name Gather of blocks of different sizes. `counts` and `displs` matter on the root only;
  /// `count` is this rank's own.
  /// @{
  template <class T>
  Result gatherv(const T* send, std::size_t count, T* recv, const counts& counts,
                 const detail::counts& displs, int root, const events& deps = {}) {
    return go(gathered<T>(kind::gatherv, count, counts, displs, root), erase_pointer(send),
              erase_pointer(recv), deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result gatherv(const S& send, R&& recv, const counts& counts, const detail::counts& displs,
                 int root, const events& deps = {}) {
    same_element<S, R>();
    auto from = erase(send);
    const auto n = from.elements();
    return go(gathered<element_of<R>>(kind::gatherv, n, counts, displs, root), std::move(from),
              erase(recv), deps);
  }
  /// @}

  /// @name Scatter: block r of `send` of rank `root` to `recv` of rank r; `count` elements each.
  /// `send` is not read elsewhere and may be null. In place (`data`): on the root all blocks, its
  /// own staying where it is; elsewhere the block received. With buffers the block is what `recv`
  /// holds.
  /// @{
  template <class T>
  Result scatter(const T* send, T* recv, std::size_t count, int root, const events& deps = {}) {
    return go(make_request<T>(kind::scatter, count, op::none, root), erase_pointer(send),
              erase_pointer(recv), deps);
  }
  template <class T>
  Result scatter(T* data, std::size_t count, int root, const events& deps = {}) {
    return in_place<T>(make_request<T>(kind::scatter, count, op::none, root), erase_pointer(data),
                       deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result scatter(const S& send, R&& recv, int root, const events& deps = {}) {
    same_element<S, R>();
    auto to = erase(recv);
    const auto n = to.elements();
    return go(make_request<element_of<R>>(kind::scatter, n, op::none, root), erase(send),
              std::move(to), deps);
  }
  /// @}

  /// @name Scatter of blocks of different sizes. `counts` and `displs` matter on the root only;
  /// `count` is this rank's own.
  /// @{
  template <class T>
  Result scatterv(const T* send, const counts& counts, const detail::counts& displs, T* recv,
                  std::size_t count, int root, const events& deps = {}) {
    return go(scattered<T>(count, counts, displs, root), erase_pointer(send), erase_pointer(recv),
              deps);
  }
  template <class S, class R, class = if_memories<S, R>>
  Result scatterv(const S& send, const counts& counts, const detail::counts& displs, R&& recv,
                  int root, const events& deps = {}) {
    same_element<S, R>();
    auto to = erase(recv);
    const auto n = to.elements();
    return go(scattered<element_of<R>>(n, counts, displs, root), erase(send), std::move(to), deps);
  }
  /// @}

 private:
  template <class S, class R>
  static constexpr void same_element() {
    static_assert(std::is_same_v<std::remove_cv_t<element_of<S>>, element_of<R>>,
                  "send and receive memory have one element type");
    static_assert(is_range<S> == is_range<R>, "two buffers, or two ranges of elements");
  }

  template <class T>
  static request with_recv_counts(kind k, const counts& c, op o) {
    auto r = make_request<T>(k, 0, o);
    r.recv_counts = &c;
    return r;
  }

  template <class T>
  static request gathered(kind k, std::size_t count, const counts& c, const counts& displs,
                          int root) {
    auto r = make_request<T>(k, count, op::none, root);
    r.recv_counts = &c;
    r.recv_displs = &displs;
    return r;
  }

  template <class T>
  static request scattered(std::size_t count, const counts& c, const counts& displs, int root) {
    auto r = make_request<T>(kind::scatterv, count, op::none, root);
    r.send_counts = &c;
    r.send_displs = &displs;
    return r;
  }

  std::size_t per_rank(kind k, std::size_t elements) {
    return static_cast<Derived*>(this)->share(k, elements);
  }

  template <class T>
  Result in_place(request&& r, operand&& data, const events& deps) {
    static_assert(!std::is_const_v<T>, "memory that receives is not constant");
    r.record.flags |= SUCL_FLAG_IN_PLACE;
    return go(std::move(r), {}, std::move(data), deps);
  }

  template <class S, class R>
  Result two_sided(kind k, const S& send, const R& recv, op o, int root, const events& deps) {
    same_element<S, R>();
    auto from = erase(send);
    const auto n = from.elements();
    return go(make_request<element_of<R>>(k, n, o, root), std::move(from), erase(recv), deps);
  }

  template <class M>
  Result one_sided(kind k, const M& data, op o, int root, const events& deps) {
    auto d = erase(data);
    const auto n = d.elements();
    return in_place<element_of<M>>(make_request<element_of<M>>(k, n, o, root), std::move(d), deps);
  }

  template <class M>
  Result in_blocks(kind k, const M& data, op o, const events& deps) {
    auto d = erase(data);
    const auto n = per_rank(k, d.elements());
    return in_place<element_of<M>>(make_request<element_of<M>>(k, n, o), std::move(d), deps);
  }
};

}  // namespace sucl::detail
