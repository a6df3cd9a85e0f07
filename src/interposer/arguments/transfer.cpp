// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/transfer.hpp"

#include "base/config/determinism.hpp"
#include "interposer/arguments/own_ops.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace sucl::interposer {
namespace {

// No inter-communicator's special roots.
bool is_rank(int root, comm_position at) { return root >= 0 && root < at.size; }

transfer of(sucl_kind kind) {
  transfer t;
  t.called = kind;
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
bool is_right(sucl_kind kind, const void* send, const void* recv, bool receives,
              bool may_be_in_place) {
  if (send == MPI_IN_PLACE ? !may_be_in_place : send == nullptr) return false;
  if (!receives) return true;
  const bool refuses_aliases = aliases_are_errors || kind == SUCL_KIND_REDUCE;
  return recv != nullptr && recv != MPI_IN_PLACE && !(refuses_aliases && send == recv);
}

packed blocks_of(const side& s, int blocks) { return {s.memory, s.count, s.type, blocks}; }

}  // namespace

sucl_operation transfer::filled() {
  if (staged) staged->load();
  if (record.type != SUCL_TYPE_BYTES || record.kind == SUCL_KIND_BARRIER) return record;
  sucl_operation o = record;
  if (by_own_op) {
    o.send = by_own_op->in;
    o.recv = by_own_op->room();
  } else {
    o.send = from.data();
    from.load();
    if (refused_bytes > 0) {
      refused.resize(refused_bytes);
      o.recv = refused.data();
    } else {
      o.recv = to.data();
      to.load(first_loaded, last_loaded);
    }
  }
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

bool transfer::only_gives(int rank) const {
  switch (called) {
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: return record.root != rank;
    case SUCL_KIND_BROADCAST: return record.root == rank;
    default: return false;
  }
}

bool transfer::order_matters() const {
  return by_own_op || base::order_matters(record.kind, record.type, record.op);
}

void transfer::keep_handles() {
  from.keep_types();
  to.keep_types();
  if (!by_own_op || by_own_op->kept) return;
  own_ops::keep(by_own_op->op);
  by_own_op->kept = true;
}

void transfer::release_handles() {
  from.release_types();
  to.release_types();
  if (by_own_op && std::exchange(by_own_op->kept, false)) own_ops::release(by_own_op->op);
}

void* own_reduction::room() {
  if (arriving == 0) return nullptr;
  operands.reset(new char[bytes * static_cast<std::uint64_t>(arriving)]);
  return operands.get();
}

int own_reduction::finish() const {
  if (applied == 0 || bytes == 0) return MPI_SUCCESS;
  const auto at = [this](int r) { return operands.get() + bytes * static_cast<std::uint64_t>(r); };
  char* const last = at(applied - 1);
  for (int r = applied - 1; r-- > 0;)
    if (const int code = PMPI_Reduce_local(at(r), last, elements, type, op)) return code;
  std::memcpy(result, last, bytes);
  return MPI_SUCCESS;
}

transfer barrier() {
  transfer t = of(SUCL_KIND_BARRIER);
  t.known = true;
  return t;
}

namespace {

// Of an op of the program's as much is moved as for an allgather: more than this is MPI's.
constexpr std::uint64_t max_operands_bytes = std::uint64_t{4} << 20;

// Whether MPI applies the op to operands that are moved as bytes.
bool is_own(MPI_Op op, const type_facts& facts) {
  return facts.usable && facts.dense && own_ops::contains(op);
}

sucl_kind movement_of(sucl_kind kind) {
  switch (kind) {
    case SUCL_KIND_REDUCE: return SUCL_KIND_GATHER;
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return SUCL_KIND_ALLTOALL;
    case SUCL_KIND_REDUCE_SCATTER: return SUCL_KIND_ALLTOALLV;
    default: return SUCL_KIND_ALLGATHER;
  }
}

int applied_to(sucl_kind kind, int root, comm_position at) {
  switch (kind) {
    case SUCL_KIND_REDUCE: return root == at.rank ? at.size : 0;
    case SUCL_KIND_SCAN: return at.rank + 1;
    case SUCL_KIND_EXSCAN: return at.rank;
    default: return at.size;
  }
}

// `most`: bytes of the longest operand of any rank.
transfer moved_operands(sucl_kind kind, side send, void* recv, MPI_Op op, int root,
                        comm_position at, std::uint64_t most) {
  transfer t = of(kind);
  const type_facts facts = facts_of(send.type);
  if (most > max_operands_bytes / static_cast<std::uint64_t>(at.size)) return t;
  const std::uint64_t bytes = facts.size * static_cast<std::uint64_t>(send.count);
  const bool in_place = send.memory == MPI_IN_PLACE;
  t.by_own_op = own_reduction{op,
                              send.type,
                              static_cast<int>(send.count),
                              bytes,
                              kind == SUCL_KIND_REDUCE && root != at.rank ? 0 : at.size,
                              applied_to(kind, root, at),
                              in_place ? recv : send.memory,
                              recv,
                              nullptr};
  t.record.kind = movement_of(kind);
  move(t, bytes, root);
  // The op gets the type, whose handle has to be the program's.
  t.may_go_on = facts.predefined;
  return t;
}

}  // namespace

transfer reduction(sucl_kind kind, side send, void* recv, MPI_Op op, int root, comm_position at) {
  const type_facts facts = facts_of(send.type);
  const bool receives = kind != SUCL_KIND_REDUCE || root == at.rank;
  if (is_own(op, facts)) {
    if (send.count < 0 || !is_rank(root, at)) return of(kind);
    const bool right = send.count == 0 || is_right(kind, send.memory, recv, receives, receives);
    if (!right) return of(kind);
    return moved_operands(kind, send, recv, op, root, at,
                          base::product(facts.size, static_cast<std::uint64_t>(send.count)));
  }
  transfer t = of(kind);
  sucl_operation& o = t.record;
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
  if (send.count > 0 && !is_right(kind, send.memory, recv, receives, receives)) t.known = false;
  return t;
}

namespace {

// Each rank sends all blocks of its input, and receives its own block of all ranks.
template <class Count>
transfer moved_blocks(side send, void* recv, const Count* counts, MPI_Op op, comm_position at) {
  const std::uint64_t size = facts_of(send.type).size;
  std::uint64_t most = 0;
  for (int r = 0; r < at.size; ++r) {
    if (counts[r] < 0) return of(SUCL_KIND_REDUCE_SCATTER);
    most = std::max(most, base::product(size, static_cast<std::uint64_t>(counts[r])));
  }
  send.count = counts[at.rank];
  const bool receives = send.count > 0 || send.memory == MPI_IN_PLACE;
  if (most > 0 && !is_right(SUCL_KIND_REDUCE_SCATTER, send.memory, recv, receives, true))
    return of(SUCL_KIND_REDUCE_SCATTER);
  transfer t = moved_operands(SUCL_KIND_REDUCE_SCATTER, send, recv, op, 0, at, most);
  if (!t.known) return t;
  t.record.count = 0;
  std::uint64_t before = 0;
  for (int r = 0; r < at.size; ++r) {
    t.send_counts.push_back(size * static_cast<std::uint64_t>(counts[r]));
    t.send_displs.push_back(before);
    before += t.send_counts.back();
    t.counts.push_back(t.by_own_op->bytes);
    t.displs.push_back(t.by_own_op->bytes * static_cast<std::uint64_t>(r));
  }
  return t;
}

template <class Count>
transfer scattered(side send, void* recv, const Count* counts, MPI_Op op, comm_position at) {
  if (counts && is_own(op, facts_of(send.type))) return moved_blocks(send, recv, counts, op, at);
  transfer t = reduction(SUCL_KIND_REDUCE_SCATTER, send, recv, op, 0, at);
  if (!counts) return t.known = false, std::move(t);
  t.counts.assign(counts, counts + at.size);
  bool any = false;
  for (const std::uint64_t c : t.counts) {
    any = any || c > 0;
    if (static_cast<std::int64_t>(c) < 0) t.known = false;
  }
  const bool receives = counts[at.rank] > 0 || send.memory == MPI_IN_PLACE;
  if (any && !is_right(SUCL_KIND_REDUCE_SCATTER, send.memory, recv, receives, true))
    t.known = false;
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
    t.unequal = t.from.fits() && t.from.block_bytes() != t.to.block_bytes();
    t.known = t.from.fits() && !t.unequal && !t.from.is_aliased(0, t.to, all ? 0 : at.rank);
  }
  return t;
}

namespace {

// What the root gives itself is `sent` bytes, and it takes only `taken`: whether the call can be
// executed all the same, for the other ranks, with `room` bytes for what this one receives.
bool takes_in_vain(transfer& t, std::uint64_t sent, std::uint64_t taken, std::uint64_t room) {
  if (sent < taken || room > max_operands_bytes) return false;
  t.refused_bytes = room;
  return true;
}

}  // namespace

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
  std::uint64_t bytes = certain.block_bytes();
  if (at_root && !in_place) {
    if (!block.fits() || block.is_aliased(0, blocks, at.rank)) return t;
    const std::uint64_t taken = t.to.block_bytes();
    bytes = t.from.block_bytes();
    const auto ranks = static_cast<std::uint64_t>(gathers ? at.size : 1);
    if (bytes != taken && !takes_in_vain(t, bytes, taken, base::product(bytes, ranks))) return t;
  }
  move(t, bytes, root);
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

namespace {

// The blocks that a gatherv receives, that of this rank with so many bytes. Returns their sum.
std::uint64_t behind_each_other(transfer& t, int rank, std::uint64_t own) {
  t.counts[static_cast<std::size_t>(rank)] = own;
  std::uint64_t before = 0;
  for (std::size_t r = 0; r < t.counts.size(); ++r) {
    t.displs[r] = before;
    before = base::sum(before, t.counts[r]);
  }
  return before;
}

}  // namespace

transfer rooted_blocks(sucl_kind kind, packed blocks, packed own, bool in_place, int root,
                       comm_position at) {
  transfer t = of(kind);
  const bool gathers = kind == SUCL_KIND_GATHERV;
  const bool at_root = at.rank == root;
  if (!is_rank(root, at) || (at_root && !blocks.fits())) return t;
  if (!in_place && !own.fits()) return t;
  std::uint64_t bytes = in_place ? blocks.block_bytes(at.rank) : own.block_bytes();
  if (at_root)
    add_lengths(blocks, gathers ? t.counts : t.send_counts, gathers ? t.displs : t.send_displs);
  if (at_root && !in_place) {
    if (own.is_aliased(0, blocks, at.rank)) return t;
    const std::uint64_t of_all = blocks.block_bytes(at.rank);
    if (bytes != of_all) {
      const std::uint64_t sent = gathers ? bytes : of_all, taken = gathers ? of_all : bytes;
      if (!takes_in_vain(t, sent, taken, gathers ? behind_each_other(t, at.rank, sent) : sent))
        return t;
      bytes = sent;
    }
  }
  move(t, bytes, root);
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
