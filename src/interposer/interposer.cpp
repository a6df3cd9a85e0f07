// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/interposer.hpp"

#include "base/config/determinism.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "core/control/registry.hpp"
#include "core/operation/operation.hpp"
#include "interposer/creation.hpp"
#include "interposer/fortran.hpp"
#include "interposer/loader/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

namespace sucl::interposer {

interposer* interposer::m_running = nullptr;
std::atomic<std::uint64_t> interposer::m_generation{1};
constinit thread_local thread_state* interposer::m_here = nullptr;

thread_state& interposer::make_here() {
  // Ends with the thread. What calls MPI after that gets another one, which stays. Not in the
  // thread's own memory, of which little is left for a library that is loaded later.
  constinit static thread_local bool over = false;
  struct keeper {
    std::unique_ptr<thread_state> state = std::make_unique<thread_state>();
    ~keeper() { m_here = nullptr, over = true; }
  };
  if (over) return *(m_here = new thread_state{});
  static thread_local const keeper kept;
  return *(m_here = kept.state.get());
}

namespace {

void log_text(base::log_level level, const std::string& text) {
  base::log(level, "interposer", text);
}

// A pointer may be a device's in such a process, and here that cannot be seen.
const char* accelerator_runtime() {
  for (const char* symbol : {"cuInit", "hipInit", "zeInit"})
    if (dlsym(RTLD_DEFAULT, symbol)) return symbol;
  return nullptr;
}

// What the interposer would need to see of this process and cannot; "" if there is nothing.
std::string what_is_not_seen() {
  if (const char* symbol = accelerator_runtime())
    return std::string("the process uses an accelerator (it has ") + symbol +
           "), whose memory the interposer cannot recognise";
#if defined(OPEN_MPI)
  constexpr bool all = true;
#else
  constexpr bool all = false;
#endif
  if (const std::string symbol = unseen_fortran(all); !symbol.empty())
    return "the program calls " + symbol +
           ", which the library's Fortran passes on where the interposer does not see it";
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

// Errors of SuCL's own calls are not the program's: its handler is not asked meanwhile.
class errors_returned {
 public:
  explicit errors_returned(MPI_Comm comm) : m_comm(comm) {
    PMPI_Comm_get_errhandler(comm, &m_before);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~errors_returned() {
    PMPI_Comm_set_errhandler(m_comm, m_before);
    PMPI_Errhandler_free(&m_before);
  }
  errors_returned(const errors_returned&) = delete;
  errors_returned& operator=(const errors_returned&) = delete;

 private:
  MPI_Comm m_comm;
  MPI_Errhandler m_before = MPI_ERRHANDLER_NULL;
};

// The same processes without the program's attributes, whose callbacks a duplicate would call.
struct bare_copy {
  explicit bare_copy(MPI_Comm of) {
    MPI_Group all = MPI_GROUP_NULL;
    PMPI_Comm_group(of, &all);
    PMPI_Comm_create(of, all, &comm);
    PMPI_Group_free(&all);
    if (comm == MPI_COMM_NULL)
      throw error({errc::native, "MPI makes no more communicators", "Free some.", "", "mpi"});
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~bare_copy() { PMPI_Comm_free(&comm); }
  bare_copy(const bare_copy&) = delete;
  bare_copy& operator=(const bare_copy&) = delete;
  MPI_Comm comm = MPI_COMM_NULL;
};

std::uint64_t key_of(const transfer& t, form f, std::uint64_t bytes) {
  constexpr std::uint64_t op_of_program = 0xff;
  const sucl_operation& o = t.record;
  const auto power = static_cast<std::uint64_t>(std::bit_width(bytes));
  const bool opaque = o.op == SUCL_OP_NONE;
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(f) << 48 |
         static_cast<std::uint64_t>(t.called) << 32 |
         static_cast<std::uint64_t>(opaque ? 0 : o.type) << 16 |
         (t.by_own_op ? op_of_program : static_cast<std::uint64_t>(o.op)) << 8 | power;
}

}  // namespace

bool is_refused(int code) {
  if (code == MPI_SUCCESS) return false;
  int error_class = MPI_SUCCESS;
  PMPI_Error_class(code, &error_class);
  for (const int of_arguments :
       {MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_COMM, MPI_ERR_ROOT, MPI_ERR_OP,
        MPI_ERR_ARG, MPI_ERR_REQUEST, MPI_ERR_RANK, MPI_ERR_INFO})
    if (error_class == of_arguments) return true;
  return false;
}

int report(const error& e, MPI_Comm comm) {
  log_text(base::log_level::error, e.what());
  int code = MPI_ERR_OTHER;
  switch (e.code()) {
    case errc::invalid_argument: code = MPI_ERR_ARG; break;
    case errc::invalid_rank: code = MPI_ERR_ROOT; break;
    case errc::invalid_count: code = MPI_ERR_COUNT; break;
    case errc::invalid_type: code = MPI_ERR_TYPE; break;
    case errc::invalid_memory: code = MPI_ERR_BUFFER; break;
    case errc::mismatch: code = MPI_ERR_TRUNCATE; break;
    case errc::out_of_memory: code = MPI_ERR_NO_MEM; break;
    default: break;
  }
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

// ---- calls that do not wait

choice call_class::start() {
  if (!tuner.decided()) {
    if (const auto agreed = shared->join(tuner.started()))
      tuner.decide(choice_of(*agreed), shared->slowest());
  }
  return tuner.start();
}

void call_class::note(std::uint64_t number, double seconds) {
  if (tuner.note(number, seconds)) shared->submit(tuner.medians(), ranks, margin);
}

// ---- the process

interposer::interposer(base::config settings, const sucl_bootstrap& control)
    : m_process(core::process::start(std::move(settings), &control, core::threading::callers)) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &m_key, this);
  PMPI_Comm_dup(MPI_COMM_WORLD, &m_probed);
  m_process->while_waiting([] {
    if (m_running) m_running->go_on();
  });
}

void interposer::before_start() {
  if (!m_running) loader::refuse_other_interfaces(family);
}

void interposer::start() {
  const own_call guard;
  if (m_running) return;
  if (const std::string problem = other_library(); !problem.empty()) {
    loader::say_once(problem);
    return;
  }
  const std::string problem = what_is_not_seen();
  if (!problem.empty())
    log_text(base::log_level::warn, problem + ": everything is passed on to MPI");
  // What starts takes all ranks.
  int problems = problem.empty() ? 0 : 1;
  PMPI_Allreduce(MPI_IN_PLACE, &problems, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (problems > 0) return;
  const errors_returned quiet(MPI_COMM_WORLD);  // the program's handler stays, whatever SuCL sets
  try {
    base::config settings = base::load_config(nullptr, nullptr);
    base::set_log_level(base::parse_log_level(settings.log.level));
    settings.progress.poll_us = 0;  // a call that does not wait leaves it to the one that does
    const sucl_bootstrap& control = core::load_bootstrap("libsucl_mpi_" SUCL_MPI_FLAVOUR ".so");
    m_running = new interposer(std::move(settings), control);
    base::set_rank(m_running->m_process->rank());
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
  self->m_requests.stop();
  PMPI_Comm_free(&self->m_probed);
  // MPI may still tell of communicators that end with it: the object stays.
  m_running = nullptr;
}

void interposer::go_on() {
  if (m_requests.any_own()) {
    m_requests.program_made_progress();
    m_requests.progress();
  }
  // A probe of a communicator of one process, and one that finds a message, is no progress in
  // MPICH.
  int there = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m_probed, &there, MPI_STATUS_IGNORE);
}

void interposer::print_summary() {
  counters_by_kind sums = m_totals;
  for (const auto& [p, own] : m_comms)
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += own->counts[k];
  sucl::interposer::print_summary(sums, m_process->rank());
}

// ---- communicators

route& interposer::slot_of(const signature& s) {
  return here().routes.slot(
      base::key_of(bits_of(s.comm), bits_of(s.type), bits_of(s.op), s.count, s.kind, s.root));
}

comm_state* interposer::find(MPI_Comm comm, int& code) {
  const auto now = m_generation.load(std::memory_order_acquire);
  thread_state& here = interposer::here();
  if (here.latest == comm && here.latest_generation == now) return here.latest_state;
  if (here.freed)
    if (comm_state* const p = being_freed::find(comm)) return p;
  void* value = nullptr;
  int there = 0;
  code = PMPI_Comm_get_attr(comm, m_key, &value, &there);
  if (code != MPI_SUCCESS) return nullptr;
  comm_state& p = there ? *static_cast<comm_state*>(value) : meet(comm);
  here.latest = comm;
  here.latest_state = &p;
  here.latest_generation = now;
  return &p;
}

namespace {

// Processes that were spawned or connected to have a SuCL of their own.
bool is_of_this_world(MPI_Comm comm, int size) {
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Comm_group(comm, &group);
  std::vector<int> ranks(static_cast<std::size_t>(size)), found(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, found.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return std::find(found.begin(), found.end(), MPI_UNDEFINED) == found.end();
}

}  // namespace

comm_state& interposer::meet(MPI_Comm comm) {
  auto made = std::make_unique<comm_state>();
  comm_state& p = *made;
  p.native = comm;
  PMPI_Comm_rank(comm, &p.at.rank);
  PMPI_Comm_size(comm, &p.at.size);
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  p.suitable = p.at.size > 1 && !inter && is_of_this_world(comm, p.at.size);
  {
    const std::lock_guard lock(m_mutex);
    m_comms.emplace(&p, std::move(made));
  }
  PMPI_Comm_set_attr(comm, m_key, &p);
  return p;
}

// One more of SuCL's communicators, or null, for want of room or, with `later`, of a moment at
// which no other thread makes communicators. Collective: the same on every rank.
std::shared_ptr<core::communicator> interposer::make_core(MPI_Comm comm, bool& later) {
  const own_call guard;
  const errors_returned quiet(comm);
  int room = m_cores.fetch_add(1) < max_cores;
  PMPI_Allreduce(MPI_IN_PLACE, &room, 1, MPI_INT, MPI_LAND, comm);
  // Every rank has come: nothing that other threads wait for keeps one away from what follows.
  const set_up_turn turn(room != 0);
  int granted = turn.granted();
  if (room) PMPI_Allreduce(MPI_IN_PLACE, &granted, 1, MPI_INT, MPI_LAND, comm);
  later = room && !granted;
  std::shared_ptr<core::communicator> made;
  try {
    if (room && granted) {
      const bare_copy copy(comm);
      made = m_process->adopt(&copy.comm, sizeof copy.comm, {});
    }
  } catch (const error& e) {
    log_text(base::log_level::warn, std::string("a communicator is left to MPI: ") + e.what());
  }
  if (!made) m_cores.fetch_sub(1);
  return made;
}

// Nothing that any thread has at hand of the communicator is of use from here on, nor, at the end,
// for another one that gets its handle.
being_freed::being_freed(MPI_Comm comm) : m_outer(interposer::here().freed) {
  m_state.native = comm;
  interposer::here().freed = this;
  interposer::m_generation.fetch_add(1, std::memory_order_release);
}

being_freed::~being_freed() {
  interposer::here().freed = m_outer;
  interposer::m_generation.fetch_add(1, std::memory_order_release);
}

comm_state* being_freed::find(MPI_Comm comm) {
  for (being_freed* f = interposer::here().freed; f; f = f->m_outer)
    if (f->m_state.native == comm) return &f->m_state;
  return nullptr;
}

void interposer::adopt(comm_state& p) {
  bool later = false;
  p.core = make_core(p.native, later);
  p.oversubscribed = !p.core && !later;
  if (!p.core) return;
  const own_call guard;
  p.decisions = tune::shared_decisions(p.core->common_memory(tune::shared_decisions::bytes));
  p.near = p.core->where().nodes == 1;
}

call_class interposer::make_class(comm_state& p, core::communicator& on, const transfer& t,
                                  form f) {
  const sucl_operation& o = t.record;
  constexpr std::uint64_t short_bytes = 64 << 10, long_bytes = 1 << 20;
  const std::uint64_t bytes = core::message_size_of(o, p.at.size).bytes;
  // What does not wait is executed without MPI: then any thread may make the progress.
  bool offered = f == form::blocking ? on.selected_backend_of(o) != core::reference_backend
                                     : on.any_thread_executes(o) && p.near;
  auto rounds = static_cast<int>(m_process->settings().interpose.trials);
  if (bytes > long_bytes) rounds = std::min(rounds, 3);
  // What is timed must not decide over bits; what MPI adds up in its own order is not strict.
  const auto level = base::determinism_named(m_process->settings().determinism);
  const bool ordered = t.order_matters();
  if (ordered && level != base::determinism::ranks) rounds = 0;
  if (ordered && level == base::determinism::strict && f == form::blocking) offered = true;
  if (!offered) rounds = 0;
  const int turn = f == form::blocking && bytes <= short_bytes ? 4 : 1;
  call_class c{ab_measurement(rounds, turn, offered ? choice::sucl : choice::mpi)};
  c.offered = offered;
  c.ranks = p.at.size;
  // Where some ranks need not wait they run further ahead of each other than turns show.
  if (f == form::blocking && rooted(static_cast<kind>(o.kind))) c.margin = 0.85;
  return c;
}

// The outcome of a call that SuCL might execute: `served` if there is a call_class to look it up
// in. Every rank comes to the same answer.
outcome interposer::classify(comm_state& p, const transfer& t, form f, call_class** found) {
  if (!p.suitable) return outcome::unsupported_comm;
  if (!t.known || (f != form::blocking && !t.may_go_on)) return outcome::unknown;
  if (p.oversubscribed) return outcome::oversubscribed;
  const auto [bytes, sized] = core::message_size_of(t.record, p.at.size);
  if (bytes == 0 && sized && t.record.kind != SUCL_KIND_BARRIER)
    return outcome::slower;  // nothing to do
  ++p.calls;
  if (!p.core) {
    // SuCL sets itself up where ranks may wait for each other.
    const auto& settings = m_process->settings();
    const bool strict =
        settings.determinism == base::name(base::determinism::strict) && t.order_matters();
    if (f == form::started || (!strict && p.calls <= settings.interpose.after))
      return outcome::early;
    adopt(p);
    if (!p.core) return p.oversubscribed ? outcome::oversubscribed : outcome::early;
  }
  const std::uint64_t key = key_of(t, f, bytes);
  auto known = p.classes.find(key);
  if (known == p.classes.end()) {
    known = p.classes.emplace(key, make_class(p, *p.core, t, f)).first;
    call_class& made = known->second;
    if (f == form::started && made.offered && !(made.shared = p.decisions.find(key)))
      made = {ab_measurement(0, 1, choice::mpi)};
  }
  *found = &known->second;
  return known->second.offered ? outcome::served : outcome::slower;
}

int interposer::serve(comm_state& p, const call_class* c, transfer& t) {
  counters& own = p.counts[static_cast<std::size_t>(t.called)];
  ++own.calls[static_cast<std::size_t>(outcome::served)];
  if (c) own.saved += c->tuner.saving();
  const own_call guard;
  try {
    const sucl_operation asked = t.filled();
    if (!p.core->run_cached(asked)) {
      sucl_operation o = asked;
      core::normalise(o, p.at.rank, p.at.size);
      p.core->run(o, {}, &asked);
    }
    return t.finish();
  } catch (const error& e) {
    return report(e, p.native);
  }
}

void interposer::agree(const comm_state& p, call_class& c) {
  auto times = c.tuner.medians();
  PMPI_Allreduce(MPI_IN_PLACE, times.data(), 2, MPI_DOUBLE, MPI_MAX, p.native);
  c.decide(faster(times, c.margin), times);
}

void interposer::forget(comm_state& p) {
  const own_call guard;
  m_generation.fetch_add(1, std::memory_order_release);
  if (p.core) p.core->shut_down(true);
  m_requests.forget(p, MPI_COMM_WORLD);
  if (p.core) m_cores.fetch_sub(1);
  for (const auto& l : p.slots) {
    if (l->busy) continue;  // its request is still there
    l->core->shut_down(true);
    m_cores.fetch_sub(1);
  }
  const std::lock_guard lock(m_mutex);
  for (std::size_t k = 0; k < m_totals.size(); ++k) m_totals[k] += p.counts[k];
  m_comms.erase(&p);
}

int interposer::on_free(MPI_Comm, int, void* value, void* self) {
  static_cast<interposer*>(self)->forget(*static_cast<comm_state*>(value));
  return MPI_SUCCESS;
}

}  // namespace sucl::interposer
