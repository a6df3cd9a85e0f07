// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "pmpi/state.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "runtime/control_plane.hpp"
#include "runtime/operation.hpp"

#include <dlfcn.h>

#include <cstdio>

namespace sucl::pmpi {
namespace {

interposer* running = nullptr;
// The modules below call MPI by its usual names, which come back here.
thread_local int inside = 0;
// Finds again what was used last. Handles are used again, so it is only good for one generation.
std::atomic<std::uint64_t> generation{1};
struct remembered {
  MPI_Comm comm = MPI_COMM_NULL;
  partner* found = nullptr;
  std::uint64_t of = 0;
};
thread_local remembered latest;

struct own_call {
  own_call() { ++inside; }
  ~own_call() { --inside; }
};

void tell(base::log_level level, const std::string& text) { base::log(level, "interposer", text); }

// A pointer may be a device's in such a process, and here that cannot be seen.
const char* accelerator_runtime() {
  for (const char* symbol : {"cuInit", "hipInit", "zeInit"})
    if (dlsym(RTLD_DEFAULT, symbol)) return symbol;
  return nullptr;
}

// Operations that are carried alike: the same kind, type, op, and size up to a factor of two.
std::uint64_t key_of(const sucl_operation& o, int size) {
  const auto message = core::message_size_of(o, size);
  std::uint64_t power = 0;
  while (message.bytes >> power > 1) ++power;
  const bool opaque = o.op == SUCL_OP_NONE;
  return static_cast<std::uint64_t>(o.kind) << 32 |
         static_cast<std::uint64_t>(opaque ? 0 : o.type) << 16 |
         static_cast<std::uint64_t>(o.op) << 8 | power;
}

}  // namespace

interposer* interposer::active() { return inside > 0 ? nullptr : running; }

interposer::interposer(base::config settings, const sucl_bootstrap& control)
    : m_process(core::process::start(std::move(settings), &control, core::threading::callers)) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &m_key, this);
}

void interposer::start() {
  const own_call guard;
  if (running) return;
  if (const char* symbol = accelerator_runtime()) {
    tell(base::log_level::warn, std::string("the process uses an accelerator (it has ") + symbol +
                                    "), whose memory cannot be told apart here: everything is "
                                    "passed on to MPI");
    return;
  }
  try {
    base::config settings = base::load_config(nullptr, nullptr);
    base::set_log_level(base::parse_log_level(settings.log.level));
    const sucl_bootstrap& control =
        core::load_bootstrap(core::control_plane_file(settings, SUCL_MPI_FLAVOUR));
    running = new interposer(std::move(settings), control);
    base::set_rank(running->m_process->rank());
  } catch (const error& e) {
    tell(base::log_level::error, std::string(e.what()) + "; everything is passed on to MPI");
  }
}

void interposer::stop() {
  const own_call guard;
  interposer* self = std::exchange(running, nullptr);
  if (!self) return;
  if (self->m_process->settings().interpose.summary) self->print_summary();
  // In an order that is the same everywhere: that of the communicators' numbers.
  self->m_process->shut_down();
  // MPI may still tell of communicators that end with it: the object stays.
}

partner& interposer::find(MPI_Comm comm) {
  const auto now = generation.load(std::memory_order_acquire);
  if (latest.comm == comm && latest.of == now) return *latest.found;
  void* value = nullptr;
  int there = 0;
  PMPI_Comm_get_attr(comm, m_key, &value, &there);
  partner& p = there ? *static_cast<partner*>(value) : meet(comm);
  latest = {comm, &p, now};
  return p;
}

partner& interposer::meet(MPI_Comm comm) {
  auto made = std::make_unique<partner>();
  partner& p = *made;
  p.native = comm;
  PMPI_Comm_rank(comm, &p.rank);
  PMPI_Comm_size(comm, &p.size);
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  p.suitable = p.size > 1 && !inter;
  {
    const std::lock_guard lock(m_mutex);
    m_partners.emplace(&p, std::move(made));
  }
  PMPI_Comm_set_attr(comm, m_key, &p);
  return p;
}

void interposer::adopt(partner& p) {
  const own_call guard;
  try {
    p.core = m_process->adopt(&p.native, sizeof p.native, {});
  } catch (const error& e) {
    p.suitable = false;
    tell(base::log_level::warn, std::string("a communicator is left to MPI: ") + e.what());
  }
}

// Null: MPI's, without a trial. Every rank comes to the same answer.
trial* interposer::choose(partner& p, const sucl_operation& o) {
  const auto& how = m_process->settings().interpose;
  ++p.calls;
  if (!p.suitable || p.calls <= how.after) return nullptr;
  if (!p.core) adopt(p);
  if (!p.core) return nullptr;
  const std::uint64_t key = key_of(o, p.size);
  auto found = p.trials.find(key);
  if (found == p.trials.end()) {
    const bool ours = p.core->carrier_of(o) != "mpi";
    found = p.trials
                .emplace(key, trial(ours ? static_cast<int>(how.trials) : 0,
                                    ours ? way::sucl : way::mpi))
                .first;
  }
  return &found->second;
}

int interposer::run(const partner& p, const sucl_operation& o) {
  const own_call guard;
  try {
    sucl_operation own = o;
    core::normalise(own, p.rank, p.size);
    p.core->run(own, {});
    return MPI_SUCCESS;
  } catch (const error& e) {
    tell(base::log_level::error, e.what());
    PMPI_Comm_call_errhandler(p.native, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
  }
}

void interposer::agree(const partner& p, trial& t) {
  auto times = t.medians();
  PMPI_Allreduce(MPI_IN_PLACE, times.data(), 2, MPI_DOUBLE, MPI_MAX, p.native);
  t.decide(times);
}

void interposer::forget(partner& p) {
  const own_call guard;
  generation.fetch_add(1, std::memory_order_release);
  if (p.core) p.core->shut_down(true);
  const std::lock_guard lock(m_mutex);
  for (std::size_t k = 0; k < m_totals.size(); ++k) {
    m_totals[k].served += p.counts[k].served;
    m_totals[k].passed += p.counts[k].passed;
    m_totals[k].saved += p.counts[k].saved;
  }
  m_partners.erase(&p);
}

int interposer::on_free(MPI_Comm, int, void* value, void* self) {
  static_cast<interposer*>(self)->forget(*static_cast<partner*>(value));
  return MPI_SUCCESS;
}

void interposer::print_summary() {
  std::array<std::uint64_t, 2 * SUCL_KIND_COUNT> calls{};
  std::array<double, SUCL_KIND_COUNT> saved{};
  for (std::size_t k = 0; k < SUCL_KIND_COUNT; ++k) {
    tally sum = m_totals[k];
    for (const auto& [p, own] : m_partners) {
      sum.served += own->counts[k].served;
      sum.passed += own->counts[k].passed;
      sum.saved += own->counts[k].saved;
    }
    calls[2 * k] = sum.served;
    calls[2 * k + 1] = sum.passed;
    saved[k] = sum.saved;
  }
  const bool first = m_process->rank() == 0;
  const auto sum = [first](auto& values, MPI_Datatype type) {
    PMPI_Reduce(first ? MPI_IN_PLACE : values.data(), first ? values.data() : nullptr,
                static_cast<int>(values.size()), type, MPI_SUM, 0, MPI_COMM_WORLD);
  };
  sum(calls, MPI_UINT64_T);
  sum(saved, MPI_DOUBLE);
  if (!first) return;
  std::fprintf(stderr,
               "sucl: collectives of all ranks that went through SuCL\n%22s %12s %12s %14s\n", "",
               "served", "passed on", "saved, s");
  for (std::size_t k = 0; k < SUCL_KIND_COUNT; ++k)
    if (calls[2 * k] + calls[2 * k + 1] > 0)
      std::fprintf(stderr, "%22s %12llu %12llu %14.6f\n", name(static_cast<kind>(k)),
                   static_cast<unsigned long long>(calls[2 * k]),
                   static_cast<unsigned long long>(calls[2 * k + 1]), saved[k]);
}

}  // namespace sucl::pmpi
