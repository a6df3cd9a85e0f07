// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/selection.hpp"

#include "backends/device_kernels/backend.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace sucl::core {
namespace {

using base::range;
using names = std::vector<std::string>;

constexpr std::array<const char*, SUCL_MEMORY_COUNT> memory_names{"system", "host", "shared",
                                                                  "device"};
constexpr std::uint32_t every_memory = (1u << SUCL_MEMORY_COUNT) - 1;
constexpr std::uint32_t host_memory = every_memory & ~(1u << SUCL_MEMORY_DEVICE);

// Messages that plans carry faster than MPI. On one node plans mostly copy ordinary memory twice,
// and libraries whose blocking calls copy once are ahead in between. Between nodes plans have fewer
// messages, because nodes combine and share; where each pair has data of its own that only pays for
// small blocks, and for large ones the copies on the way are all that is left of it.
std::vector<range> sizes_for_plans(sucl_kind what, const selection_scope& scope) {
  constexpr std::uint64_t most = range{}.high;
  const bool pairs =
      what == SUCL_KIND_ALLTOALL || what == SUCL_KIND_GATHER || what == SUCL_KIND_SCATTER;
  if (scope.nodes > 1) return pairs ? std::vector<range>{{0, 32u << 10}} : std::vector<range>{{}};
  if (what == SUCL_KIND_BROADCAST && !scope.reads) return {{0, 32u << 10}, {8u << 20, most}};
  return {{}};
}

// Messages that kernels carry faster than the libraries of the vendors: between two ranks all but
// some scatters, where the root's own block is under way beside that of its peer.
// Three and four ranks have the sizes that were measured with four GPUs (docs/results/gpu.md); for
// more nothing was measured, and only short messages go by kernels.
std::vector<range> sizes_for_kernels(sucl_kind what, const selection_scope& scope) {
  constexpr std::uint64_t mebi = 1 << 20;
  const auto ranks = static_cast<std::uint64_t>(scope.ranks);
  if (scope.nodes > 1 || is_point_to_point(what)) return {{}};
  const std::uint64_t lines = mebi / ranks;
  if (ranks == 2 && what == SUCL_KIND_SCATTER) return {{0, 8 * mebi}, {48 * mebi, range{}.high}};
  if (ranks > 4) return {{0, what == SUCL_KIND_ALLREDUCE ? lines : lines / 2}};
  if (ranks > 2) switch (what) {
      case SUCL_KIND_ALLREDUCE: return {{0, lines}, {4 * mebi, 32 * mebi}};
      case SUCL_KIND_BROADCAST:
      case SUCL_KIND_REDUCE: return {{0, lines}};
      case SUCL_KIND_ALLGATHER:
      case SUCL_KIND_ALLTOALL: return {{0, 8 * mebi}};
      case SUCL_KIND_REDUCE_SCATTER_BLOCK: return {{}};
      default: return {{0, lines / 2}};
    }
  return {{}};
}

bool lists(const names& list, std::string_view word) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& item) { return item == "*" || item == word; });
}

std::uint32_t memory_bits(const names& list) {
  std::uint32_t bits = 0;
  for (std::size_t m = 0; m < memory_names.size(); ++m)
    if (lists(list, memory_names[m])) bits |= 1u << m;
  return bits;
}

std::string plural(std::uint64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// Why a rule never applies to operations of this kind on this communicator; "" if it may.
std::string mismatch(const base::rule& r, const char* kind_name, const selection_scope& scope) {
  if (!lists(r.collectives, kind_name)) return "it is for " + base::join(r.collectives, ", ");
  if (!lists(r.platforms, scope.platform))
    return "it is for platform " + base::join(r.platforms, ", ");
  if (!r.ranks.contains(static_cast<std::uint64_t>(scope.ranks)))
    return "it is for ranks " + base::print_range(r.ranks) + ", not " + std::to_string(scope.ranks);
  if (!r.nodes.contains(static_cast<std::uint64_t>(scope.nodes)))
    return "it is for nodes " + base::print_range(r.nodes) + ", not " + std::to_string(scope.nodes);
  return {};
}

// Whether the backend kernels is told to carry messages.
bool wants_kernel_messages(const base::config& c) {
  const base::backend_entry* entry = c.find_backend(kernel_backend_name);
  return entry && entry->enabled && kernel_settings::wants_messages(entry->settings);
}

std::uint32_t memory_bits(tune::memory_kind memory) {
  return memory == tune::memory_kind::device ? 1u << SUCL_MEMORY_DEVICE : host_memory;
}

// Writes the candidates of one kind in order.
struct compiler {
  const base::config& c;
  const selection_scope& scope;
  const tune::table* tuned;
  bool kernel_messages;
  std::vector<candidate> list;

  int index_of(std::string_view name) const {
    for (std::size_t i = 0; i < c.backends.size(); ++i)
      if (c.backends[i].name == name) return static_cast<int>(i);
    return -1;
  }

  void add(selection_stage stage, int rule, int backend, const range& bytes = {},
           std::uint32_t memories = every_memory, std::string ruled_out = {}) {
    if (backend < 0) return;
    if (ruled_out.empty() && !c.backends[static_cast<std::size_t>(backend)].enabled)
      ruled_out = "it is disabled";
    list.push_back({stage, rule, backend, bytes, memories, std::move(ruled_out)});
  }

  // Rows for symmetric memory are for plans alone: nobody else knows that memory.
  void add_table(kind what) {
    const std::size_t rows = tuned ? tuned->rows.size() : 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const tune::table_row& r = tuned->rows[i];
      if (r.what != what || r.memory == tune::memory_kind::symmetric) continue;
      if (!r.ranks.contains(static_cast<std::uint64_t>(scope.ranks)) ||
          !r.nodes.contains(static_cast<std::uint64_t>(scope.nodes)))
        continue;
      const std::size_t before = list.size();
      add(selection_stage::table, static_cast<int>(i), index_of(r.backend), r.bytes,
          memory_bits(r.memory));
      if (list.size() > before) list.back().form = r.form;
    }
  }

  void add_rules(const char* kind_name) {
    for (std::size_t i = 0; i < c.rules.size(); ++i) {
      const base::rule& r = c.rules[i];
      for (const std::string& backend : r.backends)
        add(selection_stage::rule, static_cast<int>(i), index_of(backend), r.bytes,
            memory_bits(r.memories), mismatch(r, kind_name, scope));
    }
  }

  void add_threshold() {
    if (!c.threshold || *c.threshold == 0) return;
    range below;
    if (*c.threshold > 0) below.high = static_cast<std::uint64_t>(*c.threshold) - 1;
    add(selection_stage::threshold, -1, index_of(reference_backend), below);
  }

  void add_platform_backends() {
    for (std::size_t i = 0; i < c.backends.size(); ++i) {
      const base::backend_entry& b = c.backends[i];
      if (b.name == reference_backend || b.name == c.default_backend) continue;
      if (b.name == plan_backend_name || b.name == kernel_backend_name ||
          b.name == message_backend_name || b.name == hierarchical_backend_name)
        continue;
      if (b.name == memory_backend_name && b.platforms.empty()) continue;  // it only lends memory
      if (!b.enabled && b.platforms.empty()) continue;
      std::string ruled_out;
      if (b.platforms.empty())
        ruled_out = "it is for rules only";
      else if (!lists(b.platforms, scope.platform))
        ruled_out = "it is for platform " + base::join(b.platforms, ", ");
      add(selection_stage::platform, -1, static_cast<int>(i), {}, every_memory,
          std::move(ruled_out));
    }
  }

  void add_kernels(sucl_kind what, const std::vector<range>& sizes) {
    const int backend = index_of(kernel_backend_name);
    const bool carried = what <= SUCL_KIND_EXSCAN || (kernel_messages && is_point_to_point(what));
    if (backend < 0 || !carried) return;
    const base::backend_entry& b = c.backends[static_cast<std::size_t>(backend)];
    if (!b.enabled) return;
    std::string ruled_out;
    if (scope.nodes > 1) ruled_out = "it is for the ranks of one node";
    if (!lists(b.platforms, scope.platform)) {
      if (!sizes.front().everything()) return;  // said once
      ruled_out = "it is for platform " + base::join(b.platforms, ", ");
    }
    for (const range& bytes : sizes)
      add(selection_stage::platform, -1, backend, bytes, every_memory, ruled_out);
  }

  // Where MPI would copy every rank's data through the host. Whatever memory a rank uses: others
  // may use device memory in the same operation.
  void add_levels(sucl_kind what) {
    const int backend = index_of(hierarchical_backend_name);
    if (backend < 0 || c.default_backend != reference_backend || what > SUCL_KIND_EXSCAN) return;
    const base::backend_entry& b = c.backends[static_cast<std::size_t>(backend)];
    if (!b.enabled || !scope.device || scope.nodes == 1 || !lists(b.platforms, scope.platform))
      return;
    add(selection_stage::built_in, -1, backend);
  }

  // Where MPI would be next, because nobody asked for something else.
  void add_plans(sucl_kind what) {
    const int backend = index_of(plan_backend_name);
    if (backend < 0 || c.default_backend != reference_backend || what > SUCL_KIND_EXSCAN) return;
    const base::backend_entry& b = c.backends[static_cast<std::size_t>(backend)];
    if (!b.enabled) return;
    std::string ruled_out;
    if (!lists(b.platforms, scope.platform))
      ruled_out = "it is for platform " + base::join(b.platforms, ", ");
    const std::vector<range> sizes = sizes_for_plans(what, scope);
    for (const range& bytes : sizes)
      add(selection_stage::built_in, -1, backend, bytes, host_memory, ruled_out);
    if (sizes.size() == 1 || scope.nodes > 1) return;
    // By event libraries take other ways, which are slower.
    add(selection_stage::built_in, -1, backend, {}, host_memory, ruled_out);
    list.back().form = tune::call_form::event;
  }

  void add_messages(sucl_kind what) {
    const int backend = index_of(message_backend_name);
    if (backend < 0 || c.default_backend != reference_backend || !is_point_to_point(what)) return;
    const base::backend_entry& b = c.backends[static_cast<std::size_t>(backend)];
    if (!b.enabled) return;
    const std::string ruled_out = lists(b.platforms, scope.platform)
                                      ? ""
                                      : "it is for platform " + base::join(b.platforms, ", ");
    add(selection_stage::built_in, -1, backend, {}, every_memory, ruled_out);
  }
};

// What comes before a backend for some message, or nothing.
const candidate* before(const char* backend, const selection_table& table,
                        const std::vector<candidate>& list) {
  for (const candidate& c : list) {
    const std::string& name = table.backends[static_cast<std::size_t>(c.backend)];
    if (!c.ruled_out.empty() || name == plan_backend_name || name == memory_backend_name ||
        name == hierarchical_backend_name ||
        (name == kernel_backend_name && !table.kernel_messages))
      continue;
    if (name != backend) return &c;
    if (c.bytes.everything() && (c.memories & 1u << SUCL_MEMORY_SYSTEM)) return nullptr;
  }
  return nullptr;
}

std::string source_of(const selection_table& table, const candidate& c);

// A sender knows neither the length nor the form that its receiver has given: all messages go by
// this backend, or none.
void agree_on_messages(const char* backend, selection_table& table) {
  std::string why;
  for (sucl_kind k = SUCL_KIND_SEND; k <= SUCL_KIND_GROUP && why.empty(); ++k)
    if (const candidate* c = before(backend, table, table.all[static_cast<std::size_t>(k)]))
      why = source_of(table, *c) + " has " + table.backends[static_cast<std::size_t>(c->backend)] +
            " for some of " + name(static_cast<kind>(k)) +
            ", and both ends of a message must choose alike";
  if (why.empty()) return;
  for (sucl_kind k = SUCL_KIND_SEND; k <= SUCL_KIND_GROUP; ++k)
    for (candidate& c : table.all[static_cast<std::size_t>(k)])
      if (c.ruled_out.empty() && table.backends[static_cast<std::size_t>(c.backend)] == backend)
        c.ruled_out = why;
}

std::string source_of(const selection_table& table, const candidate& c) {
  switch (c.stage) {
    case selection_stage::rule:
      return "rules[" + std::to_string(c.rule) + "] (" +
             table.rule_origins[static_cast<std::size_t>(c.rule)] + ")";
    case selection_stage::threshold: return "threshold";
    case selection_stage::table:
      return "tuning table (" + table.tuned->rows[static_cast<std::size_t>(c.rule)].origin + ")";
    case selection_stage::platform: return "platform";
    case selection_stage::built_in: return "built in";
    case selection_stage::default_backend: return "default_backend";
    case selection_stage::last_resort: return "last resort";
  }
  return {};
}

std::string misfit(const candidate& c, const selection_query& q) {
  if ((c.memories >> q.memory & 1u) == 0) {
    names list;
    for (std::size_t m = 0; m < memory_names.size(); ++m)
      if ((c.memories >> m & 1u) != 0) list.emplace_back(memory_names[m]);
    return "it is for " + base::join(list, ", ") + " memory";
  }
  if (c.form != tune::call_form::any && (c.form == tune::call_form::blocking) != q.blocking)
    return std::string("it is for calls of form ") + tune::name(c.form);
  if (!q.bytes_known)
    return "it is for " + base::print_byte_range(c.bytes) +
           " bytes, and ranks may have different sizes";
  if (c.stage == selection_stage::threshold)
    return "the message is not below " + base::print_bytes(c.bytes.high + 1);
  return "it is for " + base::print_byte_range(c.bytes) + " bytes";
}

std::string merit_of_row(const selection_table& table, const tune::table_row& row) {
  if (row.seconds <= 0) return "the table says so";
  char time[32];
  std::snprintf(time, sizeof time, "%.3g us", row.seconds * 1e6);
  return std::string(table.tuned->measured ? "measured" : "predicted") + " best: " + time + " at " +
         base::print_bytes(row.at);
}

std::string merit(const selection_table& table, const candidate& c) {
  switch (c.stage) {
    case selection_stage::table:
      return merit_of_row(table, table.tuned->rows[static_cast<std::size_t>(c.rule)]);
    case selection_stage::rule: return "the first backend of the rule that can carry it";
    case selection_stage::threshold:
      return c.bytes.everything() ? "a negative threshold asks for MPI"
                                  : "the message is below " + base::print_bytes(c.bytes.high + 1);
    case selection_stage::platform:
      return "the first backend for platform " + table.scope.platform + " that can carry it";
    case selection_stage::built_in:
      if (table.backends[static_cast<std::size_t>(c.backend)] == message_backend_name)
        return "ranks of a node exchange messages through shared memory";
      if (table.backends[static_cast<std::size_t>(c.backend)] == hierarchical_backend_name)
        return "device memory leaves its node once, after the node's ranks have combined it";
      return table.scope.nodes > 1 ? "nodes combine and share what they send"
                                   : "faster than MPI within a node";
    case selection_stage::default_backend: return "nothing before it applies";
    case selection_stage::last_resort: return "nothing else can carry it";
  }
  return {};
}

const char* name_of(sucl_memory memory) {
  const auto index = static_cast<std::size_t>(memory);
  return index < memory_names.size() ? memory_names[index] : "unknown";
}

}  // namespace

selection_table compile(const base::config& c, const selection_scope& scope,
                        const tune::table* tuned) {
  selection_table table;
  table.tuned = tuned;
  table.scope = scope;
  for (const auto& b : c.backends) table.backends.push_back(b.name);
  table.kernel_messages = wants_kernel_messages(c);
  for (const auto& r : c.rules) table.rule_origins.push_back(r.origin);
  for (std::size_t k = 0; k < SUCL_KIND_COUNT; ++k) {
    compiler work{c, scope, tuned, table.kernel_messages, {}};
    work.add_rules(name(static_cast<kind>(k)));
    work.add_threshold();
    work.add_table(static_cast<kind>(k));
    const std::vector<range> first = sizes_for_kernels(static_cast<sucl_kind>(k), scope);
    work.add_kernels(static_cast<sucl_kind>(k), first);
    work.add_platform_backends();
    if (!first.front().everything()) work.add_kernels(static_cast<sucl_kind>(k), {{}});
    work.add_levels(static_cast<sucl_kind>(k));
    work.add_plans(static_cast<sucl_kind>(k));
    work.add_messages(static_cast<sucl_kind>(k));
    work.add(selection_stage::default_backend, -1, work.index_of(c.default_backend));
    if (c.default_backend != reference_backend)
      work.add(selection_stage::last_resort, -1, work.index_of(reference_backend));
    table.all[k] = std::move(work.list);
  }
  if (table.kernel_messages) agree_on_messages(kernel_backend_name, table);
  agree_on_messages(message_backend_name, table);
  for (std::size_t k = 0; k < SUCL_KIND_COUNT; ++k)
    std::copy_if(table.all[k].begin(), table.all[k].end(), std::back_inserter(table.live[k]),
                 [](const candidate& entry) { return entry.ruled_out.empty(); });
  return table;
}

explanation explain(const selection_table& table, const selection_query& q,
                    const std::function<std::string(int)>& obstacle) {
  explanation result;
  result.scope = table.scope;
  result.query = q;
  for (const candidate& c : table.all[static_cast<std::size_t>(q.what)]) {
    consideration one;
    one.source = source_of(table, c);
    one.backend = table.backends[static_cast<std::size_t>(c.backend)];
    one.why = c.ruled_out;
    if (one.why.empty() && !fits(c, q)) one.why = misfit(c, q);
    if (one.why.empty()) one.why = obstacle(c.backend);
    one.taken = one.why.empty();
    if (one.taken) one.why = merit(table, c);
    result.considered.push_back(std::move(one));
    if (!result.considered.back().taken) continue;
    result.backend = result.considered.back().backend;
    break;
  }
  return result;
}

std::string render(const explanation& e) {
  const selection_query& q = e.query;
  std::string text = std::string(name(q.what)) + " of ";
  text += q.bytes_known ? base::print_bytes(q.bytes) + " bytes" : std::string("any size");
  text += std::string(" (") + name(q.element);
  if (q.reduction != op::none) text += std::string(", ") + name(q.reduction);
  text += std::string(", ") + name_of(q.memory) + " memory) on " + e.scope.platform + ", " +
          plural(static_cast<std::uint64_t>(e.scope.ranks), "rank") + " on " +
          plural(static_cast<std::uint64_t>(e.scope.nodes), "node") + ": ";
  text += e.backend.empty() ? "no backend can carry it" : "carried by " + e.backend;
  for (const auto& one : e.considered)
    text += "\n  " + std::string(one.taken ? "taken  " : "passed ") + one.backend + ", " +
            one.source + ": " + one.why;
  return text + "\n";
}

}  // namespace sucl::core
