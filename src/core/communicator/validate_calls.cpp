// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What a communicator does with arguments that are wrong, on one rank or between ranks.
#include "core/communicator/communicator.hpp"

#include "base/log.hpp"
#include "core/support/backoff.hpp"

#include <algorithm>
#include <chrono>

namespace sucl::core {

// Whether it is known of the operation whose turn it is that it may run, or, by its failure, that
// it must not.
bool communicator::may_run(op_request& n) {
  if (!m_validator || n.record.kind > SUCL_KIND_EXSCAN) return true;
  if (!m_validator->busy()) {
    // It has arrived, even if others have not.
    m_collectives_posted = n.record.sequence;
    m_validator->start(n.record, n.failure ? &*n.failure : nullptr);
  }
  if (!m_validator->test()) return false;
  if (m_validator->failure()) {
    n.failure = *m_validator->failure();
    n.failure->operation = describe(n.record);
    n.failure->rank = rank();
  }
  return true;
}

void communicator::refuse(const sucl_operation& record, const error_info& wrong) noexcept try {
  if (!m_validator || record.kind < 0 || record.kind > SUCL_KIND_EXSCAN) return;
  sucl_operation shown = record;  // without arrays, which may be too short
  shown.send_counts = shown.send_displs = shown.recv_counts = shown.recv_displs = nullptr;
  std::unique_lock lock(m_mutex);
  if (m_failures.broken() || m_ended) return;
  op_request* n = take_request();
  fill(*n, shown, {}, false);
  n->failure = wrong;
  n->issued = clock::now();
  n->ready.store(true, std::memory_order_relaxed);
  n->references.store(1, std::memory_order_relaxed);  // the communicator's own
  m_waiting.push_back(n);
  lock.unlock();
  m_job->wake(*this);
} catch (const std::exception& e) {
  base::log(base::log_level::warn, "runtime", "the other ranks cannot get the error: ", e.what());
}

void communicator::refuse(const ticket& t, const error_info& wrong) {
  {
    const std::lock_guard lock(m_mutex);
    op_request& n = *t.get();
    if (n.at.load(std::memory_order_relaxed) != op_request::phase::waiting)
      return;  // given up meanwhile
    n.failure = wrong;
  }
  mark_ready(t);
}

bool communicator::compare_calls() {
  const std::unique_lock lock(m_mutex, std::try_to_lock);
  if (!lock || m_direct || m_ended || m_failures.broken()) return false;
  m_backends.compare_calls();
  return m_backends.mismatched();
}

// Ranks have called different operations. What a library below has in flight may never end.
void communicator::give_up_mismatched() {
  const bool below = std::any_of(m_flight.begin(), m_flight.end(), [&](const op_request* n) {
    const bool here = n->via && m_topology.nodes == 1 && n->via->traits.ends_on_mismatch;
    return n->at.load(std::memory_order_relaxed) == op_request::phase::posted && !here;
  });
  m_backends.end_kernels();
  if (below) {
    m_job->note_failure(m_backends.mismatch());
    m_backends.abort();
  }
  give_up(m_backends.mismatch());
  m_failures.drop(errc::mismatch);
}

// A call throws what is wrong. What is not done yet is reported by the progress thread.
void communicator::note_reported() {
  if (!m_failures.broken() && m_backends.mismatched()) {
    give_up_mismatched();
    if (!m_done.empty()) m_job->wake(*this);
  }
  m_failures.note_reported();
}

// Before its end a rank learns that others have found a mismatch in what it has called last: they
// are about to, or they are late. No rank waits for long for those.
void communicator::settle_calls() {
  constexpr auto longest = std::chrono::milliseconds(100);
  if (m_failures.broken()) return;
  m_backends.compare_calls();
  const auto until = clock::now() + longest;
  backoff rest(m_job->settings().progress.spin_us);
  while (!m_backends.settled() && clock::now() < until) rest.after(0);
  if (m_backends.mismatched()) give_up_mismatched();
}

}  // namespace sucl::core
