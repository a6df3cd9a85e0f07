// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The standard collectives as compositions (after HiCCL's table of single- and multi-step forms).
#include "base/error.hpp"
#include "plan/compose/composition.hpp"

namespace sucl::plan {
namespace {

constexpr int max_roots = 8192;  // that many squared primitives

// Adds primitives, leaving out those of no bytes or no leaves.
struct writer {
  composition& c;

  void multicast(address src, address dst, std::uint64_t bytes, int root,
                 const std::vector<int>& leaves) const {
    if (bytes > 0 && !leaves.empty()) c.multicast(src, dst, bytes, root, leaves);
  }
  void reduction(address src, address dst, std::uint64_t bytes, int root) const {
    if (bytes > 0) c.reduction(src, dst, bytes, all_ranks(c.what), root);
  }
  // To one rank, with the root there, as in HiCCL's table 2: the blocks of a scatter then have
  // roots everywhere, and trees take them through all links of a node.
  void transfer(address src, address dst, std::uint64_t bytes, int from, int to) const {
    if (bytes > 0) c.reduction(src, dst, bytes, {from}, to);
  }
};

address input(std::uint64_t offset = 0) { return {space::send, offset}; }
address output(std::uint64_t offset = 0) { return {space::recv, offset}; }

std::uint64_t vector_bytes(const problem& p) { return p.counts[0] * p.element_bytes; }

void single_step(const writer& w) {
  const problem& p = w.c.what;
  const auto each = [&](const auto& act) {
    for (int r = 0; r < p.ranks; ++r) act(r);
  };
  switch (p.kind) {
    case kind::broadcast:
      return w.multicast(input(), output(), vector_bytes(p), p.root, all_but(p, p.root));
    case kind::reduce: return w.reduction(input(), output(), vector_bytes(p), p.root);
    case kind::allreduce:
      return each([&](int r) { w.reduction(input(), output(), vector_bytes(p), r); });
    case kind::reduce_scatter:
    case kind::reduce_scatter_block:
      return each([&](int r) {
        const extent e = input_block(p, r, r);
        w.reduction(input(e.offset), output(), e.bytes, r);
      });
    case kind::allgather:
    case kind::allgatherv:
      return each([&](int r) {
        const extent e = output_block(p, 0, r);
        w.multicast(input(), output(e.offset), e.bytes, r, all_ranks(p));
      });
    case kind::gather:
    case kind::gatherv:
      return each([&](int r) {
        const extent e = output_block(p, p.root, r);
        w.multicast(input(), output(e.offset), e.bytes, r, {p.root});
      });
    case kind::scatter:
    case kind::scatterv:
      return each([&](int r) {
        const extent e = input_block(p, p.root, r);
        w.transfer(input(e.offset), output(), e.bytes, p.root, r);
      });
    default:
      return each([&](int from) {
        each([&](int to) {
          w.multicast(input(input_block(p, from, to).offset),
                      output(output_block(p, to, from).offset), input_block(p, from, to).bytes,
                      from, {to});
        });
      });
  }
}

// Scatter, then allgather among the others.
void broadcast_steps(const writer& w) {
  const problem& p = w.c.what;
  const auto cuts = cut_evenly(vector_bytes(p), p.element_bytes, p.ranks);
  const auto size = [&](std::size_t r) { return cuts[r + 1] - cuts[r]; };
  for (const int r : all_but(p, p.root)) {
    const auto i = static_cast<std::size_t>(r);
    w.transfer(input(cuts[i]), output(cuts[i]), size(i), p.root, r);
  }
  const auto own = static_cast<std::size_t>(p.root);
  w.multicast(input(cuts[own]), output(cuts[own]), size(own), p.root, all_but(p, p.root));
  w.c.fence();
  for (const int r : all_but(p, p.root)) {
    const auto i = static_cast<std::size_t>(r);
    std::vector<int> others;
    for (const int o : all_but(p, p.root))
      if (o != r) others.push_back(o);
    w.multicast(output(cuts[i]), output(cuts[i]), size(i), r, others);
  }
}

// Reduce-scatter, then gather or allgather.
void reduce_steps(const writer& w) {
  const problem& p = w.c.what;
  const auto cuts = cut_evenly(vector_bytes(p), p.element_bytes, p.ranks);
  const bool to_all = p.kind == kind::allreduce;
  std::vector<address> parts;
  for (int r = 0; r < p.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const bool in_result = to_all || r == p.root;
    parts.push_back(in_result ? output(cuts[i]) : w.c.take_scratch(r, cuts[i + 1] - cuts[i]));
    w.reduction(input(cuts[i]), parts.back(), cuts[i + 1] - cuts[i], r);
  }
  w.c.fence();
  for (int r = 0; r < p.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (!to_all && r == p.root) continue;
    w.multicast(parts[i], output(cuts[i]), cuts[i + 1] - cuts[i], r,
                to_all ? all_but(p, r) : std::vector<int>{p.root});
  }
}

// Gather to rank 0, then broadcast block by block.
void allgather_steps(const writer& w) {
  const problem& p = w.c.what;
  for (int r = 0; r < p.ranks; ++r) {
    const extent e = output_block(p, 0, r);
    w.multicast(input(), output(e.offset), e.bytes, r, {0});
  }
  w.c.fence();
  for (int r = 0; r < p.ranks; ++r) {
    const extent e = output_block(p, 0, r);
    w.multicast(output(e.offset), output(e.offset), e.bytes, 0, all_but(p, 0));
  }
}

// Reduce to rank 0, then scatter.
void reduce_scatter_steps(const writer& w) {
  const problem& p = w.c.what;
  const std::uint64_t bytes = send_bytes(p, 0);
  const address sum = w.c.take_scratch(0, bytes);
  w.reduction(input(), sum, bytes, 0);
  w.c.fence();
  for (int r = 0; r < p.ranks; ++r) {
    const extent e = input_block(p, r, r);
    w.transfer(sum + e.offset, output(), e.bytes, 0, r);
  }
}

void reduce_and_broadcast(const writer& w) {
  const problem& p = w.c.what;
  w.reduction(input(), output(), vector_bytes(p), 0);
  w.c.fence();
  w.multicast(output(), output(), vector_bytes(p), 0, all_but(p, 0));
}

void multi_step(const writer& w, int steps) {
  const problem& p = w.c.what;
  if (steps == 3 && p.kind == kind::allreduce) return reduce_and_broadcast(w);
  if (steps == 2) {
    switch (p.kind) {
      case kind::broadcast: return broadcast_steps(w);
      case kind::reduce:
      case kind::allreduce: return reduce_steps(w);
      case kind::allgather:
      case kind::allgatherv: return allgather_steps(w);
      case kind::reduce_scatter:
      case kind::reduce_scatter_block: return reduce_scatter_steps(w);
      default: break;
    }
  }
  base::fail(
      errc::invalid_argument,
      std::string(sucl::name(p.kind)) + " has no composition of form " + std::to_string(steps),
      "Form 1 is single-step; form 2 exists for broadcast, reduce, allgather, "
      "reduce_scatter and allreduce, form 3 for allreduce.");
}

}  // namespace

composition compose(const problem& p, int steps) {
  check(p);
  if (p.kind == kind::scan || p.kind == kind::exscan || p.kind == kind::group || p.in_place)
    base::fail(errc::invalid_argument,
               p.in_place ? "compositions are not in place"
                          : std::string(sucl::name(p.kind)) + " has no standard composition",
               p.in_place ? "Use make_in_place() on the schedule."
                          : "Compose it from multicasts and reductions.");
  const bool one_root = rooted(p.kind) || (p.kind == kind::allreduce && steps == 3);
  if (!one_root && p.ranks > max_roots)
    base::fail(errc::out_of_memory,
               "a composition in which each of " + std::to_string(p.ranks) +
                   " ranks sends to each other has too many primitives",
               "Compositions with a root a rank take up to " + std::to_string(max_roots) +
                   " ranks. Take exchange, cyclic or hierarchical instead.");
  composition c;
  c.what = p;
  c.scratch.resize(static_cast<std::size_t>(p.ranks));
  if (steps == 1) {
    single_step({c});
  } else {
    multi_step({c}, steps);
  }
  if (c.steps.back().empty() && c.steps.size() > 1) c.steps.pop_back();
  check_races(c);
  c.in_order = c.what.order != ordering::free && reduces_repeatedly(c);
  return c;
}

}  // namespace sucl::plan
