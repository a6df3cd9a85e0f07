// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <algorithm>

namespace {

// Scratch beyond this is given back after each operation.
constexpr std::size_t kept_scratch = std::size_t{1} << 20;

}  // namespace

MPI_Request* sucl_request::add() { return add_receive({}); }

MPI_Request* sucl_request::add_receive(const expectation& what) {
  expected.push_back(what);
  handles.push_back(MPI_REQUEST_NULL);
  return &handles.back();
}

std::byte* sucl_request::reserve_scratch(std::uint64_t bytes) {
  if (bytes > scratch_bytes) {
    scratch_bytes = 0;
    scratch.reset(new std::byte[bytes]);
    scratch_bytes = bytes;
  }
  return scratch.get();
}

namespace sucl::mpi_module {
namespace {

std::string count_text(std::uint64_t n) {
  return std::to_string(n) + (n == 1 ? " element" : " elements");
}

std::string sender_text(const sucl_request::expectation& what) {
  std::string text = " from rank " + std::to_string(what.source);
  if (what.tag >= 0) text += " with tag " + std::to_string(what.tag);
  return text;
}

constexpr const char* count_hint =
    "Sender and receiver must name the same count and element type; where the receiver cannot know "
    "the count, send it first.";

}  // namespace

void note(sucl_request& request, int code, const char* function,
          const sucl_request::expectation& what) {
  if (request.error.status != SUCL_SUCCESS) return;
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &error_class);
  request.error.native_code = code;
  if (what.count != sucl_request::expectation::nothing && error_class == MPI_ERR_TRUNCATE) {
    request.error.status = SUCL_ERROR_INVALID_COUNT;
    request.error.message = "the message" + sender_text(what) + " is longer than the " +
                            count_text(what.count) + " this rank receives";
    request.error.hint = count_hint;
    return;
  }
  request.error.status = status_of(code);
  request.error.message = std::string(function) + " failed: " + error_text(code);
  request.error.hint = hint_for(request.error.status);
}

bool check_received(sucl_request& request, const sucl_request::expectation& what,
                    const MPI_Status& status) {
  if (what.count == sucl_request::expectation::nothing) return true;
  count_type elements = 0;
  const int code = SUCL_MPI_CALL(Get_count)(&status, what.type, &elements);
  if (code == MPI_SUCCESS && elements >= 0 && static_cast<std::uint64_t>(elements) == what.count)
    return true;
  if (request.error.status != SUCL_SUCCESS) return false;
  request.error.status = SUCL_ERROR_INVALID_COUNT;
  request.error.message =
      "the message" + sender_text(what) + " has " +
      (elements == MPI_UNDEFINED ? std::string("no whole number of elements")
                                 : count_text(static_cast<std::uint64_t>(elements))) +
      ", this rank receives " + std::to_string(what.count);
  request.error.hint = count_hint;
  return false;
}

namespace {

bool progress_one(sucl_request& request) {
  int flag = 0;
  MPI_Status status;
  const errors_are_returned errors;
  const int code = errors.result(MPI_Test(&request.handles[0], &flag, &status));
  if (code != MPI_SUCCESS) {
    note(request, code, "MPI_Test", request.expected[0]);
    return true;
  }
  if (flag) check_received(request, request.expected[0], status);
  return flag != 0;
}

// Testsome tells the parts' errors apart and goes on with the others.
bool progress_many(sucl_request& request) {
  const int parts = static_cast<int>(request.handles.size());
  request.indices.resize(request.handles.size());
  request.statuses.resize(request.handles.size());
  int found = 0;
  const errors_are_returned errors;
  const int code = errors.result(MPI_Testsome(parts, request.handles.data(), &found,
                                              request.indices.data(), request.statuses.data()));
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    note(request, code, "MPI_Testsome", {});
    return true;
  }
  if (found == MPI_UNDEFINED) return request.unmatched == 0;
  for (int i = 0; i < found; ++i) {
    const MPI_Status& status = request.statuses[static_cast<std::size_t>(i)];
    const auto& what =
        request.expected[static_cast<std::size_t>(request.indices[static_cast<std::size_t>(i)])];
    if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS)
      note(request, status.MPI_ERROR, "MPI_Testsome", what);
    else
      check_received(request, what, status);
  }
  request.done += found;
  return request.done == parts;
}

}  // namespace

namespace {

bool same_sender(const unmatched_receive& a, const unmatched_receive& b) {
  const auto& x = a.request->expected[a.part];
  const auto& y = b.request->expected[b.part];
  return x.source == y.source && x.tag == y.tag;
}

// Receives a message that does not fit into memory of its own, so that its sender is done with it.
int receive_aside(sucl_request& request, MPI_Message& message, const MPI_Status& status,
                  MPI_Request* handle) {
  MPI_Count bytes = 0;
  MPI_Datatype block = MPI_DATATYPE_NULL;
  int code = MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  if (code != MPI_SUCCESS) return code;
  request.discarded.emplace_back(new std::byte[static_cast<std::size_t>(bytes)]);
  code = make_block(static_cast<std::uint64_t>(bytes), &block);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Imrecv(request.discarded.back().get(), 1, block, &message, handle);
  MPI_Type_free(&block);
  return code;
}

// Whether the message was there; if so it is being received.
bool match(sucl_backend_comm& comm, const unmatched_receive& receive) {
  sucl_request& request = *receive.request;
  const sucl_request::expectation& what = request.expected[receive.part];
  MPI_Request* handle = &request.handles[receive.part];
  int found = 0;
  MPI_Message message;
  MPI_Status status;
  int code =
      MPI_Improbe(what.source, comm.user_tag(what.tag), comm.messages, &found, &message, &status);
  if (code == MPI_SUCCESS && !found) return false;
  if (code == MPI_SUCCESS) {
    code = check_received(request, what, status)
               ? SUCL_MPI_CALL(Imrecv)(what.recv, static_cast<count_type>(what.count), what.type,
                                       &message, handle)
               : receive_aside(request, message, status, handle);
  }
  if (code != MPI_SUCCESS) note(request, code, "MPI_Imrecv", what);
  return true;
}

}  // namespace

void match_receives(sucl_backend_comm& comm) {
  auto& waiting = comm.unmatched;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const unmatched_receive receive = waiting[i];
    // A message belongs to the first receive from its sender, even if it comes in just now.
    const bool behind = std::any_of(waiting.begin(), waiting.begin() + static_cast<long>(kept),
                                    [&](const auto& w) { return same_sender(w, receive); });
    if (behind || !match(comm, receive))
      waiting[kept++] = receive;
    else
      --receive.request->unmatched;
  }
  waiting.resize(kept);
}

void post_receives(sucl_backend_comm& comm) {
  for (const unmatched_receive& receive : comm.unmatched) {
    sucl_request& request = *receive.request;
    const sucl_request::expectation& what = request.expected[receive.part];
    const int code = SUCL_MPI_CALL(Irecv)(what.recv, static_cast<count_type>(what.count), what.type,
                                          what.source, comm.user_tag(what.tag), comm.messages,
                                          &request.handles[receive.part]);
    if (code != MPI_SUCCESS) note(request, code, "MPI_Irecv", what);
    --request.unmatched;
  }
  comm.unmatched.clear();
}

bool progress(sucl_backend_comm& comm, sucl_request& request) {
  if (!comm.unmatched.empty()) match_receives(comm);
  if (request.handles.empty()) return true;
  if (request.handles.size() == 1 && request.unmatched > 0) return false;
  return request.handles.size() == 1 ? progress_one(request) : progress_many(request);
}

sucl_status complete(sucl_backend_comm& comm, sucl_request& request) {
  if (request.finish != nullptr && request.error.status == SUCL_SUCCESS) {
    const int code = request.finish(comm, request);
    if (code != MPI_SUCCESS) note(request, code, "MPI_Sendrecv", {});
  }
  sucl_status status = request.error.status;
  if (status == SUCL_SUCCESS && request.unify_nans != nullptr && request.results > 0)
    request.unify_nans(request.operation.recv, request.results);
  if (status != SUCL_SUCCESS) {
    comm.core->fail(status, request.error.native_code, request.error.message.c_str(),
                    request.error.hint);
  }
  request.discarded.clear();
  if (request.scratch_bytes > kept_scratch) {
    request.scratch.reset();
    request.scratch_bytes = 0;
  }
  comm.idle.push_back(&request);
  return status;
}

sucl_request& acquire(sucl_backend_comm& comm) {
  if (comm.idle.empty()) {
    comm.requests.push_back(std::make_unique<sucl_request>());
    comm.idle.reserve(comm.requests.size());  // complete() must not run out of memory
    comm.idle.push_back(comm.requests.back().get());
  }
  sucl_request& request = *comm.idle.back();
  comm.idle.pop_back();
  request.handles.clear();
  request.expected.clear();
  request.done = 0;
  request.unmatched = 0;
  request.finish = nullptr;
  request.unify_nans = nullptr;
  if (request.error.status != SUCL_SUCCESS) request.error = {};
  return request;
}

}  // namespace sucl::mpi_module
