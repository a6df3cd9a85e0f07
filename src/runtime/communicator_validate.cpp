// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What a communicator does with arguments that are wrong, on one rank or between ranks.
#include "runtime/communicator.hpp"

#include "base/log.hpp"
#include "runtime/process.hpp"

namespace sucl::core {

// Whether it is known of the operation whose turn it is that it may run, or, by its failure, that
// it must not.
bool communicator::may_run(node& n) {
  if (!m_validator || n.record.kind > SUCL_KIND_EXSCAN) return true;
  if (!m_validator->busy()) m_validator->start(n.record, n.failure ? &*n.failure : nullptr);
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
  if (m_broken || m_ended) return;
  node* n = take_node();
  fill(*n, shown, {}, false);
  n->failure = wrong;
  n->issued = clock::now();
  n->ready.store(true, std::memory_order_relaxed);
  n->references.store(1, std::memory_order_relaxed);  // the communicator's own
  m_waiting.push_back(n);
  lock.unlock();
  m_process->wake(*this);
} catch (const std::exception& e) {
  base::log(base::log_level::warn, "runtime", "the other ranks cannot be told: ", e.what());
}

void communicator::refuse(const ticket& t, const error_info& wrong) {
  {
    const std::lock_guard lock(m_mutex);
    node& n = *t.get();
    if (n.at.load(std::memory_order_relaxed) != node::phase::waiting) return;  // given up meanwhile
    n.failure = wrong;
  }
  mark_ready(t);
}

}  // namespace sucl::core
