// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/requests/requests.hpp"

#include "interposer/decision/comm_state.hpp"
#include "interposer/requests/library_function.hpp"

#include <algorithm>

namespace sucl::interposer {

pending* requests::find(MPI_Request handle) {
  const auto found = m_all.find(bits_of(handle));
  return found == m_all.end() ? nullptr : found->second.get();
}

pending* requests::known(MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL) return nullptr;
  const std::lock_guard lock(m_mutex);
  pending* r = find(handle);
  return r && (r->active() || r->persistent) ? r : nullptr;
}

pending* requests::prepared(MPI_Request handle) {
  pending* r = known(handle);
  return r && r->persistent ? r : nullptr;
}

pending* requests::take() {
  {
    const std::lock_guard lock(m_mutex);
    if (!m_free.empty()) {
      pending* r = m_free.back();
      m_free.pop_back();
      return r;
    }
  }
  MPI_Request handle = MPI_REQUEST_NULL;
  if (PMPI_Send_init(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &handle))
    return nullptr;
  const std::lock_guard lock(m_mutex);
  auto& entry = m_all[bits_of(handle)];
  if (entry) return nullptr;  // a handle that is not like no other is of no use
  entry = std::make_unique<pending>();
  entry->handle = handle;
  return entry.get();
}

void requests::give_back(pending& r) {
  const std::lock_guard lock(m_mutex);
  r.core.reset();
  r.measured = nullptr;
  m_free.push_back(&r);
}

void requests::add_persistent(MPI_Request handle, const std::function<void(pending&)>& fill) {
  const std::lock_guard lock(m_mutex);
  auto& entry = m_all[bits_of(handle)];
  entry = std::make_unique<pending>();
  entry->handle = handle;
  entry->persistent = true;
  m_known.fetch_add(1);
  fill(*entry);
}

std::vector<pending*> requests::early_of(const comm_state& p) {
  const std::lock_guard lock(m_mutex);
  std::vector<pending*> found;
  for (const auto& [key, r] : m_all)
    if (r->with == &p && r->early > 0) found.push_back(r.get());
  std::sort(found.begin(), found.end(),
            [](const pending* a, const pending* b) { return a->early < b->early; });
  return found;
}

std::unique_ptr<pending> requests::remove(MPI_Request handle) {
  const std::lock_guard lock(m_mutex);
  const auto found = m_all.find(bits_of(handle));
  if (found == m_all.end() || found->second->own()) return nullptr;
  if (!found->second->persistent && !found->second->active()) return nullptr;  // a free handle
  std::unique_ptr<pending> r = std::move(found->second);
  m_all.erase(found);
  m_known.fetch_sub(int{r->persistent} + int{r->active()});
  return r;
}

void requests::restore(std::unique_ptr<pending> r) {
  const std::lock_guard lock(m_mutex);
  m_known.fetch_add(int{r->persistent} + int{r->active()});
  auto& entry = m_all[bits_of(r->handle)];
  entry = std::move(r);
}

void requests::activate(pending& r, pending::by who) {
  {
    const std::lock_guard lock(m_mutex);
    r.completed_by = who;
    r.at_library = who == pending::by::library;
    r.delivered = false;
    r.outcome = MPI_SUCCESS;
    if (who == pending::by::sucl) {
      m_own.push_back(&r);
      m_own_count.fetch_add(1);
    }
    m_known.fetch_add(1);
  }
  if (who == pending::by::sucl) m_progress_thread.call();
}

bool requests::has_own_on(const core::communicator* core) const {
  return std::any_of(m_own.begin(), m_own.end(),
                     [&](const pending* r) { return r->core.get() == core; });
}

std::shared_ptr<core::communicator> requests::close(pending& r) {
  const std::lock_guard lock(m_mutex);
  if (r.measured) r.measured->note(r.number, r.spent);
  m_known.fetch_sub(1);
  if (r.own()) {
    m_own.erase(std::find(m_own.begin(), m_own.end(), &r));
    m_own_count.fetch_sub(1);
  }
  const bool library = r.completed_by == pending::by::library;
  r.completed_by = pending::by::none;
  r.measured = nullptr;
  r.operation = {};
  if (r.persistent) return nullptr;
  // Open MPI's Waitall leaves the handle of one that has failed where statuses are ignored.
  const auto detached = find_detached(r);
  if (library && detached != m_detached.end()) return m_detached.erase(detached), nullptr;
  if (library) return m_all.erase(bits_of(r.handle)), nullptr;
  std::shared_ptr<core::communicator> last;
  const auto ending = std::find(m_ending.begin(), m_ending.end(), r.core);
  if (ending != m_ending.end() && !has_own_on(r.core.get())) {
    last = std::move(*ending);
    m_ending.erase(ending);
  }
  r.core.reset();
  if (m_stopped)
    SUCL_LIBRARY(Request_free)(&r.handle);
  else
    m_free.push_back(&r);
  return last;
}

std::vector<std::unique_ptr<pending>>::iterator requests::find_detached(const pending& r) {
  return std::find_if(m_detached.begin(), m_detached.end(),
                      [&](const auto& d) { return d.get() == &r; });
}

void requests::detach(pending& r) {
  const std::lock_guard lock(m_mutex);
  const auto found = m_all.find(bits_of(r.handle));
  m_detached.push_back(std::move(found->second));
  m_all.erase(found);
}

void requests::attach(pending& r) {
  const std::lock_guard lock(m_mutex);
  const auto found = find_detached(r);
  m_all[bits_of(r.handle)] = std::move(*found);
  m_detached.erase(found);
}

void requests::watch(MPI_Request handle, call_class& c, std::uint64_t number, double seconds) {
  // A library may give one handle to all that is complete already.
  int done = 1;
  SUCL_LIBRARY(Request_get_status)(handle, &done, MPI_STATUS_IGNORE);
  const std::lock_guard lock(m_mutex);
  if (done) return void(c.note(number, seconds));
  pending* const kept = find(handle);
  pending& entry = kept && kept->staged ? *kept : add_of_library(handle);
  entry.measured = &c;
  entry.number = number;
  entry.spent = seconds;
}

// Under the lock.
pending& requests::add_of_library(MPI_Request handle) {
  auto& entry = m_all[bits_of(handle)];
  if (entry && entry->active()) m_known.fetch_sub(1);  // one whose end the program has not seen
  entry = std::make_unique<pending>();
  entry->handle = handle;
  entry->completed_by = pending::by::library;
  m_known.fetch_add(1);
  return *entry;
}

bool requests::keep(MPI_Request handle, MPI_Comm native,
                    const std::shared_ptr<device::staged_memory>& staged) {
  int done = 1;
  SUCL_LIBRARY(Request_get_status)(handle, &done, MPI_STATUS_IGNORE);
  if (done) return false;
  const std::lock_guard lock(m_mutex);
  pending& entry = add_of_library(handle);
  entry.native = native;
  entry.staged = staged;
  return true;
}

void requests::progress() {
  const std::unique_lock lock(m_mutex, std::try_to_lock);
  if (!lock) return;
  const core::communicator* last = nullptr;
  for (const pending* r : m_own) {
    if (r->core.get() == last || r->done()) continue;
    last = r->core.get();
    r->core->progress();
  }
}

bool requests::forget(comm_state& p, MPI_Comm replacement) {
  const std::lock_guard lock(m_mutex);
  const auto forget_in = [&](pending& r) {
    const bool of_comm =
        r.measured && std::any_of(p.classes.begin(), p.classes.end(),
                                  [&](auto& c) { return &c.second == r.measured; });
    if (of_comm) r.measured = nullptr;
    if (r.staged && r.native == p.native) r.native = replacement;
    if (r.with != &p) return;
    r.with = nullptr;
    r.native = replacement;
  };
  for (auto& [key, r] : m_all) forget_in(*r);
  for (auto& r : m_detached) forget_in(*r);
  if (!p.core || !has_own_on(p.core.get())) return true;
  m_ending.push_back(p.core);
  return false;
}

bool requests::stop() {
  m_progress_thread.stop();
  const std::lock_guard lock(m_mutex);
  for (pending* r : m_free) {
    SUCL_LIBRARY(Request_free)(&r->handle);
    r->handle = MPI_REQUEST_NULL;
  }
  m_stopped = true;
  return !m_own.empty();
}

}  // namespace sucl::interposer
