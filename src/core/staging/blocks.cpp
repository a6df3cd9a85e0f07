// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/staging/blocks.hpp"

#include "core/operation/operation.hpp"

#include <sucl/types.hpp>

namespace sucl::core {

roles roles_of(const sucl_operation& op, int rank) noexcept {
  const bool in_place = (op.flags & SUCL_FLAG_IN_PLACE) != 0;
  const bool root = op.root == rank;
  switch (op.kind) {
    case SUCL_KIND_BROADCAST: return {root, !root, root && in_place};
    case SUCL_KIND_REDUCE: return {true, root, in_place && (root || !op.send)};
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: return {true, root, in_place && (root || !op.send)};
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: return {root, !(root && in_place), root && in_place};
    case SUCL_KIND_SEND: return {true, false, in_place};
    case SUCL_KIND_RECV: return {false, true, false};
    default: return {true, true, in_place};
  }
}

bool has_source_blocks(sucl_kind kind) noexcept {
  switch (kind) {
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_ALLTOALL:
    case SUCL_KIND_ALLTOALLV:
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: return true;
    default: return false;
  }
}

bool has_sink_blocks(sucl_kind kind) noexcept {
  switch (kind) {
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_ALLTOALL:
    case SUCL_KIND_ALLTOALLV:
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: return true;
    default: return false;
  }
}

bool has_private_counts(sucl_kind kind) noexcept {
  return kind == SUCL_KIND_ALLTOALLV || kind == SUCL_KIND_GATHERV || kind == SUCL_KIND_SCATTERV;
}

std::uint64_t longest_block(const sucl_operation& op, int size) noexcept {
  if (has_private_counts(op.kind)) return 0;
  if (op.kind == SUCL_KIND_SENDRECV || op.kind == compiled_plan_kind)
    return std::max(op.count, op.recv_count);
  if (op.kind == SUCL_KIND_REDUCE_SCATTER || op.kind == SUCL_KIND_ALLGATHERV)
    return *std::max_element(op.recv_counts, op.recv_counts + size);
  return op.count;
}

namespace {

side make_side(const sucl_operation& op, const staging_plan& how, bool recv) {
  const auto& layout = recv ? how.recv_layout : how.send_layout;
  side s;
  s.present = true;
  s.memory = recv ? op.recv_memory : op.send_memory;
  s.through = recv ? how.scratch_recv : how.scratch_send;
  s.device = s.through && s.memory == SUCL_MEMORY_DEVICE;
  s.user = static_cast<unsigned char*>(recv ? op.recv : const_cast<void*>(op.send));
  s.element_size = op.element_size;
  s.count = op.count;
  if (layout && !layout->contiguous()) s.layout = &*layout;
  if (layout && !s.layout && layout->count() != 0)
    s.user += layout->array_index(0) * op.element_size;
  return s;
}

// Blocks as two arrays of the operation describe them.
void set_blocks(side& s, int size, const std::uint64_t* counts, const std::uint64_t* displs) {
  s.blocks = static_cast<std::uint64_t>(size);
  s.counts = counts;
  s.displs = displs;
}

void set_source_blocks(side& s, const sucl_operation& op, const staging_plan& how, bool in_place) {
  if (op.kind == SUCL_KIND_REDUCE_SCATTER)
    set_blocks(s, how.size, op.recv_counts, nullptr);
  else if (op.kind == SUCL_KIND_ALLTOALLV && in_place)
    set_blocks(s, how.size, op.recv_counts, op.recv_displs);
  else if (op.kind == SUCL_KIND_ALLTOALLV || op.kind == SUCL_KIND_SCATTERV)
    set_blocks(s, how.size, op.send_counts, op.send_displs);
  else if (has_source_blocks(op.kind))
    set_blocks(s, how.size, nullptr, nullptr);
}

void set_sink_blocks(side& s, const sucl_operation& op, const staging_plan& how) {
  if (op.kind == SUCL_KIND_REDUCE_SCATTER)
    s.count = op.recv_counts[how.rank];
  else if (op.kind == SUCL_KIND_SENDRECV || op.kind == compiled_plan_kind)
    s.count = op.recv_count;
  else if (op.kind == SUCL_KIND_EXSCAN && how.rank == 0)
    s.skip = 0;
  else if (op.kind == SUCL_KIND_ALLGATHERV || op.kind == SUCL_KIND_ALLTOALLV ||
           op.kind == SUCL_KIND_GATHERV)
    set_blocks(s, how.size, op.recv_counts, op.recv_displs);
  else if (has_sink_blocks(op.kind))
    set_blocks(s, how.size, nullptr, nullptr);
}

bool gathers(sucl_kind kind) { return has_sink_blocks(kind) && !has_source_blocks(kind); }

// A message between two parts of a collective's memory, which `end` describes as a whole.
task make_message(const sucl_operation& op, const staging_plan& how, const side& end, bool sends,
                  int peer, std::uint64_t first, std::uint64_t count) {
  task t;
  t.operation = op;
  t.operation.kind = sends ? SUCL_KIND_SEND : SUCL_KIND_RECV;
  t.operation.flags &= ~static_cast<std::uint32_t>(SUCL_FLAG_IN_PLACE);
  t.operation.root = t.operation.source = peer;
  t.operation.tag = how.message_tag;
  t.operation.count = count;
  t.operation.send_counts = t.operation.send_displs = nullptr;
  t.operation.recv_counts = t.operation.recv_displs = nullptr;
  t.how = &how;
  side& s = sends ? t.source : t.sink;
  s = end;
  s.blocks = 1;
  s.counts = s.displs = nullptr;
  s.only = s.skip = side::none;
  s.origin = first;
  s.count = count;
  t.slices = slices_of(count, how.slice_elements);
  return t;
}

void split_sendrecv(const sucl_operation& op, const staging_plan& how, std::vector<task>& to) {
  const roles r = roles_of(op, how.rank);
  const side from = make_side(op, how, r.from_recv);
  to.push_back(make_message(op, how, from, true, op.root, 0, op.count));
  to.back().operation.tag = op.tag;
  to.push_back(make_message(op, how, make_side(op, how, true), false, op.source, 0, op.recv_count));
  to.back().operation.tag = op.tag;
}

void split_collective(const sucl_operation& op, const staging_plan& how, std::vector<task>& to) {
  const task whole = make_task(op, how);
  const bool many_from = whole.source.present && has_source_blocks(op.kind);
  const bool many_to = whole.sink.present && has_sink_blocks(op.kind);
  const auto exchange = [&](const side& end, bool sends, int peer, std::uint64_t block) {
    const bool own = whole.in_place && peer == how.rank;
    const std::uint64_t count = end.block_count(block);
    if (!own && count > 0)
      to.push_back(
          make_message(op, how, end, sends, peer, end.displs ? end.displs[block] : 0, count));
  };
  // Each rank starts with another peer, so that they do not all load the same one.
  for (int i = 0; i < how.size; ++i) {
    const int peer = (how.rank + i) % how.size;
    const auto block = static_cast<std::uint64_t>(peer);
    if (many_from)
      exchange(whole.source, true, peer, block);
    else if (whole.source.present && peer == op.root)
      exchange(whole.source, true, peer, 0);
    if (many_to)
      exchange(whole.sink, false, peer, block);
    else if (whole.sink.present && peer == op.root)
      exchange(whole.sink, false, peer, 0);
  }
}

}  // namespace

task make_task(const sucl_operation& op, const staging_plan& how) {
  const roles r = roles_of(op, how.rank);
  task t;
  t.operation = op;
  t.how = &how;
  t.in_place = r.from_recv;
  if (r.source) {
    t.source = make_side(op, how, r.from_recv);
    set_source_blocks(t.source, op, how, r.from_recv);
    if (how.fold) {  // on the wire it is never in place
      t.in_place = false;
      t.source.through = how.scratch_send;
      t.source.device = how.stage_send;
    }
  }
  if (r.sink) {
    t.sink = make_side(op, how, true);
    set_sink_blocks(t.sink, op, how);
    t.keeps_sink = op.kind == compiled_plan_kind;
  }
  if (r.from_recv && r.sink && gathers(op.kind)) {
    t.source = t.sink;
    t.source.only = t.sink.skip = static_cast<std::uint64_t>(how.rank);
  }
  t.slices = slices_of(longest_block(op, how.size), how.slice_elements);
  return t;
}

std::vector<task> make_messages(const sucl_operation& operation, const staging_plan& how) {
  std::vector<task> result;
  if (has_private_counts(operation.kind))
    split_collective(operation, how, result);
  else if (operation.kind == SUCL_KIND_SENDRECV)
    split_sendrecv(operation, how, result);
  for (std::size_t i = 0; i < how.parts.size(); ++i) {
    const sucl_operation& part = operation.parts[i];
    if (part.kind == SUCL_KIND_SENDRECV)
      split_sendrecv(part, how.parts[i], result);
    else
      result.push_back(make_task(part, how.parts[i]));
  }
  return result;
}

}  // namespace sucl::core
