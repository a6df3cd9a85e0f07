// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/context.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace apps {
namespace {

// The kind of device that this rank wants; "" leaves it to SYCL.
std::string wanted_device(const options& o, int rank) {
  return o.devices.empty() ? "" : o.devices[static_cast<std::size_t>(rank) % o.devices.size()];
}

// The ranks before this one that want a GPU have the GPUs before.
sycl::device choose_device(const options& o, int rank) {
  const std::string kind = wanted_device(o, rank);
  if (kind.empty()) return sycl::device(sycl::default_selector_v);
  if (kind == "cpu") return sycl::device(sycl::cpu_selector_v);
  const auto gpus = sycl::device::get_devices(sycl::info::device_type::gpu);
  if (gpus.empty()) throw std::runtime_error("SYCL has no GPU");
  std::size_t before = 0;
  for (int r = 0; r < rank; ++r) before += wanted_device(o, r) == kind;
  return gpus[before % gpus.size()];
}

// Which of the processors are for one of several ranks: the first, and the one after the last.
// Ranks of GPUs get two where there are enough; the others share the rest evenly.
std::pair<int, int> processors_for(std::size_t index, const std::vector<bool>& on_gpu,
                                   int processors) {
  const auto ranks = static_cast<int>(on_gpu.size());
  const auto gpus = static_cast<int>(std::count(on_gpu.begin(), on_gpu.end(), true));
  if (gpus == ranks || processors < 4 * ranks) {
    const auto i = static_cast<int>(index);
    return {i * processors / ranks, (i + 1) * processors / ranks};
  }
  const auto before = static_cast<int>(
      std::count(on_gpu.begin(), on_gpu.begin() + static_cast<std::ptrdiff_t>(index), true));
  const int shared = processors - 2 * gpus, others = ranks - gpus;
  const auto start = [&](int other) { return other * shared / others; };
  if (on_gpu[index]) return {shared + 2 * before, shared + 2 * before + 2};
  const int other = static_cast<int>(index) - before;
  return {start(other), start(other + 1)};
}

// CPU devices bind their threads to processors, those of every rank to the same ones, where they
// take each other's time. So ranks of a node that are not bound take parts of the processors,
// before the device starts threads.
void take_own_processors(sucl::runtime& runtime, const options& o) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  auto comm = runtime.world();
  std::vector<cpu_set_t> all(static_cast<std::size_t>(comm.size()));
  comm.blocking().allgather(reinterpret_cast<const std::byte*>(&mine),
                            reinterpret_cast<std::byte*>(all.data()), sizeof mine);
  std::vector<bool> on_gpu;  // ranks of this node
  std::size_t index = 0;
  const auto& members = comm.members();
  for (const sucl::member& m : members) {
    if (m.node != members[static_cast<std::size_t>(comm.rank())].node) continue;
    if (!CPU_EQUAL(&all[static_cast<std::size_t>(m.rank)], &mine)) return;  // they are bound
    if (m.rank == comm.rank()) index = on_gpu.size();
    on_gpu.push_back(wanted_device(o, m.rank) == "gpu");
  }
  const int processors = CPU_COUNT(&mine);
  if (processors < static_cast<int>(on_gpu.size())) return;
  const auto [first, end] = processors_for(index, on_gpu, processors);
  cpu_set_t part;
  CPU_ZERO(&part);
  int seen = 0;
  for (std::size_t c = 0; c < CPU_SETSIZE; ++c) {
    if (!CPU_ISSET(c, &mine)) continue;
    if (seen >= first && seen < end) CPU_SET(c, &part);
    ++seen;
  }
  sched_setaffinity(0, sizeof part, &part);
}

// Throws what some rank found wrong, on every rank.
void agree_on(const sucl::communicator& comm, const std::string& problem) {
  const int none = comm.size();
  int first = problem.empty() ? none : comm.rank();
  comm.blocking().allreduce(&first, 1, sucl::op::min);
  if (first == none) return;
  if (!problem.empty()) throw usage_error(problem);
  throw usage_error("rank " + std::to_string(first) + " cannot run; see what it says");
}

sycl::queue make_queue(const options& o, sucl::runtime& runtime) {
  const int rank = runtime.rank();
  if (o.devices != std::vector<std::string>{"gpu"}) take_own_processors(runtime, o);
  // Errors of asynchronous operations are thrown by communicator::check().
  const auto ignore = [](const sycl::exception_list&) {};
  std::optional<sycl::queue> queue;
  std::string problem;
  // What is recorded must be one command after the other: docs/how-to/graphs.md.
  sycl::property_list properties;
  if (o.recorded > 0) properties = {sycl::property::queue::in_order{}};
  try {
    queue.emplace(choose_device(o, rank), ignore, properties);
  } catch (const std::exception& e) {
    const std::string kind = wanted_device(o, rank);
    problem =
        "there is no such device" + (kind.empty() ? "" : " as --device " + kind) + ": " + e.what();
  }
  agree_on(runtime.world(), problem);
  return *queue;
}

}  // namespace

context::context(sucl::runtime& runtime, options o)
    : m_options(std::move(o)),
      m_mpi_name(runtime.control_plane()),
      m_queue(make_queue(m_options, runtime)),
      m_comm(runtime.world(m_queue)) {
  int all_cpu = m_queue.get_device().is_cpu();
  m_comm.blocking().allreduce(&all_cpu, 1, sucl::op::min);
  m_is_blocking = m_options.calls == form::blocking ||
                  (m_options.calls == form::automatic && m_options.recorded == 0 && all_cpu != 0);
}

context::~context() = default;

std::string context::device_name() const {
  return m_queue.get_device().get_info<sycl::info::device::name>();
}

void context::agree(const std::string& problem) { agree_on(m_comm, problem); }

void context::require_memory(double bytes) {
  const auto device = m_queue.get_device();
  const auto there = static_cast<double>(device.get_info<sycl::info::device::global_mem_size>());
  std::vector<double> all(static_cast<std::size_t>(size()));
  m_comm.blocking().allgather(&bytes, all.data(), 1);
  double needed = 0;
  for (const sucl::member& m : m_comm.members())
    if (m.rank == rank() ||
        (device.is_cpu() && m.node == m_comm.members()[static_cast<std::size_t>(rank())].node))
      needed += all[static_cast<std::size_t>(m.rank)];
  const auto print = [](double size) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GiB", size / (1 << 30));
    return std::string(text);
  };
  agree(needed <= there ? ""
                        : "the problem needs at least " + print(needed) +
                              " of memory here, and the device has " + print(there) +
                              ". Use a smaller problem, or more devices");
}

void context::prepare_kernels() {
  auto comm = m_comm.blocking();
  if (rank() != 0) comm.barrier();
  std::string problem;
  try {
    sucl::kernels::prepare(m_queue);
  } catch (const sucl::error& e) {
    problem = e.what();
  }
  if (rank() == 0) comm.barrier();
  agree(problem);
}

double context::max(double mine) {
  m_comm.blocking().allreduce(&mine, 1, sucl::op::max);
  return mine;
}

double context::sum(double mine) {
  m_comm.blocking().allreduce(&mine, 1, sucl::op::sum);
  return mine;
}

void context::finish() {
  m_queue.wait_and_throw();
  m_comm.wait();
}

double context::run(int iterations, const std::function<void(int)>& step) {
  finish();
  m_comm.blocking().barrier();
  say("all ranks are ready");
  const auto began = now();
  for (int i = 0; i < iterations; ++i) {
    step(i);
    if ((i + 1) % std::max(1, iterations / 10) == 0 && i + 1 < iterations) {
      m_comm.check();
      say("iteration " + std::to_string(i + 1) + " of " + std::to_string(iterations));
    }
  }
  finish();
  return max(std::chrono::duration<double>(now() - began).count());
}

phase_times context::run_timed(int iterations, const std::function<void(int)>& step) {
  m_times = {};
  finish();
  m_is_timing = true;
  for (int i = 0; i < iterations; ++i) step(i);
  m_is_timing = false;
  phase_times result{};
  for (std::size_t p = 0; p < result.size(); ++p) result[p] = max(m_times[p] / iterations);
  return result;
}

double context::time_computing(const std::function<void()>& step) {
  double& computed = m_times[static_cast<std::size_t>(phase::compute)];
  const double before = computed;
  m_times_computing = true;
  step();
  m_times_computing = false;
  return computed - before;
}

void context::say(const std::string& text) const {
  if (rank() == 0 && !m_options.quiet) std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace apps
