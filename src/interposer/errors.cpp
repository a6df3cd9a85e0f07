// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/errors.hpp"

namespace sucl::interposer {

void log_text(base::log_level level, const std::string& text) {
  base::log(level, "interposer", text);
}

bool is_refused(int code) {
  if (code == MPI_SUCCESS) return false;
  int error_class = MPI_SUCCESS;
  PMPI_Error_class(code, &error_class);
  for (const int of_arguments :
       {MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_COMM, MPI_ERR_ROOT, MPI_ERR_OP,
        MPI_ERR_ARG, MPI_ERR_REQUEST, MPI_ERR_RANK, MPI_ERR_INFO})
    if (error_class == of_arguments) return true;
  return false;
}

int code_of(const error& e) {
  switch (e.code()) {
    case errc::invalid_argument: return MPI_ERR_ARG;
    case errc::invalid_rank: return MPI_ERR_ROOT;
    case errc::invalid_count: return MPI_ERR_COUNT;
    case errc::invalid_type: return MPI_ERR_TYPE;
    case errc::invalid_memory: return MPI_ERR_BUFFER;
    case errc::mismatch: return MPI_ERR_TRUNCATE;
    case errc::out_of_memory: return MPI_ERR_NO_MEM;
    default: return MPI_ERR_OTHER;
  }
}

int report(const error& e, MPI_Comm comm) {
  log_text(base::log_level::error, e.what());
  const int code = code_of(e);
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace sucl::interposer
