// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "draw.hpp"

#include <algorithm>
#include <array>

namespace sucl::torture {
namespace {

template <class E, std::size_t N>
const char* word(const std::array<const char*, N>& words, E e) {
  static_assert(N == static_cast<std::size_t>(E::count));
  return words[static_cast<std::size_t>(e)];
}

// A weight for each entry.
template <std::size_t N>
std::size_t weighted(dice& d, const int (&weights)[N]) {
  std::size_t total = 0;
  for (const int w : weights) total += static_cast<std::size_t>(w);
  std::size_t at = d.below(total);
  for (std::size_t i = 0; i < N; ++i) {
    if (at < static_cast<std::size_t>(weights[i])) return i;
    at -= static_cast<std::size_t>(weights[i]);
  }
  return 0;
}

// Every type that the library knows.
const std::vector<reference::element>& known_elements() {
  static const auto all = [] {
    std::vector<reference::element> list;
    for (int t = 1; t < SUCL_TYPE_COUNT; ++t)
      list.push_back({static_cast<type>(t), size_of(static_cast<type>(t))});
    return list;
  }();
  return all;
}

reference::element draw_element(dice& d, bool reduced) {
  static constexpr std::size_t opaque[] = {1, 2, 3, 4, 8, 12, 16, 24};
  const auto& all = known_elements();
  if (!reduced && d.one_in(3)) return {type::bytes, opaque[d.below(8)]};
  return all[d.below(all.size())];
}

op draw_op(dice& d, kind k, type t) {
  const bool prefix = k == kind::scan || k == kind::exscan;
  std::array<op, SUCL_OP_COUNT> fitting{};
  std::size_t n = 0;
  for (int o = 1; o < SUCL_OP_COUNT; ++o)
    if (defined(static_cast<op>(o), t) && !(prefix && o == SUCL_OP_AVG))
      fitting[n++] = static_cast<op>(o);
  return fitting[d.below(n)];
}

// Bytes of an operand: mostly few, and where the library changes what it does.
std::size_t draw_bytes(dice& d, std::size_t most) {
  static constexpr std::size_t steps[] = {
      64,       128,      256,      512,       1 << 10,   2 << 10,   4 << 10, 8 << 10,
      16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20};
  std::size_t bytes = 0;
  switch (weighted(d, {8, 40, 20, 3, 1})) {
    case 0: break;
    case 1: bytes = d.below(128); break;
    case 2: bytes = d.below(2000); break;
    case 3: bytes = steps[d.below(10)] + d.below(33) - 16; break;
    default:
      if (d.one_in(8)) bytes = steps[d.below(16)] + d.below(129) - 64;
  }
  return std::min(bytes, most);
}

// Kinds whose memory has a block for each rank.
bool in_blocks(kind k) {
  switch (k) {
    case kind::reduce_scatter:
    case kind::reduce_scatter_block:
    case kind::allgather:
    case kind::allgatherv:
    case kind::alltoall:
    case kind::alltoallv:
    case kind::gather:
    case kind::gatherv:
    case kind::scatter:
    case kind::scatterv:
    case kind::group: return true;
    default: return false;
  }
}

bool draw_in_place(dice& d, kind k) {
  switch (k) {
    case kind::broadcast: return true;
    case kind::barrier:
    case kind::gatherv:
    case kind::scatterv:
    case kind::send:
    case kind::recv:
    case kind::sendrecv:
    case kind::group: return false;
    default: return d.one_in(3);
  }
}

// No form but these is for messages, which match between pairs of ranks.
kind draw_kind(dice& d, bool messages) {
  static constexpr kind kinds[] = {
      kind::allreduce,      kind::reduce,    kind::broadcast,  kind::reduce_scatter_block,
      kind::reduce_scatter, kind::allgather, kind::allgatherv, kind::alltoall,
      kind::alltoallv,      kind::gather,    kind::gatherv,    kind::scatter,
      kind::scatterv,       kind::scan,      kind::exscan,     kind::barrier,
      kind::send,           kind::recv,      kind::sendrecv,   kind::group};
  const std::size_t first = d.below(messages ? 24 : 19);
  if (first < 3) return kind::allreduce;  // the most used one
  return kinds[std::min<std::size_t>(first - 3, 19)];
}

memory draw_memory(dice& d) {
  return static_cast<memory>(weighted(d, {6, 8, 12, 40, 1, 1, 1, 3, 16}));
}

}  // namespace

const char* name(form f) {
  return word<form, 9>({"blocking", "event", "window", "chained", "persistent", "compiled",
                        "allocated", "threads", "renewed"},
                       f);
}

const char* name(group_of g) {
  return word<group_of, 7>(
      {"world", "in_order", "queueless", "copy", "reversed", "parity", "but_last"}, g);
}

const char* name(values v) { return word<values, 3>({"exact", "finite", "special"}, v); }

memory operation::memory_of(int rank, bool has_queue) const {
  int m = memory;
  if (m == conformance::mixed_memory) {
    static constexpr conformance::memory mixed[] = {
        conformance::device_memory,   conformance::host_memory,   conformance::shared_memory,
        conformance::system_memory,   conformance::system_memory, conformance::buffer_1d,
        conformance::symmetric_memory};
    m = mixed[reference::mix(key, static_cast<std::uint64_t>(rank)) % 7];
  }
  if (!has_queue && m < conformance::system_memory) m = conformance::system_memory;
  return static_cast<conformance::memory>(m);
}

std::string operation::text() const {
  std::string line = std::string(sucl::name(call.kind)) + " " + sucl::name(element.t);
  if (element.t == type::bytes) line += std::to_string(element.size);
  if (op != op::none)
    line += std::string(" ") + sucl::name(op) + " of " + torture::name(drawn) + " values";
  line += ", count " + std::to_string(call.count);
  if (call.irregular != 0) line += " (irregular)";
  if (rooted(call.kind)) line += ", root " + std::to_string(call.root);
  if (call.in_place) line += ", in place";
  return line + ", " + conformance::names(conformance::f_memory)[static_cast<std::size_t>(memory)] +
         " memory";
}

membership membership_of(group_of g, int rank, int ranks) {
  switch (g) {
    case group_of::reversed: return {ranks - 1 - rank, ranks, 0};
    case group_of::parity: return {rank / 2, (ranks + 1 - rank % 2) / 2, rank % 2};
    case group_of::but_last:
      return rank == ranks - 1 ? membership{} : membership{rank, ranks - 1, 0};
    default: return {rank, ranks, 0};
  }
}

operation draw_operation(dice& d, int ranks, std::size_t bytes) {
  operation o;
  auto& s = o.call;
  s.kind = draw_kind(d, true);
  const bool reduced = reduces(s.kind);
  o.element = draw_element(d, reduced);
  if (reduced) o.op = draw_op(d, s.kind, o.element.t);
  o.drawn = static_cast<values>(weighted(d, {4, 4, 3}));
  o.key = d.next();
  s.root = d.rank(ranks);
  s.in_place = draw_in_place(d, s.kind);
  const std::size_t parts = in_blocks(s.kind) ? static_cast<std::size_t>(ranks) : 1;
  s.count = draw_bytes(d, bytes) / o.element.size / parts;
  o.memory = draw_memory(d);
  // A list of counts for each rank: up to twice as much each, and gaps between.
  if (d.one_in(2)) s.irregular = d.next() | 1;
  if (s.irregular != 0) s.count /= 2;
  s.all_pairs = !conformance::is_buffer(o.memory) && o.memory != conformance::mixed_memory;
  if (s.kind == kind::barrier) s.count = 0;
  // In place the two memories are one; the API has some of these calls for pointers only.
  if (s.in_place && s.kind != kind::broadcast && !s.all_pairs) {
    const bool pointers_only = s.kind == kind::reduce_scatter || s.kind == kind::allgatherv ||
                               s.kind == kind::alltoallv || s.kind == kind::gather ||
                               s.kind == kind::scatter;
    if (pointers_only) o.memory = conformance::system_memory;
  }
  return o;
}

namespace {

// Forms that run one operation after the other cannot have messages among all, but groups.
void fit(step& s, operation& o) {
  const bool buffers = conformance::is_buffer(o.memory) || o.memory == conformance::mixed_memory;
  if (s.form == form::persistent || s.form == form::chained || s.form == form::threads ||
      s.form == form::allocated)
    if (buffers) {
      o.memory = conformance::system_memory;
      o.call.all_pairs = true;
    }
  if (s.form == form::allocated) o.memory = conformance::symmetric_memory;
  if (s.form == form::persistent && o.call.kind == kind::group) o.call.kind = kind::sendrecv;
}

// Few compositions, each compiled once.
void draw_composition(step& s, int ranks) {
  static constexpr std::size_t sizes[] = {1, 13, 100, 3000};
  static constexpr op ops[] = {op::sum, op::max, op::prod};
  dice d(s.key, 5);
  s.composition = static_cast<int>(d.below(3));
  s.block = sizes[d.below(4)];
  operation& o = s.operations[0];
  o.memory = conformance::system_memory;
  o.element = d.one_in(2) ? reference::element{type::fp64, 8} : reference::element{type::int32, 4};
  o.op = s.composition == 1 ? op::none : ops[d.below(3)];
  const auto blocks = static_cast<std::size_t>(s.composition == 0 ? ranks : 1);
  o.call = {s.composition == 1 ? kind::allgather : kind::allreduce, s.block * blocks};
}

std::vector<group_of> draw_groups(dice& d, form f) {
  const auto any = [&d] { return static_cast<group_of>(weighted(d, {8, 3, 5, 3, 2, 2, 2})); };
  std::vector<group_of> list;
  switch (f) {
    case form::compiled: return {d.one_in(2) ? group_of::world : group_of::queueless};
    case form::threads: return {group_of::world, group_of::copy, group_of::world, group_of::copy};
    case form::window:
      for (std::size_t n = 2 + d.below(5); n > 0; --n) list.push_back(any());
      return list;
    default: return {any()};
  }
}

}  // namespace

step draw_step(std::uint64_t seed, std::uint64_t index, int rank, int ranks) {
  step s;
  dice common(seed, index);
  s.key = common.next();
  s.form = static_cast<form>(weighted(common, {2600, 300, 120, 60, 200, 60, 8, 8, 6}));
  s.groups = draw_groups(common, s.form);
  const std::size_t bytes = s.groups.size() > 1 ? max_bytes / 32 : max_bytes / 2;
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    const membership m = membership_of(s.groups[i], rank, ranks);
    if (m.size == 0) {
      s.operations.emplace_back();
      continue;
    }
    // The same on all ranks of the communicator.
    dice own(s.key + static_cast<std::uint64_t>(m.colour) * 7919, i);
    s.operations.push_back(draw_operation(own, m.size, bytes));
    fit(s, s.operations.back());
    if (s.form == form::compiled) draw_composition(s, m.size);
  }
  return s;
}

std::set<std::string, std::less<>> names(std::string_view text) {
  std::set<std::string, std::less<>> list;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    list.emplace(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

namespace {

bool has_one(const step& s, const std::set<std::string, std::less<>>& list) {
  if (list.count(name(s.form)) != 0) return true;
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    const auto& o = s.operations[i];
    if (list.count(name(s.groups[i])) != 0 || list.count(sucl::name(o.call.kind)) != 0 ||
        list.count(sucl::name(o.element.t)) != 0)
      return true;
    if (o.op != sucl::op::none &&
        (list.count(sucl::name(o.op)) != 0 || list.count(name(o.drawn)) != 0))
      return true;
  }
  return false;
}

}  // namespace

bool filter::allows(std::uint64_t seed, std::uint64_t index, int ranks) const {
  if (without.empty() && only.empty()) return true;
  bool kept = only.empty();
  // Every rank judges by what all of them draw.
  for (int r = 0; r < ranks; ++r) {
    const step s = draw_step(seed, index, r, ranks);
    if (has_one(s, without)) return false;
    kept = kept || has_one(s, only);
  }
  return kept;
}

}  // namespace sucl::torture
