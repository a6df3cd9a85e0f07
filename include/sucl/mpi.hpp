// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// MPI's calls over a SYCL queue: MPI's names and argument order, without the datatypes, which come
/// from the memory's element type.
///
/// Each call is ordered on the queue it is given and returns at once; wait for the event, or for
/// the queue if it is in order, where MPI's call would have returned. `Memory` is a USM or system
/// pointer, a sycl::buffer (its first elements) or a sucl::block. Counts are in elements. The rules
/// and errors are those of the communicator's methods (see sucl::detail::operations).
#pragma once

#include <sucl/communicator.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace sucl::mpi {

/// In place of the send memory: the input is in the receive memory, as with MPI_IN_PLACE.
struct in_place_t {};
inline constexpr in_place_t in_place{};

/// Instead of a source or destination rank: there is none. As MPI_PROC_NULL.
inline constexpr int proc_null = no_rank;

/// @cond internal
namespace detail {

using sucl::detail::counts;
using sucl::detail::make_request;
using sucl::detail::operand;
using sucl::detail::request;

template <class M>
struct element {
  using type = sucl::detail::element_of<M>;
};
template <class T>
struct element<T*> {
  using type = std::remove_cv_t<T>;
};
template <class M>
using element_t = typename element<std::decay_t<M>>::type;

template <class T>
operand erase(T* const& pointer) {
  return sucl::detail::erase_pointer(pointer);
}
template <class M,
          class = std::enable_if_t<sucl::detail::is_memory<M> && !sucl::detail::is_range<M>>>
operand erase(const M& memory) {
  return sucl::detail::erase(memory);
}

template <class M>
inline constexpr bool is_in_place = std::is_same_v<std::decay_t<M>, in_place_t>;

/// Equal counts of both sides, as every matching pair of MPI has with one datatype.
inline void same_count(std::size_t send_count, std::size_t recv_count) {
  if (send_count == recv_count) return;
  error_info info;
  info.code = errc::invalid_count;
  info.message = "send count " + std::to_string(send_count) + " and receive count " +
                 std::to_string(recv_count) + " differ";
  info.hint = "Both are the number of elements that each rank sends to each other";
  throw error(info);
}

template <class Send, class Recv>
::sycl::event go(const ::sycl::queue& q, request r, const Send& send, const Recv& recv,
                 communicator& comm, const std::vector<::sycl::event>& deps) {
  r.queue = &q;
  if constexpr (is_in_place<Send>) {
    r.record.flags |= SUCL_FLAG_IN_PLACE;
  } else {
    static_assert(std::is_same_v<element_t<Send>, element_t<Recv>>,
                  "send and receive memory have one element type");
    r.send = erase(send);
  }
  r.recv = erase(recv);
  return comm.submit(r, deps);
}

template <class Recv>
request make(kind k, std::size_t count, op o = op::none, int root = 0) {
  return make_request<element_t<Recv>>(k, count, o, root);
}

/// A send and a receive with tags of their own, issued together.
template <class Send, class Recv>
::sycl::event exchange(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount, int dest,
                       int sendtag, const Recv& recvbuf, std::size_t recvcount, int source,
                       int recvtag, communicator& comm, const std::vector<::sycl::event>& deps) {
  if constexpr (is_in_place<Send>) {
    error_info info;
    info.code = errc::invalid_argument;
    info.message = "send tag " + std::to_string(sendtag) + " and receive tag " +
                   std::to_string(recvtag) + " differ, and the memory is the same";
    info.hint = "Use one tag, or separate memory";
    throw error(info);
  } else {
    static_assert(std::is_same_v<element_t<Send>, element_t<Recv>>,
                  "send and receive memory have one element type");
    std::vector<request> parts{make<Send>(kind::send, sendcount, op::none, dest),
                               make<Recv>(kind::recv, recvcount, op::none, source)};
    parts[0].record.tag = sendtag;
    parts[0].send = erase(sendbuf);
    parts[1].record.tag = recvtag;
    parts[1].recv = erase(recvbuf);
    auto all = make_request<std::byte>(kind::group, 0);
    all.parts = &parts;
    all.queue = &q;
    return comm.submit(all, deps);
  }
}

}  // namespace detail
/// @endcond

using events = std::vector<::sycl::event>;

/// MPI_Send.
template <class Memory>
::sycl::event send(const ::sycl::queue& q, const Memory& buf, std::size_t count, int dest, int tag,
                   communicator& comm, const events& deps = {}) {
  auto r = detail::make<Memory>(kind::send, count, op::none, dest);
  r.record.tag = tag;
  r.queue = &q;
  r.send = detail::erase(buf);
  return comm.submit(r, deps);
}

/// MPI_Recv, of exactly `count` elements.
template <class Memory>
::sycl::event recv(const ::sycl::queue& q, const Memory& buf, std::size_t count, int source,
                   int tag, communicator& comm, const events& deps = {}) {
  auto r = detail::make<Memory>(kind::recv, count, op::none, source);
  r.record.tag = tag;
  r.queue = &q;
  r.recv = detail::erase(buf);
  return comm.submit(r, deps);
}

/// MPI_Sendrecv; with `in_place` as `sendbuf` MPI_Sendrecv_replace, where the tags must be the same
/// (errc::invalid_argument).
template <class Send, class Recv>
::sycl::event sendrecv(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount, int dest,
                       int sendtag, const Recv& recvbuf, std::size_t recvcount, int source,
                       int recvtag, communicator& comm, const events& deps = {}) {
  if (sendtag != recvtag)
    return detail::exchange(q, sendbuf, sendcount, dest, sendtag, recvbuf, recvcount, source,
                            recvtag, comm, deps);
  auto r = detail::make<Recv>(kind::sendrecv, sendcount, op::none, dest);
  r.record.recv_count = recvcount;
  r.record.source = source;
  r.record.tag = sendtag;
  return detail::go(q, std::move(r), sendbuf, recvbuf, comm, deps);
}

/// MPI_Barrier.
inline ::sycl::event barrier(const ::sycl::queue& q, communicator& comm, const events& deps = {}) {
  auto r = sucl::detail::make_request<std::byte>(kind::barrier, 0);
  r.queue = &q;
  return comm.submit(r, deps);
}

/// MPI_Bcast.
template <class Memory>
::sycl::event bcast(const ::sycl::queue& q, const Memory& buffer, std::size_t count, int root,
                    communicator& comm, const events& deps = {}) {
  return detail::go(q, detail::make<Memory>(kind::broadcast, count, op::none, root), in_place,
                    buffer, comm, deps);
}

/// MPI_Reduce.
template <class Send, class Recv>
::sycl::event reduce(const ::sycl::queue& q, const Send& sendbuf, const Recv& recvbuf,
                     std::size_t count, op o, int root, communicator& comm,
                     const events& deps = {}) {
  return detail::go(q, detail::make<Recv>(kind::reduce, count, o, root), sendbuf, recvbuf, comm,
                    deps);
}

/// MPI_Allreduce.
template <class Send, class Recv>
::sycl::event allreduce(const ::sycl::queue& q, const Send& sendbuf, const Recv& recvbuf,
                        std::size_t count, op o, communicator& comm, const events& deps = {}) {
  return detail::go(q, detail::make<Recv>(kind::allreduce, count, o), sendbuf, recvbuf, comm, deps);
}

/// MPI_Scan.
template <class Send, class Recv>
::sycl::event scan(const ::sycl::queue& q, const Send& sendbuf, const Recv& recvbuf,
                   std::size_t count, op o, communicator& comm, const events& deps = {}) {
  return detail::go(q, detail::make<Recv>(kind::scan, count, o), sendbuf, recvbuf, comm, deps);
}

/// MPI_Exscan.
template <class Send, class Recv>
::sycl::event exscan(const ::sycl::queue& q, const Send& sendbuf, const Recv& recvbuf,
                     std::size_t count, op o, communicator& comm, const events& deps = {}) {
  return detail::go(q, detail::make<Recv>(kind::exscan, count, o), sendbuf, recvbuf, comm, deps);
}

/// MPI_Reduce_scatter_block.
template <class Send, class Recv>
::sycl::event reduce_scatter_block(const ::sycl::queue& q, const Send& sendbuf, const Recv& recvbuf,
                                   std::size_t recvcount, op o, communicator& comm,
                                   const events& deps = {}) {
  return detail::go(q, detail::make<Recv>(kind::reduce_scatter_block, recvcount, o), sendbuf,
                    recvbuf, comm, deps);
}

/// MPI_Reduce_scatter.
template <class Send, class Recv>
::sycl::event reduce_scatter(const ::sycl::queue& q, const Send& sendbuf, const Recv& recvbuf,
                             const detail::counts& recvcounts, op o, communicator& comm,
                             const events& deps = {}) {
  auto r = detail::make<Recv>(kind::reduce_scatter, 0, o);
  r.recv_counts = &recvcounts;
  return detail::go(q, std::move(r), sendbuf, recvbuf, comm, deps);
}

/// MPI_Allgather.
template <class Send, class Recv>
::sycl::event allgather(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount,
                        const Recv& recvbuf, std::size_t recvcount, communicator& comm,
                        const events& deps = {}) {
  if constexpr (!detail::is_in_place<Send>) detail::same_count(sendcount, recvcount);
  return detail::go(q, detail::make<Recv>(kind::allgather, recvcount), sendbuf, recvbuf, comm,
                    deps);
}

/// MPI_Allgatherv.
template <class Send, class Recv>
::sycl::event allgatherv(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount,
                         const Recv& recvbuf, const detail::counts& recvcounts,
                         const detail::counts& displs, communicator& comm,
                         const events& deps = {}) {
  auto r = detail::make<Recv>(kind::allgatherv, sendcount);
  r.recv_counts = &recvcounts;
  r.recv_displs = &displs;
  return detail::go(q, std::move(r), sendbuf, recvbuf, comm, deps);
}

/// MPI_Alltoall.
template <class Send, class Recv>
::sycl::event alltoall(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount,
                       const Recv& recvbuf, std::size_t recvcount, communicator& comm,
                       const events& deps = {}) {
  if constexpr (!detail::is_in_place<Send>) detail::same_count(sendcount, recvcount);
  return detail::go(q, detail::make<Recv>(kind::alltoall, recvcount), sendbuf, recvbuf, comm, deps);
}

/// MPI_Alltoallv.
template <class Send, class Recv>
::sycl::event alltoallv(const ::sycl::queue& q, const Send& sendbuf,
                        const detail::counts& sendcounts, const detail::counts& sdispls,
                        const Recv& recvbuf, const detail::counts& recvcounts,
                        const detail::counts& rdispls, communicator& comm,
                        const events& deps = {}) {
  auto r = detail::make<Recv>(kind::alltoallv, 0);
  r.send_counts = &sendcounts;
  r.send_displs = &sdispls;
  r.recv_counts = &recvcounts;
  r.recv_displs = &rdispls;
  return detail::go(q, std::move(r), sendbuf, recvbuf, comm, deps);
}

/// MPI_Gather. `recvbuf` matters on the root only, as in MPI.
template <class Send, class Recv>
::sycl::event gather(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount,
                     const Recv& recvbuf, std::size_t recvcount, int root, communicator& comm,
                     const events& deps = {}) {
  const bool at_root = comm.rank() == root;
  if constexpr (!detail::is_in_place<Send>)
    if (at_root) detail::same_count(sendcount, recvcount);
  return detail::go(
      q, detail::make<Recv>(kind::gather, at_root ? recvcount : sendcount, op::none, root), sendbuf,
      recvbuf, comm, deps);
}

/// MPI_Gatherv.
template <class Send, class Recv>
::sycl::event gatherv(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount,
                      const Recv& recvbuf, const detail::counts& recvcounts,
                      const detail::counts& displs, int root, communicator& comm,
                      const events& deps = {}) {
  auto r = detail::make<Recv>(kind::gatherv, sendcount, op::none, root);
  r.recv_counts = &recvcounts;
  r.recv_displs = &displs;
  return detail::go(q, std::move(r), sendbuf, recvbuf, comm, deps);
}

/// MPI_Scatter. `sendbuf` matters on the root only, as in MPI.
template <class Send, class Recv>
::sycl::event scatter(const ::sycl::queue& q, const Send& sendbuf, std::size_t sendcount,
                      const Recv& recvbuf, std::size_t recvcount, int root, communicator& comm,
                      const events& deps = {}) {
  if (comm.rank() == root) detail::same_count(sendcount, recvcount);
  return detail::go(q, detail::make<Recv>(kind::scatter, recvcount, op::none, root), sendbuf,
                    recvbuf, comm, deps);
}

/// MPI_Scatterv.
template <class Send, class Recv>
::sycl::event scatterv(const ::sycl::queue& q, const Send& sendbuf,
                       const detail::counts& sendcounts, const detail::counts& displs,
                       const Recv& recvbuf, std::size_t recvcount, int root, communicator& comm,
                       const events& deps = {}) {
  auto r = detail::make<Recv>(kind::scatterv, recvcount, op::none, root);
  r.send_counts = &sendcounts;
  r.send_displs = &displs;
  return detail::go(q, std::move(r), sendbuf, recvbuf, comm, deps);
}

}  // namespace sucl::mpi
