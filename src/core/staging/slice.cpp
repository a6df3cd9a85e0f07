// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/staging/slice.hpp"

#include <cstring>

namespace sucl::core {
namespace {

std::uint64_t components(const staging_plan& how) {
  return how.convert ? how.convert->components : 1;
}

std::uint64_t wire_size(const staging_plan& how) { return components(how) * how.element_size; }

std::uint64_t wire_count(const slice& s, const side& end) {
  return end.present ? end.wire_count(s.first, s.last) : 0;
}

// The side of the operation that the backend's recv memory belongs to.
const side& recv_side(const task& t) { return t.sink.present ? t.sink : t.source; }

unsigned char* direct(const side& end, std::uint64_t first) {
  return end.user ? end.user + (end.origin + first) * end.element_size : nullptr;
}

// Clips a side's counts to the slice and lays the blocks one after the other, in wire elements.
void clip(const slice& s, const side& end, std::uint64_t* counts, std::uint64_t* displs) {
  std::uint64_t start = 0;
  for (std::uint64_t i = 0; i < end.blocks; ++i) {
    counts[i] = side::clipped(end.counts[i], s.first, s.last) * components(*s.of->how);
    displs[i] = start;
    start += counts[i];
  }
}

// Sets the arrays for contributions that are moved and then folded: each rank sends every other one
// that one's block of the slice, and receives its own from all.
void set_fold_arrays(slice& s, sucl_operation& op, scratch_pool& pool) {
  const task& t = *s.of;
  const auto size = static_cast<std::size_t>(t.how->size);
  s.arrays = pool.acquire(4 * size * sizeof(std::uint64_t));
  auto* arrays = reinterpret_cast<std::uint64_t*>(s.arrays.data());
  clip(s, t.source, arrays, arrays + size);
  const std::uint64_t own = wire_count(s, t.sink);
  for (std::size_t i = 0; i < size; ++i) {
    arrays[2 * size + i] = own;
    arrays[3 * size + i] = own * i;
  }
  op.send_counts = arrays;
  op.send_displs = arrays + size;
  op.recv_counts = arrays + 2 * size;
  op.recv_displs = arrays + 3 * size;
}

void set_arrays(slice& s, sucl_operation& op, scratch_pool& pool) {
  const task& t = *s.of;
  if (t.how->fold) {
    if (op.kind == SUCL_KIND_ALLTOALLV) set_fold_arrays(s, op, pool);
    return;
  }
  const bool source = t.source.present && t.source.through && t.source.counts;
  const bool sink = t.sink.present && t.sink.through && t.sink.counts;
  if (!source && !sink) return;
  const auto size = static_cast<std::size_t>(t.how->size);
  s.arrays = pool.acquire(4 * size * sizeof(std::uint64_t));
  auto* arrays = reinterpret_cast<std::uint64_t*>(s.arrays.data());
  const auto set = [&](const side& end, std::uint64_t* at, const std::uint64_t*& counts,
                       const std::uint64_t*& displs) {
    clip(s, end, at, at + size);
    counts = at;
    if (displs) displs = at + size;
  };
  // What a reduce_scatter reads is described by the counts of what its ranks get, and so is what
  // an operation in place reads from recv; a scatter's root reads by its own counts even there.
  const bool by_recv =
      op.kind == SUCL_KIND_REDUCE_SCATTER || (t.in_place && op.kind != SUCL_KIND_SCATTERV);
  if (source && by_recv)
    set(t.source, arrays + 2 * size, op.recv_counts, op.recv_displs);
  else if (source)
    set(t.source, arrays, op.send_counts, op.send_displs);
  if (sink) set(t.sink, arrays + 2 * size, op.recv_counts, op.recv_displs);
}

}  // namespace

namespace {

// What the operation leaves as it is comes back with the rest.
void load_sink(slice& s, const device_copier* copier, copies& pending) {
  const side& to = s.of->sink;
  to.for_each_piece(s.first, s.last, [&](unsigned char* user, std::uint64_t at, std::uint64_t n) {
    unsigned char* wire = s.recv_wire.data() + at * to.element_size;
    if (to.device)
      pending.start(*copier, wire, user, n * to.element_size);
    else
      std::memcpy(wire, user, n * to.element_size);
  });
}

}  // namespace

void begin_load(slice& s, const device_copier* copier, scratch_pool& pool, copies& pending) {
  const task& t = *s.of;
  const staging_plan& how = *t.how;
  const side& from = t.source;
  const std::uint64_t sent = wire_count(s, from);
  const std::uint64_t blocks = how.fold ? static_cast<std::uint64_t>(how.size) : 1;
  const std::uint64_t got = wire_count(s, t.sink) * blocks;
  const bool sends = from.present && from.through;
  if ((t.sink.present && t.sink.through) || (sends && t.in_place))
    s.recv_wire = pool.acquire((t.in_place ? std::max(sent, got) : got) * wire_size(how));
  if (t.keeps_sink && t.sink.through) load_sink(s, copier, pending);
  if (!sends) return;
  if (!t.in_place) s.send_wire = pool.acquire(sent * wire_size(how));
  unsigned char* wire = (t.in_place ? s.recv_wire : s.send_wire).data();
  const auto load = how.convert ? how.convert->load : nullptr;
  if (from.device && load) s.staged = pool.acquire(sent * from.element_size);
  unsigned char* landing = s.staged ? s.staged.data() : wire;
  from.for_each_piece(s.first, s.last, [&](void* user, std::uint64_t at, std::uint64_t n) {
    if (from.device)
      pending.start(*copier, landing + at * from.element_size, user, n * from.element_size);
    else if (load)
      load(wire + at * wire_size(how), user, n);
    else
      std::memcpy(wire + at * wire_size(how), user, n * from.element_size);
  });
}

void finish_load(slice& s) {
  if (!s.staged) return;
  const task& t = *s.of;
  unsigned char* wire = (t.in_place ? s.recv_wire : s.send_wire).data();
  t.how->convert->load(wire, s.staged.data(), wire_count(s, t.source));
  s.staged.release();
}

sucl_operation backend_instance(slice& s, scratch_pool& pool) {
  const task& t = *s.of;
  const staging_plan& how = *t.how;
  sucl_operation op = t.operation;
  op.struct_size = sizeof(op);
  op.type = how.type;
  op.op = how.op;
  if (how.fold) op.kind = how.moved;
  op.element_size = how.element_size;
  op.stream = op.launch_target = nullptr;
  op.count = side::clipped(op.count, s.first, s.last) * components(how);
  op.flags = t.in_place ? op.flags | SUCL_FLAG_IN_PLACE : op.flags & ~SUCL_FLAG_IN_PLACE;
  // Slices and messages must go on while others wait, on this rank and on its peers.
  if (t.slices > 1 || how.as_messages) op.flags &= ~SUCL_FLAG_MAY_BLOCK;
  op.send = nullptr;
  op.recv = nullptr;
  if (t.source.present && !t.in_place) {
    op.send = t.source.through ? s.send_wire.data() : direct(t.source, s.first);
    if (t.source.through) op.send_memory = how.scratch_memory;
  }
  if (t.sink.present || t.in_place) {
    const side& to = recv_side(t);
    op.recv = to.through ? s.recv_wire.data() : direct(to, s.first);
    if (to.through) op.recv_memory = how.scratch_memory;
  }
  set_arrays(s, op, pool);
  return op;
}

namespace {

// How many ranks' contributions this rank folds.
std::size_t folded_ranks(const task& t) {
  const auto rank = static_cast<std::size_t>(t.how->rank);
  if (t.operation.kind == SUCL_KIND_SCAN) return rank + 1;
  if (t.operation.kind == SUCL_KIND_EXSCAN) return rank;
  return static_cast<std::size_t>(t.how->size);
}

// Folds what all ranks have contributed, in order of rank, and copies the result to its
// destination.
void begin_fold(slice& s, const device_copier* copier, scratch_pool& pool, copies& pending) {
  const task& t = *s.of;
  const side& to = t.sink;
  const std::uint64_t count = wire_count(s, to), element = to.element_size;
  std::vector<const void*> from(folded_ranks(t));
  if (from.empty() || count == 0) return;
  const auto fold = [&](unsigned char* result, std::uint64_t at, std::uint64_t n) {
    for (std::size_t r = 0; r < from.size(); ++r)
      from[r] = s.recv_wire.data() + (r * count + at) * element;
    t.how->fold(result, from.data(), from.size(), n, t.how->size);
  };
  const bool apart = to.device || to.layout;
  if (apart) {
    s.staged = pool.acquire(count * element);
    fold(s.staged.data(), 0, count);
  }
  to.for_each_piece(s.first, s.last, [&](unsigned char* user, std::uint64_t at, std::uint64_t n) {
    if (to.device)
      pending.start(*copier, user, s.staged.data() + at * element, n * element);
    else if (apart)
      std::memcpy(user, s.staged.data() + at * element, n * element);
    else
      fold(user, at, n);
  });
}

}  // namespace

void begin_store(slice& s, const device_copier* copier, scratch_pool& pool, copies& pending) {
  s.send_wire.release();
  const task& t = *s.of;
  const staging_plan& how = *t.how;
  const side& to = t.sink;
  if (!to.present) return;
  if (how.fold) return begin_fold(s, copier, pool, pending);
  const auto store = how.convert ? how.convert->store : nullptr;
  const bool same_form = !how.convert || !how.convert->load;
  unsigned char* wire = s.recv_wire.data();
  unsigned char* leaving = wire;
  if (to.device && store) {
    if (!same_form) s.staged = pool.acquire(wire_count(s, to) * to.element_size);
    if (!same_form) leaving = s.staged.data();
    store(leaving, wire, wire_count(s, to), how.size);
  }
  to.for_each_piece(s.first, s.last, [&](unsigned char* user, std::uint64_t at, std::uint64_t n) {
    const unsigned char* from = to.through ? wire + at * wire_size(how) : user;
    if (to.device)
      pending.start(*copier, user, leaving + at * to.element_size, n * to.element_size);
    else if (store)
      store(user, from, n, how.size);
    else if (to.through)
      std::memcpy(user, from, n * to.element_size);
  });
}

void end(slice& s, bool reuse) noexcept {
  for (scratch* memory : {&s.send_wire, &s.recv_wire, &s.staged, &s.arrays}) {
    if (reuse)
      memory->release();
    else
      memory->abandon();
  }
}

}  // namespace sucl::core
