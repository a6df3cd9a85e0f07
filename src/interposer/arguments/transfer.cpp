// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/transfer.hpp"

#include <sucl/types.hpp>

#include <cstddef>
#include <utility>

namespace sucl::interposer {
namespace {

// No inter-communicator's special roots.
bool is_rank(int root, comm_position at) { return root >= 0 && root < at.size; }

transfer of(sucl_kind kind) {
  transfer t;
  t.record.struct_size = sizeof t.record;
  t.record.kind = kind;
  t.record.element_size = 1;
  return t;
}

// Bytes to be moved.
void move(transfer& t, std::uint64_t bytes, int root = 0) {
  t.record.type = SUCL_TYPE_BYTES;
  t.record.count = bytes;
  t.record.root = root;
  t.known = true;
}

// Whether MPI takes the memory of a reduction, of which this rank has some to send and `receives`.
bool is_right(const void* send, const void* recv, bool receives, bool may_be_in_place) {
  if (send == MPI_IN_PLACE ? !may_be_in_place : send == nullptr) return false;
  if (!receives) return true;
  return recv != nullptr && recv != MPI_IN_PLACE && !(aliases_are_errors && send == recv);
}

packed blocks_of(const side& s, int blocks) { return {s.memory, s.count, s.type, blocks}; }

}  // namespace

sucl_operation transfer::filled() {
  if (record.type != SUCL_TYPE_BYTES || record.kind == SUCL_KIND_BARRIER) return record;
  sucl_operation o = record;
  o.send = from.data();
  from.load();
  o.recv = to.data();
  to.load(first_loaded, last_loaded);
  if (o.flags & SUCL_FLAG_IN_PLACE) {
    // SuCL's scatter in place has the root's block where it is among those that it sends.
    if (o.kind == SUCL_KIND_SCATTER || o.kind == SUCL_KIND_SCATTERV)
      o.recv = const_cast<void*>(o.send);
    o.send = nullptr;
  }
  if (!counts.empty()) o.recv_counts = counts.data();
  if (!displs.empty()) o.recv_displs = displs.data();
  if (!send_counts.empty()) o.send_counts = send_counts.data();
  if (!send_displs.empty()) o.send_displs = send_displs.data();
  return o;
}

void transfer::keep_types() {
  from.keep_types();
  to.keep_types();
}

void transfer::release_types() {
  from.release_types();
  to.release_types();
}

transfer barrier() {
  transfer t = of(SUCL_KIND_BARRIER);
  t.known = true;
  return t;
}

transfer reduction(sucl_kind kind, side send, void* recv, MPI_Op op, int root, comm_position at) {
  transfer t = of(kind);
  sucl_operation& o = t.record;
  const type_facts facts = facts_of(send.type);
  o.type = facts.reducible;
  o.op = op_of(op, facts.group);
  o.element_size = static_cast<std::uint64_t>(facts.extent);
  o.count = static_cast<std::uint64_t>(send.count);
  o.root = root;
  o.send = send.memory;
  o.recv = recv;
  if (send.memory == MPI_IN_PLACE) {
    o.flags |= SUCL_FLAG_IN_PLACE;
    o.send = nullptr;
  }
  t.known = facts.reducible != SUCL_TYPE_BYTES && o.op != SUCL_OP_NONE && send.count >= 0 &&
            is_rank(root, at) &&
            defined(static_cast<sucl::op>(o.op), static_cast<sucl::type>(o.type));
  const bool receives = kind != SUCL_KIND_REDUCE || root == at.rank;
  if (send.count > 0 && !is_right(send.memory, recv, receives, receives)) t.known = false;
  return t;
}

namespace {

template <class Count>
transfer scattered(side send, void* recv, const Count* counts, MPI_Op op, comm_position at) {
  transfer t = reduction(SUCL_KIND_REDUCE_SCATTER, send, recv, op, 0, at);
  if (!counts) return t.known = false, std::move(t);
  t.counts.assign(counts, counts + at.size);
  bool any = false;
  for (const std::uint64_t c : t.counts) {
    any = any || c > 0;
    if (static_cast<std::int64_t>(c) < 0) t.known = false;
  }
  const bool receives = counts[at.rank] > 0 || send.memory == MPI_IN_PLACE;
  if (any && !is_right(send.memory, recv, receives, true)) t.known = false;
  t.record.recv_counts = t.counts.data();
  return t;
}

}  // namespace

transfer reduce_scatter(side send, void* recv, const int* counts, MPI_Op op, comm_position at) {
  return scattered(send, recv, counts, op, at);
}

transfer reduce_scatter(side send, void* recv, const MPI_Count* counts, MPI_Op op,
                        comm_position at) {
  return scattered(send, recv, counts, op, at);
}

transfer broadcast(side data, int root, comm_position at) {
  transfer t = of(SUCL_KIND_BROADCAST);
  t.to = blocks_of(data, 1);
  if (!is_rank(root, at) || !t.to.fits()) return t;
  move(t, t.to.block_bytes(), root);
  t.record.flags |= SUCL_FLAG_IN_PLACE;
  t.stays = at.rank == root;
  t.last_loaded = t.stays ? 1 : 0;
  return t;
}

transfer exchange(sucl_kind kind, side send, side recv, comm_position at) {
  transfer t = of(kind);
  t.to = blocks_of(recv, at.size);
  if (!t.to.fits()) return t;
  move(t, t.to.block_bytes());
  if (send.memory == MPI_IN_PLACE) {
    t.record.flags |= SUCL_FLAG_IN_PLACE;
    t.last_loaded = at.size;
  } else {
    const bool all = kind == SUCL_KIND_ALLTOALL;
    t.from = blocks_of(send, all ? at.size : 1);
    t.known = t.from.fits() && t.from.block_bytes() == t.to.block_bytes() &&
              !t.from.is_aliased(0, t.to, all ? 0 : at.rank);
  }
  return t;
}

transfer rooted(sucl_kind kind, side send, side recv, int root, comm_position at) {
  transfer t = of(kind);
  if (!is_rank(root, at)) return t;
  const bool gathers = kind == SUCL_KIND_GATHER;
  const bool at_root = at.rank == root;
  const side& whole = gathers ? recv : send;
  const side& own = gathers ? send : recv;
  packed& blocks = gathers ? t.to : t.from;
  packed& block = gathers ? t.from : t.to;
  if (at_root) blocks = blocks_of(whole, at.size);
  const bool in_place = at_root && own.memory == MPI_IN_PLACE;
  if (!in_place) block = blocks_of(own, 1);
  const packed& certain = at_root ? blocks : block;
  if (!certain.fits()) return t;
  if (at_root && !in_place &&
      (!block.fits() || block.block_bytes() != blocks.block_bytes() ||
       block.is_aliased(0, blocks, at.rank)))
    return t;
  move(t, certain.block_bytes(), root);
  if (!in_place) return t;
  t.record.flags |= SUCL_FLAG_IN_PLACE;
  if (!gathers) return t;
  t.first_loaded = at.rank;
  t.last_loaded = at.rank + 1;
  return t;
}

namespace {

void add_lengths(const packed& blocks, std::vector<std::uint64_t>& counts,
                 std::vector<std::uint64_t>& displs) {
  for (int r = 0; r < blocks.blocks(); ++r) {
    counts.push_back(blocks.block_bytes(r));
    displs.push_back(blocks.offset(r));
  }
}

}  // namespace

transfer allgatherv(packed from, packed to, bool in_place, comm_position at) {
  transfer t = of(SUCL_KIND_ALLGATHERV);
  if (!to.fits()) return t;
  t.to = std::move(to);
  add_lengths(t.to, t.counts, t.displs);
  move(t, t.counts[static_cast<std::size_t>(at.rank)]);
  t.record.recv_counts = t.counts.data();
  t.record.recv_displs = t.displs.data();
  if (in_place) {
    t.record.flags |= SUCL_FLAG_IN_PLACE;
    t.first_loaded = at.rank;
    t.last_loaded = at.rank + 1;
  } else {
    t.from = std::move(from);
    t.known = t.from.fits() && t.from.block_bytes() == t.to.block_bytes(at.rank) &&
              !t.from.is_aliased(0, t.to, at.rank);
  }
  return t;
}

transfer alltoallv(packed from, packed to, bool in_place, comm_position at) {
  transfer t = of(SUCL_KIND_ALLTOALLV);
  if (!to.fits() || (!in_place && !from.fits())) return t;
  if (!in_place && from.block_bytes(at.rank) != to.block_bytes(at.rank)) return t;
  t.from = std::move(from);
  t.to = std::move(to);
  move(t, 0);
  add_lengths(t.to, t.counts, t.displs);
  add_lengths(in_place ? t.to : t.from, t.send_counts, t.send_displs);
  if (!in_place) return t;
  t.record.flags |= SUCL_FLAG_IN_PLACE;
  t.last_loaded = at.size;
  return t;
}

transfer rooted_blocks(sucl_kind kind, packed blocks, packed own, bool in_place, int root,
                       comm_position at) {
  transfer t = of(kind);
  const bool gathers = kind == SUCL_KIND_GATHERV;
  const bool at_root = at.rank == root;
  if (!is_rank(root, at) || (at_root && !blocks.fits())) return t;
  if (!in_place && !own.fits()) return t;
  if (at_root && !in_place &&
      (own.block_bytes() != blocks.block_bytes(at.rank) || own.is_aliased(0, blocks, at.rank)))
    return t;
  move(t, in_place ? blocks.block_bytes(at.rank) : own.block_bytes(), root);
  if (at_root)
    add_lengths(blocks, gathers ? t.counts : t.send_counts, gathers ? t.displs : t.send_displs);
  (gathers ? t.to : t.from) = std::move(blocks);
  if (!in_place) {
    (gathers ? t.from : t.to) = std::move(own);
    return t;
  }
  t.record.flags |= SUCL_FLAG_IN_PLACE;
  if (!gathers) return t;
  t.first_loaded = at.rank;
  t.last_loaded = at.rank + 1;
  return t;
}

}  // namespace sucl::interposer
