// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "work.hpp"

#include <torch/csrc/python_headers.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <utility>

namespace sucl::torch {

void afterwards::adopt(flight f, bool failed) {
  f.failed = failed;
  const std::lock_guard lock(m_mutex);
  m_flights.push_back(std::move(f));
  m_flying = m_flights.size();
}

bool afterwards::hangs() {
  sweep();
  const std::lock_guard lock(m_mutex);
  return std::any_of(m_flights.begin(), m_flights.end(), [](const flight& f) { return f.failed; });
}

void afterwards::sweep() {
  if (m_flying.load(std::memory_order_relaxed) == 0) return;
  std::vector<flight> over;  // tensors end without the lock
  const std::lock_guard lock(m_mutex);
  const auto first =
      std::partition(m_flights.begin(), m_flights.end(), [](const flight& f) { return !f.done(); });
  std::move(first, m_flights.end(), std::back_inserter(over));
  m_flights.erase(first, m_flights.end());
  m_flying = m_flights.size();
  for (const flight& f : over) copy_back(f.finish);
}

void afterwards::call(std::function<void()> what) {
  const std::lock_guard lock(m_mutex);
  if (!m_thread.joinable() && !m_ended) {
    // Python's signals are for threads of the program.
    sigset_t all, before;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    m_thread = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    m_id = m_thread.get_id();
  }
  m_calls.push_back(std::move(what));
  m_changed.notify_one();
}

void afterwards::run() {
  std::unique_lock lock(m_mutex);
  for (;;) {
    m_changed.wait(lock, [&] { return m_ended || !m_calls.empty(); });
    if (m_calls.empty()) return;
    {
      const auto what = std::move(m_calls.front());
      m_calls.pop_front();
      lock.unlock();
      what();
    }
    lock.lock();
  }
}

void afterwards::end() {
  {
    const std::lock_guard lock(m_mutex);
    m_ended = true;
    m_changed.notify_one();
  }
  if (!m_thread.joinable()) return;
  if (is_caller())
    m_thread.detach();
  else
    join();
}

// What the thread lets go of may be Python's, so that the lock of Python must not be held.
void afterwards::join() {
  PyThreadState* const held = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
  m_thread.join();
  if (held) PyEval_RestoreThread(held);
}

std::optional<std::vector<at::Tensor>> shown(const work_parts& p) {
  if (p.inputs.empty()) return std::nullopt;
  return p.inputs;
}

std::vector<at::Tensor> outputs_of(const work_parts& p) {
  TORCH_CHECK(p.outputs.size() <= 1,
              "work result does not support list of lists, use .getFuture() and value()");
  return p.outputs.empty() ? tensors{} : p.outputs[0];
}

c10::IValue value_of(const work_parts& p) {
  if (p.outputs.size() > 1) return c10::IValue(p.outputs);
  return c10::IValue(p.outputs.empty() ? tensors{} : p.outputs[0]);
}

c10::TypePtr type_of_value(const work_parts& p) {
  c10::TypePtr type = c10::ListType::create(c10::TensorType::get());
  if (p.outputs.size() > 1) type = c10::ListType::create(type);
  return type;
}

work::work(work_parts parts, flight f, std::shared_ptr<afterwards> rest)
    : Work(parts.rank, parts.type, parts.title.c_str(), shown(parts)),
      m_flight(std::move(f)),
      m_parts(std::move(parts)),
      m_rest(std::move(rest)) {
  if (m_flight.operations.empty() && !m_parts.is_open) complete(nullptr);
}

work::~work() {
  if (m_is_complete || m_flight.operations.empty()) return;
  m_rest->adopt(std::move(m_flight));
}

namespace {

sucl_status status_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const failure& f) {
    return f.code;
  } catch (...) {
    return SUCL_ERROR_INTERNAL;
  }
}

}  // namespace

// Every operation is done, or one has failed.
void work::complete(std::exception_ptr why) {
  if (!why) copy_back(m_flight.finish);
  if (why) m_rest->note(status_of(why));
  // After a failure peers may still write, and what they write is of no use.
  if (why && !m_flight.operations.empty()) {
    for (auto& [to, from] : std::exchange(m_flight.finish, {}))
      m_flight.held.push_back(std::move(from));
    m_rest->adopt(std::move(m_flight), true);
  }
  m_flight = {};
  m_is_complete = true;
  finish(why);
}

bool work::isCompleted() {
  if (m_is_complete) return true;
  const std::unique_lock lock(m_completing, std::try_to_lock);
  if (!lock || m_is_complete) return m_is_complete;
  if (!issued() || !m_flight.done()) return false;
  try {
    await(milliseconds(0));
  } catch (...) {
    complete(std::current_exception());
  }
  return true;
}

// False: the time that the caller gives is over; the operation goes on.
bool work::await(milliseconds timeout) {
  using clock = std::chrono::steady_clock;
  const auto now = clock::now();
  auto end = clock::time_point::max();
  if (m_parts.limit.count() > 0) end = m_since + m_parts.limit;
  const auto own_end = timeout.count() > 0 ? now + timeout : clock::time_point::max();
  const bool is_callers = own_end < end;
  end = std::min(end, own_end);
  const auto left = [&]() -> std::int64_t {
    if (end == clock::time_point::max()) return -1;
    const auto ms = std::chrono::ceil<milliseconds>(end - clock::now()).count();
    return std::max<std::int64_t>(0, ms);
  };
  bool done = issue_until(end);
  for (auto& o : m_flight.operations) done = done && o.wait(left());
  if (done) {
    complete(nullptr);
    return true;
  }
  if (is_callers) return false;
  const auto& all = m_flight.operations;
  const auto pending = std::find_if(all.begin(), all.end(), [](auto& o) { return !o.done(); });
  const std::string late = pending == all.end() ? "" : pending->late();
  throw failure(SUCL_ERROR_TIMEOUT,
                m_parts.title + ": Timed out waiting " + std::to_string(m_parts.limit.count()) +
                    "ms for the operation to complete" + (late.empty() ? "" : ": " + late),
                "Look at what the other ranks do, or give the group a longer timeout");
}

bool work::wait(milliseconds timeout) {
  if (!m_is_complete) {
    const std::lock_guard lock(m_completing);
    if (!m_is_complete) {
      bool done = false;
      try {
        done = await(timeout);
      } catch (...) {
        complete(std::current_exception());
        done = true;
      }
      if (!done)
        throw failure(SUCL_ERROR_TIMEOUT,
                      m_parts.title + ": Operation timed out! It is not done after " +
                          std::to_string(timeout.count()) + " ms",
                      "Look at what the other ranks do, or wait longer");
    }
  }
  if (exception()) std::rethrow_exception(exception());
  return true;
}

void work::abort() {}

std::vector<at::Tensor> work::result() {
  TORCH_CHECK(isCompleted(), "Work needs to be completed before calling result(). ",
              "Should call wait() before result().");
  return outputs_of(m_parts);
}

c10::intrusive_ptr<c10::ivalue::Future> work::getFuture() {
  {
    const std::lock_guard lock(mutex_);
    if (m_future) return m_future;
    m_future = c10::make_intrusive<c10::ivalue::Future>(type_of_value(m_parts));
  }
  auto self = c10::intrusive_ptr<work>::unsafe_reclaim_from_nonowning(this);
  const auto fulfil = [self] {
    try {
      self->wait(milliseconds(0));
    } catch (...) {
      self->m_future->setError(std::current_exception());
      return;
    }
    self->m_future->markCompleted(value_of(self->m_parts));
  };
  // A callback that waits for another operation's future must not wait for its own thread.
  if (isCompleted() || m_rest->is_caller())
    fulfil();
  else
    m_rest->call(fulfil);
  return m_future;
}

}  // namespace sucl::torch
