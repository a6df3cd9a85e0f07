// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/requests.hpp"

#include "interposer/state.hpp"

#include <algorithm>

namespace sucl::pmpi {

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
  auto& place = m_all[bits_of(handle)];
  if (place) return nullptr;  // a handle that is not like no other is of no use
  place = std::make_unique<pending>();
  place->handle = handle;
  return place.get();
}

void requests::give_back(pending& r) {
  r.core.reset();
  r.judged = nullptr;
  const std::lock_guard lock(m_mutex);
  m_free.push_back(&r);
}

pending& requests::add_persistent(MPI_Request handle) {
  const std::lock_guard lock(m_mutex);
  auto& place = m_all[bits_of(handle)];
  place = std::make_unique<pending>();
  place->handle = handle;
  place->persistent = true;
  m_call_cache.fetch_add(1);
  return *place;
}

std::unique_ptr<pending> requests::remove(MPI_Request handle) {
  const std::lock_guard lock(m_mutex);
  const auto found = m_all.find(bits_of(handle));
  if (found == m_all.end() || found->second->own()) return nullptr;
  if (!found->second->persistent && !found->second->active()) return nullptr;  // a free handle
  std::unique_ptr<pending> r = std::move(found->second);
  m_all.erase(found);
  m_call_cache.fetch_sub(int{r->persistent} + int{r->active()});
  return r;
}

void requests::restore(std::unique_ptr<pending> r) {
  const std::lock_guard lock(m_mutex);
  m_call_cache.fetch_add(int{r->persistent} + int{r->active()});
  auto& place = m_all[bits_of(r->handle)];
  place = std::move(r);
}

void requests::activate(pending& r, pending::by who) {
  {
    const std::lock_guard lock(m_mutex);
    r.completed_by = who;
    r.at_library = who == pending::by::library;
    if (who == pending::by::sucl) {
      m_own.push_back(&r);
      m_own_count.fetch_add(1);
    }
    m_call_cache.fetch_add(1);
  }
  if (who == pending::by::sucl) m_caretaker.call();
}

void requests::close(pending& r) {
  const std::lock_guard lock(m_mutex);
  if (r.judged) r.judged->note(r.number, r.spent);
  m_call_cache.fetch_sub(1);
  if (r.own()) {
    m_own.erase(std::find(m_own.begin(), m_own.end(), &r));
    m_own_count.fetch_sub(1);
  }
  const bool library = r.completed_by == pending::by::library;
  r.completed_by = pending::by::nobody;
  r.judged = nullptr;
  r.operation = {};
  if (r.persistent) return;
  if (library) return void(m_all.erase(bits_of(r.handle)));
  r.core.reset();
  m_free.push_back(&r);
}

void requests::watch(MPI_Request handle, course& c, std::uint64_t number, double seconds) {
  // A library may give one handle to all that is complete already.
  int done = 1;
  PMPI_Request_get_status(handle, &done, MPI_STATUS_IGNORE);
  const std::lock_guard lock(m_mutex);
  if (done) return c.note(number, seconds);
  auto& place = m_all[bits_of(handle)];
  if (place && place->active()) m_call_cache.fetch_sub(1);  // one whose end nobody has seen
  place = std::make_unique<pending>();
  place->handle = handle;
  place->completed_by = pending::by::library;
  place->judged = &c;
  place->number = number;
  place->spent = seconds;
  m_call_cache.fetch_add(1);
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

void requests::forget(partner& p, MPI_Comm replacement) {
  const std::lock_guard lock(m_mutex);
  for (auto& [key, r] : m_all) {
    const bool of_partner =
        r->judged && std::any_of(p.courses.begin(), p.courses.end(),
                                 [&](auto& c) { return &c.second == r->judged; });
    if (of_partner) r->judged = nullptr;
    if (r->with != &p) continue;
    r->with = nullptr;
    r->native = replacement;
  }
}

void requests::stop() {
  m_caretaker.stop();
  const std::lock_guard lock(m_mutex);
  for (pending* r : m_free) {
    PMPI_Request_free(&r->handle);
    r->handle = MPI_REQUEST_NULL;
  }
}

}  // namespace sucl::pmpi
