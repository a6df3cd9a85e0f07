// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "process/process.hpp"

#include "backends/built_ins.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "core/control/control_plane.hpp"
#include "core/control/pmix.hpp"
#include "core/exchange/readiness.hpp"
#include "core/exchange/topology.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/record/record_signals.hpp"
#include "core/support/exit_status.hpp"
#include "core/support/output.hpp"
#include "core/support/postponed_ends.hpp"
#include "process/failed_exit.hpp"

#include <sucl/abi/failed_start.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <random>

namespace sucl::core {
namespace {

std::atomic<bool> one_runs{false};

// Those of the program that are there.
struct started {
  std::mutex mutex;
  std::vector<std::weak_ptr<process>> all;
};
// Never destroyed: it is looked at when all else is.
started& started_processes() {
  static auto* const those = new started;
  return *those;
}

// Those of more than one rank that have not ended.
std::vector<std::shared_ptr<process>> running_processes() {
  std::vector<std::shared_ptr<process>> running;
  const std::lock_guard lock(started_processes().mutex);
  for (const auto& one : started_processes().all)
    if (auto p = one.lock(); p && p->alive() && p->size() > 1) running.push_back(std::move(p));
  return running;
}

}  // namespace

bool process::any_runs() { return !running_processes().empty(); }

bool process::leave_all(bool at_end) {
  bool any = false;
  for (const auto& p : running_processes())
    if (at_end || p->m_on_stack) any = p->leave() || any;
  return any;
}

// What has started the job may end it now, with a status of 0.
bool process::leave() {
  if (m_left.exchange(true)) return !m_joined;
  const diagnosis why{errc::peer_lost, "rank " + std::to_string(m_rank) +
                                           " has called exit() before the end of its runtime"};
  if (m_peers) m_peers->fail(why);
  for (const auto& c : communicators()) c->leave();
  if (m_joined) return false;
  base::log(
      base::log_level::error, "runtime", why.text,
      ": other ranks may wait for it. Leave main() by return, or destroy sucl::runtime first");
  return true;
}

process::process()
    : process_context(core::built_ins()), m_ends(std::make_shared<end_comparison>()) {}

std::uint64_t process::random_key() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::shared_ptr<process> process::start(int* argc, char*** argv, native_group over,
                                        std::optional<launch> given) {
  throw_if_forked();
  std::shared_ptr<process> p(new process);
  p->m_public = true;
  p->m_over = over;
  if (!over.handle) {
    if (one_runs.exchange(true))
      base::fail(errc::invalid_argument, "SuCL is running in this process already",
                 "Keep one sucl::runtime and pass it on, or start others from communicators of "
                 "MPI: runtime::from");
    p->m_only = true;
  }
  p->m_joined = given.has_value();
  p->m_launch = std::move(given);
  {
    const std::lock_guard lock(started_processes().mutex);
    std::erase_if(started_processes().all, [](const auto& one) { return one.expired(); });
    started_processes().all.push_back(p);
  }
  prepare_exit_status();
  watch_exit();
  note_own_signals();
  problem wrong;
  try {
    p->m_settings = base::load_config(argc, argv ? *argv : nullptr);
    base::set_log_level(base::parse_log_level(p->m_settings.log.level));
    p->find_control_plane();
  } catch (const error& e) {
    wrong = e.info();
    p->find_any_control_plane(*wrong);
  }
  p->begin(argc, argv, wrong);
  p->m_over = {};
  if (p->m_only) base::set_rank(p->m_rank);
  if (p->m_rank == 0)
    for (const auto& warning : p->m_settings.warnings)
      base::log(base::log_level::warn, "config", warning);
  return p;
}

std::shared_ptr<process> process::start(base::config settings, const sucl_bootstrap* control,
                                        threading threads) {
  std::shared_ptr<process> p(new process);
  p->m_settings = std::move(settings);
  p->m_control = control;
  p->m_threads = threads;
  p->begin(nullptr, nullptr, {});
  return p;
}

// What is wrong on this rank ends the start on all ranks.
void process::begin(int* argc, char*** argv, problem wrong) {
  note_running(true);
  m_registry = std::make_unique<registry>();
  if (m_control) {
    m_steps.begin(m_settings.watchdog.timeout, [this] { m_broken = true; });
    start_control_plane(argc, argv, std::move(wrong));
  } else {
    if (wrong) throw error(*wrong);
    load_tuning();
  }
  m_record.begin(m_key, m_rank, m_size, m_settings.record.folder, m_public);
  show_to_local_ranks();
  if (m_settings.watchdog.timeout.count() > 0 && m_size > 1) m_watch_thread.watch();
}

void process::load_tuning() {
  if (m_settings.tuning.table.empty()) return;
  std::string named_by = "tuning.table";
  for (const auto& row : m_settings.rows)
    if (row.key == named_by) named_by += " (" + row.origin + ")";
  tune::table t = tune::load_table(m_settings.tuning.table, named_by);
  tune::table_machine here = tune::this_machine();
  if (m_control) here.mpi = m_control->name;
  if (const auto why = tune::foreign(t, here); !why.empty() && m_rank == 0)
    base::log(base::log_level::warn, "tuning", t.file, " may not fit: ", why,
              ". Run sucl tune here, with this MPI");
  check_backends(t);
  m_tuned = std::make_shared<const tune::table>(std::move(t));
}

void process::find_control_plane() {
  control_plane_choice found;
  if (m_launch) {  // runtime::join
    found.file = control_plane_file(m_settings, tcp_control_plane);
    found.why = m_launch->why;
    found.over_tcp = std::move(m_launch);
  } else {
    found = choose_control_plane(m_settings);
  }
  m_launch = std::move(found.over_tcp);
  if (found.file.empty()) {
    base::log(base::log_level::info, "runtime", "not part of a job: running as a single process");
    return;
  }
  m_control = &load_bootstrap(found.file);
  m_control_reason = found.why;
}

// What the configuration says goes before what the launcher does.
void process::start_rendezvous() const {
  if (!m_launch) return;
  const launch& l = *m_launch;
  if (!SUCL_HAS_FIELD(m_control, sucl_bootstrap, rendezvous) || !m_control->rendezvous)
    base::fail(errc::unavailable,
               std::string("the control plane ") + m_control->name +
                   " cannot be given the addresses of the other processes",
               "Install SuCL's modules again");
  sucl_failed_start start{rendezvous_of(l, m_settings), nullptr, nullptr, SUCL_ERROR_CONFIGURATION};
  if (l.wrong) {
    start.where.struct_size = sizeof start;
    start.failure = l.wrong->message.c_str();
    start.hint = l.wrong->hint.c_str();
  }
  if (const auto status = m_control->rendezvous(&services(), &start.where))
    throw_last(status, m_control->name, "initialisation");
}

// The others must get the error of the configuration of this rank, which itself may say nothing of
// use on how to reach them.
void process::find_any_control_plane(const error_info& why) {
  const bool by_tcp = m_settings.control_plane == tcp_control_plane;
  m_settings = {};
  const char* plane = std::getenv("SUCL_CONTROL_PLANE");
  const char* flavour = std::getenv("SUCL_MPI_FLAVOUR");
  if (const char* interface = std::getenv("SUCL_TCP_INTERFACE"))
    m_settings.tcp.interface = interface;
  struct settings {
    const char *plane, *flavour;
  };
  // Ranks have met by PMIx, where the others' MPI_Init would take a second try for a step of
  // theirs.
  if (by_tcp && started_by_pmix([](const char* name) { return std::getenv(name); }))
    throw error(why);
  // As asked, or as a rank starts where nothing is set.
  for (const settings s : {settings{plane, flavour}, settings{plane, nullptr}, settings{}}) {
    m_settings.control_plane = s.plane ? s.plane : "auto";
    m_settings.mpi.flavour = s.flavour ? s.flavour : "auto";
    try {
      find_control_plane();
      return;
    } catch (const error&) {
    }
  }
  throw error(why);
}

// The watchdog needs a thread that calls MPI beside those of the program; nothing else does.
void process::check_threads(const sucl_bootstrap_info& info) {
  if (info.thread_multiple) return;
  m_threads = threading::callers;
  if (m_settings.watchdog.timeout.count() > 0)
    base::fail(errc::unavailable,
               std::string(info.library) + " was initialised without MPI_THREAD_MULTIPLE, which " +
                   "SUCL_TIMEOUT needs",
               "Call MPI_Init_thread with MPI_THREAD_MULTIPLE, let SuCL initialise MPI, or unset "
               "SUCL_TIMEOUT");
}

// Exchanges with the others whether each rank can start.
void process::exchange_start_status(sucl_group* everyone, problem wrong) {
  const sucl_oob oob{m_control, everyone};
  m_peers = std::make_shared<peer_processes>(oob, m_rank, m_size);
  m_steps.set_peers(m_peers);
  agree(oob, m_rank, m_size, {{}, std::move(wrong)}, "cannot start");
  const auto said = exchange(
      oob, m_size, (has_own_thread() ? "+" : "-") + std::to_string(m_key) + keys_of_ended());
  m_key = std::stoull(said.front().substr(1));
  // Forms of operations must not differ between ranks.
  if (std::any_of(said.begin(), said.end(), [](const std::string& s) { return s[0] == '-'; }))
    m_threads = threading::callers;
  // The interposer's programs have no calls of SuCL's in which it could be looked after.
  m_compares_calls = (has_own_thread() || m_public) && !m_settings.layers.validate;
  m_compares_ends = m_public;
  compare_ended(said);
}

// Never null where it succeeds.
sucl_group* process::all_processes() const {
  sucl_group* group = nullptr;
  if (const auto status = m_over.handle
                              ? m_control->group_adopt(m_over.handle, m_over.bytes, &group)
                              : m_control->group_world(&group))
    throw_last(status, m_control->name, "initialisation");
  return group;
}

std::vector<int> process::everyone() const {
  std::vector<int> ranks(static_cast<std::size_t>(m_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Ranks adopt communicators of different members in different orders, so steps are counted for each
// set of members. The label of many is cut: circles and the board have no room for more.
process::step_scope process::step_over(native_group over, const std::string& call) const {
  if (!m_control || m_ended || !SUCL_HAS_FIELD(m_control, sucl_bootstrap, native_ranks) ||
      !m_control->native_ranks)
    return {call, {}};
  std::vector<int> members(static_cast<std::size_t>(m_size));
  std::uint64_t count = members.size();
  const auto status =
      m_control->native_ranks(m_everyone, over.handle, over.bytes, members.data(), &count);
  if (status || count == 0 || count > members.size()) return {call, {}};
  members.resize(count);
  if (std::find(members.begin(), members.end(), -1) != members.end()) return {call, {}};
  constexpr std::size_t longest = 24;
  std::string ranks = ranks_text(members);
  if (ranks.size() > longest)
    ranks = ranks.substr(0, longest) + "... " + std::to_string(std::hash<std::string>{}(ranks));
  return {call + " of " + ranks, std::move(members)};
}

void process::start_control_plane(int* argc, char*** argv, problem wrong) {
  setup_step step(m_steps, "the start of SuCL");
  sucl_bootstrap_info info{};
  info.struct_size = sizeof info;
  start_rendezvous();
  if (const auto status = m_control->init(&services(), argc, argv, &info))
    throw_last(status, m_control->name, "initialisation");
  m_finalise = info.initialised_here != 0 && !m_over.handle;
  m_control_description = std::string(info.library) + " (" + m_control_reason + ")";
  m_everyone = all_processes();
  m_rank = m_control->group_rank(m_everyone);
  m_size = m_control->group_size(m_everyone);
  m_key = random_key();
  try {
    check_threads(info);
    if (!wrong) load_tuning();
  } catch (const error& e) {
    wrong = e.info();
  }
  if (m_size > 1)
    exchange_start_status(m_everyone, std::move(wrong));
  else if (wrong)
    throw error(*wrong);
  compare_configurations(m_everyone);
  prepare_end();
}

// Before anything that ranks do together only where their settings say so.
void process::compare_configurations(sucl_group* group) {
  const bool traces = !m_settings.layers.trace.empty();
  compare_settings({m_control, group}, m_size,
                   base::shared_values(m_settings) +
                       "layers.trace is set = " + (traces ? "true" : "false") + "\n");
}

process::~process() { shut_down(); }

std::shared_ptr<communicator> process::make_communicator(sucl_group* group,
                                                         device_services device) {
  const bool may_fail = device.errors != nullptr;
  std::shared_ptr<void> object;
  end_postponed();
  try {
    object = {static_cast<void*>(new communicator(shared_from_this(), group, std::move(device))),
              [](void* c) { end_or_postpone([c] { delete static_cast<communicator*>(c); }); }};
  } catch (...) {
    if (m_control && !m_broken) m_control->group_free(group);
    throw;
  }
  // Nothing refers to it while it ends, but it is polled until that is done: it tells the others
  // what it has called, and waits for what they say.
  const std::shared_ptr<communicator> polled(object, static_cast<communicator*>(object.get()));
  const std::shared_ptr<communicator> c(
      polled.get(), [object = std::move(object)](communicator* ends) mutable {
        end_or_postpone([ends, kept = std::move(object)] { ends->end(); });
      });
  if (c->compares_calls()) m_watch_thread.compare_calls();
  if (c->agreement().compares()) start_call_polling();
  if (m_public && c->size() > 1 && has_own_thread()) m_watch_thread.search_circles();
  if (may_fail && m_threads != threading::callers) m_watch_thread.watch();
  // The SYCL runtime has started by now.
  [[maybe_unused]] static const bool watched = m_public && (watch_exit(), true);
  std::lock_guard lock(m_mutex);
  ++m_existing;
  std::erase_if(m_communicators, [](const auto& known) { return known.polled.expired(); });
  m_communicators.push_back({c, polled});
  return c;
}

void process::start_call_polling() {
  if (has_own_thread()) return m_watch_thread.watch();
  if (!m_caller_watchdog)
    m_caller_watchdog = std::make_unique<watchdog>(
        *this, [this](const auto& each) { for_each_communicator(each); });
  m_polls_in_calls = true;
}

void process::poll_in_call() {
  constexpr auto period = std::chrono::milliseconds(20);
  if (m_polling.exchange(true, std::memory_order_acquire)) return;
  const auto now = std::chrono::steady_clock::now();
  if (m_poll_now.exchange(false) || now - m_last_poll >= period) {
    m_last_poll = now;
    m_caller_watchdog->poll(now);
  }
  m_polling.store(false, std::memory_order_release);
}

void process::poll_now() {
  if (m_polls_in_calls)
    m_poll_now = true;
  else
    m_watch_thread.poll_now();
}

// For something new: of the whole job, or of a part. `call`: what the program has called.
sucl_group* process::group_of(native_group over, const std::string& call) const {
  end_postponed();
  sucl_group* group = nullptr;
  if (over.handle) {
    if (const auto status = m_control->group_adopt(over.handle, over.bytes, &group))
      throw_last(status, m_control->name, "adopt", m_rank);
  } else if (const auto status = m_control->group_split(m_everyone, 0, m_rank, &group)) {
    throw_last(status, m_control->name, "world", m_rank);
  }
  try {
    check_same_call(group, call);
  } catch (const error&) {
    m_control->group_free(group);
    throw;
  }
  return group;
}

// What follows differs between the calls that make a first communicator.
void process::check_same_call(sucl_group* group, const std::string& call) const {
  const auto calls = exchange({m_control, group}, m_control->group_size(group), call);
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t r = 0; r < calls.size(); ++r) ranks[calls[r]].push_back(static_cast<int>(r));
  if (ranks.size() < 2) return;
  std::string text;
  for (const auto& [name, those] : ranks)
    text += (text.empty() ? "" : ", ") + ranks_text(those) + " called " + name;
  base::fail(errc::mismatch, text, "Call the same on every rank");
}

void process::check_adoption() const {
  if (m_control) return;
  base::fail(errc::unavailable,
             "an MPI communicator was passed, but SuCL runs without MPI in this process",
             "Start the program with `sucl run` or mpiexec, or set SUCL_MPI_FLAVOUR");
}

std::shared_ptr<communicator> process::world(device_services device) {
  if (m_ended)
    base::fail(errc::shut_down, "the runtime has been shut down", "Create communicators before");
  return make_communicator(m_control ? group_of({}, "world()") : nullptr, std::move(device));
}

std::shared_ptr<communicator> process::adopt(const void* native, std::uint64_t bytes,
                                             device_services device) {
  if (m_ended)
    base::fail(errc::shut_down, "the runtime has been shut down", "Create communicators before");
  check_adoption();
  return make_communicator(group_of({native, bytes}, "adopt()"), std::move(device));
}

std::vector<std::shared_ptr<communicator>> process::communicators() {
  std::lock_guard lock(m_mutex);
  std::vector<std::shared_ptr<communicator>> alive;
  for (const auto& known : m_communicators)
    if (auto c = known.used.lock()) alive.push_back(std::move(c));
  return alive;
}

void process::for_each_communicator(
    const std::function<void(const std::shared_ptr<communicator>&)>& each) {
  std::vector<known_communicator> all;
  {
    const std::lock_guard lock(m_mutex);
    all = m_communicators;
  }
  for (const auto& known : all)
    if (const auto c = known.polled.lock()) each(c);
}

void process::note_destroyed() {
  std::lock_guard lock(m_mutex);
  --m_existing;
  m_destroyed.notify_all();
}

// A command of the SYCL runtime may have held the last reference to a communicator, which then
// ends in a thread of that runtime: MPI is not finalised beneath it.
void process::end_communicators() {
  const auto alive = communicators();
  if (m_broken) {  // peers that are gone would be waited for
    error_info info;
    info.code = errc::shut_down;
    info.message = "the runtime has ended after an error";
    info.hint = "Look for what was thrown first";
    for (const auto& c : alive) c->abandon(info);
  }
  for (const auto& c : alive) {
    try {
      c->shut_down(true);
    } catch (const error& e) {
      base::log(base::log_level::error, "runtime", e.what());
    }
  }
  constexpr auto pause = std::chrono::milliseconds(10);  // in which others may postpone an end
  const auto all_destroyed = [&] { return m_existing <= alive.size(); };
  for (;;) {
    end_postponed();
    std::unique_lock lock(m_mutex);
    if (m_destroyed.wait_for(lock, pause, all_destroyed)) return;
  }
}

void process::note_unreported(const error_info& failure, bool thrown) {
  if (!m_public) return;  // failures reach the runner of this process by its observers
  if (!thrown) return report_at_last(failure);
  const std::lock_guard lock(m_mutex);
  m_thrown.push_back(failure);
}

void process::report_at_exit() {
  std::vector<error_info> thrown;
  {
    const std::lock_guard lock(m_mutex);
    thrown.swap(m_thrown);
  }
  if (thrown.empty() || (m_hand_over && m_hand_over())) return;
  for (const auto& failure : thrown) report_at_last(failure);
}

void process::shut_down() {
  if (forked() || m_ended.exchange(true)) return;
  end_ranks([](process& p) { p.shut_down(); });
  if (m_peers) m_peers->leave();
  end_communicators();
  report_at_exit();
  m_shown.reset();
  m_watch_thread.stop();  // it wakes the other one
  m_progress_thread.stop();
  if (m_registry) m_registry->close();
  if (m_everyone && !m_finalize_barrier) m_control->group_free(m_everyone);
  if (m_control && m_finalise && m_control->alive()) finalise();
  leave_to_mpi();
  if (m_peers && !m_broken) m_peers->mark_finalized();
  if (m_peers && m_broken) exit_after_reports(m_peers);
  if (m_only) one_runs = false;
  if (m_registry) note_running(false);
}

void process::note_failure(const error_info& why) {
  m_broken = true;
  if (m_peers) m_peers->fail({why.code, why.message});
  if (const auto p = m_process.lock()) p->note_failure(why);
}

// From now on no rank waits for all processes of the job.
void process::note_recovered() {
  m_recovered = true;
  m_broken = false;
  m_finalize_barrier.reset();
  if (m_peers) m_peers->recover();
}

void process::abandon(const std::string& why) {
  error_info info;
  info.code = errc::shut_down;
  info.message = "rank " + std::to_string(m_rank) + " has ended its runtime: " + why;
  info.hint = "Look for what was thrown first";
  m_obstacle = why;
  end_ranks([&](process& p) { p.abandon(why); });
  if (m_peers) m_peers->fail({errc::peer_lost, info.message});
  note_failure(info);
  for (const auto& c : communicators()) c->abandon(info);
  m_record.fail(info.message);
  shut_down();
}

// What is left for no thread of SuCL's to do, the next call does.
void process::wake(communicator& c) {
  if (!m_polls_in_calls) m_progress_thread.wake(c);
}

void process::notify_failure(communicator& c, const diagnosis& why) {
  watchdog::notify_failure(*m_control, c, why);
}

void process::notify_end(communicator& c, const communicator_end& e) {
  if (m_peers) watchdog::notify_end(*m_control, c, *m_peers, e);
}

}  // namespace sucl::core
