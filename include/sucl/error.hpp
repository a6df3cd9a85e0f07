// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The one exception type of SuCL.
#pragma once

#include <sucl/export.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace sucl {

/// What went wrong; the numbers are those of sucl_status in <sucl/abi/backend.h>.
enum class errc : std::int32_t {
  success = 0,
  invalid_argument = 1,
  invalid_rank = 2,    ///< root or peer outside the communicator
  invalid_count = 3,   ///< count, offset or range outside the memory it refers to
  invalid_type = 4,    ///< element type unknown, or the op is not defined for it
  invalid_memory = 5,  ///< null, overlapping, or memory of another context
  mismatch = 6,        ///< ranks issued different operations or arguments
  configuration = 7,   ///< configuration file, environment variable or command line
  unavailable = 8,     ///< a backend or library is missing or of the wrong version
  unsupported = 9,     ///< no backend at hand can execute the operation
  native = 10,         ///< the library below reported an error: see native_code()
  timeout = 11,        ///< the watchdog gave up on an operation
  peer_lost = 12,      ///< a process of the communicator died
  shut_down = 13,      ///< used after the runtime was shut down or MPI finalised
  out_of_memory = 14,
  internal = 15
};

/// The name of a code, as in "invalid_rank".
[[nodiscard]] SUCL_CORE_API const char* name(errc code) noexcept;

/// The parts of an error. `message` says the fact and its cause, `hint` the cure.
struct error_info {
  errc code = errc::internal;
  std::string message;
  std::string hint;
  std::string operation;         ///< as in "allreduce #17"; empty outside an operation
  std::string backend;           ///< empty if none was involved
  std::int64_t native_code = 0;  ///< the code of the library below; 0 if there is none
  int rank = -1;                 ///< rank that raised it; -1 before ranks are known
};

/// Thrown by every function of SuCL that fails; what() has all parts in one line.
class SUCL_CORE_API error : public std::runtime_error {
 public:
  explicit error(error_info info);
  [[nodiscard]] errc code() const noexcept { return m_info.code; }
  [[nodiscard]] const std::string& message() const noexcept { return m_info.message; }
  [[nodiscard]] const std::string& hint() const noexcept { return m_info.hint; }
  [[nodiscard]] const std::string& operation() const noexcept { return m_info.operation; }
  [[nodiscard]] const std::string& backend() const noexcept { return m_info.backend; }
  std::int64_t native_code() const noexcept { return m_info.native_code; }
  [[nodiscard]] int rank() const noexcept { return m_info.rank; }
  [[nodiscard]] const error_info& info() const noexcept { return m_info; }

 private:
  error_info m_info;
};

}  // namespace sucl
