// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// All that differs between MPI libraries, and how their errors become SuCL's.
#pragma once

#include <sucl/abi/bootstrap.h>

// The C++ bindings of old headers would add a library to link.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <atomic>
#include <climits>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <string>

namespace sucl::mpi_module {

// MPI 4 has every function twice; the one with suffix _c takes 64-bit counts. The build defines
// SUCL_MPI_WITHOUT_LARGE_COUNTS for a library that claims MPI 4 but lacks them.
#if MPI_VERSION >= 4 && !defined(SUCL_MPI_WITHOUT_LARGE_COUNTS)
#define SUCL_MPI_CALL(name) MPI_##name##_c
using count_type = MPI_Count;
using displ_type = MPI_Aint;
#else
#define SUCL_MPI_CALL(name) MPI_##name
using count_type = int;
using displ_type = int;
#endif

/// Most elements that one count or displacement of this library can say.
inline constexpr std::uint64_t native_limit =
    static_cast<std::uint64_t>(std::numeric_limits<count_type>::max());

/// Which library this is, for what has to be done about its faults. The header says it, but that of
/// the standard ABI: then the library is queried, once.
enum class library { other, openmpi, mpich, impi };
#if defined(OPEN_MPI)
constexpr library this_library() { return library::openmpi; }
#elif defined(I_MPI_VERSION)
constexpr library this_library() { return library::impi; }
#elif defined(MPICH_VERSION)
constexpr library this_library() { return library::mpich; }
#else
library this_library();
#endif

/// Whether MPI may be called: initialised and not finalised.
bool alive();
/// Whether what was made while it could be called is of no use any more. Costs nothing while a hook
/// of MPI_Finalize has not run.
bool finalised();
/// Hooks that MPI_Finalize has still to run, first of all.
inline std::atomic<int> hooks_to_run{0};

/// MPI_Error_string of a code.
std::string error_text(int code);

/// What an error of MPI is to SuCL.
sucl_status status_of(int code);
/// The cure for it; null: there is none to be named.
const char* hint_for(sucl_status status);

/// Reports to the core that `function` returned `code`; returns the status to pass on.
sucl_status fail_native(const sucl_core* core, int code, const char* function);

/// Reports an error to the core that MPI did not find. `hint` may be null.
sucl_status fail(const sucl_core* core, sucl_status status, const std::string& message,
                 const char* hint);

/// The same where a communicator could not be made, as a rule because the library is full.
sucl_status no_communicator(const sucl_core* core, int code);

/// Every entry of the tables runs inside this: no exception may leave through C.
template <class Function>
sucl_status guarded(const sucl_core* core, Function&& function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "the MPI module ran out of host memory",
                      nullptr);
  } catch (const std::exception& error) {
    return core->fail(SUCL_ERROR_INTERNAL, 0, error.what(), nullptr);
  }
}

/// Some libraries hand errors of a test to the handler of MPI_COMM_WORLD, whatever communicator the
/// request belongs to, and the default one ends the program. This replaces a default handler, and
/// only that, with one that does the same except where errors_are_returned lives on the thread.
void replace_default_handler();

/// While it lives, errors of this thread are returned to the caller.
class errors_are_returned {
 public:
  errors_are_returned();
  errors_are_returned(const errors_are_returned&) = delete;
  errors_are_returned& operator=(const errors_are_returned&) = delete;
  ~errors_are_returned();
  /// What a call came to that returned `code`: MPICH returns success after its handler has run.
  int result(int code) const { return code != MPI_SUCCESS ? code : m_handled; }

 private:
  friend void handle_error(MPI_Comm* comm, int* code, ...);
  int m_handled = MPI_SUCCESS;
};

/// Called by await(); a status other than SUCL_SUCCESS ends the wait.
void wait_with(const sucl_core* core);

/// Whether the core says that a rank does not come; fail_native() then returns what it has said.
bool is_given_up();

/// Waits for a request as a good neighbour, until it is done or the core says that a rank does not
/// come: then the request stays, the code is MPI_ERR_OTHER, and fail_native() returns what the core
/// has said. Spins for as long as peers take that run, then gives up
/// the processor between tests. The library's own waits only spin, so two ranks that share a
/// processor would each wait out the other's time slice at every step.
int await(MPI_Request* request);

/// The largest tag of messages.
int largest_tag();

/// A communicator that backends of one group share: what is executed by MPI needs no more than one.
/// A backend gets a pointer to it as sucl_comm_info::native_comm.
struct native_comm {
  MPI_Comm comm = MPI_COMM_NULL;  ///< first: others see an MPI_Comm
  unsigned users = 0;             ///< a bit for each that has a part of the tags
  bool broken = false;            ///< something may still be in flight on it
  int code = MPI_SUCCESS;         ///< why it could not be made
};

/// Collective; waits as await() does. Own communicators report errors instead of ending the
/// program.
int duplicate(MPI_Comm from, MPI_Comm* to);

}  // namespace sucl::mpi_module
