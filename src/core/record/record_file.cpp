// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/record/record_file.hpp"

#include "base/error.hpp"
#include "base/system/file.hpp"
#include "core/operation/operation.hpp"
#include "core/record/flight_recorder.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace sucl::core {
namespace {

constexpr std::int32_t max_ranks = 1 << 24;  // of a job; more is damage

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  base::fail(errc::invalid_argument, "'" + file + "' is no record of a rank: " + why,
             "Name files that SuCL has written when something failed, or that "
             "`sucl dump` has");
}

template <std::size_t N>
std::string text_of(const std::array<char, N>& chars) {
  std::string text(chars.data(), strnlen(chars.data(), N));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

// Whether the fields that are printed or used as indices have values that exist.
bool is_valid(const record_entry& e) {
  const bool kind = (e.kind >= 0 && e.kind < SUCL_KIND_COUNT) || e.kind == compiled_plan_kind;
  const record_state state = e.state;
  return e.serial != 0 && kind && e.type >= 0 && e.type < SUCL_TYPE_COUNT && e.op >= 0 &&
         e.op < SUCL_OP_COUNT && state > record_state::nothing && state <= record_state::failed &&
         e.number + e.repeats >= e.number;
}

bool needs_arrays(sucl_kind kind) {
  return kind == SUCL_KIND_ALLGATHERV || kind == SUCL_KIND_REDUCE_SCATTER;
}

// The one that ranks compare, where it can be worked out without arrays.
call_signature recorded_signature(const record_entry& e, int size) {
  const bool message = is_point_to_point(e.kind);
  if (!message && !needs_arrays(e.kind)) return signature_of(recorded_operation(e), size);
  call_signature s;
  s.kind = e.kind;
  s.type = e.type;
  s.element_size = e.element_size;
  s.count = e.count;
  if (message) return s;
  s.op = e.op;
  s.root = e.root;
  s.tag = e.tag & ~1;
  s.hash = static_cast<std::uint32_t>(e.source);
  return s;
}

// An entry has the lower half of the communicator's number.
std::uint64_t communicator_of(const record_entry& e, const std::vector<record_member>& members) {
  for (const record_member& m : members)
    if (static_cast<std::uint32_t>(m.communicator) == e.communicator) return m.communicator;
  return e.communicator;
}

recorded_call call_of(const record_entry& e, const rank_history& h) {
  recorded_call c;
  c.serial = e.serial;
  c.communicator = communicator_of(e, h.members);
  c.number = e.number;
  c.times = std::uint64_t{e.repeats} + 1;
  c.call = recorded_signature(e, h.size);
  c.state = e.state;
  if (!is_point_to_point(e.kind)) return c;
  if (e.kind != SUCL_KIND_RECV) c.peer = e.root;
  if (e.kind != SUCL_KIND_SEND) c.source = e.source;
  c.message_tag = e.tag;
  return c;
}

bool is_valid(const record_member& m, int ranks) {
  return m.size > 0 && m.size <= ranks && m.rank >= 0 && m.rank < m.size;
}

}  // namespace

rank_history history_of(const flight_record& record) {
  const record_header& head = record.head;
  rank_history h;
  h.job = head.job;
  h.rank = head.rank;
  h.size = head.size;
  h.process = head.process;
  h.signal = head.signal;
  h.host = text_of(head.host);
  h.failure = text_of(head.failure);
  for (const record_member& m : head.members)
    if (m.communicator != 0 && is_valid(m, head.size)) h.members.push_back(m);
  for (const record_entry& e : record.entries)
    if (is_valid(e)) h.entries.push_back(call_of(e, h));
  std::sort(h.entries.begin(), h.entries.end(),
            [](const recorded_call& a, const recorded_call& b) { return a.serial < b.serial; });
  return h;
}

rank_history read_record(const std::string& file) {
  const base::file_content content = base::read_regular_file(file);
  if (!content.problem.empty()) refuse(file, content.problem);
  const std::size_t bytes = content.text.size();
  if (bytes < sizeof(record_header) || bytes > sizeof(flight_record) ||
      (bytes - sizeof(record_header)) % sizeof(record_entry) != 0)
    refuse(file, "it has " + std::to_string(bytes) + " bytes");
  const auto record = std::make_unique<flight_record>();
  std::memcpy(static_cast<void*>(record.get()), content.text.data(), bytes);
  const record_header& head = record->head;
  if (head.magic != record_header::magic_of_this_version)
    refuse(file, "it begins with something else, or is of another version of SuCL");
  if (head.size <= 0 || head.size > max_ranks || head.rank < 0 || head.rank >= head.size)
    refuse(file, "it is damaged");
  rank_history h = history_of(*record);
  h.file = file;
  return h;
}

}  // namespace sucl::core
