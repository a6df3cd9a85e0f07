// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "native.hpp"

#include <sched.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

namespace sucl::mpi_module {

#if defined(SUCL_MPI_ABI)
library this_library() {
  static const library found = [] {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return library::other;
    const std::string_view version(text);
    if (version.find("Open MPI") != version.npos) return library::openmpi;
    if (version.find("Intel(R) MPI") != version.npos) return library::impi;
    return version.find("MPICH") != version.npos ? library::mpich : library::other;
  }();
  return found;
}
#endif

bool alive() {
  int initialised = 0;
  MPI_Initialized(&initialised);
  return initialised && !finalised();
}

bool finalised() {
  if (hooks_to_run.load(std::memory_order_relaxed) > 0) return false;
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

namespace {

// Whether a process of the communicator is gone.
bool is_lost_peer(int error_class) {
#ifdef MPIX_ERR_PROC_FAILED
  return error_class == (MPIX_ERR_PROC_FAILED);
#elif defined(SUCL_MPI_ABI)
  return error_class == MPI_ERR_PROC_ABORTED;
#else
  static_cast<void>(error_class);
  return false;
#endif
}

}  // namespace

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "unknown MPI error";
  std::string line(text, static_cast<std::size_t>(length));
  for (char& c : line)
    if (c == '\n') c = ' ';
  return line;
}

sucl_status status_of(int code) {
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &error_class);
  if (is_lost_peer(error_class)) return SUCL_ERROR_PEER_LOST;
  if (error_class == MPI_ERR_TRUNCATE) return SUCL_ERROR_INVALID_COUNT;
  if (error_class == MPI_ERR_NO_MEM) return SUCL_ERROR_OUT_OF_MEMORY;
  return SUCL_ERROR_NATIVE;
}

const char* hint_for(sucl_status status) {
  switch (status) {
    case SUCL_ERROR_PEER_LOST:
      return "A process of the communicator is gone: look for its own message first.";
    case SUCL_ERROR_INVALID_COUNT:
      return "Give every rank of the operation the same count and type.";
    default: return nullptr;
  }
}

static const sucl_core* g_waits_with = nullptr;
static thread_local sucl_status t_given_up = SUCL_SUCCESS;

void wait_with(const sucl_core* core) {
  const bool can = SUCL_HAS_FIELD(core, sucl_core, keep_waiting) && core->keep_waiting != nullptr;
  g_waits_with = can ? core : nullptr;
}

bool is_given_up() {
  if (g_waits_with != nullptr) t_given_up = g_waits_with->keep_waiting();
  return t_given_up != SUCL_SUCCESS;
}

sucl_status fail_native(const sucl_core* core, int code, const char* function) {
  if (t_given_up != SUCL_SUCCESS) return std::exchange(t_given_up, SUCL_SUCCESS);
  const sucl_status status = status_of(code);
  const std::string message = std::string(function) + " failed: " + error_text(code);
  return core->fail(status, code, message.c_str(), hint_for(status));
}

sucl_status fail(const sucl_core* core, sucl_status status, const std::string& message,
                 const char* hint) {
  return core->fail(status, 0, message.c_str(), hint);
}

sucl_status no_communicator(const sucl_core* core, int code) {
  if (t_given_up != SUCL_SUCCESS) return std::exchange(t_given_up, SUCL_SUCCESS);
  const std::string text = "MPI cannot make another communicator: " + error_text(code);
  return core->fail(SUCL_ERROR_UNAVAILABLE, code, text.c_str(),
                    "A library has room for some thousand at once (MPICH for 2,000), and each of "
                    "SuCL's takes one: end those that are not used any more, or use one for more");
}

static thread_local errors_are_returned* t_returned = nullptr;

void handle_error(MPI_Comm* comm, int* code, ...) {
  if (t_returned != nullptr) {
    t_returned->m_handled = *code;
    return;
  }
  std::fprintf(stderr, "MPI error: %s\n", error_text(*code).c_str());
  MPI_Abort(*comm, *code);
}

errors_are_returned::errors_are_returned() { t_returned = this; }
errors_are_returned::~errors_are_returned() { t_returned = nullptr; }

void replace_default_handler() {
  MPI_Errhandler current = MPI_ERRHANDLER_NULL;
  if (MPI_Comm_get_errhandler(MPI_COMM_WORLD, &current) != MPI_SUCCESS) return;
  const bool is_default = current == MPI_ERRORS_ARE_FATAL;
  MPI_Errhandler_free(&current);
  MPI_Errhandler own = MPI_ERRHANDLER_NULL;
  if (!is_default || MPI_Comm_create_errhandler(handle_error, &own) != MPI_SUCCESS) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  MPI_Errhandler_free(&own);  // MPI keeps it while it is set
}

int largest_tag() {
  int* limit = nullptr;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
  return found ? *limit : 32767;  // what the standard promises
}

int await(MPI_Request* request) {
  constexpr std::chrono::microseconds spin{50};
  const auto begin = std::chrono::steady_clock::now();
  for (int done = 0;;) {
    const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || done != 0) return code;
    if (is_given_up()) return MPI_ERR_OTHER;
    if (std::chrono::steady_clock::now() - begin > spin) sched_yield();
  }
}

int duplicate(MPI_Comm from, MPI_Comm* to) {
  *to = MPI_COMM_NULL;
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_Comm_idup(from, made.get(), &request);
  if (code == MPI_SUCCESS) code = await(&request);
  if (code != MPI_SUCCESS) {
    (void)made.release();  // MPI may still write it
    return code;
  }
  *to = *made;
  MPI_Comm_set_errhandler(*to, MPI_ERRORS_RETURN);
  return code;
}

}  // namespace sucl::mpi_module
