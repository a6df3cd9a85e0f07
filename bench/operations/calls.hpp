// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Each collective as a program would call it: on USM or buffers, blocking or for an event.
#pragma once

#include "problem.hpp"

#include <sucl/communicator.hpp>

#include <complex>
#include <stdexcept>
#include <type_traits>

namespace sucl::bench {

/// The library's calls with an element type that is chosen at run time: a C++ type of the same size
/// executes it through the templates, and the record then names the real one. It adds two stores.
template <class Target, class Result>
class typed : public detail::operations<typed<Target, Result>, Result> {
 public:
  typed(Target target, type t) : m_target(std::move(target)), m_type(t) {}

  Result submit(detail::request& request, const std::vector<::sycl::event>& deps) {
    request.record.type = static_cast<sucl_type>(m_type);
    return m_target.submit(request, deps);
  }
  std::size_t share(kind k, std::size_t elements) { return m_target.share(k, elements); }

 private:
  Target m_target;
  type m_type;
};

using typed_blocking = typed<blocking_communicator, void>;
using typed_asynchronous = typed<communicator, ::sycl::event>;
using typed_persistent = typed<persistent_communicator, persistent>;

/// Calls `use` with a value of the type that stands for elements of `size` bytes.
template <class Use>
auto with_element_type(std::size_t size, Use&& use) {
  switch (size) {
    case 1: return use(std::uint8_t{});
    case 2: return use(std::uint16_t{});
    case 4: return use(std::uint32_t{});
    case 8: return use(std::uint64_t{});
    case 16: return use(std::complex<double>{});
    default: throw std::logic_error("no element type has this size");
  }
}

/// Counts and displacements of blocks of one size.
struct blocks {
  sucl::counts counts;
  sucl::counts displs;
  explicit blocks(const problem& p) : counts(static_cast<std::size_t>(p.ranks), p.count) {
    for (std::size_t rank = 0; rank < counts.size(); ++rank) displs.push_back(rank * p.count);
  }
};

/// One call on USM or system memory.
template <class Facade, class T>
auto call(Facade& comm, const problem& p, const blocks& b, const T* send, T* recv) {
  const std::size_t n = p.count;
  switch (p.of) {
    case kind::barrier: return comm.barrier();
    case kind::broadcast: return comm.broadcast(recv, n, p.root);
    case kind::reduce: return comm.reduce(send, recv, n, p.reduction, p.root);
    case kind::allreduce: return comm.allreduce(send, recv, n, p.reduction);
    case kind::reduce_scatter: return comm.reduce_scatter(send, recv, b.counts, p.reduction);
    case kind::reduce_scatter_block: return comm.reduce_scatter_block(send, recv, n, p.reduction);
    case kind::allgather: return comm.allgather(send, recv, n);
    case kind::allgatherv: return comm.allgatherv(send, n, recv, b.counts, b.displs);
    case kind::alltoall: return comm.alltoall(send, recv, n);
    case kind::alltoallv: return comm.alltoallv(send, b.counts, b.displs, recv, b.counts, b.displs);
    case kind::gather: return comm.gather(send, recv, n, p.root);
    case kind::gatherv: return comm.gatherv(send, n, recv, b.counts, b.displs, p.root);
    case kind::scatter: return comm.scatter(send, recv, n, p.root);
    case kind::scatterv: return comm.scatterv(send, b.counts, b.displs, recv, n, p.root);
    case kind::scan: return comm.scan(send, recv, n, p.reduction);
    case kind::exscan: return comm.exscan(send, recv, n, p.reduction);
    default:
      return comm.sendrecv(send, n, (p.rank + 1) % p.ranks, recv, n,
                           (p.rank + p.ranks - 1) % p.ranks);
  }
}

/// One call on buffers.
template <class Facade, class T>
auto call(Facade& comm, const problem& p, const blocks& b, const ::sycl::buffer<T, 1>& send,
          const ::sycl::buffer<T, 1>& recv) {
  switch (p.of) {
    case kind::barrier: return comm.barrier();
    case kind::broadcast: return comm.broadcast(recv, p.root);
    case kind::reduce: return comm.reduce(send, recv, p.reduction, p.root);
    case kind::allreduce: return comm.allreduce(send, recv, p.reduction);
    case kind::reduce_scatter: return comm.reduce_scatter(send, recv, b.counts, p.reduction);
    case kind::reduce_scatter_block: return comm.reduce_scatter_block(send, recv, p.reduction);
    case kind::allgather: return comm.allgather(send, recv);
    case kind::allgatherv: return comm.allgatherv(send, recv, b.counts, b.displs);
    case kind::alltoall: return comm.alltoall(send, recv);
    case kind::alltoallv: return comm.alltoallv(send, b.counts, b.displs, recv, b.counts, b.displs);
    case kind::gather: return comm.gather(send, recv, p.root);
    case kind::gatherv: return comm.gatherv(send, recv, b.counts, b.displs, p.root);
    case kind::scatter: return comm.scatter(send, recv, p.root);
    case kind::scatterv: return comm.scatterv(send, b.counts, b.displs, recv, p.root);
    case kind::scan: return comm.scan(send, recv, p.reduction);
    case kind::exscan: return comm.exscan(send, recv, p.reduction);
    default:
      return comm.sendrecv(send, (p.rank + 1) % p.ranks, recv, (p.rank + p.ranks - 1) % p.ranks);
  }
}

}  // namespace sucl::bench
