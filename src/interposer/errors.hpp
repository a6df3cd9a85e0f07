// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Errors of MPI and of SuCL, and whose error handler is called.
#pragma once

#include "base/error.hpp"
#include "base/log.hpp"

#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

namespace sucl::interposer {

/// Whether a library has found a call's arguments wrong. Then nothing has happened, and other ranks
/// may wait for a call that is right: it counts for nothing that ranks have to agree on.
bool is_refused(int code);
/// Reports an error of SuCL to the communicator's handler, by the class that MPI has for it. The
/// program's handler may call MPI, free the communicator, or not return (an exception, longjmp): so
/// this is the last thing that a call of the program does, and no guard is held.
int report(const error& e, MPI_Comm comm);
/// That class.
int code_of(const error& e);

/// Errors of SuCL that a call has found, to be reported when it has done all else.
class found_errors {
 public:
  void add(error e, MPI_Comm comm) { m_all.emplace_back(std::move(e), comm); }
  /// Reports them. Returns the call's own code.
  int report(int code) const {
    for (const auto& [e, comm] : m_all) sucl::interposer::report(e, comm);
    return code;
  }

 private:
  std::vector<std::pair<error, MPI_Comm>> m_all;
};
/// Logs as the interposer.
void log_text(base::log_level level, const std::string& text);

/// Errors of SuCL's own calls are not the program's: its handler is not asked meanwhile. One that
/// ends the job stays: to set it again is not the same to MPICH as never to have set it, after
/// which the handlers of MPI_COMM_SELF and MPI_COMM_WORLD are asked as they are at an error.
class errors_returned {
 public:
  explicit errors_returned(MPI_Comm comm) : m_comm(comm) {
    PMPI_Comm_get_errhandler(comm, &m_before);
#if !defined(OPEN_MPI)
    m_stays = m_before == MPI_ERRORS_ARE_FATAL;
#endif
    if (!m_stays) PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~errors_returned() {
    if (!m_stays) PMPI_Comm_set_errhandler(m_comm, m_before);
    PMPI_Errhandler_free(&m_before);
  }
  errors_returned(const errors_returned&) = delete;
  errors_returned& operator=(const errors_returned&) = delete;

 private:
  MPI_Comm m_comm;
  MPI_Errhandler m_before = MPI_ERRHANDLER_NULL;
  bool m_stays = false;
};

}  // namespace sucl::interposer
