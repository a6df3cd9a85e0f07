// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <algorithm>
#include <climits>

namespace sucl::mpi_module {
namespace {

enum side { sent = 0, received = 1 };

std::uint64_t total(const std::uint64_t* counts, int ranks) {
  std::uint64_t sum = 0;
  for (int r = 0; r < ranks; ++r) sum += counts[r];
  return sum;
}

template <class To>
const To* convert(std::vector<To>& storage, const std::uint64_t* from, int ranks) {
  storage.resize(static_cast<std::size_t>(ranks));
  std::transform(from, from + ranks, storage.begin(),
                 [](std::uint64_t n) { return static_cast<To>(n); });
  return storage.data();
}

const count_type* counts(call& c, side s) {
  const auto* from = s == sent ? c.operation.send_counts : c.operation.recv_counts;
  return from ? convert(c.request.counts[s], from, c.comm.size) : nullptr;
}

const displ_type* displs(call& c, side s) {
  const auto* from = s == sent ? c.operation.send_displs : c.operation.recv_displs;
  return from ? convert(c.request.displs[s], from, c.comm.size) : nullptr;
}

// The layouts of an exchange, for each of the four forms of operand.

layout uniform_blocks(const call& c, const void* base, sucl_memory memory) {
  layout l;
  l.base = static_cast<std::byte*>(const_cast<void*>(base));
  l.uniform = l.stride = c.operation.count;
  l.memory = memory;
  return l;
}

layout same_block(const call& c, const void* base, std::uint64_t count, sucl_memory memory) {
  layout l = uniform_blocks(c, base, memory);
  l.uniform = count;
  l.stride = 0;
  return l;
}

layout varied_blocks(const void* base, const std::uint64_t* counts, const std::uint64_t* displs,
                     sucl_memory memory) {
  layout l;
  l.base = static_cast<std::byte*>(const_cast<void*>(base));
  l.counts = counts;
  l.displs = displs;
  l.memory = memory;
  return l;
}

layout no_blocks() { return layout{}; }

layout only_for(layout l, int rank) {
  l.only = rank;
  return l;
}

// The own block of a gather: in recv, at its offset, where the operation is in place.
const void* own_block(const call& c, std::uint64_t offset) {
  return c.in_place() ? c.received(offset) : c.operation.send;
}

sucl_memory own_memory(const call& c) {
  return c.in_place() ? c.operation.recv_memory : c.operation.send_memory;
}

// What this rank contributes to a gather: in place, where it knows them, the counts of recv say it.
std::uint64_t own_count(const call& c) {
  return c.in_place() && c.operation.recv_counts ? c.operation.recv_counts[c.comm.rank]
                                                 : c.operation.count;
}

std::uint64_t uniform_offset(const call& c) {
  return static_cast<std::uint64_t>(c.comm.rank) * c.operation.count;
}

// Only the root of a gatherv has displacements; elsewhere recv starts with the own block.
std::uint64_t varied_offset(const call& c) {
  return c.operation.recv_displs ? c.operation.recv_displs[c.comm.rank] : 0;
}

bool all_fit(const call& c) {
  return c.fits(c.operation.count * static_cast<std::uint64_t>(c.comm.size));
}

// MPI_Bcast of Intel MPI 2021.18 on five ranks or more of a node, followed by MPI_Allreduce or
// MPI_Reduce, leaves their data in pieces of its own. MPI_Ibcast does not. Every rank takes it.
bool broadcasts_rightly(const call& c) {
  return this_library() != library::impi || c.comm.size <= 4;
}

// MPI_Ibcast of Intel MPI 2021.18 fails for more bytes than an int counts. So
// such a broadcast is made of messages.
bool broadcasts_so_much(const call& c) {
  return this_library() != library::impi || c.blocking ||
         c.operation.count <= INT_MAX / c.operation.element_size;
}

// Intel MPI's non-blocking ring takes many seconds for large blocks if another one is empty.
bool stalls_on_empty_blocks(const call& c) {
  const std::uint64_t* counts = c.operation.recv_counts;
  return this_library() == library::impi && !c.blocking &&
         std::find(counts, counts + c.comm.size, 0u) != counts + c.comm.size;
}

// MPICH 5.0's MPI_Reduce_scatter in place moves a rank's block to the front as if the two could not
// overlap, which ends the program where they do. Every rank decides for all.
bool overlaps_in_place(const call& c) {
  if (this_library() != library::mpich || !c.in_place()) return false;
  std::uint64_t before = 0;
  for (int r = 0; r < c.comm.size; ++r) {
    const std::uint64_t count = c.operation.recv_counts[r];
    if (before > 0 && before < count) return true;
    before += count;
  }
  return false;
}

}  // namespace

sucl_status issue_barrier(call& c) {
  return issue(c, "MPI_Barrier", MPI_Barrier, MPI_Ibarrier, c.comm.collective);
}

sucl_status issue_broadcast(call& c) {
  const bool reads_send = c.at_root() && !c.in_place();
  void* data = reads_send ? const_cast<void*>(c.operation.send) : c.operation.recv;
  c.blocking = c.blocking && broadcasts_rightly(c);
  if (!broadcasts_so_much(c)) {
    const layout all = same_block(c, data, c.operation.count,
                                  reads_send ? c.operation.send_memory : c.operation.recv_memory);
    // The root has its own block already: it is sent from where it is received.
    return exchange(c, c.at_root() ? all : no_blocks(), only_for(all, c.operation.root), false);
  }
  return SUCL_MPI_ISSUE(c, Bcast, Ibcast, data, c.count(), c.type, c.operation.root,
                        c.comm.collective);
}

sucl_status issue_reduce(call& c) {
  // MPI allows in place at the root only; elsewhere the input in recv is an ordinary input.
  const void* input = c.input();
  if (c.in_place() && !c.at_root()) input = c.operation.recv;
  void* output = c.at_root() ? c.operation.recv : nullptr;
  return SUCL_MPI_ISSUE(c, Reduce, Ireduce, input, output, c.count(), c.type, c.op,
                        c.operation.root, c.comm.collective);
}

sucl_status issue_allreduce(call& c) {
  return SUCL_MPI_ISSUE(c, Allreduce, Iallreduce, c.input(), c.operation.recv, c.count(), c.type,
                        c.op, c.comm.collective);
}

sucl_status issue_reduce_scatter(call& c) {
  // Every rank has the same counts, so every rank decides the same.
  if (!c.fits(total(c.operation.recv_counts, c.comm.size)) || overlaps_in_place(c))
    return reduce_each(
        c, varied_blocks(nullptr, c.operation.recv_counts, nullptr, c.operation.recv_memory));
  return SUCL_MPI_ISSUE(c, Reduce_scatter, Ireduce_scatter, c.input(), c.operation.recv,
                        counts(c, received), c.type, c.op, c.comm.collective);
}

sucl_status issue_reduce_scatter_block(call& c) {
  if (!all_fit(c)) return reduce_each(c, uniform_blocks(c, nullptr, c.operation.recv_memory));
  return SUCL_MPI_ISSUE(c, Reduce_scatter_block, Ireduce_scatter_block, c.input(), c.operation.recv,
                        c.count(), c.type, c.op, c.comm.collective);
}

sucl_status issue_allgather(call& c) {
  const sucl_operation& o = c.operation;
  if (!all_fit(c))
    return exchange(c, same_block(c, own_block(c, uniform_offset(c)), own_count(c), own_memory(c)),
                    uniform_blocks(c, o.recv, o.recv_memory), false);
  return SUCL_MPI_ISSUE(c, Allgather, Iallgather, c.input(), c.count(), c.type, o.recv, c.count(),
                        c.type, c.comm.collective);
}

sucl_status issue_allgatherv(call& c) {
  const sucl_operation& o = c.operation;
  // The counts are the same on every rank, the displacements need not be: the first decides which
  // messages travel, the second only what this rank does with them.
  if (!c.fits(total(o.recv_counts, c.comm.size)) || stalls_on_empty_blocks(c))
    return exchange(c, same_block(c, own_block(c, varied_offset(c)), own_count(c), own_memory(c)),
                    varied_blocks(o.recv, o.recv_counts, o.recv_displs, o.recv_memory), false);
  if (!c.fits(*std::max_element(o.recv_displs, o.recv_displs + c.comm.size)))
    return gather_densely(c);
  return SUCL_MPI_ISSUE(c, Allgatherv, Iallgatherv, c.input(), c.count(), c.type, o.recv,
                        counts(c, received), displs(c, received), c.type, c.comm.collective);
}

sucl_status issue_alltoall(call& c) {
  const sucl_operation& o = c.operation;
  if (!all_fit(c))
    return exchange(c, uniform_blocks(c, c.in_place() ? o.recv : o.send, own_memory(c)),
                    uniform_blocks(c, o.recv, o.recv_memory), c.in_place());
  return SUCL_MPI_ISSUE(c, Alltoall, Ialltoall, c.input(), c.count(), c.type, o.recv, c.count(),
                        c.type, c.comm.collective);
}

// In the three below a rank does not know what the others know, so it cannot decide for them. Where
// counts have 32 bits they are always made of messages, which match whatever the displacements are;
// that is also how libraries make them.

sucl_status issue_alltoallv(call& c) {
  const sucl_operation& o = c.operation;
  if (c.comm.limited) {
    const layout to = varied_blocks(o.recv, o.recv_counts, o.recv_displs, o.recv_memory);
    if (c.in_place()) return exchange(c, to, to, true);
    return exchange(c, varied_blocks(o.send, o.send_counts, o.send_displs, o.send_memory), to,
                    false);
  }
  // In place, MPI uses the arguments of the receive side only.
  const side from = c.in_place() ? received : sent;
  return SUCL_MPI_ISSUE(c, Alltoallv, Ialltoallv, c.input(), counts(c, from), displs(c, from),
                        c.type, o.recv, counts(c, received), displs(c, received), c.type,
                        c.comm.collective);
}

sucl_status issue_gather(call& c) {
  const sucl_operation& o = c.operation;
  const void* own = own_block(c, uniform_offset(c));
  if (!all_fit(c))
    return exchange(c, only_for(same_block(c, own, own_count(c), own_memory(c)), o.root),
                    c.at_root() ? uniform_blocks(c, o.recv, o.recv_memory) : no_blocks(), false);
  const void* input = c.at_root() ? c.input() : own;
  return SUCL_MPI_ISSUE(c, Gather, Igather, input, c.count(), c.type, o.recv, c.count(), c.type,
                        o.root, c.comm.collective);
}

sucl_status issue_gatherv(call& c) {
  const sucl_operation& o = c.operation;
  const void* own = own_block(c, varied_offset(c));
  if (c.comm.limited)
    return exchange(c, only_for(same_block(c, own, own_count(c), own_memory(c)), o.root),
                    c.at_root() ? varied_blocks(o.recv, o.recv_counts, o.recv_displs, o.recv_memory)
                                : no_blocks(),
                    false);
  const void* input = c.at_root() ? c.input() : own;
  return SUCL_MPI_ISSUE(c, Gatherv, Igatherv, input, c.count(), c.type, o.recv, counts(c, received),
                        displs(c, received), c.type, o.root, c.comm.collective);
}

// In place, the root of a scatter keeps its block where it lies: all blocks are in recv.

sucl_status issue_scatter(call& c) {
  const sucl_operation& o = c.operation;
  const bool keeps = c.in_place() && c.at_root();
  const void* all = keeps ? o.recv : o.send;
  void* own = keeps ? c.received(uniform_offset(c)) : o.recv;
  if (!all_fit(c))
    return exchange(c, c.at_root() ? uniform_blocks(c, all, own_memory(c)) : no_blocks(),
                    only_for(same_block(c, own, o.count, o.recv_memory), o.root), false);
  return SUCL_MPI_ISSUE(c, Scatter, Iscatter, all, c.count(), c.type, keeps ? MPI_IN_PLACE : o.recv,
                        c.count(), c.type, o.root, c.comm.collective);
}

sucl_status issue_scatterv(call& c) {
  const sucl_operation& o = c.operation;
  const bool keeps = c.in_place() && c.at_root();
  const void* all = keeps ? o.recv : o.send;
  void* own = keeps ? c.received(o.send_displs[c.comm.rank]) : o.recv;
  if (c.comm.limited)
    return exchange(
        c,
        c.at_root() ? varied_blocks(all, o.send_counts, o.send_displs, own_memory(c)) : no_blocks(),
        only_for(same_block(c, own, keeps ? o.send_counts[c.comm.rank] : o.count, o.recv_memory),
                 o.root),
        false);
  return SUCL_MPI_ISSUE(c, Scatterv, Iscatterv, all, counts(c, sent), displs(c, sent), c.type,
                        keeps ? MPI_IN_PLACE : o.recv, c.count(), c.type, o.root,
                        c.comm.collective);
}

sucl_status issue_scan(call& c) {
  return SUCL_MPI_ISSUE(c, Scan, Iscan, c.input(), c.operation.recv, c.count(), c.type, c.op,
                        c.comm.collective);
}

sucl_status issue_exscan(call& c) {
  return SUCL_MPI_ISSUE(c, Exscan, Iexscan, c.input(), c.operation.recv, c.count(), c.type, c.op,
                        c.comm.collective);
}

}  // namespace sucl::mpi_module
