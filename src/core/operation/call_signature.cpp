// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/call_signature.hpp"

#include "base/sizes.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>

namespace sucl::core {
namespace {

// Sets of kinds: the signature is part of every call, of the shortest message too.
constexpr std::uint32_t set_of(std::initializer_list<sucl_kind> kinds) {
  std::uint32_t set = 0;
  for (const sucl_kind k : kinds) set |= 1u << k;
  return set;
}
constexpr bool is_in(std::uint32_t set, sucl_kind k) { return k < 32 && (set >> k & 1) != 0; }

constexpr auto with_op = set_of({SUCL_KIND_REDUCE, SUCL_KIND_ALLREDUCE, SUCL_KIND_REDUCE_SCATTER,
                                 SUCL_KIND_REDUCE_SCATTER_BLOCK, SUCL_KIND_SCAN, SUCL_KIND_EXSCAN});
constexpr auto with_root = set_of({SUCL_KIND_BROADCAST, SUCL_KIND_REDUCE, SUCL_KIND_GATHER,
                                   SUCL_KIND_GATHERV, SUCL_KIND_SCATTER, SUCL_KIND_SCATTERV});
constexpr auto with_counts_everywhere = set_of({SUCL_KIND_ALLGATHERV, SUCL_KIND_REDUCE_SCATTER});
constexpr auto with_counts_of_pairs =
    set_of({SUCL_KIND_ALLTOALLV, SUCL_KIND_GATHERV, SUCL_KIND_SCATTERV});

constexpr bool has_counts_everywhere(sucl_kind k) { return is_in(with_counts_everywhere, k); }
constexpr bool has_counts_of_pairs(sucl_kind k) { return is_in(with_counts_of_pairs, k); }

// Whether all blocks of a reduce_scatter have one length: it may meet a reduce_scatter_block.
bool is_uniform(const sucl_operation& o, int size) {
  if (o.kind != SUCL_KIND_REDUCE_SCATTER) return false;
  const std::uint64_t* end = o.recv_counts + size;
  return std::adjacent_find(o.recv_counts, end, std::not_equal_to<>()) == end;
}

std::uint64_t hash_of(const sucl_operation& o, const call_signature& s, int size) {
  const bool uniform = is_uniform(o, size);
  std::uint64_t h = mix(
      0x5375434c, static_cast<std::uint64_t>(uniform ? SUCL_KIND_REDUCE_SCATTER_BLOCK : o.kind));
  if (o.kind == SUCL_KIND_BARRIER) return o.plan == 0 ? h : mix(h, o.plan);
  h = mix(h, static_cast<std::uint64_t>(s.type) << 32 | static_cast<std::uint32_t>(s.op));
  h = mix(h, s.element_size);
  h = mix(h, static_cast<std::uint64_t>(static_cast<std::int64_t>(s.root)));
  if (uniform) return mix(h, o.recv_counts[0]);
  if (!has_counts_everywhere(o.kind)) return mix(h, s.count);
  for (int r = 0; r < size; ++r) h = mix(h, o.recv_counts[r]);
  return h;
}

// How many recorded operations came before a call, in words.
std::string recordings_before(const call_signature& s) {
  const int number = s.tag >> 3;
  if (number == 0 || origin_of(s.tag) != origin::call) return {};
  return " after it had recorded " + std::to_string(number) +
         (number == 1 ? " operation" : " operations");
}

}  // namespace

call_signature signature_of(const sucl_operation& o, int size) noexcept {
  call_signature s;
  s.kind = o.kind;
  if (o.kind == SUCL_KIND_BARRIER) {
    s.count = o.plan;
  } else {
    s.type = o.type;
    s.element_size = o.element_size;
    if (o.kind == compiled_plan_kind) {
      s.count = o.plan;
    } else {
      if (is_in(with_op, o.kind)) s.op = o.op;
      if (is_in(with_root, o.kind)) s.root = o.root;
      if (has_counts_everywhere(o.kind))
        for (int r = 0; r < size; ++r) s.count = base::sum(s.count, o.recv_counts[r]);
      else if (!has_counts_of_pairs(o.kind))
        s.count = o.count;
    }
  }
  s.hash = hash_of(o, s, size);
  s.tag = is_point_to_point(o.kind) ? 0 : o.tag & ~1;
  if (s.tag) s.hash = mix(s.hash, static_cast<std::uint64_t>(s.tag));
  return s;
}

std::uint64_t pair_balance(const sucl_operation& o, int rank, int size) noexcept {
  if (!has_counts_of_pairs(o.kind)) return 0;
  const auto hash = [&](int from, int to, std::uint64_t count) {
    return mix(
        mix(mix(0x70616972, static_cast<std::uint64_t>(from)), static_cast<std::uint64_t>(to)),
        count * o.element_size);
  };
  const bool is_root = rank == o.root;
  if (o.kind == SUCL_KIND_GATHERV && !is_root) return hash(rank, o.root, o.count);
  if (o.kind == SUCL_KIND_SCATTERV && !is_root) return 0 - hash(o.root, rank, o.count);
  const bool gives = o.kind != SUCL_KIND_GATHERV, takes = o.kind != SUCL_KIND_SCATTERV;
  const std::uint64_t* given = gives && o.send_counts ? o.send_counts : o.recv_counts;
  std::uint64_t sum = 0;
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    if (gives) sum += hash(rank, r, given[r]);
    if (takes) sum -= hash(r, rank, o.recv_counts[r]);
  }
  return sum;
}

std::string describe(const call_signature& s) {
  if (origin_of(s.tag) == origin::replay) {
    call_signature own = s;
    own.tag = 0;
    return describe(own) + describe_origin(s.tag);
  }
  if (s.kind == compiled_plan_kind) return "compiled plan " + std::to_string(s.count);
  if (s.kind == SUCL_KIND_BARRIER) return describe_barrier(s.count);
  std::string text = name(static_cast<kind>(s.kind));
  if (has_counts_of_pairs(s.kind))
    text += " of " + std::string(name(static_cast<type>(s.type)));
  else
    text += (has_counts_everywhere(s.kind) ? " of in all " : " of ") +
            elements_text(s.count, s.type, s.element_size);
  if (s.op != SUCL_OP_NONE) text += " with op " + std::string(name(static_cast<op>(s.op)));
  if (s.root < 0) return text;
  const bool from_root =
      s.kind == SUCL_KIND_BROADCAST || s.kind == SUCL_KIND_SCATTER || s.kind == SUCL_KIND_SCATTERV;
  return text + (from_root ? " from rank " : " to rank ") + std::to_string(s.root);
}

std::string describe_difference(const std::vector<ranks_call>& calls, std::uint64_t history) {
  struct group {
    std::uint64_t history;
    std::string call;
    std::vector<int> ranks;
  };
  // A rank that has recorded more than others is known by its next call.
  const auto is_call = [](const ranks_call& c) { return origin_of(c.call.tag) == origin::call; };
  const auto first = std::find_if(calls.begin(), calls.end(), is_call);
  const bool same_recordings = std::all_of(first, calls.end(), [&](const ranks_call& c) {
    return !is_call(c) || c.call.tag == first->call.tag;
  });
  std::vector<group> groups;
  for (const ranks_call& c : calls) {
    auto g = std::find_if(groups.begin(), groups.end(),
                          [&](const group& known) { return known.history == c.history; });
    if (g == groups.end()) {
      g = groups.insert(g, {c.history, describe(c.call), {}});
      if (!same_recordings) g->call += recordings_before(c.call);
    }
    g->ranks.push_back(c.rank);
  }
  std::string text;
  for (const group& g : groups) {
    const bool same_words = std::any_of(groups.begin(), groups.end(), [&](const group& o) {
      return o.history != g.history && o.call == g.call;
    });
    text += (text.empty() ? "" : ", ") + ranks_text(g.ranks) + " called " + g.call;
    if (same_words && g.history != history) text += " with other counts, or after other calls";
  }
  if (groups.size() < 2) text += ", another rank called something else";
  return text;
}

error_info mismatch_error(std::string what) {
  error_info info;
  info.code = errc::mismatch;
  info.message = std::move(what);
  info.hint =
      "Every rank of a communicator must issue the same operations in the same order with "
      "matching arguments; this communicator cannot be used any more";
  return info;
}

}  // namespace sucl::core
