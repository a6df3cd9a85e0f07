// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/composed/composed.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/sizes.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "plan/compose/composition.hpp"
#include "plan/passes/passes.hpp"
#include "plan/verify/verify.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

using plan::space;
using api_primitive = sucl::composition::primitive;

space space_of(slice::memory m) {
  switch (m) {
    case slice::memory::send: return space::send;
    case slice::memory::recv: return space::recv;
    default: return space::scratch;
  }
}

// Elements of each memory, over all primitives or those of one rank.
struct sizes {
  std::uint64_t of[3] = {0, 0, 0};
  void take(const slice& s, std::uint64_t element_size) {
    const std::uint64_t end = base::sum(s.offset, s.count);
    if (base::product(end, element_size) > base::max_bytes)
      base::fail(errc::invalid_count,
                 "a slice of " + std::to_string(s.count) + " elements from " +
                     std::to_string(s.offset) + " on is beyond any address space",
                 "Check the arguments for negative numbers that were converted");
    auto& size = of[static_cast<int>(s.where)];
    size = std::max(size, end);
  }
};

// What a rank reads and writes itself; every rank where `rank` is -1.
sizes sizes_of(const compile_request& r, int rank) {
  sizes all;
  for (const api_primitive& p : r.what.primitives()) {
    if (p.what == kind::barrier) continue;
    const bool root = rank < 0 || p.root == rank;
    const bool leaf = rank < 0 || std::find(p.ranks.begin(), p.ranks.end(), rank) != p.ranks.end();
    const bool casts = p.what == kind::broadcast;
    if (casts ? root : leaf) all.take(p.from, r.element_size);
    if (casts ? leaf : root) all.take(p.to, r.element_size);
  }
  return all;
}

std::string numbered(std::size_t i, const api_primitive& p) {
  return std::string(p.what == kind::broadcast ? "multicast" : "reduction") + " (primitive " +
         std::to_string(i) + ")";
}

op reduction_of(const compile_request& r) {
  op found = op::none;
  for (std::size_t i = 0; i < r.what.primitives().size(); ++i) {
    const api_primitive& p = r.what.primitives()[i];
    if (p.what != kind::reduce) continue;
    if (found != op::none && p.reduction != found)
      base::fail(errc::invalid_argument,
                 numbered(i, p) + " has op " + name(p.reduction) + ", others have " + name(found),
                 "Use one op in a composition");
    found = p.reduction;
    if (found != op::avg && defined(found, r.element)) continue;
    base::fail(errc::invalid_type,
               numbered(i, p) + " has op " + name(found) + ", which is not defined for " +
                   name(r.element) + (found == op::avg ? " in compositions" : ""),
               "Use sum, and divide where the result is used");
  }
  return found;
}

plan::composition translate(const compile_request& r) {
  const composition& in = r.what;
  const std::uint64_t e = r.element_size;
  const sizes all = sizes_of(r, -1);
  auto out = plan::composition::custom(in.ranks(), all.of[0], all.of[1], e);
  for (int rank = 0; all.of[2] > 0 && rank < in.ranks(); ++rank)
    out.take_scratch(rank, all.of[2] * e);
  for (std::size_t i = 0; i < in.primitives().size(); ++i) {
    const api_primitive& p = in.primitives()[i];
    if (p.what == kind::barrier) {
      out.fence();
      continue;
    }
    if (p.from.count != p.to.count)
      base::fail(errc::invalid_count,
                 numbered(i, p) + " goes from " + std::to_string(p.from.count) + " elements to " +
                     std::to_string(p.to.count),
                 "Give both slices the same count");
    const plan::address from{space_of(p.from.where), p.from.offset * e};
    const plan::address to{space_of(p.to.where), p.to.offset * e};
    if (p.what == kind::broadcast)
      out.multicast(from, to, p.from.count * e, p.root, p.ranks);
    else
      out.reduction(from, to, p.from.count * e, p.ranks, p.root);
  }
  return out;
}

plan::recipe recipe_of(const compile_options& o) {
  plan::recipe r;
  r.algorithm = "composed";
  r.hierarchy = o.hierarchy;
  r.via = o.via;
  r.stripe = o.stripe;
  r.ring = o.ring;
  r.pipeline = o.pipeline;
  return r;
}

std::string describe(const plan::schedule& s, const plan::verdict& v) {
  const std::string bits = plan::what_is_identical(s, v);
  std::uint64_t scratch = 0;
  for (const plan::program& p : s.ranks) scratch = std::max(scratch, p.scratch_bytes);
  return s.algorithm + ": " + std::to_string(plan::instruction_count(s)) + " instructions on " +
         std::to_string(s.what.ranks) + " ranks in " + std::to_string(plan::channel_count(s)) +
         " channels, " + std::to_string(scratch) + " bytes of scratch, verified" +
         (bits.empty() ? "" : ": " + bits);
}

// Which expressions of the same elements ranks may get.
plan::ordering order_of(const compile_request& r, op reduction, base::determinism level) {
  if (reduction == op::none ||
      base::associative(static_cast<sucl_type>(r.element), static_cast<sucl_op>(reduction)))
    return plan::ordering::free;
  return level == base::determinism::strict ? plan::ordering::fixed : plan::ordering::any;
}

}  // namespace

draft_plan compose(const compile_request& r, int rank, int size, base::determinism level) {
  if (r.what.ranks() != size)
    base::fail(errc::invalid_rank,
               "a composition for " + std::to_string(r.what.ranks()) +
                   " ranks in a communicator of " + std::to_string(size),
               "Compose for communicator.size() ranks");
  draft_plan d;
  d.reduction = reduction_of(r);
  const plan::recipe passes = recipe_of(r.how);
  plan::composition what = translate(r);
  what.what.order = order_of(r, d.reduction, level);
  d.schedule = plan::build(plan::derive_outcome(std::move(what)), passes);
  d.element = r.element;
  const sizes mine = sizes_of(r, rank);
  d.facts.send_elements = mine.of[0];
  d.facts.recv_elements = mine.of[1];
  return d;
}

void prove(draft_plan& d) {
  const plan::schedule& s = d.schedule;
  plan::verdict v = plan::verify(s);
  if (v.what == plan::fault::differs || v.what == plan::fault::order)
    base::fail(errc::invalid_argument, "the composition gives no reproducible bits: " + v.message,
               s.what.order == plan::ordering::fixed
                   ? "Reduce from all ranks at once, without a hierarchy, a ring or stripes: "
                     "determinism = \"strict\" has one order for all"
                   : "Reduce once and multicast the result, or let every root reduce the same way");
  if (!v) v = plan::verify_or_fail(s);
  d.facts.text = describe(s, v);
  d.identity =
      base::hash_with(base::hash_with(plan::hash(s), static_cast<std::uint64_t>(d.reduction)),
                      static_cast<std::uint64_t>(d.element));
}

}  // namespace sucl::core
