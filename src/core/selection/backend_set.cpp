// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/backend_set.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/control/control_plane.hpp"
#include "core/layers/trace.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/settings.hpp"

#include <algorithm>
#include <new>

namespace sucl::core {
namespace {

using role = base::backend_role;

constexpr const char* mpi_hint =
    "Start the program with mpiexec or `sucl run --launcher mpi`, with one rank in each process, "
    "so that MPI executes what nothing else does; communicator.explain() says why each backend was "
    "passed over";

[[noreturn]] void refuse_reference(error_info problem) {
  if (problem.message.empty()) {
    problem.code = errc::unavailable;
    problem.message = "MPI cannot execute a new communicator on another rank";
    problem.hint = "See the message of that rank";
  }
  problem.operation = "communicator creation";
  throw error(std::move(problem));
}

bool wants_memory(const base::config& settings, const built_in_list& built_ins) {
  return std::any_of(built_ins.begin(), built_ins.end(), [&](const built_in_backend* b) {
    const auto* entry = settings.find_backend(b->name());
    return b->uses_memory_provider() && entry && entry->enabled;
  });
}

// The names of the built-in backends that use shared memory, in a line.
std::string memory_users(const built_in_list& built_ins) {
  std::string text;
  for (const built_in_backend* b : built_ins)
    if (b->uses_memory_provider()) text += (text.empty() ? "" : ", ") + std::string(b->name());
  return text;
}

// Of a backend by its name or role; the end of the list if there is none.
std::size_t index_of(const base::config& settings, auto key) {
  const base::backend_entry* found = settings.find_backend(key);
  return found ? static_cast<std::size_t>(found - settings.backends.data())
               : settings.backends.size();
}

// Where devices are unlike the query is for any memory that a rank of the operation may have, so
// that all choose alike.
selection_query query_of(const sucl_operation& record, int size, bool blocking, bool mixed) {
  selection_query q;
  q.blocking = blocking;
  q.what = static_cast<kind>(record.kind);
  q.element = static_cast<type>(record.type);
  q.reduction = static_cast<op>(record.op);
  // The two ends of a message may have different memory, and must choose alike.
  if (!is_point_to_point(record.kind))
    q.memory =
        mixed ? sucl_memory{SUCL_MEMORY_DEVICE} : std::max(record.send_memory, record.recv_memory);
  const auto message = message_size_of(record, size);
  q.bytes = message.bytes;
  q.bytes_known = message.known;
  return q;
}

// Why a backend that was tried cannot be opened; errc::success: it can.
error_info problem_of(const registry& backends, const std::string& name) {
  for (const auto& report : backends.reports())
    if (report.name == name && report.problem) return *report.problem;
  error_info none;
  none.code = errc::success;
  return none;
}

}  // namespace

void backend_set::create(const base::config& settings, registry& backends,
                         const built_in_list& built_ins, const sucl_oob& oob, const topology& where,
                         const backend_environment& around) {
  backend_creation c(settings, backends, oob, where, around, m_oobs);
  m_size = c.size();
  m_level = base::determinism_named(settings.determinism);
  m_strict = c.strict();
  // What a backend supports has to be the same on every rank.
  m_platform = c.platform();
  // All are made that messages may go by; then it is known by which they can.
  m_table = compile(settings,
                    {c.platform(), m_size, where.nodes, false,
                     !where.device_memory_everywhere_on_host, where.mixed()},
                    built_ins, around.tuned, std::vector<bool>(settings.backends.size(), true));
  c.table = &m_table;
  c.made = &m_all;
  m_by_index.assign(settings.backends.size(), -1);
  m_obstacles.assign(settings.backends.size(), "");
  m_all.reserve(settings.backends.size() + built_ins.size());
  const auto is_built_in = [&](const std::string& name) {
    return std::any_of(built_ins.begin(), built_ins.end(),
                       [&](const built_in_backend* b) { return b->name() == name; });
  };
  for (std::size_t i = 0; i < settings.backends.size(); ++i) {
    const auto& entry = settings.backends[i];
    if (!entry.enabled)
      m_obstacles[i] = "not enabled";
    else if (is_built_in(entry.name))
      continue;  // come last: they use another one
    else if (entry.role == role::network)
      continue;  // once it is known whether the ranks share memory
    else if (entry.role == role::memory_provider && !wants_memory(settings, built_ins))
      m_obstacles[i] = "no backend that uses it is enabled: " + memory_users(built_ins);
    else if (entry.role != role::memory_provider)
      m_obstacles[i] = c.not_for_platform(entry.name.c_str());
    if (m_obstacles[i].empty() && entry.role == role::reference)
      m_obstacles[i] = no_mpi(oob.bootstrap);
    if (m_obstacles[i].empty()) m_obstacles[i] = try_create(c, entry);
    if (m_obstacles[i].empty()) m_by_index[i] = static_cast<int>(m_all.size()) - 1;
  }
  const std::size_t memory = index_of(settings, role::memory_provider);
  if (memory < settings.backends.size() && m_by_index[memory] >= 0)
    m_memory_provider = m_all[static_cast<std::size_t>(m_by_index[memory])].via;
  c.memory_provider = m_memory_provider;
  c.no_memory_provider = memory < settings.backends.size() ? m_obstacles[memory] : "unknown";
  create_network(c);
  for (const built_in_backend* b : built_ins) create_built_in(c, *b);
  selection_scope scope = m_table.scope;
  scope.reads = c.reads_are_known() && c.reads();
  m_table = compile(settings, scope, built_ins, around.tuned, without_messages());
  // The one that only provides memory is no backend for operations.
  const bool none = std::all_of(m_all.begin(), m_all.end(), [&](const backend_instance& one) {
    return settings.has_role(one.name, role::memory_provider);
  });
  if (oob.bootstrap) m_no_mpi = no_mpi(oob.bootstrap);
  if (none) refuse_all(c);
}

std::vector<bool> backend_set::without_messages() const {
  std::vector<bool> none;
  for (const int at : m_by_index) {
    bool any = false;
    for (sucl_kind k = SUCL_KIND_SEND; at >= 0 && k <= SUCL_KIND_GROUP; ++k)
      any = any || m_all[static_cast<std::size_t>(at)]
                       .formats->of(k, SUCL_TYPE_BYTES, SUCL_OP_NONE, 1)
                       .supported;
    none.push_back(!any);
  }
  return none;
}

void backend_set::create_network(backend_creation& c) {
  const std::size_t i = index_of(c.settings, role::network);
  if (i == c.settings.backends.size()) return;
  std::string& obstacle = m_obstacles[i];
  obstacle = c.no_need_of_network();
  if (!obstacle.empty()) return;
  error_info why;
  obstacle = try_create(c, c.settings.backends[i], &why);
  if (!obstacle.empty()) m_no_network = why;
  if (obstacle.empty()) m_by_index[i] = static_cast<int>(m_all.size()) - 1;
}

// Every rank gets the reason of the first rank that has no network.
error_info backend_set::no_network(const backend_creation& c) const {
  error_info why = m_no_network;
  const auto texts = exchange(c.oob, c.size(), why.message + '\n' + why.hint);
  for (std::size_t r = 0; r < texts.size(); ++r) {
    const auto end = texts[r].find('\n');
    if (end == 0) continue;
    why.message = texts[r].substr(0, end);
    why.hint = texts[r].substr(end + 1);
    const bool alike = std::all_of(texts.begin(), texts.end(),
                                   [&](const std::string& text) { return text == texts[r]; });
    if (!alike) why.message = "rank " + std::to_string(r) + ": " + why.message;
    break;
  }
  return why;
}

void backend_set::refuse_all(const backend_creation& c) const {
  if (c.where.nodes > 1 && !m_no_mpi.empty()) {
    const error_info network = no_network(c);
    const std::string message =
        "the ranks of the communicator are on " + std::to_string(c.where.nodes) +
        " nodes, and nothing moves data between nodes: " + m_no_mpi +
        (network.message.empty() ? ""
                                 : "; " + c.settings.find_backend(role::network)->name + ": ") +
        network.message;
    base::fail(errc::unavailable, message,
               network.hint.empty() ? mpi_hint : network.hint + " Or: " + mpi_hint);
  }
  base::fail(errc::unavailable, "no backend can be used: " + obstacles(c.settings),
             "`sucl info` lists every backend and why it cannot be used");
}

std::string backend_set::obstacles(const base::config& settings) const {
  std::string text;
  for (std::size_t i = 0; i < settings.backends.size(); ++i)
    text += (text.empty() ? "" : "; ") + settings.backends[i].name + ": " + m_obstacles[i];
  return text;
}

// Makes a built-in backend on every rank, or on none.
void backend_set::create_built_in(backend_creation& c, const built_in_backend& b) {
  const std::size_t i = index_of(c.settings, b.name());
  const bool configured = i < c.settings.backends.size();
  if (configured && !c.settings.backends[i].enabled) return;
  std::string obstacle = b.obstacle(c);
  if (obstacle.empty()) {
    backend_instance made;
    error_info mine;
    mine.code = errc::unavailable;
    try {
      made = b.create(c, &obstacle);
      made.name = b.name();
    } catch (const error& e) {
      mine = e.info();
      mine.backend = b.name();
      add_origin(mine, c.settings, mine.backend);
      obstacle = mine.message;
    } catch (const std::bad_alloc&) {
      obstacle = "this rank has no memory for its part of " + std::string(b.name());
      mine.code = errc::out_of_memory;
    }
    if (made.via.table) mine.code = errc::success;
    mine.message = obstacle;
    const auto v = c.agree_on_part(mine);
    if (v.all) {
      if (configured) m_obstacles[i] = b.obstacle_but_for_plans(c);
      return add_built_in(c, std::move(made), i);
    }
    if (made.via.table) made.via.table->comm_destroy(made.via.comm);
    if (v.wrong_setting) throw error(*v.wrong_setting);
    if (v.no_memory) throw error(*v.no_memory);
    if (obstacle.empty()) obstacle = "it cannot be used on every rank";
  }
  if (!configured) return;
  m_obstacles[i] = obstacle;
  if (b.runs_custom_plans()) m_no_custom = obstacle;
}

void backend_set::add_built_in(backend_creation& c, backend_instance made, std::size_t index) {
  built_in_comm* const own = made.own.get();
  const bool configured = index < m_by_index.size();
  if (configured) add_layers(c, made);
  // Reducing in two steps changes the order of the reduction, which `strict` forbids.
  made.formats =
      std::make_unique<transfer_formats>(made.via, m_platform, m_strict && made.traits.composed);
  m_all.push_back(std::move(made));
  const int at = static_cast<int>(m_all.size()) - 1;
  if (!configured)
    m_fallback = at;
  else if (m_obstacles[index].empty())
    m_by_index[index] = at;
  if (!own) return;
  if (own->board()) m_compared.push_back({own->board(), own});
  if (own->checks()) m_checked.push_back(own);
  m_compares |= own->compares();
  // Kernels first: they reach the memory of devices.
  if (own->runs_custom_plans())
    m_custom.insert(m_all.back().traits.launches ? m_custom.begin() : m_custom.end(), own);
  if (own->allocates()) m_device_memory = own;
}

// Creates a loadable backend on every rank, or on none. Returns why not.
std::string backend_set::try_create(backend_creation& c, const base::backend_entry& entry,
                                    error_info* why) {
  const backend_source source = c.source_of(entry);
  const backend_handle* handle = c.backends.try_open(source);
  error_info unopened = problem_of(c.backends, source.name);
  add_origin(unopened, c.settings, source.name);
  const auto opened = c.agree_on_part(unopened);
  if (opened.wrong_setting) throw error(*opened.wrong_setting);
  if (!opened.all) {
    if (handle) return "it cannot be used on every rank";
    if (why) *why = unopened;
    return unopened.message;
  }
  backend_instance made;
  made.name = source.name;
  auto info = c.info(&c.split_oob());
  // The one that provides memory needs none, and each costs one of the few thousand that MPI has.
  if (entry.role != role::memory_provider) info.native_comm = c.around.native_comm();
  made.via = {handle->table, handle->state, nullptr};
  const auto status = handle->table->comm_create(handle->state, &info, &made.via.comm);
  error_info problem = status ? take_last(status) : error_info{};
  if (!status) problem.code = errc::success;
  add_origin(problem, c.settings, source.name);
  const auto v = c.agree_on_part(problem);
  if (!v.all) {
    if (!status) handle->table->comm_destroy(made.via.comm);
    c.drop_last_oob();
    if (status && why) *why = problem;
    if (v.wrong_setting) throw error(*v.wrong_setting);
    // Without it much could not be executed, and the program can end what it lacks room for.
    if (entry.role == role::reference) refuse_reference(problem);
    if (v.no_memory && c.around.native_device) throw error(*v.no_memory);
    return status ? problem.message : "its communicator cannot be made on every rank";
  }
  if (entry.role != role::memory_provider) add_layers(c, made);
  made.formats = std::make_unique<transfer_formats>(made.via, m_platform, m_strict);
  m_all.push_back(std::move(made));
  return {};
}

void backend_set::add_layers(backend_creation& c, backend_instance& made) {
  if (c.settings.layers.trace.empty()) return;
  made.layered = true;
  made.via = wrap_trace(made.via, c.info(&c.split_oob()),
                        {c.settings.layers.trace, c.around.world_rank, made.name});
}

const backend_instance* backend_set::named(const std::string& name) const {
  const auto c = std::find_if(m_all.begin(), m_all.end(),
                              [&](const backend_instance& one) { return one.name == name; });
  return c == m_all.end() ? nullptr : &*c;
}

void backend_set::add_plan(std::uint64_t number, built_in_comm& runs,
                           std::unique_ptr<plan_draft> plan) {
  runs.add_plan(number, std::move(plan));
  m_plans[number] = &runs;
}

void backend_set::remove_plan(std::uint64_t number) {
  const auto known = m_plans.find(number);
  if (known == m_plans.end()) return;
  known->second->remove_plan(number);
  m_plans.erase(known);
}

bool backend_set::usable(int backend, const sucl_operation& record) {
  const int index = m_by_index[static_cast<std::size_t>(backend)];
  if (index < 0) return false;
  const backend_instance& c = m_all[static_cast<std::size_t>(index)];
  const transfer_format& w =
      c.formats->of(record.kind, record.type, record.op, record.element_size);
  // A composed backend is not chosen where the host would have to convert or fold.
  return w.supported && !(c.traits.composed && (w.convert || w.fold));
}

const backend_instance& backend_set::choose(const sucl_operation& record, bool blocking,
                                            const tune::table_row** row) {
  if (record.kind == compiled_plan_kind && !m_custom.empty()) {
    if (row) *row = nullptr;
    const auto known = m_plans.find(record.plan);
    const built_in_comm* runs = known == m_plans.end() ? m_custom.front() : known->second;
    return *std::find_if(m_all.begin(), m_all.end(),
                         [&](const backend_instance& c) { return c.own.get() == runs; });
  }
  const candidate* c =
      sucl::core::choose(m_table, query_of(record, m_size, blocking, m_table.scope.mixed),
                         [&](int b) { return usable(b, record); });
  if (row) {
    const bool tuned = c && c->stage == selection_stage::table;
    *row = tuned ? &m_table.tuned->rows[static_cast<std::size_t>(c->rule)] : nullptr;
  }
  if (c) return m_all[static_cast<std::size_t>(m_by_index[static_cast<std::size_t>(c->backend)])];
  if (m_fallback >= 0) return m_all[static_cast<std::size_t>(m_fallback)];
  std::string reasons;
  for (const consideration& one : reasons_for(record, blocking, {}).considered)
    if (one.why.rfind("it is for ", 0) != 0 && one.why != m_no_mpi)
      reasons += "; " + one.backend + ": " + one.why;
  base::fail(
      errc::unsupported,
      "no backend supports " + std::string(name(static_cast<kind>(record.kind))) + " of " +
          name(static_cast<type>(record.type)) + " with op " + name(static_cast<op>(record.op)) +
          reasons + (m_no_mpi.empty() ? "" : "; " + m_no_mpi),
      m_no_mpi.empty() ? "communicator.explain() says why each backend was passed over" : mpi_hint);
}

void backend_set::use_table(const base::config& settings, const tune::table* tuned) {
  m_table = compile(settings, m_table.scope, m_table.built_ins, tuned, m_table.no_messages);
  for (const backend_instance& c : m_all)
    if (c.own) c.own->retune(tuned);
}

// Whether the order in which contributions are combined is the fixed one, and shows.
bool backend_set::folds_in_order(const sucl_operation& record) const {
  return m_strict && base::order_matters(record.kind, record.type, record.op);
}

// What the bits of a reduction depend on, as far as it is not nothing.
std::string backend_set::explain_bits(const sucl_operation& record,
                                      const std::string& backend) const {
  if (!reduces(static_cast<kind>(record.kind))) return {};
  const std::string level = std::string(" (determinism = \"") + base::name(m_level) + "\")\n";
  if (!base::order_matters(record.kind, record.type, record.op))
    return "  bits   the same in any order: the op is associative" + level;
  if (!m_strict) {
    std::string whose;
    if (m_level == base::determinism::run) whose = ", and in every run";
    const backend_instance* c = named(backend);
    if (!whose.empty() && !(c && c->traits.folds_alike))
      whose += " as far as " + backend + " keeps to that";
    return "  bits   the same on all ranks" + whose + level;
  }
  const backend_instance* c = named(backend);
  const bool above =
      c && c->formats->of(record.kind, record.type, record.op, record.element_size).fold != nullptr;
  return "  bits   those of a fold in order of rank, whatever backend executes it" + level +
         (above ? "  folds  SuCL, of what " + backend + " moves\n" : "");
}

explanation backend_set::reasons_for(const sucl_operation& record, bool blocking,
                                     std::optional<std::uint64_t> bytes) {
  auto q = query_of(record, m_size, blocking, m_table.scope.mixed);
  if (bytes) q.bytes = *bytes;
  return sucl::core::explain(m_table, q, [&](int b) -> std::string {
    if (usable(b, record)) return {};
    const auto i = static_cast<std::size_t>(b);
    if (!m_obstacles[i].empty()) return m_obstacles[i];
    return folds_in_order(record) ? "it does not fold in the fixed order"
                                  : "it cannot execute this";
  });
}

std::string backend_set::explain(const sucl_operation& record, std::uint64_t bytes) {
  const explanation e = reasons_for(record, true, bytes);
  const explanation by_event = reasons_for(record, false, bytes);
  std::string text = render(e);
  if (by_event.backend != e.backend)
    text += "  by event " + by_event.backend + ": " + by_event.considered.back().source + ", " +
            by_event.considered.back().why + "\n";
  for (const std::string& name : {e.backend, by_event.backend}) {
    const backend_instance* c = named(name);
    if (c && c->own) text += c->own->describe(record);
    if (by_event.backend == e.backend) break;
  }
  text += explain_bits(record, e.backend);
  if (e.backend.empty() && m_fallback >= 0)
    text += "\n" + m_all[static_cast<std::size_t>(m_fallback)].name +
            " executes it: a single process without MPI\n";
  return text;
}

std::string backend_set::native_memory() const {
  static constexpr const char* names[] = {"system", "host", "shared", "device"};
  std::string text;
  for (const auto& c : m_all) {
    text += (text.empty() ? "" : "; ") + c.name + ":";
    for (sucl_memory m = 0; m < SUCL_MEMORY_COUNT; ++m) {
      sucl_query q{};
      q.struct_size = sizeof q;
      q.kind = SUCL_KIND_BROADCAST;
      q.type = SUCL_TYPE_UINT8;
      q.element_size = 1;
      q.memory = m;
      q.platform = m_platform.c_str();
      sucl_capability a{};
      a.struct_size = sizeof a;
      if (!c.via.table->query(c.via.state, &q, &a) && a.supported)
        text += " " + std::string(names[m]);
    }
  }
  return text;
}

void backend_set::note_issue(std::uint64_t sequence) const noexcept {
  for (const auto& c : m_all) trace_issue(c.via, sequence);
}

backend_comm backend_set::shared_memory() const {
  const bool kept = std::any_of(m_all.begin(), m_all.end(), [](const backend_instance& c) {
    return c.own && c.own->keeps_shared_memory();
  });
  return kept ? m_memory_provider : backend_comm{};
}

error_info backend_set::mismatch() const {
  for (const compared& c : m_compared)
    if (c.board->alarmed()) return c.board->diagnosis();
  return mismatch_error(m_mismatch);
}

void backend_set::report_mismatch(const std::string& what) {
  if (m_mismatch_reported.load(std::memory_order_relaxed)) return;
  m_mismatch = what;
  m_mismatch_reported.store(true, std::memory_order_release);
  for (const backend_instance& c : m_all)
    if (c.own) c.own->report_mismatch(what);
}

void backend_set::end_kernels() {
  for (const backend_instance& c : m_all)
    if (c.own) c.own->end_kernels();
}

void backend_set::compare_calls() {
  for (const backend_instance& c : m_all)
    if (c.own) c.own->compare_calls();
}

bool backend_set::followed() const {
  return std::all_of(m_all.begin(), m_all.end(),
                     [](const backend_instance& c) { return !c.own || c.own->followed(); });
}

void backend_set::abort() {
  for (auto& c : m_all) c.via.table->abort(c.via.comm);
}

void backend_set::destroy(bool keep) {
  m_custom.clear();
  m_plans.clear();
  m_device_memory = nullptr;
  m_compared.clear();
  m_checked.clear();
  m_compares = false;
  m_fallback = -1;
  for (auto it = m_all.rbegin(); it != m_all.rend(); ++it) {
    it->own.reset();
    if (it->via.comm) it->via.table->comm_destroy(it->via.comm);
    it->via.comm = nullptr;
  }
  m_all.clear();
  m_memory_provider = {};
  m_by_index.assign(m_by_index.size(), -1);
  for (auto it = m_oobs.rbegin(); it != m_oobs.rend(); ++it) keep ? oob_keep(**it) : oob_free(**it);
  m_oobs.clear();
}

}  // namespace sucl::core
