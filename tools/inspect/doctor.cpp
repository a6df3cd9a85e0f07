// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "inspect/devices.hpp"
#include "inspect/inspection.hpp"
#include "launcher/environment.hpp"

#include "base/config/config.hpp"
#include "base/system/device_variables.hpp"
#include "base/text.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* doctor_examples =
    "Each line says what was checked and what there is; where that is not as it should be, what "
    "it costs and how to mend it.\n\n"
    "Examples:\n"
    "  sucl doctor\n"
    "  srun -N 4 --ntasks-per-node 1 sucl doctor      every node\n\n"
    "Exit code: 0; 1 if something does not work, as opposed to slowly.";

enum class state { well, slow, broken };

struct finding {
  const char* about;
  state how;
  std::string fact;
  std::string cost, cure;  // where it is not well
};

using findings = std::vector<finding>;

// ---- devices

bool is_gpu(const json& device) { return text(device["type"]) == "gpu"; }

int count_gpus(const json& sycl) {
  int gpus = 0;
  for (const json& platform : sycl["platforms"])
    for (const json& device : platform["devices"]) gpus += is_gpu(device) ? 1 : 0;
  return gpus;
}

void look_at_runtime(findings& found, const json& sycl) {
  const std::string name = text(sycl["implementation"]) + " " + text(sycl["version"]);
  std::size_t devices = 0;
  for (const json& platform : sycl["platforms"]) devices += platform["devices"].size();
  if (devices > 0) {
    found.push_back({"SYCL", state::well, name + ", devices: " + std::to_string(devices), "", ""});
    return;
  }
  const std::string cure =
      base::cure_for_no_device([](const char* variable) { return std::getenv(variable); });
  const std::string problem = text(sycl["problem"]);
  const bool known = problem.find(cure) != std::string::npos;
  found.push_back({"SYCL", state::broken, name + " finds no device" + (known ? "" : ": " + problem),
                   "no program that uses SYCL runs", cure});
}

// What the kernel has, and SYCL should.
bool has_gpu_driver(const std::string& root) {
  return access((root + "/dev/nvidiactl").c_str(), F_OK) == 0 ||
         access((root + "/dev/kfd").c_str(), F_OK) == 0 ||
         access((root + "/dev/dri/renderD128").c_str(), F_OK) == 0;
}

void look_at_gpus(findings& found, const json& sycl, const std::string& root) {
  const int gpus = count_gpus(sycl);
  if (gpus > 0)
    found.push_back({"GPU", state::well, std::to_string(gpus) + " in SYCL", "", ""});
  else if (has_gpu_driver(root))
    found.push_back({"GPU", state::slow, "the kernel has a driver, SYCL has no GPU",
                     "everything runs on the CPU device",
                     "install the SYCL runtime's plug-in for the GPU and the user-space driver "
                     "(libcuda.so.1, libze_loader.so.1), and see that this user may open the "
                     "device file"});
  else
    found.push_back({"GPU", state::well, "none in this machine", "", ""});
  if (gpus < 2) return;
  std::string apart;
  for (const json& platform : sycl["platforms"])
    for (const json& pair : platform["no_peer_access"])
      apart += (apart.empty() ? "" : ", ") + text(pair);
  if (apart.empty())
    found.push_back(
        {"peer access", state::well, "every GPU reaches the memory of the others", "", ""});
  else
    found.push_back({"peer access", state::slow, "not between " + apart,
                     "messages between these go through the host's memory",
                     "where the GPUs are on one PCIe switch or NVLink, turn off the IOMMU's "
                     "translation (iommu=pt) and ACS; NCCL's `nvidia-smi topo -p2p r` says what "
                     "the driver allows"});
}

void look_at_nccl(findings& found, const base::config& settings, const json& sycl) {
  bool cuda = false;
  for (const json& platform : sycl["platforms"])
    cuda = cuda || text(platform["canonical"]) == "cuda";
  for (const auto& backend : settings.backends) {
    if (backend.name != "nccl" || !backend.enabled) continue;
    const json answer = probe_backend(backend);
    if (answer["found"].get<bool>()) {
      found.push_back({"NCCL", state::well, answer.value("description", "found"), "", ""});
    } else if (cuda) {
      const json& problem = answer["problem"];
      found.push_back({"NCCL", state::slow, text(problem["message"]),
                       "between nodes, data of GPUs goes through MPI or the host",
                       text(problem["hint"]).empty()
                           ? "install libnccl.so.2 and add its folder to LD_LIBRARY_PATH"
                           : text(problem["hint"])});
    } else {
      found.push_back({"NCCL", state::well, "not needed: there is no CUDA device", "", ""});
    }
  }
}

// ---- MPI

void look_at_mpi(findings& found, const environment& env) {
  if (env.flavours.empty())
    found.push_back({"MPI", state::slow, env.about_missing_mpi(),
                     "jobs start without MPI alone: `sucl run --launcher local`, torchrun, srun",
                     "build SuCL with SUCL_MPI set to the path of an mpicxx"});
  for (const mpi_flavour& mpi : env.flavours) {
    const std::string name = mpi.name + " " + mpi.version;
    const json answer = probe_module({"mpi", mpi.module}, mpi.variables);
    const bool launcher = access(mpi.launcher.c_str(), X_OK) == 0;
    if (answer["found"].get<bool>() && launcher)
      found.push_back({"MPI", state::well, name + ", launcher " + mpi.launcher, "", ""});
    else
      found.push_back({"MPI", state::broken,
                       launcher ? name + ": " + text(answer["problem"]["message"])
                                : name + ": its launcher " + mpi.launcher + " is missing",
                       "no job of " + mpi.name + " starts",
                       "install it again where it was, or build SuCL with another one "
                       "(SUCL_MPI=path of mpicxx)"});
  }
}

// ---- the system

void look_at_ptrace(findings& found, const std::string& root) {
  std::ifstream file(root + "/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (!(file >> scope)) scope = 0;
  const std::string fact = "kernel.yama.ptrace_scope is " + std::to_string(scope);
  if (scope < 2)
    found.push_back({"ptrace", state::well, fact, "", ""});
  else
    found.push_back({"ptrace", state::slow, fact,
                     "ranks of a node cannot read each other's memory: long messages are copied "
                     "twice",
                     "as root: sysctl kernel.yama.ptrace_scope=1"});
}

void look_at_shm(findings& found, const std::string& root) {
  constexpr std::uint64_t enough = std::uint64_t{1} << 30;
  const std::string folder = root + "/dev/shm";
  struct statvfs about{};
  if (statvfs(folder.c_str(), &about) != 0 || access(folder.c_str(), W_OK) != 0) {
    found.push_back({"/dev/shm", state::broken, folder + " is missing or cannot be written to",
                     "ranks of a node have no memory in common: SuCL's own backends and most MPIs "
                     "do not start",
                     "mount a tmpfs there; in a container, start it with --shm-size=2g or "
                     "--ipc=host"});
    return;
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize;
  const std::string fact = base::print_bytes(bytes) + " are free";
  if (bytes >= enough)
    found.push_back({"/dev/shm", state::well, fact, "", ""});
  else
    found.push_back({"/dev/shm", state::slow, fact,
                     "communicators of many ranks, and large messages, may find no memory",
                     "in a container, start it with --shm-size=2g or --ipc=host; otherwise remove "
                     "what ended jobs have left there, or mount it larger"});
}

void look_at_limits(findings& found) {
  struct row {
    int which;
    const char* about;
    rlim_t least;
    const char* cost;
    const char* cure;
  };
  const std::array rows{
      row{RLIMIT_NOFILE, "open files", 1024,
          "a job of many ranks without MPI runs out of descriptors",
          "ulimit -n 65536, or nofile in /etc/security/limits.conf"},
      row{RLIMIT_MEMLOCK, "locked memory", rlim_t{64} << 10,
          "network adapters and GPUs cannot register the memory of messages",
          "ulimit -l unlimited, or memlock in /etc/security/limits.conf"},
      row{RLIMIT_AS, "address space", rlim_t{16} << 30,
          "SYCL runtimes and GPUs map more than that, and fail when they do",
          "ulimit -v unlimited"},
  };
  for (const row& r : rows) {
    struct rlimit limit{};
    getrlimit(static_cast<__rlimit_resource>(r.which), &limit);
    const bool none = limit.rlim_cur == RLIM_INFINITY;
    const std::string amount = none                       ? "unlimited"
                               : r.which == RLIMIT_NOFILE ? std::to_string(limit.rlim_cur)
                                                          : base::print_bytes(limit.rlim_cur);
    const bool well = none || limit.rlim_cur >= r.least;
    found.push_back({r.about, well ? state::well : state::slow, "limit: " + amount,
                     well ? "" : r.cost, well ? "" : r.cure});
  }
}

findings inspect(const std::string& root, const std::string& config_file) {
  findings found;
  const environment env = load_environment();
  prepare_sycl(env);
  base::config settings;
  try {
    settings = base::load_config(config_file, base::sucl_variables());
  } catch (const error& e) {
    found.push_back({"configuration", state::broken, e.message(), "no program starts", e.hint()});
    settings = base::load_config("/dev/null", {});
  }
  look_at_mpi(found, env);  // forks, which is best done before SYCL starts its threads
  const json sycl = describe_devices(settings);
  look_at_nccl(found, settings, sycl);
  look_at_runtime(found, sycl);
  look_at_gpus(found, sycl, root);
  look_at_ptrace(found, root);
  look_at_shm(found, root);
  look_at_limits(found);
  return found;
}

const char* word(state s) { return s == state::well ? "ok" : s == state::slow ? "slow" : "BROKEN"; }

}  // namespace

int doctor_command(const words& arguments) {
  std::string root, config_file;
  bool as_json = false;
  CLI::App app{"Finds what makes SuCL slow or keeps it from working on this machine.",
               "sucl doctor"};
  app.add_flag("--json", as_json, "Write JSON");
  app.add_option("--config", config_file, "Configuration file to read")->type_name("FILE");
  app.add_option("--root", root, "Read /proc and /dev below this folder")->type_name("FOLDER");
  app.footer(doctor_examples);
  if (!parse(app, arguments)) return exit_code::success;
  bool broken = false;
  json all = json::array();
  for (const finding& f : inspect(root, config_file)) {
    broken = broken || f.how == state::broken;
    all.push_back({{"about", f.about},
                   {"state", word(f.how)},
                   {"fact", f.fact},
                   {"cost", f.cost},
                   {"cure", f.cure}});
    if (as_json) continue;
    std::printf("%-6s  %s: %s\n", word(f.how), f.about, f.fact.c_str());
    if (f.how != state::well)
      std::printf("        costs: %s\n        cure: %s\n", f.cost.c_str(), f.cure.c_str());
  }
  if (as_json) std::puts(all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  return broken ? exit_code::failure : exit_code::success;
}

}  // namespace sucl::tools
