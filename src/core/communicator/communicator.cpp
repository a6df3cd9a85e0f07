// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/communicator.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/support/backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>

namespace sucl::core {
namespace {

using phase = op_request::phase;

scratch_pool pool_of(const device_services& device) {
  return device.allocate ? scratch_pool(device.memory_context, device.allocate, device.free)
                         : scratch_pool();
}

}  // namespace

communicator::communicator(std::shared_ptr<job> owner, sucl_group* group, device_services device,
                           bool is_part)
    : m_job(std::move(owner)),
      m_group(group),
      m_is_part(is_part),
      m_device(std::move(device)),
      m_scratch(pool_of(m_device)) {
  const auto* control = m_job->control();
  const int rank = control ? control->group_rank(group) : 0;
  const int size = control ? control->group_size(group) : 1;
  m_device.self.settings = base::shared_values(m_job->settings());
  m_tuned = m_job->tuned();
  m_device.self.settings += "hash of the contents of tuning.table = " +
                            (m_tuned ? std::to_string(tune::hash(*m_tuned)) : "none") + "\n";
  m_device.self.job = m_job->key();
  m_device.self.world_rank = m_job->rank();
  m_device.self.declared_node = declared_node(m_job->settings().nodes.size, m_job->rank());
  try {
    make(rank, size);
  } catch (const error& e) {
    // Every rank throws this one, so what there is ends as it was made, together.
    if (e.code() == errc::out_of_memory) m_backends.destroy(false);
    throw;
  }
}

void communicator::make(int rank, int size) {
  const auto* control = m_job->control();
  const sucl_oob oob{control, m_group};
  m_topology = discover(oob, rank, size, m_device.self);
  m_id = m_job->agree_on_id(oob, size);
  m_label = "communicator " + std::to_string(m_id);
  m_backends.create(m_job->settings(), m_job->backends(), m_job->built_ins(), oob, m_topology,
                    {m_id, m_job->rank(),
                     [this, control] { return control ? control->group_native(m_group) : nullptr; },
                     m_device.native_device, m_device.native_context, m_device.kernels,
                     m_tuned.get(), m_device.hierarchical, &m_scratch,
                     [this](int colour, int key) { return make_part(colour, key); }});
  m_pace = tuned_pace(m_tuned.get());
  compare_device();
  m_staging.rank = rank;
  m_staging.size = size;
  m_staging.comm_stages =
      !m_topology.device_memory_everywhere_on_host || m_job->stages_everything();
  if (m_device.allocate) m_staging.scratch_memory = SUCL_MEMORY_HOST;
  m_staging.chunk_bytes = m_job->settings().staging.chunk;
  m_staging.depth = static_cast<int>(m_job->settings().staging.depth);
  if (m_job->settings().layers.validate) m_validator.emplace(oob, rank, size, m_id);
  const auto reached = exchange(oob, size, m_backends.reach());
  for (std::size_t r = 0; r < reached.size(); ++r) m_topology.members[r].reach = reached[r];
}

communicator::~communicator() {
  try {
    shut_down(true);
  } catch (const error&) {
    // A destructor has no caller to report to; what failed was logged where it failed.
  }
  if (!m_is_part) m_job->note_gone();
}

op_request* communicator::take_request() {
  const auto unused = std::find_if(m_free.begin(), m_free.end(), [](op_request* n) {
    return n->references.load(std::memory_order_acquire) == 0;
  });
  if (unused != m_free.end()) {
    op_request* n = *unused;
    *unused = m_free.back();
    m_free.pop_back();
    n->request = nullptr;
    n->pipeline.reset();
    n->failure.reset();
    n->watch = {};
    n->on_stream = false;
    n->at.store(phase::waiting, std::memory_order_relaxed);
    return n;
  }
  m_requests.push_back(std::make_unique<op_request>());
  return m_requests.back().get();
}

void communicator::fill(op_request& n, const sucl_operation& record, const layouts& shape,
                        bool blocking) {
  n.record = record;
  n.record.struct_size = sizeof(sucl_operation);
  n.record.sequence = number(record.kind);
  if (!is_point_to_point(record.kind)) n.record.tag = encode_form(blocking);
  n.shape = shape;
  n.bounce_buffer = nullptr;
  n.parts.assign(record.parts, record.parts + record.part_count);
  n.record.parts = n.parts.data();
  keep_arrays(n.record, size(), n.arrays);
}

std::uint64_t communicator::number(sucl_kind kind) {
  return is_point_to_point(kind) ? 0 : ++m_collectives;
}

void communicator::throw_if_shut_down() const {
  throw_if_forked();
  if (m_ended.load(std::memory_order_acquire))
    base::fail(errc::shut_down, "the communicator has ended",
               "Keep the runtime alive, and MPI initialised, while communicators are used");
}

// Why an operation cannot be issued; a failure that was not reported yet is reported once.
void communicator::rethrow_pending() {
  throw_if_shut_down();
  note_reported();
  m_failures.rethrow();
}

issue_result communicator::issue(const sucl_operation& record, const layouts& shape, bool ready,
                                 const observer& watch, bool blocking) {
  std::unique_lock lock(m_mutex);
  throw_if_ended();
  op_request* n = take_request();
  fill(*n, record, shape, blocking);
  n->issued = clock::now();
  if (n->record.sequence) m_backends.note_issue(n->record.sequence);
  n->ready.store(ready, std::memory_order_relaxed);
  n->references.store(1, std::memory_order_relaxed);  // the communicator's own
  ticket t(n);
  m_waiting.push_back(n);
  if (ready && !m_direct) {
    const auto until = n->issued + spin_limit_for(n->record);
    do {
      pump();
      for (std::size_t i = 0; i < m_flight.size();)
        if (!test(*m_flight[i])) ++i;
    } while (!t.done() && clock::now() < until);
  }
  const bool done = t.done();
  if (!done) n->watch = watch;
  deliver_done(lock);
  lock.unlock();
  // A thread that is woken takes a processor, at times the peer's. Who blocks makes the progress.
  if (!done && !watch.assisted && !blocking) m_job->wake(*this);
  return {std::move(t), done};
}

// Notifies observers of what is done so far; gives up the lock meanwhile.
void communicator::deliver_done(std::unique_lock<biased_mutex>& lock) {
  while (!m_done.empty()) {
    std::vector<op_request*> finished;
    finished.swap(m_done);
    lock.unlock();
    deliver(finished);
    lock.lock();
  }
}

// How long a call that could post its operation polls for it before it returns: long enough for the
// data to move if the peers are there, since some processor has to move it anyway, and short beside
// the commands that completion by an event costs.
std::chrono::nanoseconds communicator::spin_limit_for(const sucl_operation& record) const {
  const auto poll = std::chrono::microseconds(m_job->settings().progress.poll_us);
  if (poll.count() == 0) return poll;
  constexpr std::uint64_t bytes_per_ns = 5;
  constexpr std::chrono::nanoseconds most = std::chrono::microseconds(100);
  auto bytes = record.count * record.element_size;
  for (std::uint64_t i = 0; i < record.part_count; ++i)
    bytes += record.parts[i].count * record.parts[i].element_size;
  return std::min<std::chrono::nanoseconds>(
      most,
      poll + std::chrono::nanoseconds(std::min<std::uint64_t>(bytes / bytes_per_ns, 1000000)));
}

void communicator::mark_ready(const ticket& t, const void* send, void* recv) {
  op_request* n = t.get();
  if (send) n->record.send = send;
  if (recv) n->record.recv = recv;
  mark_ready(t);
}

void communicator::mark_ready(const ticket& t) {
  t.get()->ready.store(true, std::memory_order_release);
  if (!t.get()->watch.assisted) m_job->wake(*this);
}

bool communicator::may_post(const sucl_operation& next) const {
  return std::all_of(m_flight.begin(), m_flight.end(), [&](const op_request* n) {
    return !n->pipeline || n->pipeline->may_follow(next);
  });
}

// Posts what may be posted, in order.
void communicator::pump() {
  while (!m_waiting.empty()) {
    op_request& n = *m_waiting.front();
    if (!n.ready.load(std::memory_order_acquire)) {
      if (!n.watch.is_ready || !n.watch.is_ready(n.watch.context)) return;
      n.ready.store(true, std::memory_order_relaxed);
    }
    if (!may_post(n.record) || !may_run(n)) return;
    m_waiting.pop_front();
    m_flight.push_back(&n);
    if (!is_point_to_point(n.record.kind)) m_collectives_posted = n.record.sequence;
    n.posted = clock::now();
    n.at.store(phase::posted, std::memory_order_relaxed);
    if (n.failure)
      finish(n, &*n.failure);
    else
      post(n);
  }
}

void communicator::replace_memory(op_request& n) const {
  const bool sends = n.record.kind == SUCL_KIND_SEND;
  if (sends)
    n.record.send = n.bounce_buffer;
  else
    n.record.recv = n.bounce_buffer;
  (sends ? n.record.send_memory : n.record.recv_memory) = m_staging.scratch_memory;
}

void communicator::post(op_request& n) {
  try {
    n.via = &m_backends.choose(n.record, is_blocking(n.record));
    if (n.bounce_buffer) replace_memory(n);  // only now: the kind of memory may decide
    staging_plan how = plan_staging(n.record, n.shape, *n.via->formats, m_staging);
    if (how.needed) {
      n.pipeline = std::make_unique<staged_operation>(n.record, std::move(how), n.via->via,
                                                      m_device.copier, m_scratch);
      if (n.pipeline->step()) finish(n, nullptr);
      return;
    }
    post_native(n);
  } catch (...) {
    const auto info = caught(n.record);
    finish(n, &info);
  }
}

void communicator::post_native(op_request& n) {
  const backend_comm& below = n.via->via;
  if (const auto status = below.table->post(below.comm, &n.record, &n.request))
    throw_last(status, n.via->name, describe(n.record), rank());
  if (!n.request) finish(n, nullptr);
}

// Progresses one operation; true if that ended it.
bool communicator::test(op_request& n) {
  try {
    bool done = false;
    if (n.pipeline) {
      done = n.pipeline->step();
    } else {
      std::int32_t flag = 0;
      if (const auto status = n.via->via.table->test(n.via->via.comm, n.request, &flag))
        throw_last(status, n.via->name, describe(n.record), rank());
      done = flag != 0;
    }
    if (done) finish(n, nullptr);
    return done;
  } catch (...) {
    const auto info = caught(n.record);
    finish(n, &info);
    return true;
  }
}

// The exception that is being handled, whichever it is: none may end the progress thread.
error_info communicator::caught(const sucl_operation& record) const {
  error_info info;
  try {
    throw;
  } catch (const error& e) {
    info = e.info();
  } catch (const std::bad_alloc&) {
    info.code = errc::out_of_memory;
    info.message = "no memory for the operation";
    info.hint = "Use smaller counts, or a smaller staging.chunk";
  } catch (const std::exception& e) {
    info.code = errc::internal;
    info.message = e.what();
  }
  if (info.operation.empty()) info.operation = describe(record);
  if (info.rank < 0) info.rank = m_topology.rank;
  return info;
}

void communicator::finish(op_request& n, const error_info* failure) {
  m_flight.erase(std::find(m_flight.begin(), m_flight.end(), &n));
  if (failure) {
    n.failure = *failure;
    base::log(base::log_level::info, "runtime", describe(n.record), " failed: ", failure->message);
    // A waiting caller gets the error; an asynchronous failure is kept for the next call.
    const bool asynchronous = n.watch.done || n.watch.assisted;
    if (asynchronous) m_failures.keep(*failure, n.watch.thrown);
  }
  n.at.store(phase::done, std::memory_order_release);
  m_done.push_back(&n);
}

// Notifies observers. Without the lock: they call into SYCL, or issue operations.
void communicator::deliver(std::vector<op_request*>& done) {
  for (op_request* n : done) {
    if (n->watch.done) n->watch.done(n->watch.context, n->failure ? &*n->failure : nullptr);
  }
  std::lock_guard lock(m_mutex);
  for (op_request* n : done) {
    m_free.push_back(n);
    n->references.fetch_sub(1, std::memory_order_release);
  }
  done.clear();
  if (m_done.empty()) m_done.swap(done);  // keeps the capacity
}

bool communicator::progress(int* finished) {
  std::unique_lock lock(m_mutex, std::try_to_lock);
  if (!lock) return true;  // another thread makes progress
  return progress_locked(lock, finished, !m_direct);
}

// For the caller that is in a backend, between two calls to it.
void communicator::progress_others() {
  std::unique_lock lock(m_mutex);
  if (!m_flight.empty() || !m_waiting.empty()) progress_locked(lock, nullptr, true);
}

bool communicator::progress_locked(std::unique_lock<biased_mutex>& lock, int* finished,
                                   bool may_enter) {
  if (!m_failures.broken() && m_backends.mismatched()) give_up_mismatched();
  if (may_enter) {
    pump();
    for (std::size_t i = 0; i < m_flight.size();)
      if (!test(*m_flight[i])) ++i;
    pump();
  } else {
    // Peers may need these before they join what the caller is inside of.
    for (std::size_t i = 0; i < m_flight.size();)
      if (!m_flight[i]->via || !m_flight[i]->via->traits.independent_progress ||
          !test(*m_flight[i]))
        ++i;
  }
  const bool more =
      !m_flight.empty() ||
      (!m_waiting.empty() && (m_waiting.front()->ready.load(std::memory_order_acquire) ||
                              m_waiting.front()->watch.is_ready != nullptr));
  if (!m_done.empty()) {
    std::vector<op_request*> done;
    done.swap(m_done);
    lock.unlock();
    if (finished) *finished += static_cast<int>(done.size());
    deliver(done);
  }
  return more;
}

void communicator::wake() { m_job->wake(*this); }

void communicator::wait(const ticket& t) {
  assist(t);
  if (!t.failure()) return;
  {
    const std::lock_guard lock(m_mutex);
    note_reported();
  }
  throw error(*t.failure());
}

void communicator::assist(const ticket& t) {
  m_assistants.fetch_add(1, std::memory_order_acq_rel);
  backoff rest(m_job->settings().progress.spin_us);
  while (!t.done()) {
    int finished = 0;
    progress(&finished);
    if (t.done()) break;
    m_job->waiting();
    rest.after(finished);
  }
  // What is still in flight has only the progress thread now.
  if (m_assistants.fetch_sub(1, std::memory_order_acq_rel) == 1 && progress()) m_job->wake(*this);
}

void communicator::wait_all() {
  drain_streams();
  backoff rest(m_job->settings().progress.spin_us);
  for (;;) {
    {
      std::lock_guard lock(m_mutex);
      if (m_waiting.empty() && m_flight.empty() && m_done.empty() && !m_direct) break;
    }
    int finished = 0;
    progress(&finished);
    rest.after(finished);
  }
  check();
}

// A rank of this machine may have given up what was over here, with wrong data.
void communicator::read_published_diagnosis() {
  const peer_processes* peers = m_job->peers();
  const auto published = peers ? peers->published_so_far() : 0;
  if (m_seen_diagnosis.exchange(published, std::memory_order_relaxed) == published) return;
  if (const auto v = peers->published(m_id)) fail_all(info_of(*v));
}

std::unique_ptr<setup_step> communicator::begin_step(const char* what) {
  return std::make_unique<setup_step>(m_job->steps(), std::string(what) + "() of " + m_label,
                                      m_topology.world_ranks, false, &m_steps_begun);
}

void communicator::check() {
  read_published_diagnosis();
  check_device();
  std::lock_guard lock(m_mutex);
  if (!m_direct) m_backends.compare_calls();
  throw_if_ended();
}

sucl_group* communicator::split_group(int colour, int key) {
  const auto* control = m_job->control();
  sucl_group* group = nullptr;
  if (control)
    if (const auto status = control->group_split(m_group, colour, key, &group))
      throw_last(status, control->name, "split", rank());
  return group;
}

// One that works for this one, on the same device. Null where the colour is negative.
std::shared_ptr<communicator> communicator::make_part(int colour, int key) {
  sucl_group* group = split_group(colour, key);
  if (colour < 0) return nullptr;
  return std::make_shared<communicator>(m_job, group, m_device, true);
}

std::shared_ptr<communicator> communicator::split(int colour, int key, device_services device) {
  check();
  meet();
  sucl_group* group = split_group(colour, key);
  if (colour < 0) return nullptr;
  return m_job->make_communicator(group, std::move(device));
}

void communicator::fail_all(const error_info& info) {
  m_job->note_failure(info);
  std::unique_lock lock(m_mutex);
  if (m_failures.broken() || m_ended) return;
  m_backends.abort();
  give_up(info);
  std::vector<op_request*> done;
  done.swap(m_done);
  lock.unlock();
  deliver(done);
}

// Fails everything that is not done, for observers that are still to be notified.
void communicator::give_up(const error_info& info) {
  m_failures.end(info, rank());
  if (m_validator) m_validator->abort();
  while (!m_waiting.empty()) {
    m_flight.push_back(m_waiting.front());
    m_waiting.pop_front();
  }
  while (!m_flight.empty()) {
    op_request* n = m_flight.back();
    n->pipeline.reset();
    finish(*n, &*m_failures.broken());
  }
}

void communicator::abandon(const error_info& info) {
  fail_all(info);
  const std::lock_guard lock(m_mutex);
  m_failures.note_reported();
}

communicator::status communicator::snapshot() {
  std::lock_guard lock(m_mutex);
  status s;
  s.posted = m_collectives_posted;
  s.issued = m_collectives;
  const op_request* oldest = nullptr;
  if (!m_flight.empty())
    oldest = m_flight.front();
  else if (!m_waiting.empty() && m_waiting.front()->ready.load(std::memory_order_acquire))
    oldest = m_waiting.front();
  if (oldest) {
    s.busy = true;
    s.oldest = oldest->record;
    if (oldest->at.load() == phase::posted) {
      s.since = oldest->posted;
    } else {
      // What it waited for before is the program's own.
      if (m_seen_ready.first != oldest->issued) m_seen_ready = {oldest->issued, clock::now()};
      s.since = m_seen_ready.second;
    }
  }
  if (!s.busy && m_device.streams.pending_since) {
    if (const auto since = m_device.streams.pending_since(m_device.streams.context)) {
      s.busy = true;
      s.oldest = m_last_on_stream;
      s.on_stream = true;
      s.since = *since;
    } else {
      s.held = m_device.streams.is_held(m_device.streams.context);
    }
  }
  return s;
}

void communicator::shut_down(bool drain) {
  if (!alive()) return;
  if (drain) drain_streams();
  backoff rest(m_job->settings().progress.spin_us);
  while (drain) {
    {
      std::lock_guard lock(m_mutex);
      if (m_failures.broken() ||
          (m_waiting.empty() && m_flight.empty() && m_done.empty() && !m_direct))
        break;
    }
    int finished = 0;
    progress(&finished);
    m_job->waiting();
    rest.after(finished);
  }
  std::unique_lock lock(m_mutex);
  if (drain) settle_calls();
  if (m_ended.exchange(true)) return;
  // What was given up is left to MPI: freeing it could wait for a peer that is gone.
  const bool keep = m_failures.broken().has_value();
  const backend_comm shared = m_backends.shared_memory();
  for (sucl_region& r : m_common) shared.table->memory_destroy(shared.comm, &r);
  m_common.clear();
  m_backends.destroy(keep);
  m_validator.reset();
  const auto unreported = m_failures.unreported();
  const bool thrown = m_failures.is_thrown();
  lock.unlock();
  if (unreported) m_job->note_unreported(*unreported, thrown);
  const std::lock_guard control(m_control_mutex);
  sucl_oob own{m_job->control(), m_group};
  keep ? oob_keep(own) : oob_free(own);
}

}  // namespace sucl::core
