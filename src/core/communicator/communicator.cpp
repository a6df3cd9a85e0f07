// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/communicator.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/communicator/growing.hpp"
#include "core/exchange/topology.hpp"
#include "core/failure/device_errors.hpp"
#include "core/operation/operation.hpp"
#include "core/support/postponed_ends.hpp"

#include <exception>

namespace sucl::core {

communicator::communicator(std::shared_ptr<process_context> owner, sucl_group* group,
                           device_services device, communicator_role role)
    : m_is_part(role != communicator_role::of_program),
      m_is_flat(role == communicator_role::flat_part),
      m_context(std::move(owner), group, std::move(device)),
      m_queue(m_context, *this),
      m_tuning(m_context, m_queue, m_calls, m_context.owner->tuned()),
      m_prepared(m_context, m_queue, m_calls),
      m_blocking(m_context, m_queue, m_calls, m_prepared, m_tuning.pace()),
      m_streams(m_context, m_queue),
      m_memory(m_context, m_queue, m_calls),
      m_plans(m_context, m_queue),
      m_queries(m_context, m_queue),
      m_agreement(m_context, m_queue),
      m_late(m_context),
      m_shrinking(m_context) {
  process_context& of = *m_context.owner;
  const auto* control = of.control();
  const int rank = control ? control->group_rank(group) : 0;
  const int size = control ? control->group_size(group) : 1;
  self_description& self = m_context.device.self;
  const tune::table* table = m_tuning.table();
  self.settings = base::shared_values(of.settings());
  self.settings += "hash of the contents of tuning.table = " +
                   (table ? std::to_string(tune::hash(*table)) : "none") + "\n";
  self.job = of.key();
  self.world_rank = of.rank();
  self.declared_node = declared_node(of.settings().nodes.size, of.rank());
  self.declared_island = declared_island(of.settings().islands.of, of.rank());
  try {
    make(rank, size);
  } catch (const error& e) {
    // Every rank throws this one, so what there is ends as it was made, together.
    if (e.code() == errc::out_of_memory || e.code() == errc::configuration)
      m_context.backends.destroy(false);
    throw;
  }
}

void communicator::make(int rank, int size) {
  communicator_context& c = m_context;
  const auto* control = c.owner->control();
  const auto& settings = c.owner->settings();
  const sucl_oob oob = c.oob();
  c.where = discover(oob, rank, size, c.device.self);
  c.id = c.owner->agree_on_id(oob, size);
  c.label = "communicator " + std::to_string(c.id);
  if (!m_is_part) c.record.begin(c.owner->record(), c.id, rank, size);
  // Operations may consist of steps of some ranks, which do not compare what the others called.
  // Between islands of one node backends compare as well what goes through them alone.
  const bool in_steps = c.where.nodes > 1 || c.where.mixed();
  if (c.owner->compares_calls() && !m_is_part && in_steps) m_queue.log_calls();
  const bool compared = c.owner->compares_calls() && (m_is_part || c.where.nodes > 1);
  if (c.owner->compares_ends() && !m_is_part && size > 1) m_queue.count_calls();
  c.backends.create(
      settings, c.owner->backends(), c.owner->built_ins(), oob, c.where,
      {c.id, c.owner->rank(),
       [&c, control] { return control ? control->group_native(c.group) : nullptr; },
       c.device.native_device, c.device.native_context, c.device.kernels, m_tuning.table(),
       c.device.hierarchical, &c.scratch, compared,
       [this](int colour, int key, bool flat) { return make_part(colour, key, flat); }, m_is_flat});
  m_tuning.compare_device();
  m_calls.begin(size);
  c.stages.rank = rank;
  c.stages.size = size;
  c.stages.comm_stages = !c.where.device_memory_everywhere_on_host || c.owner->stages_everything();
  if (c.device.allocate) c.stages.scratch_memory = SUCL_MEMORY_HOST;
  c.stages.chunk_bytes = settings.staging.chunk;
  c.stages.depth = static_cast<int>(settings.staging.depth);
  if (settings.layers.validate) m_queue.validation().begin(c);
  const auto native = exchange(oob, size, c.backends.native_memory());
  for (std::size_t r = 0; r < native.size(); ++r) c.where.members[r].native_memory = native[r];
}

communicator::~communicator() {
  end();
  if (!m_is_part) m_context.owner->note_destroyed();
}

void communicator::wake() { m_context.owner->wake(*this); }

sucl_operation communicator::record(const sucl_operation& operation) {
  const sucl_operation recorded = m_queue.record(operation);
  const auto lock = m_queue.lock();
  m_calls.forget();  // their tags
  return recorded;
}

std::optional<bool> communicator::arrived(int from, int tag) {
  auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  m_queue.await_exit(lock);
  sucl_operation o = example_of(kind::recv, 1, type::bytes, op::none);
  o.root = o.source = from;
  o.tag = tag;
  const backend_instance& c = m_context.backends.choose(o, false);
  if (!c.own || c.layered) return std::nullopt;
  return c.own->arrived(from, tag);
}

void communicator::wait_all() {
  m_streams.drain();
  m_queue.drain(false);
  check();
}

// A rank of this machine may have given up what was over here, with wrong data.
void communicator::read_published_diagnosis() {
  const peer_processes* peers = m_context.owner->peers();
  const auto published = peers ? peers->published_so_far() : 0;
  if (m_seen_diagnosis.exchange(published, std::memory_order_relaxed) == published) return;
  if (const auto v = peers->published(id())) fail_all(info_of(*v));
}

void communicator::check() {
  read_published_diagnosis();
  check_device();
  m_queue.check();
}

void communicator::check_issued() {
  if (alive()) {
    read_published_diagnosis();
    check_device();
  }
  m_queue.check_issued();
}

std::unique_ptr<setup_step> communicator::begin_step(const char* what) {
  return std::make_unique<setup_step>(m_context.owner->steps(),
                                      std::string(what) + "() of " + label(),
                                      m_context.where.world_ranks, may_leave::none, &m_steps_begun);
}

sucl_group* communicator::split_group(int colour, int key) {
  end_postponed();  // a library has room for so many
  const auto* control = m_context.owner->control();
  sucl_group* group = nullptr;
  if (control)
    if (const auto status = control->group_split(m_context.group, colour, key, &group))
      throw_last(status, control->name, "split", rank());
  return group;
}

// One that works for this one, on the same device. Null where the colour is negative.
std::shared_ptr<communicator> communicator::make_part(int colour, int key, bool flat) {
  sucl_group* group = split_group(colour, key);
  if (colour < 0) return nullptr;
  return std::make_shared<communicator>(
      m_context.owner, group, m_context.device,
      flat ? communicator_role::flat_part : communicator_role::part);
}

std::shared_ptr<communicator> communicator::split(int colour, int key, device_services device,
                                                  arrival call) {
  check();
  m_blocking.await_ranks({call});
  sucl_group* group = split_group(colour, key);
  if (colour < 0) return nullptr;
  return m_context.owner->make_communicator(group, std::move(device));
}

std::shared_ptr<communicator> communicator::shrink(const device_services& device) {
  m_queue.throw_if_shut_down();
  m_shrinking.check();
  give_up_to_shrink();
  return m_shrinking.run(device);
}

launch communicator::agree_to_grow(const std::string& id, int joiners) {
  check();
  return core::agree_to_grow(m_context, id, joiners);
}

// Afterwards nothing of this rank touches memory of others. Ranks that still wait for this one get
// the error.
void communicator::give_up_to_shrink() {
  error_info why;
  why.code = errc::peer_lost;
  why.message = label() + " has been given up by shrink()";
  why.hint = "Call shrink() on every rank that is left, and use what it returns";
  fail_everywhere(why);
  m_queue.abandon(why);
  m_streams.drain();
  auto lock = m_queue.lock();
  m_queue.await_exit(lock);
  const communicator_end e = m_queue.end_of_work(false);
  lock.unlock();
  const std::lock_guard control(m_control_mutex);
  show_end(e);
}

compiled_facts communicator::compile(const compile_request& request) {
  check();
  m_blocking.await_ranks(
      {arrival::compile, static_cast<sucl_type>(request.element), request.element_size});
  const std::uint64_t number = m_plans.number_next();
  return m_plans.compile(number, request);
}

// Every rank, so that none frees what another one still uses or frees something else.
bool communicator::may_free(arrival call, const void* memory) {
  if (std::uncaught_exceptions() > 0)  // memory of devices is freed by all ranks together
    return !m_context.backends.device_memory() && !m_memory.is_in_use(memory);
  m_memory.await_use(memory);
  {
    const setup_pause operations;
    m_streams.drain();
  }
  arriving_call mine{call};
  mine.block = call == arrival::deallocate ? m_memory.number_of_allocated(memory)
                                           : m_memory.number_of_attached(memory);
  m_blocking.await_ranks(mine);
  return true;
}

void communicator::deallocate(void* memory) {
  if (!may_free(arrival::deallocate, memory)) return;
  m_memory.deallocate(memory, ++m_changes);
}

void communicator::detach(void* memory) {
  if (!may_free(arrival::deregister_memory, memory)) return;
  ++m_changes;
  m_memory.detach(memory);
}

void communicator::use_tuning(const std::string& toml) {
  wait_all();
  m_blocking.await_ranks({arrival::use_tuning});
  ++m_changes;
  m_tuning.use_text(toml);
}

void communicator::check_device() {
  if (!m_context.device.errors) return;
  auto found = m_context.device.errors->pending();
  if (!found) return;
  found->rank = rank();
  fail_everywhere(*found);
}

void communicator::fail_everywhere(const error_info& info) {
  if (m_queue.failed_or_ended()) return;
  process_context& of = *m_context.owner;
  const diagnosis found = {
      info.code, label() + (is_asked_for(info) ? " was ended" : " has failed") + " on rank " +
                     std::to_string(rank()) + ": " + info.message};
  if (auto* peers = of.peers()) peers->publish(id(), found);
  if (of.control()) {
    const auto held = hold_control_group();
    if (alive()) of.notify_failure(*this, found);
  }
  const auto level = is_asked_for(info) ? base::log_level::info : base::log_level::error;
  base::log(level, "runtime", label(), " ends: ", info.message);
  fail_all(info);
  // Without a timeout ranks that wait in a call look for ends alone.
  const auto held = hold_control_group();
  if (!alive()) return;
  auto lock = m_queue.lock();
  const communicator_end e = m_queue.end_of_work(false);
  lock.unlock();
  show_end(e);
}

communicator::status communicator::snapshot() {
  const auto lock = m_queue.lock();
  return locked_snapshot();
}

std::optional<communicator::status> communicator::try_snapshot() {
  constexpr auto moment = std::chrono::milliseconds(1);
  const auto lock = m_queue.try_lock_for(moment);
  if (!lock) return std::nullopt;
  return locked_snapshot();
}

communicator::status communicator::locked_snapshot() {
  status s = m_queue.snapshot();
  m_streams.add_to(s);
  return s;
}

// Before its memory is freed: ranks that wait for this one read it.
void communicator::show_end(const communicator_end& e) {
  if (m_is_part || size() == 1) return;
  process_context& of = *m_context.owner;
  if (auto* peers = of.peers()) peers->end(id(), e);
  if (of.control()) of.notify_end(*this, e);
}

void communicator::leave() {
  const auto lock = m_queue.try_lock();
  if (auto* peers = m_context.owner->peers(); lock && peers && !m_is_part)
    peers->end(id(), m_queue.end_of_work(true));
}

void communicator::end() noexcept try { shut_down(true); } catch (const error&) {
  // There is no caller to report to; what failed was logged where it failed.
}

void communicator::shut_down(bool drain) {
  if (!alive()) return;
  if (drain) {
    m_streams.drain();
    m_queue.drain(true);
    m_agreement.await();
  }
  auto lock = m_queue.lock();
  if (drain) m_queue.await_mismatch_reports();
  if (!m_queue.end()) return;
  const communicator_end e = m_queue.end_of_work(m_unwinding || std::uncaught_exceptions() > 0);
  ended_calls done;
  done.job = m_context.owner->key();
  done.communicator = id();
  done.rank = rank();
  done.size = size();
  done.comparable = drain && e.how == communicator_end::manner::regular && !m_queue.any_failed();
  done.totals = m_queue.totals();
  // What was given up is left to MPI: freeing it could wait for a peer that is gone.
  const bool keep = m_queue.broken().has_value();
  m_memory.release();
  m_context.backends.destroy(keep);
  m_queue.validation().end();
  const auto unreported = m_queue.unreported();
  const bool thrown = m_queue.is_thrown();
  m_context.record.end();
  lock.unlock();
  if (unreported) m_context.owner->note_unreported(*unreported, thrown);
  if (m_queue.counts_calls()) m_context.owner->note_calls(done, m_queue.pairs());
  const std::lock_guard control(m_control_mutex);
  show_end(e);
  sucl_oob own = m_context.oob();
  keep ? oob_keep(own) : oob_free(own);
}

}  // namespace sucl::core
