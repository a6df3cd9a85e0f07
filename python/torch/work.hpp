// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations in flight as Work of torch.distributed.
#pragma once

#include "tensors.hpp"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sucl::torch {

using milliseconds = std::chrono::milliseconds;

/// A communicator of the port, closed with the last that needs it.
class line {
 public:
  explicit line(const sucl_port_handle& h) : m_calls(h.calls), m_communicator(h.communicator) {}
  line(const line&) = delete;
  line& operator=(const line&) = delete;
  ~line() { m_calls->close(m_communicator); }

  const sucl_port& calls() const { return *m_calls; }
  sucl_port_communicator* get() const { return m_communicator; }
  [[noreturn]] void rethrow() const { throw failure(*m_calls->failure()); }
  void check(sucl_status status) const {
    if (status != SUCL_SUCCESS) rethrow();
  }
  /// Whether a message is here; false also where that cannot be known, which `*known` says.
  bool arrived(int from, int tag, bool* known) const {
    std::int32_t found = 0;
    if (m_calls->arrived(m_communicator, from, tag, &found) != SUCL_SUCCESS) rethrow();
    *known = found >= 0;
    return found > 0;
  }

 private:
  const sucl_port* m_calls;
  sucl_port_communicator* m_communicator;
};

/// An operation, forgotten with the object.
class operation {
 public:
  operation(std::shared_ptr<line> on, sucl_port_operation* o) : m_line(std::move(on)), m_own(o) {}
  operation(operation&& o) noexcept
      : m_line(std::move(o.m_line)), m_own(std::exchange(o.m_own, nullptr)) {}
  operation& operator=(operation&& o) noexcept {
    std::swap(m_line, o.m_line);
    std::swap(m_own, o.m_own);
    return *this;
  }
  ~operation() {
    if (m_own) m_line->calls().forget(m_own);
  }

  bool done() const { return !m_own || m_line->calls().done(m_own); }
  /// Whether it is done by then; negative: waits without end. Throws what has failed.
  bool wait(std::int64_t ms) {
    if (!m_own) return true;
    std::int32_t done = 0;
    if (m_line->calls().wait(m_line->get(), m_own, ms, &done) != SUCL_SUCCESS) m_line->rethrow();
    return done != 0;
  }
  /// Whom it waits for, or what is before it: "rank 1 has not arrived"; empty if not known.
  std::string late() const {
    constexpr std::int64_t max_ms = 2500;
    return m_own ? m_line->calls().late(m_line->get(), max_ms) : "";
  }

 private:
  std::shared_ptr<line> m_line;
  sucl_port_operation* m_own;  ///< null: done
};

class track;

/// What a call has in flight, with the memory that it needs.
struct flight {
  std::vector<operation> operations;
  std::shared_ptr<track> on;  ///< of memory of a GPU, where operations are on a stream
  tensors held;
  std::vector<c10::Storage> memory;  ///< of these, which a program may have change it meanwhile
  copies finish;
  bool failed = false;

  bool done() const {
    for (const operation& o : operations)
      if (!o.done()) return false;
    return true;
  }
};

/// Flights of Work that is gone, and what waits for futures.
class afterwards {
 public:
  afterwards() = default;
  afterwards(const afterwards&) = delete;
  afterwards& operator=(const afterwards&) = delete;
  ~afterwards() { end(); }

  /// `failed`: it cannot be expected to end by itself.
  void adopt(flight f, bool failed = false);
  /// Whether something is in flight that has failed.
  bool hangs();
  /// Keeps the first failure of an operation; SUCL_SUCCESS is none.
  void note(sucl_status status) {
    sucl_status none = SUCL_SUCCESS;
    m_failure.compare_exchange_strong(none, status);
  }
  sucl_status failure_of_any() const { return m_failure; }
  /// Lets go of what is done.
  void sweep();
  /// Has a thread call it, after the ones before.
  void call(std::function<void()> what);
  /// Whether this is that thread, which must not wait for itself.
  bool is_caller() const { return std::this_thread::get_id() == m_id.load(); }
  void end();

 private:
  void run();
  void join();

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<flight> m_flights;
  std::atomic<std::size_t> m_flying{0};
  std::atomic<sucl_status> m_failure{SUCL_SUCCESS};
  std::deque<std::function<void()>> m_calls;
  bool m_ended = false;
  std::thread m_thread;
  std::atomic<std::thread::id> m_id{};
};

/// What a Work is made of.
struct work_parts {
  int rank = 0;
  c10d::OpType type = c10d::OpType::UNKNOWN;
  std::string title;  ///< as in "sucl:all_reduce"
  tensors inputs;     ///< for the profiler
  std::vector<tensors> outputs;
  milliseconds limit{0};  ///< for the whole; 0: none but SuCL's own
  std::uint64_t number = 0;
  bool is_open = false;  ///< operations come later
};

/// The input tensors that the profiler gets.
std::optional<std::vector<at::Tensor>> shown(const work_parts& p);
/// What a Work results in, as a list, and as a future's value and its type.
std::vector<at::Tensor> outputs_of(const work_parts& p);
c10::IValue value_of(const work_parts& p);
c10::TypePtr type_of_value(const work_parts& p);

class work : public c10d::Work {
 public:
  work(work_parts parts, flight f, std::shared_ptr<afterwards> rest);
  ~work() override;

  bool isCompleted() override;
  bool wait(milliseconds timeout) override;
  std::vector<at::Tensor> result() override;
  void synchronize() override { wait(milliseconds(0)); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return m_parts.number; }

 protected:
  /// Whether all that is still to be issued is; more may be, of a kind that makes more.
  virtual bool issued() { return true; }
  virtual bool issue_until(std::chrono::steady_clock::time_point) { return true; }

  flight m_flight;

 private:
  bool await(milliseconds timeout);
  void complete(std::exception_ptr why);

  const work_parts m_parts;
  const std::chrono::steady_clock::time_point m_since = std::chrono::steady_clock::now();
  std::shared_ptr<afterwards> m_rest;
  std::mutex m_completing;
  std::atomic<bool> m_is_complete{false};
  c10::intrusive_ptr<c10::ivalue::Future> m_future;
};

}  // namespace sucl::torch
