// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// MPI's functions that start, complete, ask for and free requests. Those of SuCL and those of the
// library may be mixed in one call: the library sees null in the place of SuCL's.
#include "base/log.hpp"
#include "pmpi/entry.hpp"
#include "pmpi/state.hpp"
#include "runtime/idling.hpp"

#include <algorithm>

using namespace sucl::pmpi;

namespace {

void set_empty(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  MPI_Request none = MPI_REQUEST_NULL;
  int done = 0;
  PMPI_Test(&none, &done, status);
}

MPI_Status* at(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

// The requests of one call that SuCL knows.
class batch {
 public:
  batch(int count, MPI_Request* handles) : m_handles(handles), m_self(interposer::active()) {
    if (!m_self || !m_self->table().any_active()) return;
    for (int i = 0; i < count; ++i)
      if (pending* r = m_self->table().active(handles[i])) m_known.push_back({i, r});
    if (!has_own()) return;
    m_seen.assign(handles, handles + count);
    for (const entry& e : m_known)
      if (e.request->own()) m_seen[static_cast<std::size_t>(e.index)] = MPI_REQUEST_NULL;
  }
  // What is not over has taken this time, too.
  ~batch() {
    for (const entry& e : m_known) e.request->spent += m_time.seconds();
  }
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;

  bool empty() const { return m_known.empty(); }
  // Calls the library with the requests that it may see.
  template <class Call>
  int library(const Call& call) {
    if (m_seen.empty()) return call(m_handles);
    const int code = call(m_seen.data());
    for (std::size_t i = 0; i < m_seen.size(); ++i)
      if (!is_own(static_cast<int>(i))) m_handles[i] = m_seen[i];
    return code;
  }
  bool has_own() const {
    return std::any_of(m_known.begin(), m_known.end(),
                       [](const entry& e) { return e.request->own(); });
  }
  bool own_done() const {
    return std::all_of(m_known.begin(), m_known.end(),
                       [](const entry& e) { return !e.request->own() || e.request->done(); });
  }
  // The index of one of SuCL's that is done, or -1.
  int first_done() const {
    for (const entry& e : m_known)
      if (e.request->own() && e.request->done()) return e.index;
    return -1;
  }

  void advance() { m_self->go_on(); }
  void rest() { m_rest.after(0); }
  void wait_for_own() {
    constexpr int looks_before_mpi = 16;
    for (int look = 1; !own_done(); ++look) {
      for (const entry& e : m_known)
        if (e.request->own() && !e.request->done()) e.request->core->progress();
      if (look % looks_before_mpi != 0) continue;
      advance();
      rest();
    }
  }

  // The request at this index is over, if it is one of these. Returns its error.
  int complete(int index) {
    const auto found = std::find_if(m_known.begin(), m_known.end(),
                                    [&](const entry& e) { return e.index == index; });
    if (found == m_known.end()) return MPI_SUCCESS;
    pending& r = *found->request;
    m_known.erase(found);
    r.spent += m_time.seconds();
    int code = MPI_SUCCESS;
    if (r.own()) {
      code = m_self->finish(r);
      if (!r.persistent) m_handles[index] = MPI_REQUEST_NULL;
      // For the library it stays null, and for library() it is no longer in its way.
      m_seen[static_cast<std::size_t>(index)] = m_handles[index];
    }
    m_self->table().close(r);
    return code;
  }
  int complete_all() {
    int code = MPI_SUCCESS;
    while (!m_known.empty())
      if (const int own = complete(m_known.back().index)) code = own;
    return code;
  }

 private:
  struct entry {
    int index;
    pending* request;
  };
  bool is_own(int index) const {
    return std::any_of(m_known.begin(), m_known.end(),
                       [&](const entry& e) { return e.index == index && e.request->own(); });
  }

  MPI_Request* m_handles;
  interposer* m_self;
  std::vector<entry> m_known;
  std::vector<MPI_Request> m_seen;  // where some are SuCL's
  stopwatch m_time;
  sucl::core::idling m_rest{50};
};

// Wait, Waitall, and with `flag` Test and Testall; `pass` is the library's.
template <class Pass>
int complete_all(int count, MPI_Request* handles, int* flag, const Pass& pass) {
  batch known(count, handles);
  if (known.empty()) return pass(handles);
  if (!flag) {
    known.wait_for_own();
  } else if (!known.own_done()) {
    known.advance();
    *flag = 0;
    if (!known.own_done()) return MPI_SUCCESS;
  }
  const int code = known.library(pass);
  if (flag && !*flag) return code;
  const int own = known.complete_all();
  return code == MPI_SUCCESS ? own : code;
}

// Waitany, and with `flag` Testany.
template <class Pass>
int complete_any(int count, MPI_Request* handles, int* index, int* flag, MPI_Status* status,
                 const Pass& pass) {
  batch known(count, handles);
  if (!known.has_own()) {
    const int code = known.library(pass);
    if (!flag || *flag) known.complete(*index);
    return code;
  }
  for (;; known.rest()) {
    known.advance();
    *index = known.first_done();
    if (flag) *flag = 1;
    if (*index >= 0) {
      set_empty(status);
      return known.complete(*index);
    }
    int found = 0;
    const int code = known.library(
        [&](MPI_Request* seen) { return PMPI_Testany(count, seen, index, &found, status); });
    if (found && *index != MPI_UNDEFINED) known.complete(*index);
    if (code != MPI_SUCCESS || (found && *index != MPI_UNDEFINED)) return code;
    if (!flag) continue;
    *flag = 0;
    *index = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
}

// Waitsome and Testsome.
template <class Pass>
int complete_some(int count, MPI_Request* handles, int* done, int* indices, MPI_Status* statuses,
                  bool wait, const Pass& pass) {
  batch known(count, handles);
  if (!known.has_own()) {
    const int code = known.library(pass);
    for (int i = 0; i < *done; ++i) known.complete(indices[i]);
    return code;
  }
  int code = MPI_SUCCESS;
  for (;; known.rest()) {
    known.advance();
    code = known.library(
        [&](MPI_Request* seen) { return PMPI_Testsome(count, seen, done, indices, statuses); });
    *done = std::max(*done, 0);  // it may be MPI_UNDEFINED
    for (int i = 0; i < *done; ++i) known.complete(indices[i]);
    for (int own; (own = known.first_done()) >= 0; ++*done) {
      indices[*done] = own;
      set_empty(at(statuses, *done));
      if (const int failed = known.complete(own)) code = failed;
    }
    if (!wait || *done > 0 || code != MPI_SUCCESS) return code;
  }
}

// One of SuCL's that is active, else null.
pending* own(const MPI_Request* handle) {
  interposer* const self = interposer::active();
  if (!self || !self->table().any_active()) return nullptr;
  pending* r = self->table().active(*handle);
  return r && r->own() ? r : nullptr;
}

// A persistent one that SuCL knows, else null.
pending* prepared(const MPI_Request* handle) {
  interposer* const self = interposer::active();
  return self && self->table().any_persistent() ? self->table().prepared(*handle) : nullptr;
}

// MPI allows neither for collectives that are under way.
int refuse(const pending& r, const char* what) {
  sucl::base::log(sucl::base::log_level::error, "interposer", what,
                  " of a collective that is under way: MPI does not define that");
  PMPI_Comm_call_errhandler(r.native, MPI_ERR_REQUEST);
  return MPI_ERR_REQUEST;
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return complete_all(1, request, nullptr,
                      [&](MPI_Request* seen) { return PMPI_Wait(seen, status); });
}

SUCL_MPI_FUNCTION MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return complete_all(1, request, flag,
                      [&](MPI_Request* seen) { return PMPI_Test(seen, flag, status); });
}

SUCL_MPI_FUNCTION MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return complete_all(count, requests, nullptr,
                      [&](MPI_Request* seen) { return PMPI_Waitall(count, seen, statuses); });
}

SUCL_MPI_FUNCTION MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return complete_all(count, requests, flag,
                      [&](MPI_Request* seen) { return PMPI_Testall(count, seen, flag, statuses); });
}

SUCL_MPI_FUNCTION MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return complete_any(count, requests, index, nullptr, status,
                      [&](MPI_Request* seen) { return PMPI_Waitany(count, seen, index, status); });
}

SUCL_MPI_FUNCTION MPI_Testany(int count, MPI_Request* requests, int* index, int* flag,
                              MPI_Status* status) {
  return complete_any(count, requests, index, flag, status, [&](MPI_Request* seen) {
    return PMPI_Testany(count, seen, index, flag, status);
  });
}

SUCL_MPI_FUNCTION MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices,
                               MPI_Status* statuses) {
  return complete_some(count, requests, done, indices, statuses, true, [&](MPI_Request* seen) {
    return PMPI_Waitsome(count, seen, done, indices, statuses);
  });
}

SUCL_MPI_FUNCTION MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices,
                               MPI_Status* statuses) {
  return complete_some(count, requests, done, indices, statuses, false, [&](MPI_Request* seen) {
    return PMPI_Testsome(count, seen, done, indices, statuses);
  });
}

SUCL_MPI_FUNCTION MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const pending* r = own(&request);
  if (!r) return PMPI_Request_get_status(request, flag, status);
  if (!r->done()) interposer::active()->go_on();
  *flag = r->done();
  if (*flag) set_empty(status);
  return MPI_SUCCESS;
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

namespace {

// Libraries differ in whether the requests that are asked for are const.
template <class Function>
struct second_parameter;
template <class First, class Second, class... Rest>
struct second_parameter<int (*)(First, Second, Rest...)> {
  using type = Second;
};
using asked = second_parameter<decltype(&PMPI_Request_get_status_all)>::type;

// The library's requests among them, null in the place of SuCL's.
std::vector<MPI_Request> without_own(int count, asked requests) {
  std::vector<MPI_Request> others(requests, requests + count);
  for (MPI_Request& r : others)
    if (own(&r)) r = MPI_REQUEST_NULL;
  return others;
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Request_get_status_all(int count, asked requests, int* flag,
                                             MPI_Status* statuses) {
  for (int i = 0; i < count; ++i) {
    const pending* r = own(requests + i);
    if (!r || r->done()) continue;
    interposer::active()->go_on();
    *flag = 0;
    if (!r->done()) return MPI_SUCCESS;
  }
  return PMPI_Request_get_status_all(count, without_own(count, requests).data(), flag, statuses);
}

SUCL_MPI_FUNCTION MPI_Request_get_status_any(int count, asked requests, int* index, int* flag,
                                             MPI_Status* status) {
  bool others = false;
  for (*index = 0; *index < count; ++*index) {
    if (!own(requests + *index)) continue;
    others = true;
    if (MPI_Request_get_status(requests[*index], flag, status) == MPI_SUCCESS && *flag)
      return MPI_SUCCESS;
  }
  const int code =
      PMPI_Request_get_status_any(count, without_own(count, requests).data(), index, flag, status);
  // To the library there may have been no active one.
  if (others && *flag && *index == MPI_UNDEFINED) *flag = 0;
  return code;
}

SUCL_MPI_FUNCTION MPI_Request_get_status_some(int count, asked requests, int* done, int* indices,
                                              MPI_Status* statuses) {
  const int code = PMPI_Request_get_status_some(count, without_own(count, requests).data(), done,
                                                indices, statuses);
  for (int i = 0; i < count; ++i) {
    if (!own(requests + i)) continue;
    *done = std::max(*done, 0);
    int flag = 0;
    MPI_Request_get_status(requests[i], &flag, at(statuses, *done));
    if (flag) indices[(*done)++] = i;
  }
  return code;
}

#endif

SUCL_MPI_FUNCTION MPI_Start(MPI_Request* request) {
  pending* r = prepared(request);
  return r ? interposer::active()->start_prepared(*r) : PMPI_Start(request);
}

SUCL_MPI_FUNCTION MPI_Startall(int count, MPI_Request* requests) {
  interposer* const self = interposer::active();
  if (!self || !self->table().any_persistent()) return PMPI_Startall(count, requests);
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) code = MPI_Start(requests + i);
  return code;
}

SUCL_MPI_FUNCTION MPI_Request_free(MPI_Request* request) {
  if (const pending* r = own(request)) return refuse(*r, "MPI_Request_free");
  if (pending* r = prepared(request)) interposer::active()->release_prepared(*r);
  return PMPI_Request_free(request);
}

SUCL_MPI_FUNCTION MPI_Cancel(MPI_Request* request) {
  if (const pending* r = own(request)) return refuse(*r, "MPI_Cancel");
  return PMPI_Cancel(request);
}
