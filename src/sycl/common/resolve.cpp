// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/common/resolve.hpp"

#include "base/error.hpp"
#include "base/sizes.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>

namespace sucl {

std::size_t detail::byte_count(std::size_t elements, std::size_t element_size) {
  return base::bytes_of(elements, element_size);
}

}  // namespace sucl

namespace sucl::sycl_layer {
namespace {

// Arrays have one entry a rank, or, where this rank needs none, may be empty.
const std::uint64_t* array(const detail::counts* counts, const char* what, int size) {
  static_assert(sizeof(std::size_t) == sizeof(std::uint64_t), "SuCL needs a 64-bit platform");
  if (!counts || counts->empty()) return nullptr;
  if (counts->size() != static_cast<std::size_t>(size))
    base::fail(errc::invalid_count,
               std::string(what) + " has " + std::to_string(counts->size()) +
                   " entries, but the communicator has " + std::to_string(size) + " ranks",
               "Pass one entry a rank");
  return reinterpret_cast<const std::uint64_t*>(counts->data());
}

// Whether the operation reads and writes its receive memory on this rank.
struct access {
  bool reads = false;
  bool writes = true;
};

access access_to_recv(const sucl_operation& o, int rank) {
  if (!(o.flags & SUCL_FLAG_IN_PLACE)) return {};
  const bool at_root = rank == o.root;
  switch (o.kind) {
    case SUCL_KIND_BROADCAST: return {at_root, !at_root};
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: return {true, at_root};
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: return {at_root, !at_root};
    default: return {true, true};
  }
}

// Whether every element from the first to the last that is written is written.
bool writes_densely(const sucl_operation& o) {
  return !o.recv_displs && o.kind != SUCL_KIND_EXSCAN && o.kind != core::compiled_plan_kind;
}

void check_block(const detail::operand& memory) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (memory.offset[d] <= memory.extent[d] &&
        memory.range[d] <= memory.extent[d] - memory.offset[d])
      continue;
    base::fail(errc::invalid_count,
               "a block of " + std::to_string(memory.range[d]) + " elements from " +
                   std::to_string(memory.offset[d]) + " on is outside a buffer of " +
                   std::to_string(memory.extent[d]),
               "Make offset and range fit in each dimension");
  }
}

void check_range(const detail::operand& memory, std::uint64_t needed, const char* side) {
  if (!memory.bounded || needed <= memory.elements()) return;
  base::fail(errc::invalid_count,
             "the operation needs " + std::to_string(needed) + " elements of " + side +
                 " memory, but the range has " + std::to_string(memory.elements()),
             "Make the range larger or the count smaller");
}

base::strided block_of(const detail::operand& memory, std::uint64_t element_size) {
  return {{memory.extent[0], memory.extent[1], memory.extent[2]},
          {memory.offset[0], memory.offset[1], memory.offset[2]},
          {memory.range[0], memory.range[1], memory.range[2]},
          element_size};
}

// Takes one buffer into the record: which part of it, and what for.
void use_buffer(const detail::operand& memory, std::uint64_t needed, bool is_send,
                const access& how, sucl_operation& o, std::size_t part, core::layouts& layout,
                std::vector<buffer_use>& buffers, sucl_memory where) {
  check_block(memory);
  const char* side = is_send ? "send" : "receive";
  if (needed > memory.elements())
    base::fail(errc::invalid_count,
               "the operation needs " + std::to_string(needed) + " elements of " + side +
                   " memory, but the buffer or block has " + std::to_string(memory.elements()),
               "Make the buffer larger or the count smaller");
  if (needed == 0 || !memory.buffer) return;
  const base::strided block = block_of(memory, o.element_size);
  (is_send ? o.send_memory : o.recv_memory) = where;
  const ::sycl::range<3> bytes(memory.extent[0], memory.extent[1],
                               memory.extent[2] * o.element_size);
  buffer_use use{*memory.buffer, how.writes, false, {part, is_send, 0}, bytes};
  if (block.contiguous()) {
    use.operand.start = block.array_index(0) * o.element_size;
    use.discards = how.writes && !how.reads && writes_densely(o) &&
                   needed * o.element_size == memory.buffer->size();
  } else if (is_send) {
    layout.send = block;
  } else {
    layout.recv = block;
  }
  buffers.push_back(std::move(use));
}

void check_same_buffer(const detail::operand& a, const detail::operand& b, const core::extents& e) {
  if (!a.buffer || !b.buffer || e.send == 0 || e.recv == 0 || !(*a.buffer == *b.buffer)) return;
  // SYCL does not say where in their buffer these lie: see check_memory() of their addresses.
  if (a.buffer->is_sub_buffer() || b.buffer->is_sub_buffer()) return;
  if (!block_of(a, 1).meets(block_of(b, 1))) return;
  base::fail(errc::invalid_memory, "send and receive memory overlap in one buffer",
             "Use separate buffers or blocks, or the in-place form, which takes one");
}

// What one part of a group reads or writes: bytes of memory, or a block of a buffer.
struct region {
  std::size_t hash;  // of the buffer; 0: none
  std::uintptr_t begin, end;
  bool writes;
  const detail::operand* memory;
  base::strided block;
};

bool overlap(const region& a, const region& b) {
  if (a.hash != b.hash || a.end <= b.begin || b.end <= a.begin) return false;
  if (!a.writes && !b.writes) return false;
  if (a.hash == 0) return true;
  if (!(*a.memory->buffer == *b.memory->buffer)) return false;
  if (a.block.contiguous() && b.block.contiguous()) return true;
  // Rows of one may lie between rows of the other.
  if (a.block.extent != b.block.extent || a.block.element_size != b.block.element_size)
    return false;
  return a.block.meets(b.block);
}

void add_region(std::vector<region>& regions, const detail::operand& memory, std::uint64_t count,
                std::uint64_t element_size, bool writes) {
  if (count == 0) return;
  if (!memory.buffer) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.pointer);
    regions.push_back({0, begin, begin + count * element_size, writes, &memory, {}});
  } else if (!memory.buffer->is_sub_buffer()) {  // SYCL does not say where in theirs these lie
    const base::strided block = block_of(memory, element_size);
    const auto hash = std::hash<::sycl::buffer<std::byte, 1>>{}(*memory.buffer);
    regions.push_back({hash | 1, block.array_index(0) * element_size,
                       (block.array_index(count - 1) + 1) * element_size, writes, &memory, block});
  }
}

sucl_memory classify(communicator_state& state, const void* pointer) {
  auto* d = state.on_device();
  return d ? d->classify(pointer) : SUCL_MEMORY_SYSTEM;
}

// One record, or one part of a group.
void resolve_one(communicator_state& state, const detail::request& r, sucl_operation& o,
                 std::size_t part, core::layouts& layout, std::vector<buffer_use>& buffers) {
  const int rank = state.core().rank();
  const int size = state.core().size();
  o = r.record;
  o.send_counts = array(r.send_counts, "send counts", size);
  o.send_displs = array(r.send_displs, "send displacements", size);
  o.recv_counts = array(r.recv_counts, "counts", size);
  o.recv_displs = array(r.recv_displs, "displacements", size);
  // Only the root gathers in place: the memory of the others is the block that they send.
  static const detail::operand nothing;
  const bool gives = (o.flags & SUCL_FLAG_IN_PLACE) && rank != o.root &&
                     (o.kind == SUCL_KIND_GATHER || o.kind == SUCL_KIND_GATHERV);
  const detail::operand& send = gives ? r.recv : r.send;
  const detail::operand& recv = gives ? nothing : r.recv;
  if (gives) o.flags &= ~std::uint32_t{SUCL_FLAG_IN_PLACE};
  o.send = send.pointer;
  o.recv = recv.pointer;
  core::normalise(o, rank, size);
  core::check_blocks(o, rank, size);
  const auto e = core::extents_of(o, rank, size);
  const auto how = access_to_recv(o, rank);
  if (send.buffer || recv.buffer) {
    check_same_buffer(send, recv, e);
    const auto* d = state.on_device();
    const auto where = d ? d->buffer_memory() : SUCL_MEMORY_SYSTEM;
    use_buffer(send, e.send, true, {true, false}, o, part, layout, buffers, where);
    use_buffer(recv, e.recv, false, how, o, part, layout, buffers, where);
  } else {
    check_range(send, e.send, "send");
    check_range(recv, e.recv, "receive");
    if (e.send == 0) o.send = nullptr;
    if (e.recv == 0) o.recv = nullptr;
    core::check_memory(o, rank, size);
    o.send_memory = classify(state, o.send);
    o.recv_memory = classify(state, o.recv);
  }
}

bool sends(const sucl_operation& o) {
  return o.kind == SUCL_KIND_SEND || o.kind == SUCL_KIND_SENDRECV;
}
bool receives(const sucl_operation& o) {
  return o.kind == SUCL_KIND_RECV || o.kind == SUCL_KIND_SENDRECV;
}

// The parts of a group run at once, in any order.
void check_parts(const std::vector<detail::request>& parts) {
  std::vector<region> regions;
  for (const auto& part : parts) {
    const auto& o = part.record;
    if (sends(o) && o.root != no_rank)
      add_region(regions, part.send, o.count, o.element_size, false);
    if (receives(o) && o.source != no_rank)
      add_region(regions, part.recv, o.kind == SUCL_KIND_SENDRECV ? o.recv_count : o.count,
                 o.element_size, true);
  }
  std::sort(regions.begin(), regions.end(), [](const region& a, const region& b) {
    return std::tie(a.hash, a.begin) < std::tie(b.hash, b.begin);
  });
  std::vector<const region*> open;  // those that may reach into the next ones
  for (const region& next : regions) {
    open.erase(std::remove_if(
                   open.begin(), open.end(),
                   [&](const region* r) { return r->hash != next.hash || r->end <= next.begin; }),
               open.end());
    for (const region* r : open)
      if (overlap(*r, next))
        base::fail(errc::invalid_memory,
                   r->writes && next.writes
                       ? "memory that two messages of a group are received into overlaps"
                       : "memory that messages of a group send and receive overlaps",
                   "The messages of a group move at once: give each that is received memory of its "
                   "own, or submit a group after another");
    open.push_back(&next);
  }
}

bool names_no_rank(const sucl_operation& o) {
  return (sends(o) && o.root == no_rank) || (receives(o) && o.source == no_rank);
}

// The half of a sendrecv that names a rank, where the other half names no_rank; else nothing.
std::optional<detail::request> other_half(const detail::request& whole) {
  if (whole.record.kind != SUCL_KIND_SENDRECV ||
      (whole.record.root == no_rank && whole.record.source == no_rank))
    return std::nullopt;
  detail::request half = whole;
  auto& o = half.record;
  if (o.source == no_rank) {
    o.kind = SUCL_KIND_SEND;
    o.source = o.root;
    half.recv = {};
  } else {
    o.kind = SUCL_KIND_RECV;
    o.root = o.source;
    o.count = o.recv_count;
    half.send = {};
  }
  o.recv_count = o.count;
  return half;
}

// A part of a group, or, of a message that names no_rank, what is left of it.
void resolve_part(communicator_state& state, const detail::request& part, resolved& result) {
  std::optional<detail::request> half;
  if (names_no_rank(part.record)) {
    half = other_half(part);
    if (!half) return;
  }
  const std::size_t i = result.parts.size();
  result.parts.emplace_back();
  result.layout.parts.emplace_back();
  resolve_one(state, half ? *half : part, result.parts[i], i, result.layout.parts[i],
              result.buffers);
}

}  // namespace

void resolve(communicator_state& state, const detail::request& request, resolved& result) {
  result.queue = request.queue;
  try {
    const bool is_group = request.record.kind == SUCL_KIND_GROUP;
    if (!is_group && !names_no_rank(request.record)) {
      resolve_one(state, request, result.record, 0, result.layout, result.buffers);
      return;
    }
    result.record =
        is_group ? request.record : detail::make_request<std::byte>(kind::group, 0).record;
    if (is_group) {
      for (const detail::request& part : *request.parts) resolve_part(state, part, result);
      check_parts(*request.parts);
    } else {
      resolve_part(state, request, result);
    }
    result.record.parts = result.parts.data();
    result.record.part_count = result.parts.size();
  } catch (const error& e) {
    error_info info = e.info();
    info.operation = core::describe(request.record);
    info.rank = state.core().rank();
    throw error(info);
  }
}

void check_alive(communicator_state& state) {
  core::throw_if_forked();
  if (!state.has_core() || !state.process()->alive())
    base::fail(errc::shut_down, "the runtime of this communicator has been shut down",
               "Keep sucl::runtime alive while its communicators are used");
}

void resolve_call(communicator_state& state, const detail::request& request, resolved& result) {
  throw_if_in_function();
  check_alive(state);
  try {
    resolve(state, request, result);
  } catch (const error& e) {
    state.core().refuse(request.record, e.info());
    throw;
  }
}

}  // namespace sucl::sycl_layer
