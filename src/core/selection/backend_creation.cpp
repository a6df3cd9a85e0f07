// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/backend_creation.hpp"

#include "base/error.hpp"
#include "core/control/control_plane.hpp"
#include "core/control/local_ranks.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace sucl::core {
namespace {

using role = base::backend_role;

std::string platform_of(const topology& where) {
  const auto& first = where.members.front().platform;
  const bool same = std::all_of(where.members.begin(), where.members.end(),
                                [&](const member& m) { return m.platform == first; });
  return same ? first : mixed_platforms;
}

const base::backend_entry* enabled(const base::backend_entry* entry) {
  return entry && entry->enabled ? entry : nullptr;
}

void add_network_settings(const base::config& settings, backend_source& source) {
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) source.settings.emplace_back(key, value);
  };
  const auto& own = settings.fabric;
  add("provider", own.provider);
  add("library", own.library);
  add("interface", own.interface.empty() ? settings.tcp.interface : own.interface);
}

}  // namespace

bool can_read(const backend_comm& memory, int size) {
  if (!memory.table->memory_read) return false;
  // A read of no bytes tests whether anything may be read.
  std::byte nothing{};
  for (int r = 0; r < size; ++r)
    if (const auto status = memory.table->memory_read(memory.comm, r, &nothing, 0, 0)) {
      take_last(status);
      return false;
    }
  return true;
}

backend_creation::backend_creation(const base::config& config, registry& known,
                                   const sucl_oob& channel, const topology& ranks,
                                   const backend_environment& environment,
                                   std::vector<std::unique_ptr<sucl_oob>>& oobs)
    : settings(config),
      backends(known),
      oob(channel),
      where(ranks),
      around(environment),
      m_oobs(oobs),
      m_strict(base::determinism_named(config.determinism) == base::determinism::strict),
      m_platform(platform_of(ranks)) {}

const base::backend_entry* backend_creation::entry_of(const char* name) const {
  return enabled(settings.find_backend(name));
}

const base::backend_entry* backend_creation::entry_of(role of) const {
  return enabled(settings.find_backend(of));
}

std::string backend_creation::not_for_platform(const char* name) const {
  const auto is_its = [&](const candidate& c) {
    return table->backends[static_cast<std::size_t>(c.backend)] == name;
  };
  const bool serves = std::any_of(
      table->live.begin(), table->live.end(), [&](const std::vector<candidate>& candidates) {
        return std::any_of(candidates.begin(), candidates.end(), is_its);
      });
  return serves ? "" : "not for platform " + m_platform;
}

base::backend_role backend_creation::last_resort() const {
  const bool mpi = entry_of(role::reference) && no_mpi(oob.bootstrap).empty();
  return mpi ? role::reference : role::network;
}

std::string backend_creation::no_need_of_network() const {
  const base::backend_entry* entry = entry_of(role::network);
  if (!entry) return "not enabled";
  if (!entry->platforms.empty()) return not_for_platform(entry->name.c_str());
  if (some_rule_names(entry->name.c_str()) || settings.default_backend == entry->name) return {};
  if (last_resort() != role::network) return "MPI executes what nothing else does";
  if (size() == 1) return "the process is alone";
  return where.nodes == 1 && no_host_memory().empty() ? "all ranks share memory" : "";
}

bool backend_creation::some_rule_names(const char* name) const {
  return std::any_of(settings.rules.begin(), settings.rules.end(), [&](const base::rule& r) {
    return std::find(r.backends.begin(), r.backends.end(), name) != r.backends.end();
  });
}

bool backend_creation::agree(bool mine) const {
  error_info said;
  said.code = mine ? errc::success : errc::unavailable;
  return agree_on_part(said).all;
}

// A rank without memory, or with a setting that is wrong, is no reason to go without a backend, as
// one without a library is: the communicator is not made.
backend_creation::agreement backend_creation::agree_on_part(const error_info& problem) const {
  struct creation_result {
    std::int32_t code;
    char text[252];
  };
  creation_result mine{static_cast<std::int32_t>(problem.code), {}};
  problem.message.copy(mine.text, sizeof mine.text - 1);
  const std::vector<creation_result> results = gather(mine);
  agreement v;
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r].code == SUCL_SUCCESS) continue;
    v.all = false;
    if (results[r].code == SUCL_ERROR_CONFIGURATION && !v.wrong_setting) {
      v.wrong_setting = problem;
      if (problem.code == errc::configuration) continue;
      v.wrong_setting->code = errc::configuration;
      v.wrong_setting->message = "rank " + std::to_string(r) + ": " + results[r].text;
      v.wrong_setting->hint = "Correct the setting on that rank";
    }
    if (results[r].code != SUCL_ERROR_OUT_OF_MEMORY || v.no_memory) continue;
    v.no_memory.emplace();
    v.no_memory->code = errc::out_of_memory;
    // A text that is the same on all ranks has been agreed on already.
    const bool agreed = std::all_of(results.begin(), results.end(), [&](const creation_result& c) {
      return std::strcmp(c.text, results[r].text) == 0;
    });
    v.no_memory->message = results[r].text;
    if (!agreed || size() == 1)
      v.no_memory->message =
          "rank " + std::to_string(r) + " has no memory for a communicator: " + results[r].text;
    v.no_memory->hint = "Free memory of the device first, or make fewer communicators";
  }
  return v;
}

sucl_oob& backend_creation::split_oob() {
  m_oobs.push_back(std::make_unique<sucl_oob>(oob_split(oob, where.rank)));
  return *m_oobs.back();
}

void backend_creation::drop_last_oob() {
  oob_free(*m_oobs.back());
  m_oobs.pop_back();
}

sucl_comm_info backend_creation::info(sucl_oob* own) const {
  const auto& me = where.members[static_cast<std::size_t>(where.rank)];
  sucl_comm_info info{};
  info.struct_size = sizeof info;
  info.rank = where.rank;
  info.size = static_cast<std::int32_t>(where.members.size());
  info.local_rank = me.local_rank;
  info.local_size = where.local_size;
  info.node = me.node;
  info.nodes = where.nodes;
  info.ranks_of_process = 1;
  if (oob.bootstrap && oob.bootstrap->name == std::string_view(local_ranks_control_plane))
    info.ranks_of_process = static_cast<std::uint32_t>(std::count_if(
        where.members.begin(), where.members.end(),
        [&](const auto& other) { return other.node == me.node && other.process == me.process; }));
  info.id = around.id;
  info.node_of = where.node_of.data();
  info.oob = own;
  info.platform = me.platform.c_str();
  info.native_device = around.native_device;
  info.native_context = around.native_context;
  return info;
}

backend_source backend_creation::source_of(const base::backend_entry& entry) const {
  backend_source source{entry.name, entry.path, entry.settings};
  if (entry.role == role::reference && oob.bootstrap) {
    if (source.file.empty()) source.file = control_plane_file(settings, oob.bootstrap->name);
    source.settings.emplace_back("device_memory", settings.mpi.device_memory);
  }
  if (entry.role == role::network) add_network_settings(settings, source);
  return source;
}

std::string backend_creation::make_transports(std::vector<transport>& result) {
  if (where.nodes == 1) return {};
  const auto* entry = entry_of(last_resort());
  if (!entry) return "nothing executes messages between nodes";
  const auto source = source_of(*entry);
  const backend_handle* handle = backends.try_open(source);
  if (!agree(handle != nullptr)) return source.name + " cannot be used on every rank";
  auto about = info(&split_oob());
  about.native_comm = around.native_comm();
  transport t{source.name, {handle->table, handle->state, nullptr}};
  const auto status = handle->table->comm_create(handle->state, &about, &t.via.comm);
  const error_info problem = status ? take_last(status) : error_info{};
  if (agree(status == SUCL_SUCCESS)) {
    result.push_back(std::move(t));
    return {};
  }
  if (!status) handle->table->comm_destroy(t.via.comm);
  return status ? problem.message : "its communicator cannot be made on every rank";
}

bool backend_creation::reads() {
  if (!m_reads) m_reads = agree(memory_provider.table && can_read(memory_provider, size()));
  return *m_reads;
}

std::string backend_creation::no_shared_memory() const {
  return memory_provider.table
             ? ""
             : "no memory is shared: " + settings.find_backend(role::memory_provider)->name + ": " +
                   no_memory_provider;
}

bool backend_creation::stages() const {
  return !where.device_memory_everywhere_on_host || settings.mpi.device_memory == "stage";
}

std::string backend_creation::no_host_memory() const {
  // Where there is no MPI the memory that hosts share is what is left within a node.
  const bool is_last = where.nodes == 1 && size() > 1 && last_resort() != role::reference;
  if (stages() && !where.mixed() && !is_last)
    return "device memory is not host-accessible on every rank, so that every transfer would need "
           "staging";
  return no_shared_memory();
}

}  // namespace sucl::core
