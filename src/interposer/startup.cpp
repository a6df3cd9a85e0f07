// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Whether the interposer serves this process at all, its start and its end.
#include "base/log.hpp"
#include "core/control/registry.hpp"
#include "interposer/errors.hpp"
#include "interposer/interposer.hpp"
#include "interposer/loader/library.hpp"

#include <dlfcn.h>

#include <string>
#include <utility>

namespace sucl::interposer {

namespace {

// A pointer may be a device's in such a process, and that is not seen.
const char* accelerator_runtime(bool devices) {
  if (dlsym(RTLD_DEFAULT, "zeInit")) return "zeInit";
  if (devices) return nullptr;
  for (const char* symbol : {"cuInit", "hipInit"})
    if (dlsym(RTLD_DEFAULT, symbol)) return symbol;
  return nullptr;
}

// What the interposer would need to see of this process and cannot; "" if there is nothing.
std::string what_is_not_seen(bool devices) {
  if (const char* symbol = accelerator_runtime(devices))
    return std::string("the process uses an accelerator (it has ") + symbol +
           "), whose memory the interposer does not recognise";
  return {};
}

// The library that this was compiled for.
constexpr const char* family =
#if defined(SUCL_MPI_ABI)
    "abi";
#elif defined(OPEN_MPI)
    "openmpi";
#elif defined(I_MPI_VERSION)
    "impi";
#else
    "mpich";
#endif

// Why the process's library is not that one; "" if it is.
std::string other_library() {
  const loader::library found = loader::find_library();
  if (!found.problem.empty()) return found.problem;
  if (found.flavour == family) return "";
  return "the interposer was built for " + std::string(family) + ", the program for " +
         found.flavour + " (" + found.file + ")";
}

// What SuCL is to start with. Returns why it cannot; "" if it can.
std::string load(base::config& settings, const sucl_bootstrap*& control) {
  try {
    settings = base::load_config(nullptr, nullptr);
    base::set_log_level(base::parse_log_level(settings.log.level));
    settings.progress.poll_us = 0;  // a call that does not wait leaves it to the one that does
    control = &core::load_bootstrap("libsucl_mpi_" SUCL_MPI_FLAVOUR ".so");
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

// Whether no rank has a problem. What starts takes all ranks, so one is enough for all to leave MPI
// alone; the first that has one says so. Collective.
bool all_may_start(base::log_level level, const std::string& problem) {
  int rank = 0, size = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  base::set_rank(rank);
  int first = problem.empty() ? size : rank;
  PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == rank)
    log_text(level,
             problem + ": everything is passed on to MPI" + (size > 1 ? ", on all ranks" : ""));
  return first == size;
}

}  // namespace

void interposer::before_start() {
  if (!m_running) loader::refuse_other_interfaces(family);
}

void interposer::start() {
  const own_call guard;
  if (m_running) return;
  base::config settings;
  const sucl_bootstrap* control = nullptr;
  base::log_level level = base::log_level::warn;
  std::string problem = other_library();
  if (problem.empty()) {
    problem = sucl::interposer::load(settings, control);
    if (!problem.empty()) level = base::log_level::error;
  }
  const bool devices = settings.interpose.devices;
  if (problem.empty()) problem = what_is_not_seen(devices);
  if (!all_may_start(level, problem)) return;
  try {
    if (devices) device::enable();
    m_completing = m_running = new interposer(std::move(settings), *control);
    // Every rank is here.
    if (m_running->sets_up_at_once()) m_running->set_up(MPI_COMM_WORLD);
  } catch (const error& e) {
    log_text(base::log_level::error, std::string(e.what()) + "; everything is passed on to MPI");
  }
}

void interposer::stop() {
  const own_call guard;
  interposer* self = m_running;
  if (!self) return;
  if (self->m_process->settings().interpose.summary) self->print_summary();
  // In an order that is the same everywhere: that of the communicators' numbers.
  self->m_process->shut_down();
  if (!self->m_requests.stop()) m_completing = nullptr;
  PMPI_Comm_free(&self->m_probed);
  // MPI may still call on_free() for communicators that end with it: the object stays.
  m_running = nullptr;
}

}  // namespace sucl::interposer
