// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/operation.hpp"
#include "core/staging/blocks.hpp"
#include "core/staging/staged_operation.hpp"

#include "base/error.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

const char* memory_name(sucl_memory memory) {
  constexpr std::array<const char*, SUCL_MEMORY_COUNT> names{"system", "host", "shared", "device"};
  const auto index = static_cast<std::size_t>(memory);
  return index < names.size() ? names[index] : "unknown";
}

[[noreturn]] void fail_unsupported(const sucl_operation& op, const transfer_formats& formats,
                                   const std::string& why) {
  std::string what = name(static_cast<kind>(op.kind));
  what += " of " + std::string(name(static_cast<type>(op.type)));
  if (op.op != SUCL_OP_NONE) what += " with " + std::string(name(static_cast<sucl::op>(op.op)));
  error_info info;
  info.code = errc::unsupported;
  info.backend = formats.name();
  info.message = "backend '" + formats.name() + "' cannot execute " + what + " " + why;
  info.hint =
      "Select another backend for it in the configuration; `sucl info` lists what each executes.";
  throw error(std::move(info));
}

bool is_scan(sucl_kind kind) { return kind == SUCL_KIND_SCAN || kind == SUCL_KIND_EXSCAN; }

// Values that only ranks of the same communicator share: the wire, the settings, the counts.
std::uint64_t slice_elements(const sucl_operation& op, const transfer_format& w, const staging& s) {
  if (has_private_counts(op.kind)) return unlimited;
  const std::uint64_t components = w.convert ? w.convert->components : 1;
  std::uint64_t result = unlimited;
  if (w.max_count != 0) result = std::max<std::uint64_t>(1, w.max_count / components);
  if (stages(w, s) || (w.convert && w.convert->load) || w.fold) {
    const bool blocks = has_source_blocks(op.kind) || has_sink_blocks(op.kind) || w.fold;
    const std::uint64_t bytes =
        blocks ? std::max(s.chunk_bytes / static_cast<std::uint64_t>(s.size), s.min_block_bytes)
               : s.chunk_bytes;
    const std::uint64_t element = std::max<std::uint64_t>(1, w.element_size * components);
    result = std::min(result, std::max<std::uint64_t>(1, bytes / element));
  }
  return result;
}

bool scattered(const std::optional<base::strided>& layout) {
  return layout && !layout->contiguous();
}

bool displaced(const std::optional<base::strided>& layout) {
  return layout && layout->count() != 0 && layout->array_index(0) != 0;
}

[[noreturn]] void fail_beyond_host(const sucl_operation& op, const transfer_formats& formats,
                                   sucl_memory memory) {
  fail_unsupported(op, formats,
                   "in " + std::string(memory_name(memory)) +
                       " memory: it would have to go through host memory, which "
                       "that backend does not reach");
}

// Contributions go to scratch of the rank that folds them. In place, they leave through scratch
// too: the result of one slice may lie where a later one is still being sent from.
void decide_fold_scratch(staging_plan& a, const sucl_operation& op, const transfer_formats& formats,
                         const transfer_format& w, bool sliced) {
  const roles r = roles_of(op, a.rank);
  const sucl_memory memory = r.from_recv ? op.recv_memory : op.send_memory;
  const bool apart =
      scattered(a.send_layout) || !w.reaches(memory) || (sliced && has_source_blocks(op.kind));
  a.scratch_send = r.source && (r.from_recv || (op.send && apart));
  a.scratch_recv = r.sink;
  a.stage_send = a.scratch_send && memory == SUCL_MEMORY_DEVICE;
  a.stage_recv = r.sink && op.recv_memory == SUCL_MEMORY_DEVICE;
  if (!w.reaches(a.scratch_memory)) fail_beyond_host(op, formats, memory);
}

void decide_scratch(staging_plan& a, const sucl_operation& op, const transfer_formats& formats,
                    const transfer_format& w, bool sliced) {
  const roles r = roles_of(op, a.rank);
  const bool converts = w.convert && w.convert->load;
  // A null pointer has no elements. The host cannot divide where it cannot read.
  const auto needs = [&](const void* at, sucl_memory memory,
                         const std::optional<base::strided>& layout, bool blocks) {
    return at && (converts || scattered(layout) || !w.reaches(memory) || (sliced && blocks));
  };
  const bool divides = w.convert && r.sink && op.recv_memory == SUCL_MEMORY_DEVICE;
  // A block that messages overwrite must be copied before they arrive.
  const bool replaces = r.from_recv && r.sink && a.as_messages;
  const bool source_blocks = has_source_blocks(op.kind);
  const bool sink_blocks = has_sink_blocks(op.kind);
  if (r.source && !r.from_recv)
    a.scratch_send = needs(op.send, op.send_memory, a.send_layout, source_blocks);
  if (r.sink || r.from_recv)
    a.scratch_recv = needs(op.recv, op.recv_memory, a.recv_layout, source_blocks || sink_blocks) ||
                     replaces || divides;
  a.stage_send = a.scratch_send && op.send_memory == SUCL_MEMORY_DEVICE;
  a.stage_recv = a.scratch_recv && op.recv_memory == SUCL_MEMORY_DEVICE;
  if ((a.scratch_send || a.scratch_recv) && !w.reaches(a.scratch_memory)) {
    fail_beyond_host(op, formats, a.scratch_send ? op.send_memory : op.recv_memory);
  }
}

staging_plan plan_one(const sucl_operation& op, const layouts& where, transfer_formats& formats,
                      const staging& s) {
  if (op.op == SUCL_OP_AVG && is_scan(op.kind))
    fail_unsupported(op, formats, "at all: an average is not defined for prefixes");
  const transfer_format* w = &formats.of(op.kind, op.type, op.op, op.element_size);
  staging_plan a;
  if (has_private_counts(op.kind) && (!w->supported || w->max_count != 0)) {
    a.as_messages = true;
    w = &formats.of(SUCL_KIND_SEND, op.type, SUCL_OP_NONE, op.element_size);
  }
  if (!w->supported) fail_unsupported(op, formats, "in any memory, and no conversion helps");
  a.type = w->type;
  a.op = w->op;
  a.element_size = w->element_size;
  a.convert = w->convert;
  a.fold = w->fold;
  a.moved = w->moved;
  a.groups = w->groups;
  a.send_layout = where.send;
  a.recv_layout = where.recv;
  a.rank = s.rank;
  a.size = s.size;
  a.message_tag = s.message_tag;
  a.scratch_memory = s.scratch_memory;
  a.slice_elements = slice_elements(op, *w, s);
  if (a.as_messages) {  // the pairs cut each message alike: both know its count
    sucl_operation message = op;
    message.kind = SUCL_KIND_SEND;
    a.slice_elements = slice_elements(message, *w, s);
  }
  const bool sliced = longest_block(op, s.size) > a.slice_elements;
  if (op.kind == SUCL_KIND_SENDRECV) a.as_messages = sliced || !w->pairs;
  if (a.fold)
    decide_fold_scratch(a, op, formats, *w, sliced);
  else
    decide_scratch(a, op, formats, *w, sliced);
  a.depth = std::max(1, s.depth);
  a.needed = sliced || a.as_messages || a.scratch_send || a.scratch_recv || a.convert || a.fold ||
             a.type != op.type || displaced(a.send_layout) || displaced(a.recv_layout);
  return a;
}

staging_plan plan_group(const sucl_operation& op, const layouts& where, transfer_formats& formats,
                        const staging& s) {
  static const layouts dense;
  staging_plan a;
  a.as_messages = true;
  a.groups = true;
  a.rank = s.rank;
  a.size = s.size;
  for (std::uint64_t i = 0; i < op.part_count; ++i) {
    const layouts& of_part = i < where.parts.size() ? where.parts[i] : dense;
    a.parts.push_back(plan_one(op.parts[i], of_part, formats, s));
    a.groups = a.groups && a.parts.back().groups;
    a.needed = a.needed || a.parts.back().needed;
  }
  a.needed = a.needed || !a.groups;
  return a;
}

// A compiled plan. One that the host executes has memory of a device in scratch memory as a whole:
// the plan alone knows which elements it needs, and in which order.
staging_plan plan_compiled(const sucl_operation& op, transfer_formats& formats, const staging& s) {
  const transfer_format& w = formats.of(op.kind, op.type, SUCL_OP_NONE, op.element_size);
  const auto reached = [&](const void* at, sucl_memory memory) { return !at || w.reaches(memory); };
  staging_plan a;
  a.scratch_send = a.stage_send = !reached(op.send, op.send_memory);
  a.scratch_recv = a.stage_recv = !reached(op.recv, op.recv_memory);
  a.needed = a.scratch_send || a.scratch_recv;
  if (!a.needed) return a;
  if (!w.reaches(s.scratch_memory))
    base::fail(errc::unsupported,
               "this compiled plan runs on the devices, and this is ordinary memory of the host",
               "Use USM memory or buffers");
  a.type = op.type;
  a.op = op.op;
  a.element_size = op.element_size;
  a.rank = s.rank;
  a.size = s.size;
  a.scratch_memory = s.scratch_memory;
  a.slice_elements = unlimited;
  return a;
}

// Kinds without elements.
staging_plan plan_native(const sucl_operation& op, transfer_formats& formats) {
  const transfer_format& w = formats.of(op.kind, op.type, op.op, op.element_size);
  if (!w.supported || w.type != op.type) fail_unsupported(op, formats, "in any memory");
  return {};
}

bool has_elements(sucl_kind kind) { return kind > SUCL_KIND_BARRIER && kind <= SUCL_KIND_SENDRECV; }

}  // namespace

staging_plan plan_staging(const sucl_operation& operation, const layouts& where,
                          transfer_formats& formats, const staging& settings) {
  if (operation.kind == SUCL_KIND_GROUP) return plan_group(operation, where, formats, settings);
  if (operation.kind == compiled_plan_kind) return plan_compiled(operation, formats, settings);
  if (!has_elements(operation.kind)) return plan_native(operation, formats);
  return plan_one(operation, where, formats, settings);
}

}  // namespace sucl::core
