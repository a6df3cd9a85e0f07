// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/interposer.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/operation/operation.hpp"
#include "interposer/creation.hpp"
#include "interposer/errors.hpp"
#include "interposer/summary.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace sucl::interposer {

interposer* interposer::m_running = nullptr;
interposer* interposer::m_completing = nullptr;
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

// The same processes without the program's attributes, whose callbacks a duplicate would call.
struct bare_copy {
  // `parent`: SuCL's, with these processes among others, and errors returned.
  bare_copy(MPI_Comm of, [[maybe_unused]] const comm_position& at,
            [[maybe_unused]] MPI_Comm parent) {
    MPI_Group all = MPI_GROUP_NULL;
    PMPI_Comm_group(of, &all);
#if defined(OPEN_MPI)
    PMPI_Comm_create(of, all, &comm);
#else
    // See errors_returned: the program's handler is not to hear that there are no more. But the
    // group of a communicator with a topology of fewer processes than the one that it was made of
    // has all of that one's in MPICH 5.0.2.
    constexpr int tag = 0;  // one set-up of a process at a time
    int found = 0;
    PMPI_Group_size(all, &found);
    if (found == at.size)
      PMPI_Comm_create_group(parent, all, tag, &comm);
    else
      PMPI_Comm_split(of, 0, at.rank, &comm);
#endif
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

}  // namespace

// ---- the process

interposer::interposer(base::config settings, const sucl_bootstrap& control)
    : m_process(core::process::start(std::move(settings), &control, core::threading::callers)) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &m_key, this);
  PMPI_Comm_dup(MPI_COMM_WORLD, &m_probed);
  PMPI_Comm_set_errhandler(m_probed, MPI_ERRORS_RETURN);
  m_process->while_waiting([] {
    if (m_running) m_running->go_on();
  });
}

void interposer::go_on() {
  if (m_requests.any_own()) {
    m_requests.program_made_progress();
    m_requests.progress();
  }
  if (m_probed == MPI_COMM_NULL) return;  // MPI is about to end
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
  int there = -1;  // MPICH says that all is well where a handler of the program's has returned
  code = PMPI_Comm_get_attr(comm, m_key, &value, &there);
  if (code != MPI_SUCCESS || there < 0) return nullptr;
  comm_state& p = there ? *static_cast<comm_state*>(value) : make_state(comm);
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

comm_state& interposer::make_state(MPI_Comm comm) {
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

namespace {

// No communicator waits longer than for so many calls: that is little of what a long-lived one
// makes.
constexpr int max_wanted_calls = 1000;

}  // namespace

// How many calls a communicator is to have made before it is worth a set-up, by those that ended
// before. Of what is to be set up at once, and where nothing is measured, nothing is asked.
int interposer::wanted_calls() const {
  return sets_up_at_once() || settings().interpose.trials == 0 ? 0 : m_wanted_calls.load();
}

// One that has ended had better been left to MPI if its set-up took longer than it saved.
void interposer::learn_from(const comm_state& p) {
  double saved = 0;
  std::uint64_t calls = 0;
  for (const counters& c : p.counts) {
    saved += c.saved;
    calls = std::accumulate(c.calls.begin(), c.calls.end(), calls);
  }
  const auto doubled = static_cast<int>(std::min<std::uint64_t>(2 * calls, max_wanted_calls));
  m_wanted_calls.store(saved >= p.set_up_took ? 0 : std::max(doubled, m_wanted_calls.load()));
}

// One more of SuCL's communicators, or null, for want of room or, with `later`, of a moment at
// which one can be made, or of calls of which a rank awaits more. Collective: the same on every
// rank.
//
// Libraries number what is issued on a communicator, and make others by such operations: where the
// numbers differ between ranks, they would wait for ever. Open MPI numbers non-blocking calls, also
// those that it has refused on some ranks only; MPICH and Intel MPI the starts of persistent ones,
// which ranks may make in any order.
std::shared_ptr<core::communicator> interposer::make_core(comm_state& p, int wanted, bool& later) {
  const own_call guard;
  const MPI_Comm comm = p.native;
  const errors_returned quiet(comm);
  std::array<int, 6> all{m_cores.fetch_add(1) < max_cores, p.refused, -p.refused};
  {
    const std::lock_guard lock(m_requests.lock());
    all[3] = p.started, all[4] = -p.started;
  }
  all[5] = -wanted;
  PMPI_Allreduce(MPI_IN_PLACE, all.data(), 6, MPI_INT, MPI_MIN, comm);
  const stopwatch time;  // from when all have come
  const bool possible = all[0] != 0 && all[1] == -all[2];
  p.awaited = static_cast<std::uint64_t>(-all[5]);
  const bool room = possible && all[3] == -all[4] && p.awaited <= p.calls;
  // Every rank has come: nothing that other threads wait for keeps one away from what follows.
  const set_up_turn turn(room);
  int granted = turn.granted();
  if (room) PMPI_Allreduce(MPI_IN_PLACE, &granted, 1, MPI_INT, MPI_LAND, comm);
  later = possible && !(room && granted);
  std::shared_ptr<core::communicator> made;
  try {
    if (room && granted) {
      const bare_copy copy(comm, p.at, m_probed);
      made = m_process->adopt(&copy.comm, sizeof copy.comm, {});
    }
  } catch (const error& e) {
    log_text(base::log_level::warn, std::string("a communicator is left to MPI: ") + e.what());
  }
  if (made)
    p.set_up_took += time.seconds();
  else
    m_cores.fetch_sub(1);
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
  p.core = make_core(p, wanted_calls(), later);
  p.oversubscribed = !p.core && !later;
  if (!p.core) return;
  const own_call guard;
  std::byte* const shared =
      p.core->common_memory(tune::shared_decisions::bytes + persistent_agreement::bytes(p.at.size));
  if (!shared) return;
  p.decisions = tune::shared_decisions(shared);
  p.prepared = {shared + tune::shared_decisions::bytes, p.at.rank, p.at.size};
  take_over_early(p);
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
  if (!p.core) {
    if (f == form::started) return outcome::early;
    // SuCL sets itself up where ranks wait for each other, or where it has promised the result.
    if (!(is_strict() && t.order_matters()) &&
        (!waits_for_all(t.called) ||
         (!sets_up_at_once() &&
          ++p.calls <= std::max<std::uint64_t>(settings().interpose.after, p.awaited))))
      return outcome::early;
    adopt(p);
    if (!p.core) return p.oversubscribed ? outcome::oversubscribed : outcome::early;
  }
  const std::uint64_t key = class_key(t, f, bytes);
  auto known = p.classes.find(key);
  if (known == p.classes.end()) {
    known = p.classes.emplace(key, make_class(settings(), *p.core, t, f)).first;
    call_class& made = known->second;
    // The agreement may not wait where the calls do not: a rank whose call a library has refused
    // is elsewhere. Ranks on several nodes have no other one.
    const bool may_wait = f == form::blocking && (waits_for_all(t.called) || !p.decisions.exist());
    if (!may_wait && made.offered && !made.tuner.decided() && !made.share(p.decisions, key))
      made = call_class(ab_measurement(0, 1, choice::mpi));
  }
  *found = &known->second;
  return known->second.offered ? outcome::served : outcome::slower;
}

std::optional<int> interposer::serve(comm_state& p, const call_class* c, transfer& t,
                                     found_errors& errors) {
  counters& own = p.counts[static_cast<std::size_t>(t.called)];
  ++own.calls[static_cast<std::size_t>(outcome::served)];
  if (c) own.saved += c->tuner.saving();
  const own_call guard;
  const std::uint64_t before = calls_before(*p.core);
  bool over = false;
  try {
    const sucl_operation requested = t.filled();
    if (!p.core->run_cached(requested)) {
      sucl_operation o = requested;
      core::normalise(o, p.at.rank, p.at.size);
      p.core->run(o, {}, &requested);
    }
    over = true;
    return t.finish();
  } catch (const error& e) {
    if (!over && is_given_in_vain(e, t, *p.core, before)) return MPI_SUCCESS;
    // Ranks that need not wait may have gone through the call: the library would wait for them.
    const bool all_are_in_it = !rooted(static_cast<kind>(t.called)) && t.called != SUCL_KIND_SCAN &&
                               t.called != SUCL_KIND_EXSCAN;
    if (e.code() != errc::mismatch || over || !all_are_in_it) {
      errors.add(e, p.native);
      return code_of(e);
    }
    leave_to_mpi(p, e);
    return std::nullopt;
  }
}

std::uint64_t interposer::calls_before(core::communicator& core) const {
  return m_requests.any_own() ? ~std::uint64_t{0} : core.backends().calls_over();
}

bool interposer::is_given_in_vain(const error& e, const transfer& t, core::communicator& core,
                                  std::uint64_t before) {
  return e.code() == errc::mismatch && t.only_gives(core.rank()) &&
         !core.backends().differs_within(before);
}

// A root whose call MPI has refused is a call behind the others, whose calls were right: what MPI
// makes of that is for the program to see. Every rank's call is still to be executed.
void interposer::leave_to_mpi(comm_state& p, const error& why) {
  p.prepared.refuse();
  base::log(base::log_level::warn, "interposer",
            std::string("the communicator is left to MPI, as ranks do not agree: ") + why.what());
  p.suitable = false;
  m_generation.fetch_add(1, std::memory_order_release);
}

// This rank's arguments of an allgather or alltoall are wrong, which the library is to say. It
// would wait for the others, which SuCL executes: so they are to see that this rank is elsewhere.
// If the arguments of all are wrong they meet here.
void interposer::show_others(comm_state& p) {
  const own_call guard;
  try {
    sucl_operation o = barrier().record;
    core::normalise(o, p.at.rank, p.at.size);
    p.core->run(o, {}, nullptr);
  } catch (const error& e) {
    leave_to_mpi(p, e);
  }
}

void interposer::decide(comm_state& p, call_class& c) {
  const own_call guard;
  try {
    c.decide_on(*p.core);
  } catch (const error& e) {
    leave_to_mpi(p, e);
  }
}

void interposer::forget(comm_state& p) {
  const own_call guard;
  m_generation.fetch_add(1, std::memory_order_release);
  // Other ranks may join what is under way when this one has gone on: it ends with its requests.
  const bool over = m_requests.forget(p, MPI_COMM_WORLD);
  if (p.core) learn_from(p);
  if (p.core && over) end(*p.core);
  {
    const std::lock_guard lock(m_requests.lock());
    for (const auto& l : p.slots) l->orphaned = l->busy;  // its request is still there
  }
  for (const auto& l : p.slots)
    if (!l->orphaned) end(*l->core);
  const std::lock_guard lock(m_mutex);
  for (std::size_t k = 0; k < m_totals.size(); ++k) m_totals[k] += p.counts[k];
  m_comms.erase(&p);
}

void interposer::end(core::communicator& core) noexcept {
  const own_call guard;
  core.end();
  m_cores.fetch_sub(1);
}

int interposer::on_free(MPI_Comm, int, void* value, void* self) {
  static_cast<interposer*>(self)->forget(*static_cast<comm_state*>(value));
  return MPI_SUCCESS;
}

}  // namespace sucl::interposer
