// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>

namespace sucl::xccl {
namespace {

struct name_row {
  std::size_t offset;  // of the pointer in its table
  const char* cuda;
  const char* hip;
  bool needed = true;
};

#define SUCL_NAME(field, cuda, hip) {offsetof(device_api, field), cuda, hip}
#define SUCL_NEWER(field, cuda, hip) {offsetof(device_api, field), cuda, hip, false}
const name_row device_names[] = {
    SUCL_NAME(init, "cuInit", "hipInit"),
    SUCL_NAME(retain_context, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"),
    SUCL_NAME(release_context, "cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease"),
    SUCL_NEWER(get_uuid, "cuDeviceGetUuid", "hipDeviceGetUuid"),
    SUCL_NAME(push_context, "cuCtxPushCurrent_v2", "hipCtxPushCurrent"),
    SUCL_NAME(pop_context, "cuCtxPopCurrent_v2", "hipCtxPopCurrent"),
    SUCL_NAME(allocate, "cuMemAlloc_v2", "hipMalloc"),
    SUCL_NAME(free, "cuMemFree_v2", "hipFree"),
    SUCL_NAME(copy, "cuMemcpyAsync", "hipMemcpyDtoDAsync"),
    SUCL_NAME(create_stream, "cuStreamCreate", "hipStreamCreateWithFlags"),
    SUCL_NAME(destroy_stream, "cuStreamDestroy_v2", "hipStreamDestroy"),
    SUCL_NAME(synchronize, "cuStreamSynchronize", "hipStreamSynchronize"),
    SUCL_NAME(create_event, "cuEventCreate", "hipEventCreateWithFlags"),
    SUCL_NAME(destroy_event, "cuEventDestroy_v2", "hipEventDestroy"),
    SUCL_NAME(record_event, "cuEventRecord", "hipEventRecord"),
    SUCL_NAME(query_event, "cuEventQuery", "hipEventQuery"),
};
#undef SUCL_NEWER
#undef SUCL_NAME

// RCCL has kept the names of NCCL.
#define SUCL_NAME(field, name) {offsetof(library_api, field), name, name}
#define SUCL_NEWER(field, name) {offsetof(library_api, field), name, name, false}
const name_row library_names[] = {
    SUCL_NAME(get_version, "ncclGetVersion"),
    SUCL_NAME(get_unique_id, "ncclGetUniqueId"),
    SUCL_NAME(comm_init_rank, "ncclCommInitRank"),
    SUCL_NAME(comm_destroy, "ncclCommDestroy"),
    SUCL_NAME(comm_abort, "ncclCommAbort"),
    SUCL_NAME(comm_get_async_error, "ncclCommGetAsyncError"),
    SUCL_NAME(get_error_string, "ncclGetErrorString"),
    SUCL_NEWER(get_last_error, "ncclGetLastError"),
    SUCL_NAME(group_start, "ncclGroupStart"),
    SUCL_NAME(group_end, "ncclGroupEnd"),
    SUCL_NAME(all_reduce, "ncclAllReduce"),
    SUCL_NAME(broadcast, "ncclBroadcast"),
    SUCL_NAME(reduce, "ncclReduce"),
    SUCL_NAME(all_gather, "ncclAllGather"),
    SUCL_NAME(reduce_scatter, "ncclReduceScatter"),
    SUCL_NAME(send, "ncclSend"),
    SUCL_NAME(recv, "ncclRecv"),
    SUCL_NEWER(mem_alloc, "ncclMemAlloc"),
    SUCL_NEWER(mem_free, "ncclMemFree"),
    SUCL_NEWER(window_register, "ncclCommWindowRegister"),
    SUCL_NEWER(window_deregister, "ncclCommWindowDeregister"),
};
#undef SUCL_NEWER
#undef SUCL_NAME

// Fills a table; returns the name of what is missing, "" if nothing is.
template <class Table, std::size_t Rows>
std::string fill(Table& table, void* handle, bool is_hip, const name_row (&rows)[Rows]) {
  for (const name_row& row : rows) {
    const char* name = is_hip ? row.hip : row.cuda;
    void* address = dlsym(handle, name);
    if (!address && row.needed) return name;
    std::memcpy(reinterpret_cast<char*>(&table) + row.offset, &address, sizeof address);
  }
  return {};
}

std::string path_of(void* address) {
  Dl_info info{};
  if (!dladdr(address, &info) || !info.dli_fname) return {};
  char* real = realpath(info.dli_fname, nullptr);
  std::string path = real ? real : info.dli_fname;
  std::free(real);
  return path;
}

// Libraries of this process with a name that begins like `file` up to its first dot.
std::vector<std::string> copies_in_process(const std::string& file) {
  struct search {
    std::string stem;
    std::vector<std::string> found;
  } wanted{"/" + file.substr(0, file.find('.')) + ".so", {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& s = *static_cast<search*>(context);
        const std::string name = info->dlpi_name ? info->dlpi_name : "";
        if (name.find(s.stem) != std::string::npos) s.found.push_back(name);
        return 0;
      },
      &wanted);
  return wanted.found;
}

std::string why() {
  const char* text = dlerror();
  return text ? text : "no reason given";
}

complaint open_device(const vendor& v, loaded& result) {
  void* handle = dlopen(v.device_library, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return {std::string("there is no ") + v.device_library + ": " + why(),
            "Install the GPU's driver, or take the backend out of the rules."};
  const std::string missing = fill(result.device, handle, v.is_hip, device_names);
  if (missing.empty()) return {};
  return {path_of(dlsym(handle, v.is_hip ? "hipInit" : "cuInit")) + " has no " + missing,
          "Update the GPU's driver."};
}

}  // namespace

const vendor nccl{"nccl",
                  "NCCL",
                  "libnccl.so.2",
                  "libcuda.so.1",
                  "Install NCCL 2.10 or later, or give the path of libnccl.so.2 as library in "
                  "[backends.nccl] or in SUCL_BACKEND_NCCL_LIBRARY.",
                  false};
const vendor rccl{"rccl",
                  "RCCL",
                  "librccl.so.1",
                  "libamdhip64.so",
                  "Install RCCL 2.10 or later, or give the path of librccl.so.1 as library in "
                  "[backends.rccl] or in SUCL_BACKEND_RCCL_LIBRARY.",
                  true};

complaint open(const vendor& v, const std::string& file, loaded& result) {
  // NCCL makes the connections of a collective at its first use, which then waits for the other
  // ranks: two communicators that ranks first use in different order would wait for ever. What the
  // user has set stays.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  if (auto problem = open_device(v, result); !problem.message.empty()) return problem;
  std::string wanted = file;
  if (wanted.empty()) {
    const auto there = copies_in_process(v.library);
    wanted = there.empty() ? v.library : there.front();
  }
  void* handle = dlopen(wanted.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return {"cannot load '" + wanted + "': " + why(), v.hint};
  const std::string missing = fill(result.api, handle, v.is_hip, library_names);
  if (!missing.empty()) return {"'" + wanted + "' has no " + missing, v.hint};
  result.path = path_of(reinterpret_cast<void*>(result.api.get_version));
  if (const int status = result.api.get_version(&result.version); status != ok)
    return {
        "'" + result.path + "' does not report its version: " + result.api.get_error_string(status),
        v.hint};
  if (result.version < min_version)
    return {
        "'" + result.path + "' is " + v.title + " " + print_version(result.version) + ", too old",
        v.hint};
  for (const auto& other : copies_in_process(v.library)) {
    char* real = realpath(other.c_str(), nullptr);
    if (real && result.path != real) result.others.emplace_back(real);
    std::free(real);
  }
  return {};
}

std::string print_version(int version) {
  // 2.8 and before had three digits fewer.
  const int unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace sucl::xccl
