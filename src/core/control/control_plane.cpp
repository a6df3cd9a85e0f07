// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/control/control_plane.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/system/started_ranks.hpp"
#include "core/control/local_ranks.hpp"
#include "core/control/pmix.hpp"
#include "core/control/registry.hpp"
#include "core/exchange/core_services.hpp"

#include <sucl/abi/failed_start.h>

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sucl::core {
namespace {

bool environment_has(std::string_view prefix) {
  for (char** entry = environ; entry && *entry; ++entry)
    if (std::string_view(*entry).substr(0, prefix.size()) == prefix) return true;
  return false;
}

constexpr const char* standard_abi = "abi";

// Whether the MPI library of this process has the standard ABI.
bool has_standard_abi() {
  using query = int (*)(int*, int*);
  auto* function = reinterpret_cast<query>(dlsym(RTLD_DEFAULT, "MPI_Abi_get_version"));
  int major = -1;
  int minor = -1;
  return function && function(&major, &minor) == 0 && major == 1;
}

flavour loaded_library() {
  using get_version = int (*)(char*, int*);
  auto* function = reinterpret_cast<get_version>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (!function) return {};
  // MPI's own bound on the text is the library's; none of them is near this.
  std::array<char, 16384> text{};
  int length = 0;
  if (function(text.data(), &length) != 0) return {};
  const std::string_view version(text.data());
  const std::string why =
      "the process has loaded " + std::string(version.substr(0, version.find_first_of(",\n")));
  if (has_standard_abi()) return {standard_abi, why + ", with the standard ABI"};
  if (version.find("Open MPI") != std::string_view::npos) return {"openmpi", why};
  if (version.find("Intel(R) MPI") != std::string_view::npos) return {"impi", why};
  if (version.find("MPICH") != std::string_view::npos) return {"mpich", why};
  return {};
}

bool is_initialised() {
  using query = int (*)(int*);
  auto* function = reinterpret_cast<query>(dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  int yes = 0;
  return function && function(&yes) == 0 && yes != 0;
}

flavour flavour_of_launcher() {
  if (environment_has("OMPI_COMM_WORLD_SIZE="))
    return {"openmpi", "started by Open MPI's launcher"};
  if (environment_has("PMI_RANK=") || environment_has("PMI_SIZE=")) {
    // Hydra starts both MPICH and Intel MPI; Intel's sets more variables.
    if (environment_has("I_MPI_MPIRUN=") || environment_has("I_MPI_HYDRA") ||
        environment_has("I_MPI_INFO"))
      return {"impi", "started by Intel MPI's launcher"};
    return {"mpich", "started by a PMI launcher"};
  }
  if (environment_has("PMIX_RANK=")) return {"openmpi", "started by a PMIx launcher"};
  return {};
}

const char* variable(const char* name) { return std::getenv(name); }

control_plane_choice over_tcp(const base::config& settings, launch found) {
  control_plane_choice c;
  c.file = control_plane_file(settings, tcp_control_plane);
  c.why = found.why;
  c.over_tcp = std::move(found);
  return c;
}

control_plane_choice over_mpi(const base::config& settings, const flavour& found) {
  if (found.name.empty()) return {};
  return {control_plane_file(settings, found.name), found.why, std::nullopt};
}

// A launcher has started several processes, of which this one would compute as if it were alone.
[[noreturn]] void refuse_alone(const base::started_ranks& started, const std::string& but) {
  base::fail(
      errc::unavailable, started.text() + ", but " + but,
      "Set SUCL_CONTROL_PLANE and the variables of SUCL_MPI and SUCL_TCP alike on all ranks, "
      "or leave them unset. To start a process alone, unset " +
          started.variable);
}

// The environment of one process may have been changed, or emptied.
void refuse_alone_in_sucl_run() {
  const int ranks = base::ranks_of_sucl_run();
  if (ranks < 2) return;
  base::fail(errc::unavailable,
             "`sucl run` has started " + std::to_string(ranks) +
                 " ranks, but the environment of this process does not say which one it is",
             "Leave the variables that the launcher sets (SUCL_TCP_ID, SUCL_TCP_RANK, "
             "SUCL_TCP_SIZE, or those of MPI's launcher) in the environment of every rank. For a "
             "process that shall be alone, unset SUCL_TCP_ID and set SUCL_TCP_RANK=0 and "
             "SUCL_TCP_SIZE=1");
}

// Variables of SuCL's own may be set where a launcher of MPI has started more. With an id it is the
// job of `sucl run`, which may be started by a rank of another one.
launch checked(launch own) {
  if (own.size == 1 && own.id.empty() && !own.wrong)
    if (const auto started = base::several_by_mpi(variable))
      refuse_alone(*started, "SUCL_TCP_SIZE is 1");
  return own;
}

// The choice where the setting is `mpi`.
control_plane_choice choose_mpi(const base::config& settings) {
  const flavour launched = flavour_of_launcher();
  const auto started = base::several_without_mpi(variable);
  // No MPI library knows of a launch of SuCL's own.
  if (started && launched.name.empty() && find_own_launch(variable))
    refuse_alone(*started, "the control plane shall be mpi, and no launcher of MPI has started it");
  control_plane_choice found = over_mpi(settings, detect_flavour());
  if (started && found.file.empty())
    refuse_alone(*started, "the control plane shall be mpi, and no MPI library is loaded");
  if (launched.name.empty()) refuse_alone_in_sucl_run();
  return found;
}

bool can_be_loaded(const std::string& module) {
  try {
    load_bootstrap(module);
    return true;
  } catch (const error& e) {
    base::log(base::log_level::info, "control plane", "no MPI: ", e.message());
    return false;
  }
}

// A job without MPI.
std::optional<launch> find_any_launch(const base::config& settings) {
  if (auto own = find_own_launch(variable)) return checked(std::move(*own));
  if (auto found = find_launch(variable)) return found;
  if (started_by_pmix(variable)) return find_pmix_launch(settings);
  return std::nullopt;
}

// Whether the launcher of MPI, if it says how many processes it has started, says that number.
bool is_of_size(int ranks) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* size = variable(name); size && size != std::to_string(ranks)) return false;
  return true;
}

// The job of a launcher of MPI, where MPI cannot be loaded. A launcher that a cluster's launcher
// has started hands on variables that count its own processes: those are not of this job.
std::optional<launch> find_launch_instead_of_mpi(const base::config& settings) {
  auto found = find_launch(variable);
  if (found && (found->wrong || is_of_size(found->size))) return found;
  if (started_by_pmix(variable)) return find_pmix_launch(settings);
  return std::nullopt;
}

}  // namespace

flavour detect_flavour() {
  if (flavour found = loaded_library(); !found.name.empty()) return found;
  return flavour_of_launcher();
}

control_plane_choice choose_control_plane(const base::config& settings) {
  if (settings.control_plane == tcp_control_plane) {
    if (auto found = find_any_launch(settings)) return over_tcp(settings, std::move(*found));
    if (flavour_of_launcher().name.empty()) refuse_alone_in_sucl_run();
    base::fail(errc::unavailable,
               "the control plane shall be tcp, but nothing says which rank this process is",
               "Start the program with `sucl run --launcher local`, torchrun or srun, or set "
               "SUCL_TCP_RANK, SUCL_TCP_SIZE, SUCL_TCP_ADDRESS and SUCL_TCP_PORT");
  }
  if (!settings.mpi.module.empty())
    return over_mpi(settings, {"configured", "module " + settings.mpi.module});
  // What is set names a library: that the program was built for its standard ABI is seen here.
  if (has_standard_abi()) return over_mpi(settings, loaded_library());
  if (settings.mpi.flavour != "auto")
    return over_mpi(settings, {settings.mpi.flavour, "set in the configuration"});
  if (settings.control_plane == "mpi") return choose_mpi(settings);
  if (auto own = find_own_launch(variable)) return over_tcp(settings, checked(std::move(*own)));
  // An MPI library that is only linked says nothing of the job.
  if (is_initialised()) return over_mpi(settings, detect_flavour());
  if (!flavour_of_launcher().name.empty()) {
    auto found = over_mpi(settings, detect_flavour());
    // Those of clusters start jobs on machines without MPI too.
    if (!can_be_loaded(found.file))
      if (auto job = find_launch_instead_of_mpi(settings))
        return over_tcp(settings, std::move(*job));
    return found;
  }
  if (auto found = find_launch(variable)) return over_tcp(settings, std::move(*found));
  refuse_alone_in_sucl_run();
  control_plane_choice linked = over_mpi(settings, detect_flavour());
  if (const auto started = base::several_by_mpi(variable); started && linked.file.empty())
    refuse_alone(*started, "the environment of this one does not say which it is");
  return linked;
}

std::string make_job_id(const std::string& network, std::uint16_t port, int ranks) {
  const sucl_bootstrap& plane = load_bootstrap("libsucl_tcp.so");
  std::array<char, 256> text{};
  if (!SUCL_HAS_FIELD(&plane, sucl_bootstrap, make_id) || !plane.make_id)
    base::fail(errc::unavailable, "the control plane tcp makes no ids",
               "Install SuCL's modules again");
  if (const auto status =
          plane.make_id(&services(), network.c_str(), port, text.data(), text.size()))
    throw_last(status, plane.name, "unique_id::make");
  return text.data() + (ranks > 0 ? "@" + std::to_string(ranks) : "");
}

sucl_rendezvous rendezvous_of(const launch& l, const base::config& settings) {
  sucl_rendezvous where{};
  where.struct_size = sizeof where;
  where.rank = l.rank;
  where.size = l.size;
  where.serves = l.rank == 0 && l.id.empty() && !l.store;
  where.address = l.address.c_str();
  where.port = settings.tcp.port ? static_cast<std::uint32_t>(settings.tcp.port) : l.port;
  where.id = l.id.empty() ? nullptr : l.id.c_str();
  where.store = l.store ? &*l.store : nullptr;
  where.secret = l.secret.data();
  where.secret_bytes = l.secret.size();
  where.network = settings.tcp.interface.c_str();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(settings.tcp.timeout);
  where.timeout_ms = static_cast<std::uint64_t>(ms.count());
  return where;
}

void check_next(const launch& l, const base::config& settings) {
  const sucl_bootstrap& plane = load_bootstrap("libsucl_tcp.so");
  const sucl_rendezvous where = rendezvous_of(l, settings);
  if (const auto status = plane.rendezvous(&services(), &where))
    throw_last(status, plane.name, "grow", l.rank);
}

void fail_start(const std::string& id, sucl_status status, const std::string& why,
                const std::string& hint) noexcept {
  try {
    const sucl_bootstrap& plane = load_bootstrap("libsucl_tcp.so");
    launch l;
    l.id = id;
    const base::config settings;
    sucl_failed_start start{rendezvous_of(l, settings), why.c_str(), hint.c_str(), status};
    start.where.struct_size = sizeof start;
    sucl_bootstrap_info info{};
    info.struct_size = sizeof info;
    if (plane.rendezvous(&services(), &start.where) == SUCL_SUCCESS)
      (void)plane.init(&services(), nullptr, nullptr, &info);  // reports the failure, and fails
  } catch (const std::exception& e) {
    base::log(base::log_level::warn, "control plane",
              "a failure could not be reported to the other ranks: ", e.what());
  }
}

std::string no_mpi(const sucl_bootstrap* control) {
  if (!control) return "this process is not part of an MPI job";
  const std::string_view plane(control->name);
  if (plane == local_ranks_control_plane)
    return "some processes of this job have several ranks, and MPI knows one of each process";
  if (plane != tcp_control_plane) return {};
  return "this job runs without MPI: its control plane is tcp";
}

std::string control_plane_file(const base::config& settings, const std::string& flavour) {
  if (flavour == tcp_control_plane) return "libsucl_tcp.so";
  if (!settings.mpi.module.empty()) return settings.mpi.module;
  // One was built for this library, or that for the standard ABI has to do.
  std::string file = "libsucl_mpi_" + flavour + ".so";
  const std::vector<std::string> folders = module_directories();
  if (find_module(file, folders) == file) {
    const std::string any = "libsucl_mpi_" + std::string(standard_abi) + ".so";
    if (find_module(any, folders) != any) return any;
  }
  return file;
}

}  // namespace sucl::core
