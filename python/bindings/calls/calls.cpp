// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "calls/calls.hpp"

#include "core/support/forked.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace nb = nanobind;

namespace sucl::python {
namespace {

// Operations that Python has forgotten, and memory that may be written to until the end. Never
// destroyed: at the end of the process Python may be gone.
struct forgotten {
  struct operation {
    event_handle event;
    std::shared_ptr<holdings> held;
  };
  std::vector<operation> operations;
  std::vector<std::shared_ptr<holdings>> for_good;
};
forgotten& all_forgotten() {
  static auto& all = *new forgotten;
  return all;
}

// What records in this thread; null where nothing does.
recorded_holdings*& current_recording() {
  thread_local recorded_holdings* current = nullptr;
  return current;
}

// The parts of a call while it is made.
struct making {
  const communicator_handle& comm;
  const arguments& given;
  holdings& held;
  call result;
  std::optional<array_view> send, recv;

  [[nodiscard]] bool at_root() const { return comm.rank() == given.root; }
  [[nodiscard]] kind what() const { return static_cast<kind>(given.what); }
};

operand operand_of(const array_view& view) { return {view.pointer, view.elements, true}; }

bool same_memory(const making& m) {
  return m.send && m.recv && m.send->pointer == m.recv->pointer &&
         m.send->elements == m.recv->elements && m.send->elements > 0;
}

// Whether the operation writes the receive array on this rank.
bool writes(const making& m, bool in_place) {
  switch (m.what()) {
    case kind::broadcast: return !m.at_root();
    case kind::scatter: return !in_place || !m.at_root();
    default: return true;
  }
}

void take_arrays(making& m) {
  const arguments& a = m.given;
  if (!a.send.is_none()) m.send = view_of(a.send, "the send array", m.held);
  if (!a.recv.is_none()) m.recv = view_of(a.recv, "the receive array", m.held);
  if (m.send && m.recv && m.send->element != m.recv->element)
    fail(errc::invalid_type,
         std::string("the send array has elements of ") + name(m.send->element) +
             ", the receive array of " + name(m.recv->element),
         "Pass arrays of one type");
  if (m.send && m.recv && m.send->element_size != m.recv->element_size)
    fail(errc::invalid_type,
         "the send array has elements of " + std::to_string(m.send->element_size) +
             " bytes, the receive array of " + std::to_string(m.recv->element_size),
         "Pass arrays of one type");
  for (const auto& view : {m.send, m.recv}) {
    if (!view) continue;
    m.result.record.type = static_cast<sucl_type>(view->element);
    m.result.record.element_size = view->element_size;
    if (view->queue) {
      m.comm.check_reach(view->pointer, view->queue);
      m.result.queue = view->queue;
    } else if (view->on_device && !m.comm.has_queue()) {
      fail(errc::invalid_memory,
           "the array is in memory of a device, and the communicator has no queue",
           "Make the communicator with a queue of that device: sucl.world(queue)");
    }
  }
}

// One array was given where two may be: the operation works in place, on the receive side.
bool take_in_place(making& m) {
  const kind k = m.what();
  const bool elementwise =
      k == kind::reduce || k == kind::allreduce || k == kind::scan || k == kind::exscan;
  if (m.send && (m.given.send.is(m.given.recv) || (elementwise && same_memory(m)))) m.send.reset();
  if (m.send && m.recv) return false;
  switch (k) {
    case kind::barrier:
    case kind::send:
    case kind::recv:
    case kind::sendrecv: return false;
    case kind::reduce:
    case kind::gather:
    case kind::gatherv:
      if (m.send && !m.at_root()) return false;  // only the root receives
      break;
    case kind::scatter:
    case kind::scatterv:
      if (m.recv && !m.at_root()) return false;  // only the root sends
      break;
    default: break;
  }
  if (!m.recv) m.recv = std::exchange(m.send, std::nullopt);
  return true;
}

void need(bool there, const char* what, const char* hint) {
  if (!there) fail(errc::invalid_argument, std::string(what) + " is missing", hint);
}

// One of size() equal blocks of so many elements.
std::size_t share(const making& m, std::size_t elements) {
  const auto ranks = static_cast<std::size_t>(m.comm.size());
  if (elements % ranks != 0)
    fail(errc::invalid_count,
         std::to_string(elements) + " elements cannot be divided into one block for each of " +
             std::to_string(ranks) + " ranks",
         "Pass an array whose size is a multiple of the number of ranks");
  return elements / ranks;
}

std::size_t count_of(const making& m, bool in_place) {
  const std::size_t sent = m.send ? m.send->elements : 0;
  const std::size_t received = m.recv ? m.recv->elements : 0;
  const kind k = m.what();
  switch (k) {
    case kind::broadcast:
    case kind::recv: return received;
    case kind::reduce:
    case kind::allreduce:
    case kind::scan:
    case kind::exscan: return in_place ? received : sent;
    case kind::reduce_scatter_block: return in_place ? share(m, received) : received;
    case kind::allgather: return in_place ? share(m, received) : sent;
    case kind::alltoall: return share(m, in_place ? received : sent);
    case kind::gather: return in_place ? share(m, received) : sent;
    case kind::scatter: return in_place ? share(m, received) : received;
    case kind::scatterv: return received;
    case kind::allgatherv:
    case kind::gatherv: return in_place ? 0 : sent;
    case kind::send:
    case kind::sendrecv: return sent;
    default: return 0;
  }
}

std::string text_of(nb::handle value) { return nb::cast<std::string>(nb::repr(value)); }

// An integer as one of 64 bits. False for anything else; nothing is raised then.
bool whole(nb::handle value, std::int64_t& number) {
  PyObject* index = PyNumber_Index(value.ptr());
  if (!index) {
    PyErr_Clear();
    return false;
  }
  const nb::object held = nb::steal(index);
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(index, &overflow);
  return overflow == 0;
}

counts counts_from(nb::handle list) {
  PyObject* iterator = PyObject_GetIter(list.ptr());
  if (!iterator) {
    PyErr_Clear();
    fail(errc::invalid_count, "counts or displacements are " + text_of(list) + ", which is no list",
         "Pass one integer for each rank");
  }
  const nb::object held = nb::steal(iterator);
  counts result;
  for (nb::handle entry : nb::iter(list)) {
    std::int64_t value = 0;
    if (!whole(entry, value) || value < 0)
      fail(errc::invalid_count, "a count or displacement is " + text_of(entry),
           "Pass numbers of elements, from 0");
    result.push_back(static_cast<std::size_t>(value));
  }
  return result;
}

void take_counts(making& m) {
  if (m.given.arrays.is_none()) return;
  std::size_t i = 0;
  for (nb::handle list : nb::iter(m.given.arrays)) {
    if (!list.is_none()) m.result.arrays.at(i) = counts_from(list);
    ++i;
  }
}

void check_given(const making& m) {
  switch (m.what()) {
    case kind::barrier: return;
    case kind::send: return need(m.send.has_value(), "the array to send", "Pass it");
    case kind::recv: return need(m.recv.has_value(), "the array to receive into", "Pass it");
    case kind::sendrecv:
      return need(m.send && m.recv, "one of the arrays", "Pass one to send and one to receive");
    case kind::scatterv:
      return need(m.recv.has_value(), "the array to receive into",
                  "Pass it on every rank: scatterv has no form in place");
    default: return need(m.send || m.recv, "the array", "Pass one");
  }
}

void fill(making& m) {
  call& c = m.result;
  sucl_operation& o = c.record;
  o.struct_size = sizeof o;
  o.kind = m.given.what;
  o.type = SUCL_TYPE_BYTES;
  o.element_size = 1;
  o.op = m.given.reduction;
  o.root = m.given.root;
  o.source = m.given.source;
  o.tag = m.given.tag;
  take_arrays(m);
  check_given(m);
  const bool in_place = take_in_place(m);
  if (in_place && m.what() != kind::barrier) o.flags |= SUCL_FLAG_IN_PLACE;
  if (m.recv && m.recv->read_only && writes(m, in_place))
    fail(errc::invalid_memory, "the array that receives is read-only",
         "Pass one that may be written, as a copy");
  o.count = count_of(m, in_place);
  o.recv_count = m.what() == kind::sendrecv ? m.recv->elements : o.count;
  take_counts(m);
  if (m.send) c.send = operand_of(*m.send);
  if (m.recv) c.recv = operand_of(*m.recv);
}

// What has a capsule of a SYCL event.
event_handle event_from(nb::handle object) {
  if (nb::isinstance<pending>(object)) return nb::cast<const pending&>(object).event();
  if (nb::hasattr(object, "_get_capsule")) {
    const nb::object capsule = nb::getattr(object, "_get_capsule")();
    if (PyCapsule_IsValid(capsule.ptr(), "SyclEventRef"))
      return event_handle(PyCapsule_GetPointer(capsule.ptr(), "SyclEventRef"));
  }
  fail(errc::invalid_argument,
       "what is passed is no event but of the type " +
           nb::cast<std::string>(nb::type_name(object.type())),
       "Pass events that SuCL's operations return, or dpctl.SyclEvent");
}

}  // namespace

recording::recording(recorded_holdings& into)
    : m_before(std::exchange(current_recording(), &into)) {}
recording::~recording() { current_recording() = m_before; }

pending::pending(event_handle e, communicator_handle c, std::shared_ptr<holdings> held)
    : m_event(std::move(e)),
      m_communicator(std::move(c)),
      m_held(std::move(held)),
      m_is_recorded(current_recording() != nullptr) {
  if (m_is_recorded && m_held) current_recording()->push_back(m_held);
}

pending::~pending() {
  // A recording keeps what its operations need.
  if (m_held && !m_is_recorded && !m_event.done())
    all_forgotten().operations.push_back({m_event, m_held});
}

namespace {

using namespace std::chrono_literals;
using wait_clock = std::chrono::steady_clock;

// Whether the event is complete by then. Polls, as a wait in SYCL cannot be given up: at first
// without a pause, which would take longer than short operations do, and then with pauses of a
// small part of what the wait has taken already.
bool completes_until(const event_handle& event, wait_clock::time_point end) {
  const nb::gil_scoped_release released;
  for (const auto begin = wait_clock::now(); !event.done();) {
    const auto now = wait_clock::now();
    if (now >= end) return false;
    constexpr std::chrono::nanoseconds without_pause = 200us, longest = 1ms;
    if (now - begin < without_pause) {
      std::this_thread::yield();
      continue;
    }
    const auto pause = std::min<std::chrono::nanoseconds>((now - begin) / 50, longest);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, end - now));
  }
  return true;
}

}  // namespace

bool pending::done() const {
  core::throw_if_forked();
  return m_event.done();
}

// Between parts of the wait the main thread runs what handles signals in Python, and gives the wait
// up if that raises.
bool pending::wait(double seconds) {
  core::throw_if_forked();  // no thread of the child completes it
  if (m_is_recorded)
    fail(errc::unsupported, "the operation is one of a recording, and done when that is replayed",
         "Wait for the event that replay() returns");
  constexpr auto part = 50ms;
  const auto begin = wait_clock::now();
  const bool forever = seconds < 0;
  while (!m_event.done()) {
    auto end = wait_clock::now() + part;
    if (!forever) {
      const double left =
          seconds - std::chrono::duration<double>(wait_clock::now() - begin).count();
      if (left <= 0) return false;
      if (left < std::chrono::duration<double>(part).count())
        end = wait_clock::now() +
              std::chrono::duration_cast<wait_clock::duration>(std::chrono::duration<double>(left));
    }
    if (completes_until(m_event, end)) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  without_gil(m_held, [&] {
    if (forever) m_event.wait();  // which also throws what SYCL has found
    m_communicator.check_issued();
  });
  m_held.reset();
  return true;
}

int number_of(nb::handle value, const char* what) {
  std::int64_t number = 0;
  if (!whole(value, number) || number != static_cast<int>(number))
    fail(errc::invalid_argument, std::string(what) + " is " + text_of(value),
         "Pass an integer of at most 32 bits");
  return static_cast<int>(number);
}

void refuse(const communicator_handle& c, int kind, const call& part, const error& e,
            bool started) {
  error_info info = e.info();
  info.operation = name(static_cast<sucl::kind>(kind));
  info.rank = c.rank();
  call refused = part;
  refused.record.kind = kind;
  if (started) c.refuse(refused, info);
  throw error(std::move(info));
}

call make_call(const communicator_handle& c, const arguments& a, holdings& held, bool started) {
  making m{c, a, held, {}, std::nullopt, std::nullopt};
  try {
    fill(m);
  } catch (const error& e) {
    refuse(c, a.what, m.result, e, started);
  }
  return std::move(m.result);
}

dependencies events_from(nb::handle deps) {
  dependencies events;
  if (deps.is_none()) return events;
  for (nb::handle one : nb::iter(deps)) events.push_back(event_from(one));
  return events;
}

std::shared_ptr<nb::object> held_function(const nb::object& function) {
  return {new nb::object(function), [](nb::object* one) {
            if (!Py_IsInitialized()) return;  // the process ends
            const nb::gil_scoped_acquire gil;
            delete one;
          }};
}

void sweep() {
  auto& list = all_forgotten().operations;
  if (list.empty()) return;
  // Letting go of an array may run any code: not while the list is looked at.
  std::vector<forgotten::operation> finished;
  for (auto& one : list)
    if (one.event.done()) finished.push_back(std::move(one));
  list.erase(std::remove_if(list.begin(), list.end(), [](const auto& one) { return !one.held; }),
             list.end());
}

void keep_for_good(const std::shared_ptr<holdings>& held) {
  if (held) all_forgotten().for_good.push_back(held);
}

namespace {

unsigned long main_thread = 0;

}  // namespace

void find_main_thread() {
  const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(thread.attr("ident"));
}

signal_check::signal_check() : m_checks(PyThread_get_thread_ident() == main_thread) {
  if (!m_checks) return;
  m_next = clock::now() + between;
  m_outer = core::interrupt_waits(this);
}

signal_check::~signal_check() {
  if (m_checks) core::interrupt_waits(m_outer);
}

// The exception is kept until the call has returned: the waits of several steps are given up.
bool signal_check::is_interrupted() noexcept {
  if (m_raised) return true;
  if (clock::now() < m_next) return false;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) m_raised.emplace();
  m_next = clock::now() + between;
  return m_raised.has_value();
}

void signal_check::rethrow() { throw nb::python_error(std::move(*m_raised)); }

std::string signal_check::type() const {
  return nb::cast<std::string>(nb::str(m_raised->type().attr("__name__")));
}

void give_up(const std::shared_ptr<holdings>& held, std::span<const communicator_handle> calls,
             const std::string& raised) {
  keep_for_good(held);
  error_info why;
  why.code = errc::peer_lost;
  why.message = "a call that waited was interrupted: what handles a signal raised " + raised;
  why.hint = "A program that goes on after signals waits for events";
  const nb::gil_scoped_release released;
  for (const communicator_handle& one : calls) {
    try {
      one.fail(why);
    } catch (const error&) {  // has ended
    }
  }
}

}  // namespace sucl::python
