// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/staging/transfer_format.hpp"

#include "base/config/determinism.hpp"
#include "core/exchange/core_services.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <utility>

namespace sucl::core {
namespace {

// The smaller of two limits, where 0 is none.
std::uint64_t tighter(std::uint64_t a, std::uint64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

transfer_formats::transfer_formats(std::string name, query_function query)
    : m_name(std::move(name)), m_query(std::move(query)) {}

transfer_formats::transfer_formats(const backend_comm& below, std::string platform,
                                   bool folds_above)
    : transfer_formats(below.table->name ? below.table->name : "",
                       [below, platform = std::move(platform)](sucl_query question) {
                         sucl_capability answer{};
                         answer.struct_size = sizeof(answer);
                         question.platform = platform.c_str();
                         const sucl_status status =
                             below.table->query(below.state, &question, &answer);
                         if (status != SUCL_SUCCESS) throw_last(status, below.table->name);
                         return answer;
                       }) {
  m_folds_above = folds_above;
}

const transfer_format& transfer_formats::of(sucl_kind kind, sucl_type type, sucl_op op,
                                            std::uint64_t element_size) {
  if (is_message(kind)) kind = SUCL_KIND_SEND;
  for (const entry& e : m_entries)
    if (e.kind == kind && e.type == type && e.op == op && e.element_size == element_size)
      return e.found;
  m_entries.push_back({kind, type, op, element_size, find(kind, type, op, element_size)});
  return m_entries.back().found;
}

transfer_format transfer_formats::find(sucl_kind kind, sucl_type type, sucl_op op,
                                       std::uint64_t element_size) const {
  const auto question = [&](sucl_type t, sucl_op o, std::uint64_t size) {
    return kind == SUCL_KIND_SEND ? query_messages(t, size) : query(kind, t, o, size);
  };
  if (m_folds_above && base::order_matters(kind, type, op))
    return find_moved(kind, type, op, element_size);
  transfer_format found = question(type, op, element_size);
  if (found.supported) return found;
  if (!reduces(static_cast<sucl::kind>(kind)))
    return type == SUCL_TYPE_BYTES ? found : question(SUCL_TYPE_BYTES, SUCL_OP_NONE, element_size);
  const conversion* convert = conversion_for(type, op);
  if (!convert) return found;
  found = question(convert->type, convert->op, size_of(static_cast<sucl::type>(convert->type)));
  found.convert = convert;
  // The host converts, so it has to be a backend that works on the host's memory.
  found.supported = found.supported && found.reaches(SUCL_MEMORY_SYSTEM);
  return found;
}

namespace {

// What brings the contributions of a reduction to where they are folded.
sucl_kind moved_as(sucl_kind kind) {
  switch (kind) {
    case SUCL_KIND_REDUCE: return SUCL_KIND_GATHER;
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return SUCL_KIND_ALLTOALL;
    case SUCL_KIND_REDUCE_SCATTER: return SUCL_KIND_ALLTOALLV;
    default: return SUCL_KIND_ALLGATHER;
  }
}

}  // namespace

// Narrow floats are not widened on the way, and averages not divided apart: a fold does all that.
transfer_format transfer_formats::find_moved(sucl_kind kind, sucl_type type, sucl_op op,
                                             std::uint64_t element_size) const {
  const sucl_kind moved = moved_as(kind);
  transfer_format found = find(moved, type, SUCL_OP_NONE, element_size);
  found.fold = find_fold(type, op);
  found.moved = moved;
  found.streams = false;
  // The host folds, so device memory needs staging.
  found.memories &= ~(1u << SUCL_MEMORY_DEVICE);
  found.supported = found.supported && found.fold && found.reaches(SUCL_MEMORY_SYSTEM);
  return found;
}

transfer_format transfer_formats::query(sucl_kind kind, sucl_type type, sucl_op op,
                                        std::uint64_t element_size) const {
  transfer_format result;
  result.type = type;
  result.op = op;
  result.element_size = element_size;
  result.streams = true;
  for (sucl_memory memory = 0; memory < SUCL_MEMORY_COUNT; ++memory) {
    sucl_query question{};
    question.struct_size = sizeof(question);
    question.kind = kind;
    question.type = type;
    question.op = op;
    question.memory = memory;
    question.element_size = element_size;
    const sucl_capability answer = m_query(question);
    if (!answer.supported) continue;
    result.memories |= 1u << memory;
    result.max_count = tighter(result.max_count, answer.max_count);
    result.streams = result.streams && (answer.flags & SUCL_CAP_STREAM_ORDERED) != 0;
  }
  result.supported = result.memories != 0;
  return result;
}

// Both ends of a message must cut it alike whatever they call it, so the limits are combined.
transfer_format transfer_formats::query_messages(sucl_type type, std::uint64_t element_size) const {
  transfer_format result = query(SUCL_KIND_SEND, type, SUCL_OP_NONE, element_size);
  const auto include = [&](sucl_kind kind) {
    const transfer_format other = query(kind, type, SUCL_OP_NONE, element_size);
    if (other.supported) result.max_count = tighter(result.max_count, other.max_count);
    return other.memories;
  };
  result.memories &= include(SUCL_KIND_RECV);
  result.supported = result.memories != 0;
  result.groups = (include(SUCL_KIND_GROUP) & result.memories) == result.memories;
  result.pairs = (include(SUCL_KIND_SENDRECV) & result.memories) == result.memories;
  return result;
}

}  // namespace sucl::core
