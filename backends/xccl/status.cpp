// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

namespace sucl::xccl {

sucl_status failed(const sucl_backend_comm& comm, int result, const char* call) {
  const library_api& api = comm.state->library.api;
  std::string text = std::string(call) + " failed: " + api.get_error_string(result);
  const char* details = api.get_last_error ? api.get_last_error(comm.native) : nullptr;
  if (details && *details) text += ": " + std::string(details);
  const bool lost = result == remote_error || result == system_error;
  if (text.find("out of memory") != std::string::npos)
    return comm.state->core->fail(SUCL_ERROR_OUT_OF_MEMORY, result, text.c_str(),
                                  "Free memory of the device first.");
  return comm.state->core->fail(
      lost ? SUCL_ERROR_PEER_LOST : SUCL_ERROR_NATIVE, result, text.c_str(),
      lost ? "Another process of the communicator or the way to it has failed: look at its output."
           : "NCCL_DEBUG=INFO makes the library say more.");
}

sucl_status device_failed(const sucl_backend_comm& comm, int result, const char* call) {
  const std::string text = std::string(call) + " failed in " + comm.state->from->device_library +
                           " with code " + std::to_string(result);
  constexpr int out_of_memory = 2;
  return comm.state->core->fail(
      result == out_of_memory ? SUCL_ERROR_OUT_OF_MEMORY : SUCL_ERROR_NATIVE, result, text.c_str(),
      "An earlier kernel of the program may have failed: run it under the vendor's memory "
      "checker.");
}

}  // namespace sucl::xccl
