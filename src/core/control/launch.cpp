// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/control/launch.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"

#include <charconv>
#include <fstream>
#include <initializer_list>
#include <utility>

namespace sucl::core {
namespace {

class variables {
 public:
  explicit variables(const variable_lookup& lookup) : m_lookup(lookup) {}

  std::string text(const char* name) const {
    const char* value = m_lookup(name);
    return value ? value : "";
  }
  bool has(const char* name) const { return !text(name).empty(); }

  std::int64_t number(const char* name, std::int64_t most) const {
    const std::string value = text(name);
    std::int64_t n = -1;
    const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (wrong == std::errc{} && stop == value.data() + value.size() && n >= 0 && n <= most)
      return n;
    base::fail(errc::configuration,
               std::string(name) + " is '" + value + "', which is no number from 0 to " +
                   std::to_string(most),
               "The launcher sets it; correct it, or unset it to start one process alone");
  }

 private:
  const variable_lookup& m_lookup;
};

constexpr std::int64_t max_ranks = 1 << 24, max_port = 65535;

// Below the ports that systems give for any free port.
std::uint16_t port_of_job(const std::string& name) {
  constexpr std::uint64_t first = 12000, ports = 20000;
  return static_cast<std::uint16_t>(first + base::fnv1a(name) % ports);
}

// The rank and the size that a launcher gives. An error is kept, to be reported to the other ranks.
void read_rank(launch& l, const variables& v, const char* rank, const char* size) {
  try {
    for (const auto& [name, other] : {std::pair{rank, size}, std::pair{size, rank}})
      if (!v.has(name))
        base::fail(errc::configuration,
                   std::string(name) + " is not set in the environment of one process" +
                       (v.has(other) ? ", and " + std::string(other) + " is " + v.text(other) : ""),
                   "The launcher sets both on every rank. To start a process alone, unset all of "
                   "the launcher's variables");
    const auto number = static_cast<int>(v.number(rank, max_ranks));
    const auto all = static_cast<int>(v.number(size, max_ranks));
    if (number >= all)
      base::fail(errc::configuration,
                 std::string(rank) + " is " + std::to_string(number) + ", and " + size + " is " +
                     std::to_string(all) + ": ranks go from 0 to size - 1",
                 "Correct the variables, or unset them to start one process alone");
    l.rank = number;
    l.size = all;
  } catch (const error& e) {
    l.wrong = e.info();
  }
}

// What the user says goes before what the launcher does; `job` is known to its processes, if not
// to them alone.
void finish(launch& l, const variables& v, const std::string& job) {
  if (v.has("SUCL_TCP_ADDRESS")) l.address = v.text("SUCL_TCP_ADDRESS");
  if (v.has("SUCL_TCP_PORT")) {
    const auto port = static_cast<std::uint16_t>(v.number("SUCL_TCP_PORT", max_port));
    if (port != 0) l.port = port;
  }
  l.secret = v.has("SUCL_TCP_SECRET") ? "given:" + v.text("SUCL_TCP_SECRET") : "job:" + job;
}

launch by_torchrun(const variables& v) {
  launch l;
  l.why = "the variables of torchrun";
  read_rank(l, v, "RANK", "WORLD_SIZE");
  l.address = v.text("MASTER_ADDR");
  if (l.address.empty() && !v.has("SUCL_TCP_ADDRESS"))
    base::fail(errc::configuration,
               "MASTER_ADDR is not set, but RANK is " + v.text("RANK") + " and WORLD_SIZE is " +
                   v.text("WORLD_SIZE"),
               "torchrun sets it on every rank. To start a process alone, unset RANK and "
               "WORLD_SIZE");
  // The port itself is that of PyTorch's own store, whose agent listens there.
  const auto port = v.has("MASTER_PORT") ? v.number("MASTER_PORT", max_port) : 0;
  if (port > 0) l.port = static_cast<std::uint16_t>(port < max_port ? port + 1 : port - 1);
  finish(l, v,
         "torchrun " + v.text("MASTER_ADDR") + " " + v.text("MASTER_PORT") + " " +
             v.text("TORCHELASTIC_RUN_ID") + " " + v.text("TORCHELASTIC_RESTART_COUNT"));
  return l;
}

launch by_slurm(const variables& v) {
  launch l;
  l.why = "the variables of Slurm";
  read_rank(l, v, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  const std::string job = "slurm " + v.text("SLURM_JOB_ID") + "." + v.text("SLURM_STEP_ID");
  l.address = first_host(v.text("SLURM_STEP_NODELIST"));
  l.port = port_of_job(job);
  finish(l, v, job);
  return l;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

launch by_pals(const variables& v) {
  launch l;
  l.why = "the variables of PALS";
  read_rank(l, v, "PALS_RANKID",
            v.has("PMI_SIZE") && !v.has("PALS_SIZE") ? "PMI_SIZE" : "PALS_SIZE");
  const std::string job = "pals " + v.text("PALS_APID");
  l.address = v.text("MASTER_ADDR");
  if (l.address.empty() && v.has("PBS_NODEFILE")) l.address = first_line(v.text("PBS_NODEFILE"));
  l.port = port_of_job(job);
  finish(l, v, job);
  return l;
}

}  // namespace

std::string first_host(const std::string& list) {
  std::string name;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      name += list[i];
      continue;
    }
    const auto first_end = list.find_first_of("-,]", i);
    const auto end = list.find(']', i);
    if (end == list.npos) return {};
    name += list.substr(i + 1, first_end - i - 1);
    i = end;
  }
  return name;
}

std::optional<launch> find_own_launch(const variable_lookup& variable) {
  const variables v(variable);
  launch l;
  if (v.has("SUCL_TCP_ID") && !v.has("SUCL_TCP_RANK") && v.has("SLURM_PROCID")) {
    l = by_slurm(v);  // started by srun, for `sucl run`
    l.id = v.text("SUCL_TCP_ID");
    return l;
  }
  if (!v.has("SUCL_TCP_RANK") && !v.has("SUCL_TCP_SIZE") && !v.has("SUCL_TCP_ID"))
    return std::nullopt;
  l.why = "SUCL_TCP_RANK and SUCL_TCP_SIZE";
  read_rank(l, v, "SUCL_TCP_RANK", "SUCL_TCP_SIZE");
  l.id = v.text("SUCL_TCP_ID");
  finish(l, v, "variables " + v.text("SUCL_TCP_ADDRESS") + " " + v.text("SUCL_TCP_PORT"));
  return l;
}

namespace {

// Two of the three: one may have been set for something else. One process is not several.
bool is_of_torchrun(const variables& v) {
  const int set = int{v.has("RANK")} + int{v.has("WORLD_SIZE")} + int{v.has("MASTER_ADDR")};
  return set == 3 || (set == 2 && v.text("WORLD_SIZE") != "1");
}

// The variables of the step: a batch script itself has SLURM_PROCID and SLURM_NTASKS too, and maybe
// a step with one of the highest numbers.
bool is_of_slurm(const variables& v) {
  const bool rank = v.has("SLURM_PROCID"), size = v.has("SLURM_STEP_NUM_TASKS");
  const std::string step = v.text("SLURM_STEP_ID");
  if (step.empty()) return false;
  if (rank && size) return true;
  constexpr std::size_t digits_of_special_steps = 10;
  return step.size() < digits_of_special_steps && (rank || size) &&
         v.text("SLURM_STEP_NUM_TASKS") != "1";
}

bool is_of_pals(const variables& v) {
  if (v.has("PALS_RANKID")) return true;
  return v.has("PALS_SIZE") && v.text("PALS_SIZE") != "1";
}

}  // namespace

std::optional<launch> find_launch(const variable_lookup& variable) {
  const variables v(variable);
  if (auto own = find_own_launch(variable)) return own;
  if (is_of_torchrun(v)) return by_torchrun(v);
  if (is_of_slurm(v)) return by_slurm(v);
  if (is_of_pals(v)) return by_pals(v);
  return std::nullopt;
}

}  // namespace sucl::core
