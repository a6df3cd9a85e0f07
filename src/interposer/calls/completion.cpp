// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// MPI's functions that start, complete, ask for and free requests. Those of SuCL and those of the
// library may be mixed in one call: the library sees its own alone.
#include "base/log.hpp"
#include "interposer/calls/batch.hpp"
#include "interposer/calls/entry.hpp"
#include "interposer/interposer.hpp"
#include "interposer/next.hpp"

#include <algorithm>

using namespace sucl::interposer;

namespace {

int class_of(int code) {
  int result = MPI_SUCCESS;
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &result);
  return result;
}

enum class number { one, many };

// Wait, Waitall, and with `flag` Test and Testall; `pass` is the library's. `statuses`: of many.
template <number N, class Pass>
int complete_all(found_errors& errors, int count, MPI_Request* handles, int* flag,
                 MPI_Status* statuses, bool complete, const Pass& pass) {
  constexpr bool many = N == number::many;
  batch known(count, handles, complete, errors);
  if (known.empty()) return pass(count, handles, statuses);
  if (!flag) {
    known.wait_for_own();
  } else if (!known.own_done()) {
    known.advance();
    *flag = 0;
    if (!known.own_done()) return MPI_SUCCESS;
  }
  const int code = known.library(many ? statuses : MPI_STATUSES_IGNORE, pass);
  const bool failed = code != MPI_SUCCESS;
  // Of an error in the arguments nothing has come.
  if (failed && (!many || class_of(code) != MPI_ERR_IN_STATUS) && known.has_own()) return code;
  if (!failed && flag && !*flag) return code;
  const bool told = many && statuses != MPI_STATUSES_IGNORE;
  const int own = known.complete_all(failed, count, told ? statuses : nullptr);
  if (failed || own == MPI_SUCCESS) return code;
  return many ? MPI_ERR_IN_STATUS : own;
}

// Waitany, and with `flag` Testany.
template <class Pass>
int complete_any(found_errors& errors, int count, MPI_Request* handles, int* index, int* flag,
                 MPI_Status* status, bool complete, const Pass& pass) {
  batch known(count, handles, complete, errors);
  if (known.empty()) return pass(count, handles);
  if (!known.has_own()) {
    *index = MPI_UNDEFINED;
    const int code = known.library(pass);
    *index = known.index_of(*index);
    if (code == MPI_SUCCESS && (!flag || *flag)) known.complete(*index);
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
    *index = MPI_UNDEFINED;
    const int code = known.library([&](int n, MPI_Request* seen) {
      return SUCL_LIBRARY(Testany)(n, seen, index, &found, status);
    });
    *index = known.index_of(*index);
    if (code == MPI_SUCCESS && found) known.complete(*index);
    if (code != MPI_SUCCESS || (found && *index != MPI_UNDEFINED)) return code;
    if (!flag) continue;
    *flag = 0;
    *index = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
}

// Waitsome and Testsome.
template <class Pass>
int complete_some(found_errors& errors, int count, MPI_Request* handles, int* done, int* indices,
                  MPI_Status* statuses, bool wait, const Pass& pass) {
  batch known(count, handles, has_room(statuses, done, indices), errors);
  if (known.empty()) return pass(count, handles);
  if (!known.has_own()) {
    const int code = known.library(pass);
    if (code != MPI_SUCCESS && class_of(code) != MPI_ERR_IN_STATUS) return code;
    known.translate(*done, indices);
    for (int i = 0; code == MPI_SUCCESS && i < *done; ++i) known.complete(indices[i]);
    return code;
  }
  for (;; known.rest()) {
    known.advance();
    int code = known.library([&](int n, MPI_Request* seen) {
      return SUCL_LIBRARY(Testsome)(n, seen, done, indices, statuses);
    });
    if (code != MPI_SUCCESS && class_of(code) != MPI_ERR_IN_STATUS) return code;
    known.translate(*done, indices);
    *done = std::max(*done, 0);  // it may be MPI_UNDEFINED
    for (int i = 0; i < *done; ++i) known.complete(indices[i]);
    for (int own; (own = known.first_done()) >= 0; ++*done) {
      indices[*done] = own;
      set_empty(at(statuses, *done));
      const int failed = known.complete(own);
      if (failed == MPI_SUCCESS && code == MPI_SUCCESS) continue;
      if (statuses != MPI_STATUSES_IGNORE) {
        for (int i = 0; code == MPI_SUCCESS && i < *done; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
        statuses[*done].MPI_ERROR = failed;
      }
      code = MPI_ERR_IN_STATUS;
    }
    if (!wait || *done > 0 || code != MPI_SUCCESS) return code;
  }
}

// The one that SuCL knows, else null.
pending* known(const MPI_Request* handle) {
  interposer* const self = interposer::completing();
  return self && handle && self->table().any_known() ? self->table().known(*handle) : nullptr;
}

// One of SuCL's that is active, else null.
pending* own(const MPI_Request* handle) {
  pending* r = known(handle);
  return r && r->own() ? r : nullptr;
}

// The program is told that the request is over, so it may use the memory, though the request stays.
void deliver_to(const MPI_Request* handle) {
  pending* r = known(handle);
  if (!r || !r->active() || !(r->own() || r->staged)) return;
  if (r->own() && r->operation.failure()) return;  // completing it reports that
  found_errors errors;
  errors.report(interposer::completing()->deliver(*r, errors));
}

// MPI allows neither for collectives that are under way.
int refuse(const pending& r, const char* what) {
  sucl::base::log(sucl::base::log_level::error, "interposer", what,
                  " of a collective that is under way: MPI does not define that");
  PMPI_Comm_call_errhandler(interposer::completing()->table().native_of(r), MPI_ERR_REQUEST);
  return MPI_ERR_REQUEST;
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Wait(MPI_Request* request, MPI_Status* status) {
  found_errors errors;
  const int code = complete_all<number::one>(errors, 1, request, nullptr, nullptr, has_room(status),
                                             [&](int, MPI_Request* seen, MPI_Status*) {
                                               return SUCL_NEXT_OR_LIBRARY(Wait)(seen, status);
                                             });
  return errors.report(code);
}
SUCL_PROFILED(Wait, (MPI_Request * request, MPI_Status* status), (request, status))

SUCL_MPI_FUNCTION MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  found_errors errors;
  const int code =
      complete_all<number::one>(errors, 1, request, flag, nullptr, has_room(status, flag),
                                [&](int, MPI_Request* seen, MPI_Status*) {
                                  return SUCL_NEXT_OR_LIBRARY(Test)(seen, flag, status);
                                });
  return errors.report(code);
}
SUCL_PROFILED(Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))

SUCL_MPI_FUNCTION MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  found_errors errors;
  const int code =
      complete_all<number::many>(errors, count, requests, nullptr, statuses, has_room(statuses),
                                 [&](int n, MPI_Request* seen, MPI_Status* told) {
                                   return SUCL_NEXT_OR_LIBRARY(Waitall)(n, seen, told);
                                 });
  return errors.report(code);
}
SUCL_PROFILED(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses),
              (count, requests, statuses))

SUCL_MPI_FUNCTION MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  found_errors errors;
  const int code =
      complete_all<number::many>(errors, count, requests, flag, statuses, has_room(statuses, flag),
                                 [&](int n, MPI_Request* seen, MPI_Status* told) {
                                   return SUCL_NEXT_OR_LIBRARY(Testall)(n, seen, flag, told);
                                 });
  return errors.report(code);
}
SUCL_PROFILED(Testall, (int count, MPI_Request* requests, int* flag, MPI_Status* statuses),
              (count, requests, flag, statuses))

SUCL_MPI_FUNCTION MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  found_errors errors;
  const int code = complete_any(errors, count, requests, index, nullptr, status,
                                has_room(status, index), [&](int n, MPI_Request* seen) {
                                  return SUCL_NEXT_OR_LIBRARY(Waitany)(n, seen, index, status);
                                });
  return errors.report(code);
}
SUCL_PROFILED(Waitany, (int count, MPI_Request* requests, int* index, MPI_Status* status),
              (count, requests, index, status))

SUCL_MPI_FUNCTION MPI_Testany(int count, MPI_Request* requests, int* index, int* flag,
                              MPI_Status* status) {
  found_errors errors;
  const int code =
      complete_any(errors, count, requests, index, flag, status, has_room(status, index, flag),
                   [&](int n, MPI_Request* seen) {
                     return SUCL_NEXT_OR_LIBRARY(Testany)(n, seen, index, flag, status);
                   });
  return errors.report(code);
}
SUCL_PROFILED(Testany,
              (int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status),
              (count, requests, index, flag, status))

SUCL_MPI_FUNCTION MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices,
                               MPI_Status* statuses) {
  found_errors errors;
  const int code = complete_some(
      errors, count, requests, done, indices, statuses, true, [&](int n, MPI_Request* seen) {
        return SUCL_NEXT_OR_LIBRARY(Waitsome)(n, seen, done, indices, statuses);
      });
  return errors.report(code);
}
SUCL_PROFILED(Waitsome,
              (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
              (count, requests, done, indices, statuses))

SUCL_MPI_FUNCTION MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices,
                               MPI_Status* statuses) {
  found_errors errors;
  const int code = complete_some(
      errors, count, requests, done, indices, statuses, false, [&](int n, MPI_Request* seen) {
        return SUCL_NEXT_OR_LIBRARY(Testsome)(n, seen, done, indices, statuses);
      });
  return errors.report(code);
}
SUCL_PROFILED(Testsome,
              (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
              (count, requests, done, indices, statuses))

SUCL_MPI_FUNCTION MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const pending* r = known(&request);
  if (!r || !has_room(status, flag))
    return SUCL_NEXT_OR_LIBRARY(Request_get_status)(request, flag, status);
  int code = MPI_SUCCESS;
  if (!r->hidden()) {
    code = SUCL_NEXT_OR_LIBRARY(Request_get_status)(request, flag, status);
  } else {
    if (r->own() && !r->done()) interposer::completing()->go_on();
    *flag = !r->own() || r->done();
    if (*flag) set_empty(status);
  }
  if (code == MPI_SUCCESS && *flag) deliver_to(&request);
  return code;
}
SUCL_PROFILED(Request_get_status, (MPI_Request request, int* flag, MPI_Status* status),
              (request, flag, status))

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

namespace {

// Libraries differ in whether the requests that are asked for are const.
template <class Function>
struct second_parameter;
template <class First, class Second, class... Rest>
struct second_parameter<int (*)(First, Second, Rest...)> {
  using type = Second;
};
using request_array = second_parameter<decltype(&PMPI_Request_get_status_all)>::type;

// The requests that the library may see, null instead of the others.
std::vector<MPI_Request> seen_of(int count, request_array requests) {
  std::vector<MPI_Request> seen(requests, requests + count);
  for (MPI_Request& r : seen)
    if (const pending* found = known(&r); found && found->hidden()) r = MPI_REQUEST_NULL;
  return seen;
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Request_get_status_all(int count, request_array requests, int* flag,
                                             MPI_Status* statuses) {
  if (count <= 0 || !requests || !has_room(statuses, flag))
    return SUCL_NEXT_OR_LIBRARY(Request_get_status_all)(count, requests, flag, statuses);
  for (int i = 0; i < count; ++i) {
    const pending* r = own(requests + i);
    if (!r || r->done()) continue;
    interposer::completing()->go_on();
    *flag = 0;
    if (!r->done()) return MPI_SUCCESS;
  }
  const int code = SUCL_NEXT_OR_LIBRARY(Request_get_status_all)(
      count, seen_of(count, requests).data(), flag, statuses);
  for (int i = 0; code == MPI_SUCCESS && *flag && i < count; ++i) deliver_to(requests + i);
  return code;
}
SUCL_PROFILED(Request_get_status_all,
              (int count, request_array requests, int* flag, MPI_Status* statuses),
              (count, requests, flag, statuses))

SUCL_MPI_FUNCTION MPI_Request_get_status_any(int count, request_array requests, int* index,
                                             int* flag, MPI_Status* status) {
  if (count <= 0 || !requests || !has_room(status, index, flag))
    return SUCL_NEXT_OR_LIBRARY(Request_get_status_any)(count, requests, index, flag, status);
  bool others = false;
  for (*index = 0; *index < count; ++*index) {
    if (!own(requests + *index)) continue;
    others = true;
    if (MPI_Request_get_status(requests[*index], flag, status) == MPI_SUCCESS && *flag)
      return MPI_SUCCESS;
  }
  const int code = SUCL_NEXT_OR_LIBRARY(Request_get_status_any)(
      count, seen_of(count, requests).data(), index, flag, status);
  if (code == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED) deliver_to(requests + *index);
  // To the library there may have been no active one.
  if (others && *flag && *index == MPI_UNDEFINED) *flag = 0;
  return code;
}
SUCL_PROFILED(Request_get_status_any,
              (int count, request_array requests, int* index, int* flag, MPI_Status* status),
              (count, requests, index, flag, status))

SUCL_MPI_FUNCTION MPI_Request_get_status_some(int count, request_array requests, int* done,
                                              int* indices, MPI_Status* statuses) {
  if (count <= 0 || !requests || !has_room(statuses, done, indices))
    return SUCL_NEXT_OR_LIBRARY(Request_get_status_some)(count, requests, done, indices, statuses);
  const int code = SUCL_NEXT_OR_LIBRARY(Request_get_status_some)(
      count, seen_of(count, requests).data(), done, indices, statuses);
  for (int i = 0; code == MPI_SUCCESS && i < *done; ++i) deliver_to(requests + indices[i]);
  for (int i = 0; i < count; ++i) {
    if (!own(requests + i)) continue;
    *done = std::max(*done, 0);
    int flag = 0;
    MPI_Request_get_status(requests[i], &flag, at(statuses, *done));
    if (flag) indices[(*done)++] = i;
  }
  return code;
}
SUCL_PROFILED(Request_get_status_some,
              (int count, request_array requests, int* done, int* indices, MPI_Status* statuses),
              (count, requests, done, indices, statuses))

#endif

SUCL_MPI_FUNCTION MPI_Start(MPI_Request* request) {
  pending* r = known(request);
  if (r && r->own()) return refuse(*r, "MPI_Start");
  return r && r->persistent ? interposer::completing()->start_prepared(*r)
                            : SUCL_NEXT_OR_LIBRARY(Start)(request);
}
SUCL_PROFILED(Start, (MPI_Request * request), (request))

SUCL_MPI_FUNCTION MPI_Startall(int count, MPI_Request* requests) {
  interposer* const self = interposer::completing();
  if (!self || !requests || !self->table().any_known())
    return SUCL_NEXT_OR_LIBRARY(Startall)(count, requests);
  std::vector<pending*> prepared;
  std::vector<MPI_Request> others;
  for (int i = 0; i < count; ++i) {
    pending* r = self->table().known(requests[i]);
    if (r && r->own()) return refuse(*r, "MPI_Startall");
    if (r && r->persistent)
      prepared.push_back(r);
    else
      others.push_back(requests[i]);
  }
  if (prepared.empty()) return SUCL_NEXT_OR_LIBRARY(Startall)(count, requests);
  // First what may be wrong. Where all is known to SuCL the library need not be asked.
  int code = MPI_SUCCESS;
  if (!others.empty())
    code = SUCL_NEXT_OR_LIBRARY(Startall)(static_cast<int>(others.size()), others.data());
  for (std::size_t i = 0; i < prepared.size() && code == MPI_SUCCESS; ++i)
    code = self->start_prepared(*prepared[i]);
  return code;
}
SUCL_PROFILED(Startall, (int count, MPI_Request* requests), (count, requests))

SUCL_MPI_FUNCTION MPI_Request_free(MPI_Request* request) {
  pending* r = known(request);
  if (!r) return SUCL_NEXT_OR_LIBRARY(Request_free)(request);
  if (r->own()) {
    if (!r->done()) interposer::completing()->go_on();
    if (!r->done()) return refuse(*r, "MPI_Request_free");
    // One that is over libraries free.
    const bool persistent = r->persistent;
    const int code = MPI_Wait(request, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || !persistent) return code;
  }
  // Out of the table first: the library may give its handle to another thread at once.
  requests& table = interposer::completing()->table();
  std::unique_ptr<pending> known = table.remove(*request);
  const int code = SUCL_NEXT_OR_LIBRARY(Request_free)(request);
  if (code != MPI_SUCCESS)
    table.restore(std::move(known));
  else if (known->persistent)
    interposer::completing()->release_prepared(*known);
  return code;
}
SUCL_PROFILED(Request_free, (MPI_Request * request), (request))

SUCL_MPI_FUNCTION MPI_Cancel(MPI_Request* request) {
  if (const pending* r = own(request)) return refuse(*r, "MPI_Cancel");
  return SUCL_NEXT_OR_LIBRARY(Cancel)(request);
}
SUCL_PROFILED(Cancel, (MPI_Request * request), (request))
