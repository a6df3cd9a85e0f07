// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace fuzz {
namespace {

void* g_library = nullptr;
void* g_context = nullptr;

template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  using function = int (*)(Arguments...);
  const auto found = reinterpret_cast<function>(dlsym(g_library, name));
  const int code = found ? found(arguments...) : -1;
  if (code == 0) return;
  std::fprintf(stderr, "the driver's %s fails with %d\n", name, code);
  std::_Exit(3);
}

}  // namespace

void open_device(int rank) {
  g_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!g_library) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::_Exit(3);
  }
  int devices = 0;
  call("cuInit", 0u);
  call("cuDeviceGetCount", &devices);
  call("cuDevicePrimaryCtxRetain", &g_context, rank % devices);
  use_device();
}

void use_device() { call("cuCtxSetCurrent", g_context); }

device_memory::device_memory(memory_kind where, std::size_t bytes) : m_bytes(bytes) {
  constexpr unsigned global = 1;
  if (where == memory_kind::managed)
    call("cuMemAllocManaged", reinterpret_cast<void**>(&m_data), bytes, global);
  else
    call("cuMemAlloc_v2", reinterpret_cast<void**>(&m_data), bytes);
}

device_memory::~device_memory() { call("cuMemFree_v2", m_data); }

void device_memory::write(const void* from) { call("cuMemcpyHtoD_v2", m_data, from, m_bytes); }

void device_memory::read(void* to) const {
  call("cuMemcpyDtoH_v2", to, static_cast<const char*>(m_data), m_bytes);
}

pinned_memory::pinned_memory(std::size_t bytes) {
  call("cuMemAllocHost_v2", reinterpret_cast<void**>(&m_data), bytes);
}

pinned_memory::~pinned_memory() { call("cuMemFreeHost", m_data); }

}  // namespace fuzz
