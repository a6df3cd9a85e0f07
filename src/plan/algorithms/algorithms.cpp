// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/algorithms/algorithms.hpp"

#include "base/error.hpp"
#include "plan/algorithms/collectives.hpp"
#include "plan/compose/composition.hpp"
#include "plan/ir/fold_rules.hpp"
#include "plan/passes/passes.hpp"
#include "plan/symmetric/by_digits.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sucl::plan {
namespace {

using build_function = void (*)(builder&, const recipe&);

build_function function_for(kind k) {
  switch (k) {
    case kind::allreduce: return build_allreduce;
    case kind::reduce: return build_reduce;
    case kind::broadcast: return build_broadcast;
    case kind::gather:
    case kind::gatherv: return build_gather;
    case kind::scatter:
    case kind::scatterv: return build_scatter;
    case kind::allgather:
    case kind::allgatherv: return build_allgather;
    case kind::reduce_scatter:
    case kind::reduce_scatter_block: return build_reduce_scatter;
    case kind::alltoall:
    case kind::alltoallv: return build_alltoall;
    default: return build_scan;
  }
}

const algorithm_info* find(const std::string& name) {
  for (const algorithm_info& a : algorithms())
    if (name == a.name) return &a;
  return nullptr;
}

bool solves(const algorithm_info& a, kind k) {
  return std::find(a.kinds.begin(), a.kinds.end(), k) != a.kinds.end();
}

bool takes(const algorithm_info& a, const char* parameter) {
  return std::any_of(a.parameters.begin(), a.parameters.end(),
                     [&](const char* p) { return std::strcmp(p, parameter) == 0; });
}

std::int64_t product(const std::vector<int>& list) {
  std::int64_t p = 1;
  for (const int f : list) p = std::min<std::int64_t>(p * f, std::int64_t{1} << 40);
  return p;
}

bool pipelines(kind k) { return k == kind::allreduce || k == kind::reduce || k == kind::broadcast; }

// The factors other than 1: a digit with one value does nothing.
by_digits_options options_of(const recipe& r) {
  by_digits_options o{{}, {}, r.split, r.pipeline, r.stagger, r.algorithm == "packed_digits"};
  for (std::size_t i = 0; i < r.hierarchy.size(); ++i) {
    if (r.hierarchy[i] == 1) continue;
    o.radices.push_back(r.hierarchy[i]);
    if (i < r.via.size()) o.via.push_back(r.via[i]);
  }
  return o;
}

bool does_nothing(const problem& p) { return p.ranks == 1 || p.counts[0] == 0; }

std::string refuse_symmetric(const problem& p, const recipe& r) {
  if (p.in_place && r.pipeline > 1) return "in place it has one channel";
  if (does_nothing(p))
    return product(r.hierarchy) == p.ranks ? "" : "the hierarchy is one of other ranks";
  problem apart = p;
  apart.in_place = false;
  apart.order = ordering::any;
  return refusal(apart, options_of(r));
}

// Fills in what the recipe leaves to the algorithm.
recipe complete(const problem& p, recipe r) {
  if (r.radices.empty()) {
    if (r.algorithm == "exchange")
      r.radices = p.kind == kind::allreduce ? powers_below(p.ranks, 2) : factors_of(p.ranks, 2);
    else if (r.algorithm == "peer_exchange")
      r.radices = factors_of(p.ranks, 2);
    else
      r.radices = {2};
  }
  const auto most = static_cast<int>(r.radices.size());
  if (r.split < 0 && !is_symmetric(r)) r.split = most;
  if (r.inner.empty()) r.inner = r.algorithm.starts_with("scatter_") ? "ring" : "direct";
  if (r.outer.empty())
    r.outer = r.algorithm == "two_level" && p.kind != kind::allreduce ? "tree" : "ring";
  if (r.hierarchy.empty()) r.hierarchy = {p.ranks};
  if (r.nodes.empty()) r.nodes.assign(static_cast<std::size_t>(std::max(p.ranks, 0)), 0);
  return r;
}

std::vector<level> levels_of(const recipe& r) {
  std::vector<level> levels;
  if (r.algorithm != "hierarchical" && r.algorithm != "composed") return levels;
  for (std::size_t i = 0; i < r.hierarchy.size(); ++i)
    levels.push_back({"level" + std::to_string(i), r.via.empty() ? "any" : r.via[i]});
  return levels;
}

bool one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

// Parameters that the algorithm does not take, by name; empty if there are none.
std::string unused(const algorithm_info& a, const recipe& r) {
  const recipe none;
  const std::pair<const char*, bool> given[] = {{"radices", r.radices != none.radices},
                                                {"split", r.split != none.split},
                                                {"ports", r.ports != none.ports},
                                                {"segments", r.segments != none.segments},
                                                {"pipeline", r.pipeline != none.pipeline},
                                                {"hierarchy", r.hierarchy != none.hierarchy},
                                                {"via", r.via != none.via},
                                                {"nodes", r.nodes != none.nodes},
                                                {"inner", r.inner != none.inner},
                                                {"outer", r.outer != none.outer},
                                                {"leaders", r.leaders != none.leaders},
                                                {"stripe", r.stripe != none.stripe},
                                                {"ring", r.ring != none.ring},
                                                {"steps", r.steps != none.steps},
                                                {"fuse", r.fuse != none.fuse},
                                                {"stagger", r.stagger != none.stagger}};
  for (const auto& [name, is_given] : given)
    if (is_given && !takes(a, name)) return name;
  return {};
}

std::string refuse_radices(const problem& p, const recipe& r) {
  for (const int f : r.radices)
    if (f < 2) return "a radix of " + std::to_string(f) + ": radices are 2 or more";
  if (r.algorithm == "cyclic") return {};
  const bool listed = r.algorithm == "exchange" || r.algorithm == "peer_exchange";
  if (!listed && r.radices.size() != 1) return "it takes one radix";
  if (!listed) return {};
  const std::int64_t members = product(r.radices);
  const bool folds = r.algorithm == "exchange" && p.kind == kind::allreduce;
  if (members == p.ranks || (folds && members < p.ranks && p.ranks <= 2 * members)) return {};
  return "the radices multiply to " + std::to_string(members) + ", not to " +
         std::to_string(p.ranks) + " ranks" +
         (folds ? " or at least half of them" : "; the cyclic shift takes any number of ranks");
}

std::string refuse_hierarchy(const problem& p, const recipe& r) {
  for (const int f : r.hierarchy)
    if (f < 1) return "a factor of " + std::to_string(f) + " in the hierarchy";
  if (product(r.hierarchy) < p.ranks)
    return "the hierarchy is one of " + std::to_string(product(r.hierarchy)) +
           " ranks, the plan of " + std::to_string(p.ranks) + ": raise its first factor";
  if (r.hierarchy.size() >= max_levels) return "it has too many levels";
  if (!r.via.empty() && r.via.size() != r.hierarchy.size())
    return "there are " + std::to_string(r.via.size()) + " transports for " +
           std::to_string(r.hierarchy.size()) + " levels";
  if (!one_of(r.inner, {"direct", "ring", "exchange", "cyclic", "peer"}))
    return "inner pattern '" + r.inner + "': it is direct, ring, exchange, cyclic or peer";
  if (!one_of(r.outer, {"direct", "ring", "exchange", "cyclic", "peer", "doubling", "tree"}))
    return "outer pattern '" + r.outer +
           "': it is direct, ring, exchange, cyclic, peer, doubling or tree";
  if (r.leaders < 0) return "a negative number of leaders";
  return {};
}

std::string refuse_nodes(const problem& p, const recipe& r) {
  if (r.nodes.size() != static_cast<std::size_t>(p.ranks))
    return "it has the nodes of " + std::to_string(r.nodes.size()) + " ranks, not of " +
           std::to_string(p.ranks);
  if (r.leaders < 0) return "a negative number of leaders";
  if (r.algorithm == "node_shot") return {};
  if (p.kind != kind::allreduce)
    return r.outer == "tree" ? ""
                             : "outer pattern '" + r.outer + "': for this collective it is tree";
  if (!one_of(r.outer, {"direct", "ring", "exchange", "cyclic", "doubling", "tree"}))
    return "outer pattern '" + r.outer +
           "': it is direct, ring, exchange, cyclic, doubling or tree";
  return {};
}

// The ranks of a node for striping: the smallest groups of the hierarchy that have as many.
int stripe_group(const recipe& r) {
  std::int64_t width = 1;
  for (std::size_t i = r.hierarchy.size(); i-- > 0 && width < r.stripe;)
    width = std::min<std::int64_t>(width * r.hierarchy[i], 1 << 30);
  return static_cast<int>(width);
}

std::string refuse_composed(const problem& p, const recipe& r) {
  if (r.stripe < 1 || stripe_group(r) < r.stripe)
    return std::to_string(r.stripe) + " stripes: give from 1 to as many as there are ranks";
  if (r.ring < 1 || (r.ring > 1 && r.ring != r.hierarchy[0]))
    return "a ring of " + std::to_string(r.ring) +
           " nodes: it is 1 (none) or the first factor of the hierarchy";
  const bool two = p.kind == kind::broadcast || p.kind == kind::reduce ||
                   p.kind == kind::allgather || p.kind == kind::allgatherv ||
                   p.kind == kind::reduce_scatter || p.kind == kind::reduce_scatter_block ||
                   p.kind == kind::allreduce;
  if (r.steps < 1 || r.steps > (p.kind == kind::allreduce ? 3 : two ? 2 : 1))
    return "there is no form of " + std::to_string(r.steps) + " steps";
  if (r.ring > 1 && r.steps == 1 && p.kind == kind::allreduce && p.order != ordering::free)
    return "each rank reduces for itself in one step, and a ring begins at another node for each:"
           " results would differ in their last bits";
  return {};
}

schedule build_composed(composition c, const recipe& r, std::string name) {
  c.in_order = c.in_order || c.what.order == ordering::fixed;
  c = pipeline(std::move(c), r.pipeline);
  c.levels = levels_of(r);
  if (r.stripe > 1) c = stripe(std::move(c), stripe_group(r), r.stripe);
  const std::int64_t rest = product({r.hierarchy.begin() + 1, r.hierarchy.end()});
  if (r.ring > 1) c = ring(std::move(c), static_cast<int>(std::min<std::int64_t>(rest, 1 << 30)));
  schedule s = lower(factorise(std::move(c), r.hierarchy), std::move(name));
  s = rotate_peers(defer_copies(std::move(s)), r.hierarchy);
  if (r.fuse > 0) s = fuse_messages(std::move(s), static_cast<std::uint64_t>(r.fuse));
  s = pack_scratch(std::move(s));
  return r.stagger > 0 ? stagger(std::move(s)) : s;
}

// Which algorithms combine runs of neighbouring ranks only.
bool keeps_order(const problem& p, const recipe& r) {
  if (!reduces(p.kind)) return true;
  const bool pairs = std::all_of(r.radices.begin(), r.radices.end(), [](int f) { return f == 2; });
  if (r.algorithm == "one_shot") return p.kind == kind::allreduce || p.kind == kind::reduce;
  if (r.algorithm == "staged_one_shot" || r.algorithm == "mapped_one_shot" ||
      r.algorithm == "read_one_shot")
    return true;
  if (r.algorithm == "doubling" || r.algorithm == "recursive_scan") return true;
  if (r.algorithm == "exchange" && p.kind == kind::allreduce) return pairs;
  if (r.algorithm == "peer_exchange") return pairs;
  if (r.algorithm == "tree") return p.kind == kind::allreduce || p.root == 0;
  if (r.algorithm == "chain") return p.root == 0;
  return false;
}

// Which algorithms fold all contributions in one fold in order of rank.
bool folds_in_order(const problem& p, const recipe& r) {
  if (!reduces(p.kind) || p.ranks <= 2) return true;
  const std::string& a = r.algorithm;
  // Whether the fold of what was folded before is something else than one fold of all.
  const bool rounds = fold_rules::of(p.element_bytes).widens;
  if (a == "one_shot") return p.kind == kind::allreduce || (p.kind == kind::reduce && !rounds);
  if (a == "staged_one_shot" || a == "mapped_one_shot" || a == "read_one_shot") return true;
  if (a == "two_shot" || a.ends_with("_two_shot") || a == "direct") return true;
  if (a == "doubling") return r.radices[0] >= p.ranks;
  if (a == "digits")
    return p.kind == kind::allreduce && options_of(r).radices.size() == 1 &&
           split_of(p, options_of(r)) == 0;
  if (a == "exchange") return r.split == 0 && r.radices.size() == 1 && r.radices[0] >= p.ranks;
  if (a == "tree")
    return r.radices[0] >= p.ranks && !rounds && (p.kind == kind::allreduce || p.root == 0);
  return a == "composed" && r.hierarchy.size() == 1 && r.stripe == 1 && r.ring == 1;
}

std::string refuse_numbers(const problem& p, const recipe& r) {
  if (r.ports < 0 || r.fuse < 0) return "a negative number";
  if (r.stagger < 0 || r.stagger > 1) return "stagger is 0 or 1";
  if (r.segments < 1 || r.pipeline < 1 || r.segments > 65536 || r.pipeline > 1024)
    return "segments are 1 to 65536 and channels 1 to 1024";
  if (r.pipeline > 1 && !pipelines(p.kind) && r.algorithm != "composed")
    return std::string(sucl::name(p.kind)) +
           " has one channel: channels cut every block, and the messages of this algorithm carry"
           " runs of whole blocks that would fall apart; composed has channels";
  if (r.split < 0 || r.split > static_cast<int>(r.radices.size()))
    return "it splits by " + std::to_string(r.split) + " of " + std::to_string(r.radices.size()) +
           " radices";
  if (p.kind != kind::allreduce && r.split != static_cast<int>(r.radices.size()))
    return "only allreduce may exchange whole vectors";
  return {};
}

std::string refuse_complete(const problem& p, const recipe& r) {
  std::string why = is_symmetric(r) ? refuse_symmetric(p, r) : refuse_radices(p, r);
  if (why.empty() && !is_symmetric(r)) why = refuse_numbers(p, r);
  const bool composed = r.algorithm == "composed";
  if (why.empty() && (r.algorithm == "hierarchical" || composed)) why = refuse_hierarchy(p, r);
  if (why.empty() && composed) why = refuse_composed(p, r);
  if (why.empty() && (r.algorithm == "node_shot" || r.algorithm == "two_level"))
    why = refuse_nodes(p, r);
  if (why.empty() && r.algorithm.starts_with("scatter_") &&
      !one_of(r.inner, {"direct", "ring", "exchange", "cyclic"}))
    why = "inner pattern '" + r.inner + "': it is direct, ring, exchange or cyclic";
  if (why.empty() && p.order == ordering::ranked && !keeps_order(p, r))
    why = "it does not combine in order of rank";
  if (why.empty() && p.order == ordering::fixed && p.kind != kind::group && !folds_in_order(p, r))
    why = "it does not fold all contributions in order of rank, as determinism = \"strict\" asks";
  return why;
}

}  // namespace

std::vector<const algorithm_info*> algorithms_for(kind k) {
  std::vector<const algorithm_info*> list;
  for (const algorithm_info& a : algorithms())
    if (solves(a, k)) list.push_back(&a);
  return list;
}

std::string refusal(const problem& p, const recipe& r) {
  const algorithm_info* a = find(r.algorithm);
  if (!a) {
    std::vector<std::string> names;
    for (const algorithm_info* known : algorithms_for(p.kind)) names.push_back(known->name);
    return "there is no algorithm '" + r.algorithm + "'. " + base::did_you_mean(r.algorithm, names);
  }
  if (!solves(*a, p.kind)) {
    std::string names;
    for (const algorithm_info* known : algorithms_for(p.kind))
      names += (names.empty() ? "" : ", ") + std::string(known->name);
    return r.algorithm + " does not do " + sucl::name(p.kind) + "; these do: " + names;
  }
  if (const std::string name = unused(*a, r); !name.empty())
    return r.algorithm + " takes no parameter '" + name + "'";
  const std::string why = refuse_complete(p, complete(p, r));
  return why.empty() ? why : r.algorithm + ": " + why;
}

schedule build(const composition& c, const recipe& r) {
  const recipe whole = complete(c.what, r);
  if (const std::string why = refuse_complete(c.what, whole); !why.empty())
    base::fail(errc::invalid_argument, "this plan cannot be built: " + why,
               "Choose other options.");
  return build_composed(c, whole, to_text(r));
}

namespace {

// For a problem that is not in place; `in_place` says that make_in_place() follows.
schedule build_apart(const problem& p, const recipe& r, bool in_place) {
  const recipe whole = complete(p, r);
  if (r.algorithm == "composed") return build_composed(compose(p, whole.steps), whole, to_text(r));
  builder b(p, levels_of(whole));
  if (in_place) b.set_in_place();
  if (r.algorithm == "staged_one_shot")
    build_one_shot(b, access::staged);
  else if (r.algorithm == "mapped_one_shot")
    build_one_shot(b, access::mapped);
  else if (r.algorithm == "read_one_shot")
    build_one_shot(b, access::read);
  else if (r.algorithm == "read_two_shot")
    build_read_two_shot(b);
  else if (r.algorithm == "staged_two_shot")
    build_staged_two_shot(b);
  else if (r.algorithm == "mapped_two_shot")
    build_mapped_two_shot(b);
  else if (r.algorithm == "node_shot")
    build_node_shot(b, whole);
  else if (r.algorithm == "two_level")
    build_two_level(b, whole);
  else
    function_for(p.kind)(b, whole);
  schedule s = b.finish(to_text(r));
  return r.stagger > 0 ? stagger(std::move(s)) : s;
}

}  // namespace

namespace {

void check_recipe(const problem& p, const recipe& r) {
  check(p);
  if (const std::string why = refusal(p, r); !why.empty())
    base::fail(errc::invalid_argument, "this plan cannot be built: " + why,
               "Choose other parameters or another algorithm.");
}

}  // namespace

bool is_symmetric(const recipe& r) {
  return r.algorithm == "digits" || r.algorithm == "packed_digits";
}

symmetric_schedule build_symmetric(const problem& p, const recipe& r) {
  check_recipe(p, r);
  symmetric_schedule s = build_by_digits(p, options_of(complete(p, r)));
  s.algorithm = to_text(r);
  return s;
}

namespace {

// The plan of all ranks. In place each rank first copies its input, so that no result
// overwrites it too early.
schedule build_expanded(const problem& p, const recipe& r) {
  problem apart = p;
  apart.in_place = false;
  apart.order = ordering::any;
  schedule s;
  if (does_nothing(p)) {
    builder b(apart);
    b.copy(0, {space::recv, 0}, {space::send, 0}, p.ranks == 1 ? send_bytes(apart, 0) : 0);
    s = b.finish(to_text(r));
  } else {
    s = expand(build_symmetric(apart, r));
  }
  s.what = p;
  if (!p.in_place) return s;
  for (int rank = 0; rank < p.ranks; ++rank) {
    program& own = s.ranks[static_cast<std::size_t>(rank)];
    const extent in = input_extent(p, rank);
    const std::uint64_t step = std::lcm(p.element_bytes, std::uint64_t{16});
    const std::uint64_t copy = (own.scratch_bytes + step - 1) / step * step;
    for (channel& c : own.channels) {
      for (instruction& i : c)
        if (i.src == space::send) {
          i.src = space::scratch;
          i.src_offset += copy;
        }
      c.insert(c.begin(),
               {opcode::copy, space::scratch, space::recv, 0, -1, copy, in.offset, in.bytes});
    }
    if (!own.channels.empty()) own.scratch_bytes = copy + in.bytes;
  }
  return s;
}

}  // namespace

schedule build(const problem& p, const recipe& r) {
  check_recipe(p, r);
  if (is_symmetric(r)) return build_expanded(p, r);
  if (!p.in_place) return build_apart(p, r, false);
  problem apart = p;
  apart.in_place = false;
  return make_in_place(build_apart(apart, r, true));
}

}  // namespace sucl::plan
