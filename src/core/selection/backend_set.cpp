// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/backend_set.hpp"

#include "backends/device_kernels/backend.hpp"
#include "backends/hierarchical/backend.hpp"
#include "backends/self/self_backend.hpp"
#include "backends/shm_p2p/backend.hpp"
#include "backends/shm_plan/backend.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "core/layers/trace.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

std::string platform_of(const topology& where) {
  const auto& first = where.members.front().platform;
  const bool same = std::all_of(where.members.begin(), where.members.end(),
                                [&](const member& m) { return m.platform == first; });
  return same ? first : mixed_platforms;
}

[[noreturn]] void refuse_reference(error_info problem) {
  if (problem.message.empty()) {
    problem.code = errc::unavailable;
    problem.message = "MPI cannot carry a new communicator on another rank";
    problem.hint = "Look for what that rank says";
  }
  problem.operation = "communicator creation";
  throw error(std::move(problem));
}

// Whether operations of some kind may go to this backend: by a rule, its platforms or a default.
bool serves(const selection_table& table, int backend) {
  return std::any_of(table.live.begin(), table.live.end(), [&](const auto& candidates) {
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const candidate& c) { return c.backend == backend; });
  });
}

bool wants_memory(const base::config& settings) {
  const auto enabled = [&](const char* name) {
    const auto* entry = settings.find_backend(name);
    return entry && entry->enabled;
  };
  return enabled(plan_backend_name) || enabled(kernel_backend_name) ||
         enabled(message_backend_name);
}

std::size_t index_of(const base::config& settings, const char* name) {
  for (std::size_t i = 0; i < settings.backends.size(); ++i)
    if (settings.backends[i].name == name) return i;
  return settings.backends.size();
}

bool some_rule_names(const base::config& settings, const char* name) {
  return std::any_of(settings.rules.begin(), settings.rules.end(), [&](const base::rule& r) {
    return std::find(r.backends.begin(), r.backends.end(), name) != r.backends.end();
  });
}

// Sums in device memory, which stand for all that can be ordered on streams.
sucl_operation probe_of_device_memory() {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = SUCL_KIND_ALLREDUCE;
  o.type = SUCL_TYPE_FP32;
  o.op = SUCL_OP_SUM;
  o.element_size = sizeof(float);
  o.count = 1;
  o.send_memory = o.recv_memory = SUCL_MEMORY_DEVICE;
  return o;
}

selection_query query_of(const sucl_operation& record, int size, bool blocking) {
  selection_query q;
  q.blocking = blocking;
  q.what = static_cast<kind>(record.kind);
  q.element = static_cast<type>(record.type);
  q.reduction = static_cast<op>(record.op);
  // The two ends of a message may have different memory, and must choose alike.
  if (!is_point_to_point(record.kind)) q.memory = std::max(record.send_memory, record.recv_memory);
  const auto message = message_size_of(record, size);
  q.bytes = message.bytes;
  q.bytes_known = message.known;
  return q;
}

}  // namespace

sucl_comm_info backend_set::info_of(const topology& where, const environment& around,
                                    sucl_oob* oob) {
  const auto& me = where.members[static_cast<std::size_t>(where.rank)];
  sucl_comm_info info{};
  info.struct_size = sizeof info;
  info.rank = where.rank;
  info.size = static_cast<std::int32_t>(where.members.size());
  info.local_rank = me.local_rank;
  info.local_size = where.local_size;
  info.node = me.node;
  info.nodes = where.nodes;
  info.id = around.id;
  info.node_of = where.node_of.data();
  info.oob = oob;
  info.platform = me.platform.c_str();
  info.native_device = around.native_device;
  info.native_context = around.native_context;
  return info;
}

void backend_set::create(const base::config& settings, registry& backends, const sucl_oob& oob,
                         const topology& where, const environment& around) {
  m_size = static_cast<int>(where.members.size());
  m_level = base::determinism_named(settings.determinism);
  m_strict = m_level == base::determinism::strict;
  m_platform = where.members[static_cast<std::size_t>(where.rank)].platform;
  const auto platform = platform_of(where);
  m_table = compile(settings,
                    {platform, m_size, where.nodes, false, !where.device_memory_everywhere_on_host},
                    around.tuned);
  m_by_index.assign(settings.backends.size(), -1);
  m_obstacles.assign(settings.backends.size(), "");
  m_all.reserve(settings.backends.size() + 1);
  for (std::size_t i = 0; i < settings.backends.size(); ++i) {
    const auto& entry = settings.backends[i];
    if (!entry.enabled) {
      m_obstacles[i] = "not enabled";
    } else if (entry.name == plan_backend_name || entry.name == kernel_backend_name ||
               entry.name == message_backend_name || entry.name == hierarchical_backend_name) {
      continue;  // come last: they use another one
    } else if (entry.name == memory_backend_name && !wants_memory(settings)) {
      m_obstacles[i] = "the backends plan, messages and kernels, which use it, are not enabled";
    } else if (entry.name != memory_backend_name && !serves(m_table, static_cast<int>(i))) {
      m_obstacles[i] = "not for platform " + platform;
    } else if (entry.name == reference_backend && !oob.bootstrap) {
      m_obstacles[i] = "this process is not part of an MPI job";
    } else {
      m_obstacles[i] = try_create(source_of(settings, entry, oob.bootstrap), settings, backends,
                                  oob, where, around);
      if (m_obstacles[i].empty()) m_by_index[i] = static_cast<int>(m_all.size()) - 1;
    }
  }
  const std::size_t memory_provider = index_of(settings, memory_backend_name);
  if (memory_provider < settings.backends.size() && m_by_index[memory_provider] >= 0)
    m_memory_provider = m_all[static_cast<std::size_t>(m_by_index[memory_provider])].via;
  if (create_plans(settings, backends, oob, where, around)) {
    selection_scope scope = m_table.scope;
    scope.reads = true;
    m_table = compile(settings, scope, around.tuned);
  }
  create_messages(settings, backends, oob, where, around);
  create_kernels(settings, oob, where, around);
  create_levels(settings, oob, where, around);
  for (std::size_t i = 0; i < settings.backends.size(); ++i)
    if (settings.backends[i].name == plan_backend_name && !m_obstacles[i].empty())
      m_no_plans = m_obstacles[i];
  if (!oob.bootstrap) {
    backend_instance self;
    self.name = self_backend().name;
    self.via = make_self_comm();
    self.formats = std::make_unique<transfer_formats>(self.via, m_platform);
    m_all.push_back(std::move(self));
  }
  // The one that lends memory carries nothing.
  const bool none = std::all_of(m_all.begin(), m_all.end(), [](const backend_instance& c) {
    return c.name == memory_backend_name;
  });
  if (none)
    base::fail(errc::unavailable, "no backend can be used: " + obstacles(settings),
               "`sucl info` lists every backend and why it cannot be used");
}

backend_source backend_set::source_of(const base::config& settings,
                                      const base::backend_entry& entry,
                                      const sucl_bootstrap* control) {
  backend_source source{entry.name, entry.path, entry.settings};
  if (entry.name == reference_backend && control) {
    if (source.file.empty()) source.file = control_plane_file(settings, control->name);
    source.settings.emplace_back("device_memory", settings.mpi.device_memory);
  }
  return source;
}

std::string backend_set::obstacles(const base::config& settings) const {
  std::string text;
  for (std::size_t i = 0; i < settings.backends.size(); ++i)
    text += (text.empty() ? "" : "; ") + settings.backends[i].name + ": " + m_obstacles[i];
  return text;
}

// What carries the messages of plans between nodes, on channels of their own. Returns why there is
// nothing.
std::string backend_set::make_transports(const base::config& settings, registry& backends,
                                         const sucl_oob& oob, const topology& where,
                                         const environment& around, std::vector<transport>& made) {
  if (where.nodes == 1) return {};
  if (where.nodes == m_size) return "every rank is alone on its node";
  const auto* entry = settings.find_backend(reference_backend);
  if (!entry || !entry->enabled || !oob.bootstrap) return "nothing carries messages between nodes";
  const auto source = source_of(settings, *entry, oob.bootstrap);
  const backend_handle* handle = backends.try_open(source);
  if (!agree(oob, handle != nullptr)) return source.name + " cannot be used on every rank";
  m_oobs.push_back(std::make_unique<sucl_oob>(oob_split(oob, where.rank)));
  auto info = info_of(where, around, m_oobs.back().get());
  info.native_comm = around.native_comm();
  transport t{source.name, {handle->table, handle->state, nullptr}};
  const auto status = handle->table->comm_create(handle->state, &info, &t.via.comm);
  const error_info problem = status ? take_last(status) : error_info{};
  if (agree(oob, status == SUCL_SUCCESS)) {
    made.push_back(std::move(t));
    return {};
  }
  if (!status) handle->table->comm_destroy(t.via.comm);
  return status ? problem.message : "its communicator cannot be made on every rank";
}

// Why no memory is lent to the built-in backends; "" if some is.
std::string backend_set::no_shared_memory(const base::config& settings) const {
  if (m_memory_provider.table) return {};
  const std::size_t i = index_of(settings, memory_backend_name);
  return "no memory is shared: " + std::string(memory_backend_name) + ": " +
         (i == settings.backends.size() ? "unknown" : m_obstacles[i]);
}

// The same for those that carry what the host reads.
std::string backend_set::no_host_memory(const base::config& settings, const topology& where) const {
  if (!where.device_memory_everywhere_on_host || settings.mpi.device_memory == "stage")
    return "ranks may use device memory, which they would stage";
  return no_shared_memory(settings);
}

void backend_set::add_built_in(backend_instance made, std::size_t i, const base::config& settings,
                               const topology& where, const environment& around) {
  add_layers(made, settings, where, around);
  // What is reduced in two steps is reduced in another order.
  made.formats = std::make_unique<transfer_formats>(made.via, m_platform, m_strict && made.levels);
  m_all.push_back(std::move(made));
  m_by_index[i] = static_cast<int>(m_all.size()) - 1;
}

// The built-in backend of plans, above the one that lends it memory. Whether it may copy from the
// memory of all ranks.
bool backend_set::create_plans(const base::config& settings, registry& backends,
                               const sucl_oob& oob, const topology& where,
                               const environment& around) {
  const std::size_t i = index_of(settings, plan_backend_name);
  if (i == settings.backends.size() || !settings.backends[i].enabled) return false;
  std::string& obstacle = m_obstacles[i];
  obstacle = no_host_memory(settings, where);
  if (!obstacle.empty()) return false;
  placement place{where.rank, m_size, where.node_of, {}, where.oversubscribed};
  obstacle = make_transports(settings, backends, oob, where, around, place.transports);
  if (!obstacle.empty()) return false;
  backend_instance made;
  made.name = plan_backend_name;
  try {
    made.via =
        make_plan_comm(m_memory_provider, std::move(place), &obstacle, around.tuned, m_strict);
  } catch (const error& e) {
    obstacle = e.info().message;
  }
  if (!agree_on(made, oob, obstacle)) return false;
  m_plans = made.via;
  m_plan_board = &board_of(m_plans);
  const bool reads = agree(oob, can_read(m_memory_provider, m_size));
  if (reads) allow_reads(m_plans);
  add_built_in(std::move(made), i, settings, where, around);
  return reads;
}

// The built-in backend of messages, above the one that lends it memory.
void backend_set::create_messages(const base::config& settings, registry& backends,
                                  const sucl_oob& oob, const topology& where,
                                  const environment& around) {
  const std::size_t i = index_of(settings, message_backend_name);
  if (i == settings.backends.size() || !settings.backends[i].enabled) return;
  std::string& obstacle = m_obstacles[i];
  if (!serves(m_table, static_cast<int>(i)))
    obstacle = "not for platform " + platform_of(where);
  else if (m_size > most_message_ranks)
    obstacle = "it is for up to " + std::to_string(most_message_ranks) + " ranks";
  else
    obstacle = no_host_memory(settings, where);
  if (!obstacle.empty()) return;
  placement place{where.rank, m_size, where.node_of, {}, where.oversubscribed};
  obstacle = make_transports(settings, backends, oob, where, around, place.transports);
  if (!obstacle.empty()) return;
  const bool reads = agree(oob, can_read(m_memory_provider, m_size));
  backend_instance made;
  made.name = message_backend_name;
  made.independent_progress = true;
  try {
    made.via = make_message_comm(m_memory_provider, std::move(place), reads, &obstacle);
  } catch (const error& e) {
    obstacle = e.info().message;
  }
  if (!agree_on(made, oob, obstacle)) return;
  m_messages = made.via;
  add_built_in(std::move(made), i, settings, where, around);
}

// Why kernels are not for these ranks, unless a rule asks for them: some share a device, where
// kernels that wait for each other take turns of milliseconds. The same on every rank.
std::string backend_set::shared_device(const base::config& settings, const sucl_oob& oob,
                                       kernel_device* device) const {
  const auto mine = device ? device->identity() : kernel_device::identity_type{};
  std::vector<kernel_device::identity_type> all(static_cast<std::size_t>(m_size));
  sucl_oob channel = oob;
  if (const auto status = services().oob_allgather(&channel, &mine, all.data(), sizeof mine))
    throw_last(status);
  if (some_rule_names(settings, kernel_backend_name)) return {};
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (all[a] == all[b] && all[a] != kernel_device::identity_type{})
        return "ranks " + std::to_string(b) + " and " + std::to_string(a) +
               " share a device, on which they would take turns; a rule that names kernels "
               "has them all the same";
  return {};
}

// The built-in backend of kernels, above the one that maps memory of devices.
void backend_set::create_kernels(const base::config& settings, const sucl_oob& oob,
                                 const topology& where, const environment& around) {
  const std::size_t i = index_of(settings, kernel_backend_name);
  if (i == settings.backends.size() || !settings.backends[i].enabled) return;
  std::string& obstacle = m_obstacles[i];
  if (!serves(m_table, static_cast<int>(i)))
    obstacle = "not for platform " + platform_of(where);
  else if (m_size > most_kernel_ranks)
    obstacle = "it is for up to " + std::to_string(most_kernel_ranks) + " ranks";
  else if (where.nodes > 1)
    obstacle = "the ranks are on several nodes";
  else
    obstacle = no_shared_memory(settings);
  if (obstacle.empty()) obstacle = shared_device(settings, oob, around.kernels);
  if (!obstacle.empty()) return;
  backend_instance made;
  made.name = kernel_backend_name;
  made.launches = true;
  error_info problem;
  problem.code = around.kernels ? errc::success : errc::unavailable;
  if (!around.kernels) problem.message = "the device of this rank runs no kernels of SuCL's";
  try {
    if (around.kernels) around.kernels->prepare();
  } catch (const error& e) {
    problem = e.info();
  }
  const auto ready = agree_on_part(oob, problem);
  if (ready.no_memory) throw error(*ready.no_memory);
  if (!ready.all) {
    obstacle = problem.message.empty() ? "it cannot be used on every rank" : problem.message;
    return;
  }
  problem.code = errc::unavailable;
  m_oobs.push_back(std::make_unique<sucl_oob>(oob_split(oob, where.rank)));
  try {
    made.via = make_kernel_comm(std::make_unique<kernel_comm>(
        m_memory_provider, *m_oobs.back(), *around.kernels, where.rank, m_size,
        kernel_settings::read(settings.backends[i].settings, m_size)));
  } catch (const error& e) {
    obstacle = e.info().message;
    problem.code = e.code();
  }
  if (!agree_on(made, oob, obstacle, problem.code)) return;
  m_kernels = made.via;
  m_kernel_board = &kernels_of(m_kernels).board();
  kernels_of(m_kernels).retune(around.tuned);
  add_built_in(std::move(made), i, settings, where, around);
}

// The built-in backend of two levels, on communicators of its own.
void backend_set::create_levels(const base::config& settings, const sucl_oob& oob,
                                const topology& where, const environment& around) {
  const std::size_t i = index_of(settings, hierarchical_backend_name);
  if (i == settings.backends.size() || !settings.backends[i].enabled) return;
  std::string& obstacle = m_obstacles[i];
  const sucl_operation sums = probe_of_device_memory();
  const auto orders = [&](const backend_instance& c) {
    const transfer_format& w = c.formats->of(sums.kind, sums.type, sums.op, sums.element_size);
    return w.streams && w.reaches(SUCL_MEMORY_DEVICE);
  };
  const auto library = std::find_if(m_all.begin(), m_all.end(), orders);
  if (where.nodes == 1)
    obstacle = "the ranks are on one node";
  else if (where.nodes == m_size)
    obstacle = "every rank is alone on its node";
  else if (!serves(m_table, static_cast<int>(i)))
    obstacle = "it is for device memory, or for rules";
  else if (!some_rule_names(settings, hierarchical_backend_name) && library != m_all.end())
    obstacle = library->name + " orders operations on the device's streams";
  if (!obstacle.empty()) return;
  hierarchical_makers how{around.split,
                          [&](bool mine) { return agree(oob, mine); },
                          {around.scratch, around.kernels},
                          around.levels};
  if (!some_rule_names(settings, hierarchical_backend_name)) how.must_order = &sums;
  backend_instance made;
  made.name = hierarchical_backend_name;
  made.launches = true;
  made.via = make_hierarchical(settings.backends[i].settings, map_levels(where.node_of, where.rank),
                               how, &obstacle);
  if (!made.via.table) return;
  m_hierarchical = made.levels = &hierarchical_of(made.via);
  add_built_in(std::move(made), i, settings, where, around);
}

// Creates one backend on every rank, or on none. Returns why not.
std::string backend_set::try_create(const backend_source& source, const base::config& settings,
                                    registry& backends, const sucl_oob& oob, const topology& where,
                                    const environment& around) {
  const backend_handle* handle = backends.try_open(source);
  if (!agree(oob, handle != nullptr)) {
    if (handle) return "it cannot be used on every rank";
    for (const auto& report : backends.reports())
      if (report.name == source.name && report.problem) return report.problem->message;
    return "it cannot be opened";
  }
  backend_instance made;
  made.name = source.name;
  m_oobs.push_back(std::make_unique<sucl_oob>(oob_split(oob, where.rank)));
  auto info = info_of(where, around, m_oobs.back().get());
  // The one that lends memory needs none, and each costs one of the few thousand that MPI has.
  if (source.name != memory_backend_name) info.native_comm = around.native_comm();
  made.via = {handle->table, handle->state, nullptr};
  const auto status = handle->table->comm_create(handle->state, &info, &made.via.comm);
  error_info problem = status ? take_last(status) : error_info{};
  if (!status) problem.code = errc::success;
  const auto v = agree_on_part(oob, problem);
  if (!v.all) {
    if (!status) handle->table->comm_destroy(made.via.comm);
    oob_free(*m_oobs.back());
    m_oobs.pop_back();
    // Without it much could not be carried, and the program can end what it lacks room for.
    if (source.name == reference_backend) refuse_reference(problem);
    if (v.no_memory && around.native_device) throw error(*v.no_memory);
    return status ? problem.message : "its communicator cannot be made on every rank";
  }
  if (source.name != memory_backend_name) add_layers(made, settings, where, around);
  made.formats = std::make_unique<transfer_formats>(made.via, m_platform, m_strict);
  m_all.push_back(std::move(made));
  return {};
}

void backend_set::add_layers(backend_instance& made, const base::config& settings,
                             const topology& where, const environment& around) {
  if (settings.layers.trace.empty()) return;
  m_oobs.push_back(std::make_unique<sucl_oob>(oob_split(*m_oobs.back(), where.rank)));
  made.via = wrap_trace(made.via, info_of(where, around, m_oobs.back().get()),
                        {settings.layers.trace, around.world_rank, made.name});
}

bool backend_set::usable(int backend, const sucl_operation& record) {
  const int index = m_by_index[static_cast<std::size_t>(backend)];
  if (index < 0) return false;
  const backend_instance& c = m_all[static_cast<std::size_t>(index)];
  const transfer_format& w =
      c.formats->of(record.kind, record.type, record.op, record.element_size);
  // What would be converted on the host first is better off there.
  return w.carried && !(c.levels && (w.convert || w.fold));
}

const backend_instance& backend_set::choose(const sucl_operation& record, bool blocking,
                                            const tune::table_row** row) {
  if (record.kind == compiled_plan_kind)
    for (const backend_instance& c : m_all)
      if (c.name == plan_backend_name) {
        if (row) *row = nullptr;
        return c;
      }
  const candidate* c = sucl::core::choose(m_table, query_of(record, m_size, blocking),
                                          [&](int b) { return usable(b, record); });
  if (row) {
    const bool tuned = c && c->stage == selection_stage::table;
    *row = tuned ? &m_table.tuned->rows[static_cast<std::size_t>(c->rule)] : nullptr;
  }
  if (c) return m_all[static_cast<std::size_t>(m_by_index[static_cast<std::size_t>(c->backend)])];
  if (!m_all.empty() && m_all.back().via.table == &self_backend()) return m_all.back();
  base::fail(errc::unsupported,
             "no backend carries " + std::string(name(static_cast<kind>(record.kind))) + " of " +
                 name(static_cast<type>(record.type)) + " with op " +
                 name(static_cast<op>(record.op)),
             "communicator.explain() says why each backend was passed over");
}

void backend_set::use_table(const base::config& settings, const tune::table* tuned) {
  m_table = compile(settings, m_table.scope, tuned);
  if (m_plans.table) retune(m_plans, tuned);
  if (m_kernels.table) kernels_of(m_kernels).retune(tuned);
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
    const bool own = backend == plan_backend_name || backend == kernel_backend_name;
    if (!whose.empty() && !own) whose += " as far as " + backend + " keeps to that";
    return "  bits   the same on all ranks" + whose + level;
  }
  const auto c = std::find_if(m_all.begin(), m_all.end(),
                              [&](const backend_instance& one) { return one.name == backend; });
  const bool above =
      c != m_all.end() &&
      c->formats->of(record.kind, record.type, record.op, record.element_size).fold != nullptr;
  return "  bits   those of a fold in order of rank, whoever carries it" + level +
         (above ? "  folds  SuCL, of what " + backend + " moves\n" : "");
}

std::string backend_set::explain(const sucl_operation& record, std::uint64_t bytes) {
  const auto answer = [&](bool blocking) {
    auto q = query_of(record, m_size, blocking);
    q.bytes = bytes;
    return sucl::core::explain(m_table, q, [&](int b) -> std::string {
      if (usable(b, record)) return {};
      const auto i = static_cast<std::size_t>(b);
      if (!m_obstacles[i].empty()) return m_obstacles[i];
      return folds_in_order(record) ? "it does not fold in the fixed order"
                                    : "it cannot carry this";
    });
  };
  const explanation e = answer(true), by_event = answer(false);
  std::string text = render(e);
  if (e.backend == kernel_backend_name)
    text += "  kernels work " + kernels_of(m_kernels).describe(record) + "\n";
  if (e.backend == hierarchical_backend_name)
    text += "  on this rank: " + m_hierarchical->describe(record) + "\n";
  if (by_event.backend != e.backend)
    text += "  by event " + by_event.backend + ": " + by_event.considered.back().source + ", " +
            by_event.considered.back().why + "\n";
  if (m_plans.table && (e.backend == plan_backend_name || by_event.backend == plan_backend_name))
    text += describe_plan(m_plans, record);
  if (e.backend == message_backend_name) text += describe_messages(m_messages);
  text += explain_bits(record, e.backend);
  if (e.backend.empty() && !m_all.empty() && m_all.back().via.table == &self_backend())
    text += "\nself carries it: a single process without MPI\n";
  return text;
}

void backend_set::note_issue(std::uint64_t sequence) const noexcept {
  for (const auto& c : m_all) trace_issue(c.via, sequence);
}

void backend_set::check() const {
  if (m_kernels.table) kernels_of(m_kernels).check();
  if (m_hierarchical) m_hierarchical->check();
}

error_info backend_set::mismatch() const {
  return (m_plan_board && m_plan_board->alarmed() ? m_plan_board : m_kernel_board)->verdict();
}

void backend_set::abort_kernels() {
  if (m_kernels.table) kernels_of(m_kernels).abort();
}

void backend_set::compare_calls() {
  if (m_kernels.table) kernels_of(m_kernels).compare_calls();
}

void backend_set::abort() {
  for (auto& c : m_all) c.via.table->abort(c.via.comm);
}

void backend_set::destroy(bool keep) {
  for (auto it = m_all.rbegin(); it != m_all.rend(); ++it) {
    if (it->via.comm) it->via.table->comm_destroy(it->via.comm);
    it->via.comm = nullptr;
  }
  m_all.clear();
  m_plans = m_memory_provider = m_kernels = m_messages = {};
  m_hierarchical = nullptr;
  m_plan_board = m_kernel_board = nullptr;
  m_by_index.assign(m_by_index.size(), -1);
  for (auto it = m_oobs.rbegin(); it != m_oobs.rend(); ++it) keep ? oob_keep(**it) : oob_free(**it);
  m_oobs.clear();
}

}  // namespace sucl::core
