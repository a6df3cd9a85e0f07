// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Drives an MPI module through its two tables alone, as the core does. The tests link no MPI: one
/// program serves every flavour.
#pragma once

#include <sucl/abi/bootstrap.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::test {

/// The last error that was reported through core->fail.
struct reported {
  sucl_status status = SUCL_SUCCESS;
  std::int64_t native_code = 0;
  std::string message;
  std::string hint;
};

/// The loaded module; the program's only one.
struct mpi_module {
  void* library = nullptr;
  const sucl_bootstrap* control = nullptr;
  const sucl_backend* backend = nullptr;
  sucl_core core{};
  reported error;
  sucl_bootstrap_info info{};
  sucl_group* world = nullptr;
  int rank = 0;
  int size = 0;

  /// A function of the MPI library itself.
  template <class Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(find(name));
  }
  /// Waits for all ranks; through the control plane.
  void meet();

 private:
  void* find(const char* name) const;
};

mpi_module& module();

/// Loads the module at `path` and starts MPI; ends the program if that fails.
void start(const char* path, int* argc, char*** argv);

/// A backend state and a communicator over a group, gone with this object.
class backend_comm {
 public:
  explicit backend_comm(sucl_group* group, std::vector<sucl_setting> settings = {});
  backend_comm(const backend_comm&) = delete;
  backend_comm& operator=(const backend_comm&) = delete;
  ~backend_comm();

  sucl_state* state() const { return m_state; }
  sucl_backend_comm* get() const { return m_comm; }
  /// Posts and tests to the end.
  sucl_status run(const sucl_operation& operation);
  /// Posts only.
  sucl_status post(const sucl_operation& operation, sucl_request** request);
  sucl_status finish(sucl_request* request);
  bool supports(sucl_kind kind, sucl_type type, sucl_op op, sucl_memory memory = SUCL_MEMORY_SYSTEM,
                const char* platform = nullptr) const;

 private:
  sucl_state* m_state = nullptr;
  sucl_backend_comm* m_comm = nullptr;
};

sucl_operation make_operation(sucl_kind kind);

/// The main function of all these tests: `program MODULE [gtest arguments]`. MPI ends with it.
int run_tests(int argc, char** argv);

}  // namespace sucl::test
