// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/built_ins.hpp"
#include "command.hpp"

#include "core/control/control_plane.hpp"
#include "core/control/registry.hpp"
#include "core/exchange/core_services.hpp"

#include <sucl/types.hpp>

#include <nlohmann/json.hpp>

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

// `sucl info` looks into each module in a process of its own: MPI libraries do not live together,
// and a broken one must not take the program with it.
namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array<const char*, SUCL_MEMORY_COUNT> memories{"system", "host", "shared", "device"};

// MPI's own words about itself, which every library gives before it is initialised.
std::string mpi_library(const std::string& file) {
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  using get_version = int (*)(char*, int*);
  const auto function =
      module ? reinterpret_cast<get_version>(dlsym(module, "MPI_Get_library_version")) : nullptr;
  if (!function) return {};
  std::array<char, 16384> text{};
  int length = 0;
  if (function(text.data(), &length) != 0) return {};
  const std::string version(text.data());
  std::istringstream words(version.substr(0, version.find_first_of(",\n")));
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

bool supports(const core::backend_handle& backend, kind k, type t, op o, sucl_memory memory) {
  sucl_query query{};
  query.struct_size = sizeof query;
  query.kind = static_cast<sucl_kind>(k);
  query.type = static_cast<sucl_type>(t);
  query.op = static_cast<sucl_op>(o);
  query.memory = memory;
  query.element_size = t == type::bytes ? 1 : size_of(t);
  sucl_capability answer{};
  answer.struct_size = sizeof answer;
  return backend.table->query(backend.state, &query, &answer) == SUCL_SUCCESS &&
         answer.supported != 0;
}

// An op that a type has.
op some_op(type t) {
  for (const op o : {op::sum, op::minloc, op::logical_or})
    if (defined(o, t)) return o;
  return op::none;
}

// Whether a backend executes a kind of operation in some memory and type.
bool supports_any(const core::backend_handle& backend, kind k) {
  for (int t = 0; t < SUCL_TYPE_COUNT; ++t)
    for (int m = 0; m < SUCL_MEMORY_COUNT; ++m)
      if (supports(backend, k, static_cast<type>(t),
                   reduces(k) ? some_op(static_cast<type>(t)) : op::none, m))
        return true;
  return false;
}

json capabilities(const core::backend_handle& backend) {
  json kinds = json::array();
  for (int k = 0; k < SUCL_KIND_COUNT; ++k)
    if (supports_any(backend, static_cast<kind>(k))) kinds.push_back(name(static_cast<kind>(k)));
  json takes = json::array();
  for (int m = 0; m < SUCL_MEMORY_COUNT; ++m)
    if (supports(backend, kind::broadcast, type::bytes, op::none, m) ||
        supports(backend, kind::allreduce, type::fp32, op::sum, m) ||
        supports(backend, kind::send, type::bytes, op::none, m))
      takes.push_back(memories[static_cast<std::size_t>(m)]);
  json reduced = json::object();
  for (int o = SUCL_OP_SUM; o < SUCL_OP_COUNT; ++o) {
    json types = json::array();
    for (int t = 0; t < SUCL_TYPE_COUNT; ++t)
      if (supports(backend, kind::allreduce, static_cast<type>(t), static_cast<op>(o),
                   SUCL_MEMORY_SYSTEM))
        types.push_back(name(static_cast<type>(t)));
    if (!types.empty()) reduced[name(static_cast<op>(o))] = types;
  }
  return {{"kinds", kinds}, {"memory", takes}, {"reductions", reduced}};
}

json problem(const error_info& info) { return {{"message", info.message}, {"hint", info.hint}}; }

json describe_built_in(const sucl_backend& table) {
  const core::backend_handle own{table.name, table.description, "", &table, nullptr};
  return {{"found", true},
          {"path", "built in"},
          {"description", own.description},
          {"supports", capabilities(own)}};
}

json describe(core::registry& registry, const core::backend_source& source) {
  if (source.file.empty())
    for (const core::built_in_backend* b : core::built_ins())
      if (b->name() == source.name) return describe_built_in(b->table());
  const core::backend_handle& backend = registry.open(source);
  return {{"found", true},
          {"path", std::filesystem::weakly_canonical(backend.path).string()},
          {"description", backend.description},
          {"supports", capabilities(backend)}};
}

// An MPI module: its library can always be asked for its version, but what it supports only while
// it is initialised. Inside a job it is not: this process is no rank of it.
json describe_mpi(const core::backend_source& source) {
  const sucl_bootstrap& control = core::load_bootstrap(source.file);
  json result{{"found", true}, {"path", source.file}, {"library", mpi_library(source.file)}};
  if (!core::detect_flavour().name.empty()) return result;
  sucl_bootstrap_info info{};
  info.struct_size = sizeof info;
  const sucl_status status = control.init(&core::services(), nullptr, nullptr, &info);
  if (status != SUCL_SUCCESS) core::throw_last(status, control.name, "initialisation");
  {
    core::registry registry;
    result.update(describe(registry, source));
  }
  control.finalize();
  return result;
}

}  // namespace

// Arguments: name, file, then key=value for each setting.
int probe_command(const words& arguments) {
  if (arguments.size() < 2)
    wrong_usage("probe is for sucl info, which gives it a name and a file.");
  core::backend_source source{arguments[0], arguments[1], {}};
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const auto equals = arguments[i].find('=');
    source.settings.emplace_back(arguments[i].substr(0, equals), arguments[i].substr(equals + 1));
  }
  json result;
  try {
    core::registry registry;
    result = source.name == "mpi" ? describe_mpi(source) : describe(registry, source);
  } catch (const error& e) {
    result = {{"found", false}, {"problem", problem(e.info())}};
  }
  std::puts(result.dump().c_str());
  return exit_code::success;
}

}  // namespace sucl::tools
