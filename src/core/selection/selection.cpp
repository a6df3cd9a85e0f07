// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/selection.hpp"

#include "base/text.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/built_in.hpp"

#include <algorithm>
#include <limits>

namespace sucl::core {
namespace {

using base::range;
using names = std::vector<std::string>;

constexpr std::array<const char*, SUCL_MEMORY_COUNT> memory_names{"system", "host", "shared",
                                                                  "device"};

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

std::uint32_t memory_bits(tune::memory_kind memory) {
  return memory == tune::memory_kind::device ? 1u << SUCL_MEMORY_DEVICE : host_memory;
}

}  // namespace

// Writes the candidates of one kind in order.
struct compiler {
  const base::config& c;
  const selection_scope& scope;
  const tune::table* tuned;
  const built_in_list& built_ins;
  std::vector<candidate> list;

  int index_of(std::string_view name) const {
    for (std::size_t i = 0; i < c.backends.size(); ++i)
      if (c.backends[i].name == name) return static_cast<int>(i);
    return -1;
  }

  int index_of(base::backend_role role) const {
    const base::backend_entry* found = c.find_backend(role);
    return found ? static_cast<int>(found - c.backends.data()) : -1;
  }

  void add(selection_stage stage, int rule, int backend, const range& bytes = {},
           std::uint32_t memories = every_memory, std::string ruled_out = {}) {
    if (backend < 0) return;
    if (ruled_out.empty() && !c.backends[static_cast<std::size_t>(backend)].enabled)
      ruled_out = "it is disabled";
    list.push_back({stage, rule, backend, bytes, memories, std::move(ruled_out)});
  }

  // Rows for symmetric memory are for plans alone: no other backend knows that memory.
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
    add(selection_stage::threshold, -1, index_of(base::backend_role::reference), below);
  }

  void add_platform_backends() {
    for (std::size_t i = 0; i < c.backends.size(); ++i) {
      const base::backend_entry& b = c.backends[i];
      if (b.role == base::backend_role::reference || b.name == c.default_backend) continue;
      if (is_built_in(b.name)) continue;
      // The one only provides memory, and the other is added last.
      if (b.role != base::backend_role::executor && b.platforms.empty()) continue;
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

  bool is_built_in(const std::string& name) const {
    return std::any_of(built_ins.begin(), built_ins.end(),
                       [&](const built_in_backend* b) { return b->name() == name; });
  }

  // Backends that use others come before those.
  void add_built_ins(sucl_kind what, candidate_position position) {
    candidate_list mine(c, scope, list);
    for (auto b = built_ins.rbegin(); b != built_ins.rend(); ++b) {
      mine.m_backend = index_of((*b)->name());
      if (mine.m_backend >= 0 && mine.entry().enabled) (*b)->add_candidates(mine, what, position);
    }
  }
};

std::string candidate_list::other_platform() const {
  const names& mine = entry().platforms;
  return lists(mine, m_scope.platform) ? "" : "it is for platform " + base::join(mine, ", ");
}

void candidate_list::add(selection_stage stage, const range& bytes, std::uint32_t memories,
                         std::string ruled_out, tune::call_form form) {
  m_list.push_back({stage, -1, m_backend, bytes, memories, std::move(ruled_out), form});
}

namespace {

const built_in_backend* built_in_of(const selection_table& table, int backend) {
  const std::string& name = table.backends[static_cast<std::size_t>(backend)];
  const auto b = std::find_if(table.built_ins.begin(), table.built_ins.end(),
                              [&](const built_in_backend* one) { return one->name() == name; });
  return b == table.built_ins.end() ? nullptr : *b;
}

// Backends whose candidates are for messages too. Of one that is loaded that is not known before.
std::vector<bool> message_backends(const selection_table& table, const base::config& c) {
  std::vector<bool> yes;
  for (std::size_t i = 0; i < c.backends.size(); ++i) {
    const built_in_backend* own = built_in_of(table, static_cast<int>(i));
    const bool none = i < table.no_messages.size() && table.no_messages[i];
    yes.push_back(own ? c.backends[i].enabled && own->supports_messages(c.backends[i])
                      : c.backends[i].role != base::backend_role::memory_provider && !none);
  }
  return yes;
}

// A candidate that precedes a backend for some message; null: none does.
const candidate* before(int backend, const std::vector<bool>& supporting,
                        const std::vector<candidate>& list) {
  for (const candidate& c : list) {
    if (!c.ruled_out.empty() || !supporting[static_cast<std::size_t>(c.backend)]) continue;
    if (c.backend != backend) return &c;
    if (c.bytes.everything() && (c.memories & 1u << SUCL_MEMORY_SYSTEM)) return nullptr;
  }
  return nullptr;
}

std::string source_of(const selection_table& table, const candidate& c);

// A sender knows neither the length nor the form that its receiver has given: all messages go by
// this backend, or none.
void agree_on_messages(int backend, const std::vector<bool>& supporting, selection_table& table) {
  std::string why;
  for (sucl_kind k = SUCL_KIND_SEND; k <= SUCL_KIND_GROUP && why.empty(); ++k)
    if (const candidate* c = before(backend, supporting, table.all[static_cast<std::size_t>(k)]))
      why = source_of(table, *c) + " has " + table.backends[static_cast<std::size_t>(c->backend)] +
            " for some of " + name(static_cast<kind>(k)) +
            ", and both ends of a message must choose alike";
  if (why.empty()) return;
  for (sucl_kind k = SUCL_KIND_SEND; k <= SUCL_KIND_GROUP; ++k)
    for (candidate& c : table.all[static_cast<std::size_t>(k)])
      if (c.ruled_out.empty() && c.backend == backend) c.ruled_out = why;
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

std::string mismatch_reason(const candidate& c, const selection_query& q) {
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

std::string reason_of_row(const selection_table& table, const tune::table_row& row) {
  if (row.seconds <= 0) return "the table says so";
  return std::string(table.tuned->measured ? "measured" : "predicted") +
         " best: " + base::print_short(row.seconds * 1e6, 3) + " us at " +
         base::print_bytes(row.at);
}

std::string reason(const selection_table& table, const candidate& c) {
  switch (c.stage) {
    case selection_stage::table:
      return reason_of_row(table, table.tuned->rows[static_cast<std::size_t>(c.rule)]);
    case selection_stage::rule: return "the first backend of the rule that can execute it";
    case selection_stage::threshold:
      return c.bytes.everything() ? "a negative threshold selects MPI"
                                  : "the message is below " + base::print_bytes(c.bytes.high + 1);
    case selection_stage::platform:
      return "the first backend for platform " + table.scope.platform + " that can execute it";
    case selection_stage::built_in: return built_in_of(table, c.backend)->reason(table.scope);
    case selection_stage::default_backend: return "nothing before it applies";
    case selection_stage::last_resort:
      return table.roles[static_cast<std::size_t>(c.backend)] == base::backend_role::network
                 ? "it moves data between nodes where there is no MPI"
                 : "nothing else can execute it";
  }
  return {};
}

const char* name_of(sucl_memory memory) {
  const auto index = static_cast<std::size_t>(memory);
  return index < memory_names.size() ? memory_names[index] : "unknown";
}

}  // namespace

selection_table compile(const base::config& c, const selection_scope& scope,
                        const built_in_list& built_ins, const tune::table* tuned,
                        std::vector<bool> no_messages) {
  selection_table table;
  table.tuned = tuned;
  table.no_messages = std::move(no_messages);
  table.scope = scope;
  table.built_ins = built_ins;
  for (const auto& b : c.backends) {
    table.backends.push_back(b.name);
    table.roles.push_back(b.role);
  }
  for (const auto& r : c.rules) table.rule_origins.push_back(r.origin);
  for (std::size_t k = 0; k < SUCL_KIND_COUNT; ++k) {
    const auto what = static_cast<sucl_kind>(k);
    compiler work{c, scope, tuned, built_ins, {}};
    work.add_rules(name(static_cast<kind>(k)));
    work.add_threshold();
    work.add_table(static_cast<kind>(k));
    work.add_built_ins(what, candidate_position::before_platforms);
    work.add_platform_backends();
    work.add_built_ins(what, candidate_position::after_platforms);
    work.add_built_ins(what, candidate_position::before_default);
    work.add(selection_stage::default_backend, -1, work.index_of(c.default_backend));
    for (const auto role : {base::backend_role::reference, base::backend_role::network})
      if (!c.has_role(c.default_backend, role))
        work.add(selection_stage::last_resort, -1, work.index_of(role));
    work.add_built_ins(what, candidate_position::last);
    table.all[k] = std::move(work.list);
  }
  const auto supporting = message_backends(table, c);
  for (auto b = built_ins.rbegin(); b != built_ins.rend(); ++b) {
    const int backend = compiler{c, scope, tuned, built_ins, {}}.index_of((*b)->name());
    if (backend >= 0 && supporting[static_cast<std::size_t>(backend)])
      agree_on_messages(backend, supporting, table);
  }
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
    if (one.why.empty() && !fits(c, q)) one.why = mismatch_reason(c, q);
    if (one.why.empty()) one.why = obstacle(c.backend);
    one.taken = one.why.empty();
    if (one.taken) one.why = reason(table, c);
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
  text += e.backend.empty() ? "no backend can execute it" : "executed by " + e.backend;
  for (const auto& one : e.considered)
    text += "\n  " + std::string(one.taken ? "taken  " : "passed ") + one.backend + ", " +
            one.source + ": " + one.why;
  return text + "\n";
}

}  // namespace sucl::core
