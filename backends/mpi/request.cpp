// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

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
  request.error.status = SUCL_ERROR_NATIVE;
#ifdef MPIX_ERR_PROC_FAILED
  if (error_class == (MPIX_ERR_PROC_FAILED)) request.error.status = SUCL_ERROR_PEER_LOST;
#endif
  request.error.message = std::string(function) + " failed: " + error_text(code);
}

void check_received(sucl_request& request, const sucl_request::expectation& what,
                    const MPI_Status& status) {
  if (what.count == sucl_request::expectation::nothing) return;
  count_type elements = 0;
  const int code = SUCL_MPI_CALL(Get_count)(&status, what.type, &elements);
  if (code == MPI_SUCCESS && elements >= 0 && static_cast<std::uint64_t>(elements) == what.count)
    return;
  if (request.error.status != SUCL_SUCCESS) return;
  request.error.status = SUCL_ERROR_INVALID_COUNT;
  request.error.message = "the message" + sender_text(what) + " has " +
                          (elements == MPI_UNDEFINED
                               ? std::string("no whole number of elements")
                               : count_text(static_cast<std::uint64_t>(elements))) +
                          ", this rank receives " + std::to_string(what.count);
  request.error.hint = count_hint;
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
  const int code =
      errors.result(MPI_Testsome(parts, request.handles.data(), &found, request.indices.data(),
                                 request.statuses.data()));
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    note(request, code, "MPI_Testsome", {});
    return true;
  }
  if (found == MPI_UNDEFINED) return true;
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

bool progress(sucl_request& request) {
  if (request.handles.empty()) return true;
  return request.handles.size() == 1 ? progress_one(request) : progress_many(request);
}

sucl_status complete(sucl_backend_comm& comm, sucl_request& request) {
  if (request.finish != nullptr && request.error.status == SUCL_SUCCESS) {
    const int code = request.finish(comm, request);
    if (code != MPI_SUCCESS) note(request, code, "MPI_Sendrecv", {});
  }
  sucl_status status = request.error.status;
  if (status != SUCL_SUCCESS) {
    comm.core->fail(status, request.error.native_code, request.error.message.c_str(),
                    request.error.hint);
  }
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
  request.finish = nullptr;
  if (request.error.status != SUCL_SUCCESS) request.error = {};
  return request;
}

}  // namespace sucl::mpi_module
