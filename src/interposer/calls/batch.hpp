// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The requests of one call, those of SuCL's and those of the library's.
#pragma once

#include "core/support/backoff.hpp"
#include "interposer/interposer.hpp"
#include "interposer/requests/library_function.hpp"

#include <mpi.h>

#include <algorithm>
#include <vector>

namespace sucl::interposer {

inline void set_empty(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  MPI_Request none = MPI_REQUEST_NULL;
  int done = 0;
  SUCL_LIBRARY(Test)(&none, &done, status);
}

inline MPI_Status* at(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

/// Whether there is room for what a call tells. Null for a status is wrong where it is not the
/// value that ignores it.
template <class... Output>
bool has_room(const MPI_Status* status, const Output*... output) {
  return (status || MPI_STATUS_IGNORE == nullptr) && (output && ...);
}

// The requests of one call that SuCL knows. The library does not see those that it has not started
// itself: not null instead of them either, as MPICH's Waitall ends the process where it finds that
// beside a generalized request that is not over. With `complete` false all are left to it: it
// refuses the call.
class batch {
 public:
  batch(int count, MPI_Request* handles, bool complete, found_errors& errors)
      : m_handles(handles), m_self(interposer::completing()), m_errors(errors), m_count(count) {
    if (!complete || !m_self || !handles || !m_self->table().any_known()) return;
    for (int i = 0; i < count; ++i) {
      pending* r = m_self->table().known(handles[i]);
      if (!r) continue;
      if (r->active()) m_active.push_back({i, r, r->own(), false});
      if (r->hidden()) m_hidden.push_back(i);
    }
    if (m_hidden.empty()) return;
    auto hidden = m_hidden.begin();
    for (int i = 0; i < count; ++i)
      if (hidden != m_hidden.end() && *hidden == i)
        ++hidden;
      else
        m_visible.push_back(i), m_seen.push_back(handles[i]);
    m_count = static_cast<int>(m_seen.size());
    m_seen.push_back(MPI_REQUEST_NULL);  // what the functions of a single request see
  }
  // What is not over has taken this time, too.
  ~batch() {
    if (m_at_library) forget_gone();  // a handler of the program's has thrown
    for (const entry& e : m_active) {
      e.request->spent += m_time.seconds();
      if (e.detached) m_self->close(*e.request);  // of a call that has failed
    }
  }
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;

  bool empty() const { return m_active.empty() && m_hidden.empty(); }
  // Calls the library with the requests that it may see, and how many they are.
  template <class Call>
  int library(const Call& call) {
    detach();
    m_at_library = true;
    const int code = m_hidden.empty() ? call(m_count, m_handles) : call(m_count, m_seen.data());
    m_at_library = false;
    if (code != MPI_SUCCESS) forget_gone();
    if (!m_hidden.empty()) show();
    attach();
    return code;
  }
  // The same of a function with a status for each request, which the call is given, too.
  template <class Call>
  int library(MPI_Status* statuses, const Call& call) {
    if (m_hidden.empty() || statuses == MPI_STATUSES_IGNORE)
      return library([&](int n, MPI_Request* seen) { return call(n, seen, statuses); });
    std::vector<MPI_Status> told;
    for (const int i : m_visible) told.push_back(statuses[i]);
    told.resize(told.size() + 1);
    const int code = library([&](int n, MPI_Request* seen) { return call(n, seen, told.data()); });
    for (std::size_t i = 0; i < m_visible.size(); ++i) statuses[m_visible[i]] = told[i];
    for (const int i : m_hidden) set_empty(statuses + i);
    return code;
  }
  // The index in the program's array of what has this one in the library's.
  int index_of(int index) const {
    const bool moved = !m_hidden.empty() && index != MPI_UNDEFINED;
    return moved ? m_visible[static_cast<std::size_t>(index)] : index;
  }
  void translate(int count, int* indices) const {
    for (int i = 0; i < count; ++i) indices[i] = index_of(indices[i]);
  }
  bool has_own() const {
    return std::any_of(m_active.begin(), m_active.end(),
                       [](const entry& e) { return e.request->own(); });
  }
  bool own_done() const {
    return std::all_of(m_active.begin(), m_active.end(),
                       [](const entry& e) { return !e.request->own() || e.request->done(); });
  }
  // The index of one of SuCL's that is done, or -1.
  int first_done() const {
    for (const entry& e : m_active)
      if (e.request->own() && e.request->done()) return e.index;
    return -1;
  }

  void advance() { m_self->go_on(); }
  void rest() { m_rest.after(0); }
  void wait_for_own() {
    constexpr int polls_before_mpi = 16;
    for (int poll = 1; !own_done(); ++poll) {
      for (const entry& e : m_active)
        if (e.request->own() && !e.request->done()) e.request->core->progress();
      if (poll % polls_before_mpi != 0) continue;
      advance();
      rest();
    }
  }

  // The request at this index is over, if it is one of these. Returns its error.
  int complete(int index) {
    const auto found = std::find_if(m_active.begin(), m_active.end(),
                                    [&](const entry& e) { return e.index == index; });
    if (found == m_active.end()) return MPI_SUCCESS;
    pending& r = *found->request;
    m_active.erase(found);
    r.spent += m_time.seconds();
    int code = MPI_SUCCESS;
    if (r.own()) {
      code = m_self->finish(r, m_errors);
      if (!r.persistent) m_handles[index] = MPI_REQUEST_NULL;
    } else if (r.staged) {
      code = m_self->deliver(r, m_errors);
    }
    m_self->close(r);
    return code;
  }
  // After the library has said that all are over, or, with `failed`, that some are in error: then
  // those of the library's are over that it has nothing more to tell of. `statuses` are those of
  // the whole call, of which there are `count`; none for the functions of a single request, whose
  // error is that of the request.
  int complete_all(bool failed, int count, MPI_Status* statuses) {
    int code = MPI_SUCCESS;
    if (failed && statuses)
      for (const int i : m_hidden) statuses[i].MPI_ERROR = MPI_SUCCESS;
    while (!m_active.empty()) {
      const int index = m_active.back().index;
      const pending& r = *m_active.back().request;
      if (failed && !r.own() && !is_over(r, m_handles[index])) {
        m_active.pop_back();
        continue;
      }
      const int own = complete(index);
      if (own == MPI_SUCCESS) continue;
      if (statuses && !failed && code == MPI_SUCCESS)
        for (int i = 0; i < count; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
      if (statuses) statuses[index].MPI_ERROR = own;
      code = own;
    }
    return code;
  }

 private:
  struct entry {
    int index;
    pending* request;
    bool own;
    bool detached;
  };
  // At an error the library has called a handler of the program's, which may have completed, freed
  // or started requests.
  void forget_gone() {
    const auto gone = [this](const entry& e) {
      if (e.detached) return false;
      const pending* const r = m_self->table().known(m_handles[e.index]);
      return r != e.request || !r->active() || r->own() != e.own || (e.own && !r->done());
    };
    m_active.erase(std::remove_if(m_active.begin(), m_active.end(), gone), m_active.end());
  }
  // What is not hidden is as the library has left it.
  void show() {
    for (std::size_t i = 0; i < m_visible.size(); ++i) m_handles[m_visible[i]] = m_seen[i];
  }
  // The handles of what the library completes may be another thread's before the library returns.
  void detach() {
    for (entry& e : m_active) {
      if (e.request->persistent || e.request->own() || e.detached) continue;
      m_self->table().detach(*e.request);
      e.detached = true;
    }
  }
  void attach() {
    for (entry& e : m_active) {
      if (!e.detached || m_handles[e.index] != e.request->handle) continue;
      m_self->table().attach(*e.request);
      e.detached = false;
    }
  }
  static bool is_over(const pending& r, MPI_Request handle) {
    if (!r.persistent) return handle == MPI_REQUEST_NULL;
    int done = 0;
    return SUCL_LIBRARY(Request_get_status)(handle, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           done;
  }

  MPI_Request* m_handles;
  interposer* m_self;
  found_errors& m_errors;
  bool m_at_library = false;
  std::vector<entry> m_active;
  std::vector<int> m_hidden, m_visible;  // indices of these and of the others, in order
  std::vector<MPI_Request> m_seen;       // those others, where some are hidden
  int m_count;                           // of what the library sees
  stopwatch m_time;
  sucl::core::backoff m_rest{50};
};

}  // namespace sucl::interposer
