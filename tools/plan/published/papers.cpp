// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "papers.hpp"

#include "measured.hpp"
#include "plan/source.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "sim/simulate.hpp"
#include "tune/candidates.hpp"
#include "tune/rank_hierarchy.hpp"
#include "tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sucl::tools {
namespace {

using plan::problem;
using plan::recipe;

constexpr double forever = std::numeric_limits<double>::infinity();
constexpr std::uint64_t max_work = 40'000'000;  // of one simulation

constexpr kind eight[] = {kind::broadcast, kind::reduce,    kind::gather,
                          kind::scatter,   kind::allgather, kind::reduce_scatter_block,
                          kind::allreduce, kind::alltoall};

bool takes_vectors(kind k) { return k == kind::broadcast || k == kind::reduce; }

// Simulated seconds; infinity where the plan takes longer than `most` or too much work, which
// `too_large` tells apart.
double timed(const problem& p, const recipe& r, const sim::machine& m, double most = 0,
             bool* too_large = nullptr) {
  if (!plan::refusal(p, r).empty()) return forever;
  sim::simulate_options limits;
  limits.max_seconds = most;
  limits.max_work = max_work;
  const sim::prediction t = sim::simulate(plan::build(p, r), m, limits);
  if (too_large) *too_large = t.gave_up && t.work >= max_work;
  return t.gave_up ? forever : t.seconds;
}

tune::search_result searched(const problem& p, const sim::machine& m, const paper_options& o) {
  tune::search_options options;
  options.budget = o.effort;
  return tune::search(p, m, options);
}

int node_width(const sim::machine& m) { return static_cast<int>(sim::member_ranks(m, 0)); }

// HiCCL's buffers: `largest` bytes where all blocks come together.
problem of_largest(kind k, int ranks, std::uint64_t largest) {
  problem_options o;
  o.collective = sucl::name(k);
  o.ranks = ranks;
  const bool whole = takes_vectors(k) || k == kind::allreduce;
  const std::uint64_t block = whole ? largest : largest / static_cast<std::uint64_t>(ranks);
  return make_problem(o, block / 4 * 4);
}

recipe composed(const problem& p, const tune::rank_hierarchy& s) {
  recipe r;
  r.algorithm = "composed";
  r.hierarchy = s.factors;
  r.via = s.vias;
  r.steps = p.kind == kind::allreduce ? 2 : 1;
  return r;
}

std::string rate(const problem& p, double seconds) {
  return seconds == forever ? "-" : number_text(throughput(p, seconds) / 1e9);
}
std::string times(double before, double after) {
  return before == forever || after == forever ? "-" : number_text(before / after) + "x";
}

// The bandwidth bound of a collective in bytes a second: what must pass the NICs of the busiest
// node with all of them at their rate.
double bound(const problem& p, const sim::machine& m) {
  const sim::level& network = m.levels[0];
  const double nics = network.ports * network.port_bandwidth;
  const double ranks = p.ranks, width = node_width(m);
  const double outside = ranks / (ranks - width);
  if (takes_vectors(p.kind)) return nics;
  if (p.kind == kind::allreduce) return nics * outside / 2;
  if (p.kind == kind::alltoall) return nics * outside / width;
  return nics * outside;
}

struct geometric {
  double log_sum = 0;
  int count = 0;
  void add(double ratio) {
    if (!std::isfinite(ratio) || ratio <= 0) return;
    log_sum += std::log(ratio);
    ++count;
  }
  double mean() const { return std::exp(log_sum / count); }
  std::string text() const { return count ? number_text(mean()) + "x" : "-"; }
};

// What each step added, over several sets of bars.
struct gains {
  geometric hierarchy, striping, pipelining;
  void add(const measured_bars& b) {
    const double before = b.striping > 0 ? b.striping : b.hierarchy;
    hierarchy.add(b.hierarchy / b.direct);
    if (b.striping > 0) striping.add(b.striping / b.hierarchy);
    pipelining.add(b.pipelining / before);
  }
};

// The best depth of a pipeline.
double piped(const problem& p, recipe r, const sim::machine& m) {
  double best = forever;
  for (const int depth : {1, 4, 16, 64}) {
    r.pipeline = depth;
    r.stagger = depth > 1 ? 1 : 0;
    best = std::min(best, timed(p, r, m, best == forever ? 0 : best));
  }
  return best;
}

// The bars of HiCCL's figure 8, simulated.
measured_bars simulated_bars(const problem& p, const sim::machine& m, int nodes, bool ring) {
  const auto rate = [&](double seconds) { return throughput(p, seconds) / 1e9; };
  const tune::rank_hierarchy own = tune::machine_hierarchy(m, p.ranks);
  recipe r = composed(p, ring ? own : tune::with_outer(own, tune::factors_up_to(nodes, 2)));
  if (ring) r.ring = nodes;
  measured_bars b;
  b.direct = rate(timed(p, composed(p, {{p.ranks}, {"any"}}), m));
  b.hierarchy = rate(timed(p, r, m));
  if (takes_vectors(p.kind)) {
    r.stripe = node_width(m);
    b.striping = rate(timed(p, r, m));
  }
  b.pipelining = rate(piped(p, r, m));
  return b;
}

// A simulated figure, and the measured one where there is one.
std::string both(double simulated, double measured) {
  if (simulated <= 0) return "-";
  return number_text(simulated) + (measured > 0 ? " (" + number_text(measured) + ")" : "");
}

// One machine of figure 8; adds to what the steps gained, simulated and measured.
paper_table steps_on(const sim::machine& m, const paper_options& o, gains& of_model,
                     gains& of_paper) {
  const int ranks = o.nodes * node_width(m);
  paper_table t{
      m.name + ", " + std::to_string(o.nodes) + " nodes, " + std::to_string(ranks) +
          " ranks, largest buffer " + bytes_text(o.bytes) + ": GB/s",
      {"collective", "direct", "+ hierarchy", "+ striping", "+ pipelining", "bound", "search"},
      {}};
  for (const kind k : eight)
    for (const bool ring : {true, false}) {
      if (ring && !takes_vectors(k)) continue;
      const problem p = of_largest(k, ranks, o.bytes);
      if (o.shown) o.shown->at(m.name + ", " + sucl::name(k));
      const measured_bars is = simulated_bars(p, m, o.nodes, ring);
      const measured_bars* const was = o.nodes == 4 ? measured(m.name, k, ring) : nullptr;
      const measured_bars paper = was ? *was : measured_bars{};
      of_model.add(is);
      if (was) of_paper.add(paper);
      const char* const variant = !takes_vectors(k) ? "" : ring ? ", ring" : ", tree";
      t.rows.push_back(
          {sucl::name(k) + std::string(variant), both(is.direct, paper.direct),
           both(is.hierarchy, paper.hierarchy), both(is.striping, paper.striping),
           both(is.pipelining, paper.pipelining), number_text(bound(p, m) / 1e9),
           ring ? "" : number_text(throughput(p, searched(p, m, o).best[0].seconds) / 1e9)});
    }
  return t;
}

// HiCCL's figure 8: what each optimization adds.
std::vector<paper_table> steps(const paper_options& o) {
  std::vector<paper_table> tables;
  paper_table means{"geometric means of what each step gains, simulated and (measured)",
                    {"machine", "hierarchy", "striping", "pipelining"},
                    {}};
  const auto pair = [](const geometric& is, const geometric& was) {
    return is.text() + (was.count ? " (" + was.text() + ")" : "");
  };
  const auto add_means = [&](const std::string& name, const gains& is, const gains& was) {
    means.rows.push_back({name, pair(is.hierarchy, was.hierarchy), pair(is.striping, was.striping),
                          pair(is.pipelining, was.pipelining)});
  };
  geometric all_model, all_paper;
  for (const sim::machine& m : o.machines) {
    gains is, was;
    tables.push_back(steps_on(m, o, is, was));
    add_means(m.name, is, was);
    all_model.add(is.hierarchy.mean());
    if (was.hierarchy.count) all_paper.add(was.hierarchy.mean());
  }
  means.rows.push_back({"all", pair(all_model, all_paper), "", ""});
  tables.push_back(std::move(means));
  return tables;
}

// Ring against tree over nodes, with HiCCL's model of both.
std::vector<paper_table> rings(const paper_options& o) {
  constexpr int depth = 32;
  const sim::machine& m = o.machines[0];
  paper_table t{m.name + ", broadcast of " + bytes_text(o.bytes) + " in " + std::to_string(depth) +
                    " channels",
                {"nodes", "ring", "formula", "off", "with rated B", "off", "tree", "formula", "off",
                 "ring is faster"},
                {}};
  const sim::level& network = m.levels[0];
  const double latency = network.transports[0].latency;
  for (const int nodes : {2, 4, 8, 16, 32}) {
    const problem p = of_largest(kind::broadcast, nodes * node_width(m), o.bytes);
    const tune::rank_hierarchy own = tune::machine_hierarchy(m, p.ranks);
    recipe r = composed(p, own);
    r.stripe = node_width(m);
    r.pipeline = depth;
    r.stagger = 1;
    r.ring = nodes;
    const double ring = timed(p, r, m);
    r.ring = 1;
    const tune::rank_hierarchy tree_hierarchy =
        tune::with_outer(own, tune::factors_up_to(nodes, 2));
    r.hierarchy = tree_hierarchy.factors;
    r.via = tree_hierarchy.vias;
    const double tree = timed(p, r, m);
    // A NIC of a ring sends and receives at once, but at its ends.
    const double one_way = network.port_bandwidth;
    const double relayed =
        nodes > 2 && network.port_both > 0 ? std::min(one_way, network.port_both / 2) : one_way;
    const double part = static_cast<double>(o.bytes) / depth / network.ports / one_way;
    const double hop = part * one_way / relayed;
    const auto ring_formula = [&](double t) { return (nodes + depth - 2) * (latency + t) + part; };
    const double ring_model = ring_formula(hop), ring_rated = ring_formula(part);
    const double tree_model = std::log2(nodes) * depth * part + std::log2(nodes) * latency + part;
    const auto off = [](double is, double model) {
      return number_text((is / model - 1) * 100, 2) + " %";
    };
    t.rows.push_back({std::to_string(nodes), time_text(ring), time_text(ring_model),
                      off(ring, ring_model), time_text(ring_rated), off(ring, ring_rated),
                      time_text(tree), time_text(tree_model), off(tree, tree_model),
                      times(tree, ring)});
  }
  return {t};
}

constexpr int depths_shown[] = {1, 2, 4, 8, 16, 32, 64, 128};

// One collective of figure 9.
paper_table depths_of(kind k, const sim::machine& m, const paper_options& o) {
  const int ranks = o.nodes * node_width(m);
  const bool vectors = takes_vectors(k);
  const std::string caption = m.name + ", " + std::to_string(ranks) + " ranks, " + sucl::name(k) +
                              " by " + (vectors ? "ring and tree" : "tree");
  paper_table t{caption + ": GB/s by depth of the pipeline", {"bytes"}, {}};
  chart c{caption, "bytes", "GB/s", true, {}};
  for (const int depth : depths_shown) {
    t.names.push_back(std::to_string(depth));
    c.curves.push_back({"depth " + t.names.back(), {}, false});
  }
  c.curves.push_back({"bound", {}, true});
  for (std::uint64_t bytes = 1 << 20; bytes <= o.bytes; bytes *= 4) {
    const problem p = of_largest(k, ranks, bytes);
    const tune::rank_hierarchy own = tune::machine_hierarchy(m, ranks);
    recipe r = composed(p, vectors ? own : tune::with_outer(own, tune::factors_up_to(o.nodes, 2)));
    if (vectors) r.stripe = node_width(m);
    if (vectors) r.ring = o.nodes;
    t.rows.push_back({bytes_text(bytes)});
    for (std::size_t i = 0; i < std::size(depths_shown); ++i) {
      if (o.shown) o.shown->at(std::string(sucl::name(k)) + ", " + bytes_text(bytes));
      r.pipeline = depths_shown[i];
      r.stagger = r.pipeline > 1 ? 1 : 0;
      const double seconds = timed(p, r, m);
      t.rows.back().push_back(rate(p, seconds));
      if (seconds < forever)
        c.curves[i].points.emplace_back(static_cast<double>(bytes), throughput(p, seconds) / 1e9);
    }
    c.curves.back().points.emplace_back(static_cast<double>(bytes), bound(p, m) / 1e9);
  }
  t.picture = std::move(c);
  return t;
}

// HiCCL's figure 9: throughput over size for several depths.
std::vector<paper_table> depths(const paper_options& o) {
  std::vector<paper_table> tables;
  for (const kind k : {kind::gather, kind::scatter, kind::broadcast, kind::reduce})
    tables.push_back(depths_of(k, o.machines[0], o));
  return tables;
}

// HiCCL's figure 10: allreduce over nodes, and what search takes there.
std::vector<paper_table> scaling(const paper_options& o) {
  std::vector<paper_table> tables;
  for (const sim::machine& m : o.machines) {
    paper_table t{
        m.name + ", allreduce",
        {"nodes", "ranks", "bytes", "ring", "HiCCL's form", "search", "ring / search", "recipe "},
        {}};
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{1} << 20, o.bytes})
      for (const int nodes : {2, 16, 64, 256}) {
        const problem p = of_largest(kind::allreduce, nodes * node_width(m), bytes);
        if (o.shown)
          o.shown->at(m.name + ", " + std::to_string(p.ranks) + " ranks, " + bytes_text(bytes));
        recipe ring;
        ring.algorithm = "ring";
        // The two-step composition in one instruction a pair of nodes: multi-leader reduce-scatter
        // and allgather along the levels.
        recipe form;
        form.algorithm = "hierarchical";
        const tune::rank_hierarchy own = tune::machine_hierarchy(m, p.ranks);
        form.hierarchy = own.factors;
        form.via = own.vias;
        form.inner = "direct";
        form.outer = "ring";
        form.pipeline = bytes > (1 << 20) ? 4 : 1;
        const tune::search_result found = searched(p, m, o);
        const double flat = timed(p, ring, m), levels = timed(p, form, m);
        const auto cell = [](double s) { return s == forever ? std::string("-") : time_text(s); };
        t.rows.push_back({std::to_string(nodes), std::to_string(p.ranks), bytes_text(bytes),
                          cell(flat), cell(levels), time_text(found.best[0].seconds),
                          times(flat, found.best[0].seconds), plan::to_text(found.best[0].how)});
      }
    tables.push_back(std::move(t));
  }
  return tables;
}

// The two-level allreduce of the Intel-GPU paper.
std::vector<paper_table> leaders(const paper_options& o) {
  const sim::machine& m = o.machines[0];
  paper_table t{
      m.name + ", allreduce: flat ring, single- and multi-leader, search",
      {"ranks", "bytes", "ring", "single", "multi", "search", "single / multi", "recipe "},
      {}};
  for (const int nodes : {1, 2, 4})
    for (const std::uint64_t bytes : {std::uint64_t{1} << 20, std::uint64_t{1} << 26, o.bytes}) {
      const problem p = of_largest(kind::allreduce, nodes * node_width(m), bytes);
      recipe r;
      r.algorithm = "ring";
      const double ring = timed(p, r, m);
      r = {};
      r.algorithm = "hierarchical";
      const tune::rank_hierarchy s = tune::with_one_inner(tune::machine_hierarchy(m, p.ranks));
      r.hierarchy = s.factors;
      if (nodes == 1) r.hierarchy = {1, p.ranks};
      r.inner = "peer";
      r.outer = "exchange";
      const double multi = timed(p, r, m);
      // Leaders are those that go on to other nodes; within one node both are the same kernel.
      r.leaders = nodes > 1 ? 1 : 0;
      const double single = timed(p, r, m);
      const tune::found best = searched(p, m, o).best[0];
      t.rows.push_back({std::to_string(p.ranks), bytes_text(bytes), time_text(ring),
                        time_text(single), time_text(multi), time_text(best.seconds),
                        times(single, multi), plan::to_text(best.how)});
    }
  return {t};
}

// Search against the parameter sets that others published.
std::vector<paper_table> published(const paper_options& o) {
  paper_table t{
      "The best published set's time over search's",
      {"machine", "collective ", "8 B", "256 B", "8 KiB", "256 KiB", "8 MiB", "256 MiB", "1 GiB"},
      {}};
  double least = forever;
  int sets = 0, skipped = 0, below = 0;
  std::vector<std::string> notes;
  for (const sim::machine& m : o.machines)
    for (const kind k : eight) {
      std::vector<std::string> row{m.name, sucl::name(k)};
      for (const std::uint64_t bytes : {3, 8, 13, 18, 23, 28, 30}) {
        problem_options options;
        options.collective = sucl::name(k);
        const std::int64_t all = sim::rank_count(m);
        options.ranks = static_cast<int>(std::min<std::int64_t>(all, o.nodes * node_width(m)));
        const problem p = make_problem(options, std::uint64_t{1} << bytes);
        const std::string cell = m.name + ", " + sucl::name(k) + ", " + bytes_text(1ull << bytes);
        if (o.shown) o.shown->at(cell);
        const double found = searched(p, m, o).best[0].seconds;
        double best = forever;
        for (const auto& list : {tune::hiccl_sets(p, m), tune::ext_mpi_sets(p, m)})
          for (const tune::published& one : list) {
            bool too_large = false;
            best = std::min(best, timed(p, one.how, m, std::min(best, 1000 * found), &too_large));
            ++sets;
            skipped += too_large;
            if (too_large) notes.push_back("left out: " + cell + ": " + one.source);
          }
        least = std::min(least, best / found);
        below += best < found;
        if (best < found) notes.push_back(cell + ": " + number_text(best / found, 8));
        row.push_back(best == forever ? "-" : number_text(best / found));
      }
      t.rows.push_back(std::move(row));
    }
  t.caption += below == 0 ? "; at least 1 everywhere" : "; below 1 in " + std::to_string(below);
  t.caption += " (the least is " + number_text(least, 17) + "); of " + std::to_string(sets) +
               " sets " + std::to_string(skipped) + " too large to simulate";
  for (const std::string& note : notes) t.caption += "\n" + note;
  return {t};
}

struct paper {
  const char* name;
  std::vector<std::string> machines;
  std::vector<paper_table> (*compute)(const paper_options&);
  bool curves = false;
};

const std::vector<paper>& papers() {
  static const std::vector<paper> list{
      {"steps", {"delta", "perlmutter", "frontier", "aurora"}, steps},
      {"rings", {"perlmutter"}, rings},
      {"depth", {"perlmutter"}, depths, true},
      {"scaling", {"perlmutter", "frontier"}, scaling},
      {"leaders", {"stampede3-pvc"}, leaders},
      {"published",
       {"delta", "perlmutter", "frontier", "aurora", "alps", "dgx-h100", "dgx-h200",
        "stampede3-pvc"},
       published}};
  return list;
}

const paper& find(const std::string& name) {
  for (const paper& p : papers())
    if (p.name == name) return p;
  return papers().front();
}

}  // namespace

std::vector<std::string> paper_names() {
  std::vector<std::string> names;
  for (const paper& p : papers()) names.emplace_back(p.name);
  return names;
}

std::vector<std::string> paper_machines(const std::string& name) { return find(name).machines; }

bool paper_has_curves(const std::string& name) { return find(name).curves; }

std::vector<paper_table> compute_paper(const std::string& name, const paper_options& o) {
  return find(name).compute(o);
}

}  // namespace sucl::tools
