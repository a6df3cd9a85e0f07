// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <algorithm>
#include <cstring>

namespace sucl::mpi_module {

int copy_block(sucl_backend_comm& comm, void* to, const void* from, std::uint64_t bytes,
               bool through_mpi) {
  if (bytes == 0 || to == from) return MPI_SUCCESS;
  if (!through_mpi) {
    std::memmove(to, from, bytes);
    return MPI_SUCCESS;
  }
  constexpr std::uint64_t chunk = std::uint64_t{1} << 30;
  const int tag = comm.own_tag(copy_tag);
  for (std::uint64_t done = 0; done < bytes; done += chunk) {
    const int n = static_cast<int>(std::min(chunk, bytes - done));
    const int code = MPI_Sendrecv(static_cast<const std::byte*>(from) + done, n, MPI_BYTE,
                                  comm.rank, tag, static_cast<std::byte*>(to) + done, n, MPI_BYTE,
                                  comm.rank, tag, comm.messages, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

namespace {

bool on_device(const layout& l) { return l.memory == SUCL_MEMORY_DEVICE; }

// Blocks that will be overwritten while they are sent travel from a copy, in rank order.
int save_blocks(call& c, const layout& from) {
  const std::uint64_t element = c.operation.element_size;
  std::uint64_t bytes = 0;
  for (int r = 0; r < c.comm.size; ++r)
    if (r != c.comm.rank) bytes += from.count(r) * element;
  std::byte* at = c.request.reserve_scratch(bytes);
  for (int r = 0; r < c.comm.size; ++r) {
    if (r == c.comm.rank) continue;
    const std::uint64_t n = from.count(r) * element;
    const int code = copy_block(c.comm, at, from.base + from.at(r) * element, n, on_device(from));
    if (code != MPI_SUCCESS) return code;
    at += n;
  }
  return MPI_SUCCESS;
}

sucl_status receive_blocks(call& c, const layout& to) {
  for (int step = 1; step < c.comm.size; ++step) {
    const int peer = (c.comm.rank + c.comm.size - step) % c.comm.size;
    const std::uint64_t n = to.count(peer);
    if (n == 0) continue;
    MPI_Request* handle = c.request.add_receive({n, peer, -1, c.type, nullptr});
    const int code = SUCL_MPI_CALL(Irecv)(to.base + to.at(peer) * c.operation.element_size,
                                          static_cast<count_type>(n), c.type, peer,
                                          c.comm.own_tag(exchange_tag), c.comm.messages, handle);
    if (code != MPI_SUCCESS) return c.check(code, "MPI_Irecv");
  }
  return SUCL_SUCCESS;
}

sucl_status send_block(call& c, int peer, const std::byte* data, std::uint64_t n) {
  if (n == 0) return SUCL_SUCCESS;
  const int code =
      SUCL_MPI_CALL(Isend)(data, static_cast<count_type>(n), c.type, peer,
                           c.comm.own_tag(exchange_tag), c.comm.messages, c.request.add());
  return c.check(code, "MPI_Isend");
}

sucl_status send_saved(call& c, const layout& from) {
  const std::byte* at = c.request.scratch.get();
  for (int r = 0; r < c.comm.size; ++r) {
    if (r == c.comm.rank) continue;
    const sucl_status status = send_block(c, r, at, from.count(r));
    if (status != SUCL_SUCCESS) return status;
    at += from.count(r) * c.operation.element_size;
  }
  return SUCL_SUCCESS;
}

sucl_status send_blocks(call& c, const layout& from) {
  for (int step = 1; step < c.comm.size; ++step) {
    const int peer = (c.comm.rank + step) % c.comm.size;
    const std::byte* data = from.base + from.at(peer) * c.operation.element_size;
    const sucl_status status = send_block(c, peer, data, from.count(peer));
    if (status != SUCL_SUCCESS) return status;
  }
  return SUCL_SUCCESS;
}

}  // namespace

sucl_status exchange(call& c, const layout& from, const layout& to, bool in_place) {
  const std::uint64_t element = c.operation.element_size;
  const int own = c.comm.rank;
  if (in_place) {
    const int code = save_blocks(c, from);
    if (code != MPI_SUCCESS) return c.check(code, "MPI_Sendrecv");
  } else if (from.count(own) != to.count(own)) {
    return fail(c.comm.core, SUCL_ERROR_INVALID_COUNT,
                "rank " + std::to_string(own) + " sends itself " + std::to_string(from.count(own)) +
                    " elements and receives " + std::to_string(to.count(own)),
                "Give the own rank the same count on both sides.");
  } else if (from.count(own) > 0) {
    const int code =
        copy_block(c.comm, to.base + to.at(own) * element, from.base + from.at(own) * element,
                   from.count(own) * element, on_device(from) || on_device(to));
    if (code != MPI_SUCCESS) return c.check(code, "MPI_Sendrecv");
  }
  const sucl_status status = receive_blocks(c, to);
  if (status != SUCL_SUCCESS) return status;
  return in_place ? send_saved(c, from) : send_blocks(c, from);
}

namespace {

// In place every block is reduced where it lies, because the start of recv is still an input of
// the others; the own one moves there when all are done.
int move_own_block_down(sucl_backend_comm& comm, sucl_request& request) {
  const sucl_operation& o = request.operation;
  std::uint64_t before = 0;
  std::uint64_t mine = o.count;
  if (o.recv_counts != nullptr) {
    for (int r = 0; r < comm.rank; ++r) before += o.recv_counts[r];
    mine = o.recv_counts[comm.rank];
  } else {
    before = o.count * static_cast<std::uint64_t>(comm.rank);
  }
  auto* start = static_cast<std::byte*>(o.recv);
  const std::byte* from = start + before * o.element_size;
  const std::uint64_t bytes = mine * o.element_size;
  if (o.recv_memory != SUCL_MEMORY_DEVICE) return copy_block(comm, start, from, bytes, false);
  // MPI does not copy between ranges that overlap.
  std::byte* bounce = request.reserve_scratch(bytes);
  const int code = copy_block(comm, bounce, from, bytes, true);
  return code == MPI_SUCCESS ? copy_block(comm, start, bounce, bytes, true) : code;
}

}  // namespace

sucl_status reduce_each(call& c, const layout& blocks) {
  const sucl_operation& o = c.operation;
  const auto* input = static_cast<const std::byte*>(c.in_place() ? o.recv : o.send);
  for (int root = 0; root < c.comm.size; ++root) {
    const std::uint64_t n = blocks.count(root);
    const bool mine = root == c.comm.rank;
    const void* from = mine && c.in_place() ? MPI_IN_PLACE : input;
    void* to = !mine ? nullptr : c.in_place() ? const_cast<std::byte*>(input) : o.recv;
    const int code = SUCL_MPI_CALL(Ireduce)(from, to, static_cast<count_type>(n), c.type, c.op,
                                            root, c.comm.collective, c.request.add());
    if (code != MPI_SUCCESS) return c.check(code, "MPI_Ireduce");
    input += n * o.element_size;
  }
  if (c.in_place()) {
    c.request.operation = o;
    c.request.finish = move_own_block_down;
  }
  return SUCL_SUCCESS;
}

namespace {

int spread(sucl_backend_comm& comm, sucl_request& request) {
  const sucl_operation& o = request.operation;
  const std::byte* from = request.scratch.get();
  for (int r = 0; r < comm.size; ++r) {
    const std::uint64_t bytes = o.recv_counts[r] * o.element_size;
    const int code =
        copy_block(comm, static_cast<std::byte*>(o.recv) + o.recv_displs[r] * o.element_size, from,
                   bytes, o.recv_memory == SUCL_MEMORY_DEVICE);
    if (code != MPI_SUCCESS) return code;
    from += bytes;
  }
  return MPI_SUCCESS;
}

}  // namespace

sucl_status gather_densely(call& c) {
  const sucl_operation& o = c.operation;
  auto& counts = c.request.counts[0];
  auto& displs = c.request.displs[0];
  counts.resize(static_cast<std::size_t>(c.comm.size));
  displs.resize(counts.size());
  std::uint64_t elements = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    counts[r] = static_cast<count_type>(o.recv_counts[r]);
    displs[r] = static_cast<displ_type>(elements);
    elements += o.recv_counts[r];
  }
  std::byte* dense = c.request.reserve_scratch(elements * o.element_size);
  const void* own = c.in_place() ? c.received(o.recv_displs[c.comm.rank]) : o.send;
  const std::uint64_t own_count = c.in_place() ? o.recv_counts[c.comm.rank] : o.count;
  c.request.operation = o;
  c.request.finish = spread;
  return SUCL_MPI_ISSUE(c, Allgatherv, Iallgatherv, own, static_cast<count_type>(own_count), c.type,
                        dense, counts.data(), displs.data(), c.type, c.comm.collective);
}

}  // namespace sucl::mpi_module
