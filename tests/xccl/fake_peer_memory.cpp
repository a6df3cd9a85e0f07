// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plays the parts of CUDA's driver, HIP's runtime and Level Zero that map memory of other
// processes: an allocation is host memory, mapping it gives another address for the same bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

struct handle {
  unsigned char bytes[64];
};

constexpr std::size_t bytes = 1 << 16;
int g_descriptor = -1;
char* g_allocation = nullptr;
int g_mapped = 0;
int g_pushed = 0;
int g_enabled = 0;
int g_owner = 0;  // the device whose memory the allocation is

char* mapping() {
  return static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g_descriptor, 0));
}

int range(std::uintptr_t* base, std::size_t* size, std::uintptr_t memory) {
  *base = reinterpret_cast<std::uintptr_t>(g_allocation);
  *size = bytes;
  return memory >= *base && memory < *base + bytes ? 0 : 1;
}

int get(handle* h) {
  std::memset(h, 0, sizeof *h);
  std::memcpy(h->bytes, &g_descriptor, sizeof g_descriptor);
  h->bytes[63] = 7;
  return 0;
}

int open(std::uintptr_t* memory, const handle& h) {
  if (h.bytes[63] != 7) return 400;
  ++g_mapped;
  *memory = reinterpret_cast<std::uintptr_t>(mapping());
  return 0;
}

int attribute(void* value, int which, std::uintptr_t) {
  constexpr int device = 9;
  if (which != device) return 1;
  std::memcpy(value, &g_owner, sizeof g_owner);
  return 0;
}

int enable() {
  constexpr int enabled_already = 704;
  return ++g_enabled == 1 ? 0 : enabled_already;
}

int close(std::uintptr_t memory) {
  --g_mapped;
  return munmap(reinterpret_cast<void*>(memory), bytes);
}

}  // namespace

extern "C" {

// For the test.
char* fake_allocation() {
  if (!g_allocation) {
    g_descriptor = memfd_create("fake", MFD_CLOEXEC);
    if (ftruncate(g_descriptor, bytes) != 0) return nullptr;
    g_allocation = mapping();
  }
  return g_allocation;
}
int fake_mapped() { return g_mapped; }
int fake_pushed() { return g_pushed; }
int fake_enabled() { return g_enabled; }
int fake_move() { return ++g_owner; }

#define SUCL_FAKE(retain, release, push, pop) \
  int retain(void** context, int) {           \
    *context = &g_pushed;                     \
    return 0;                                 \
  }                                           \
  int release(int) { return 0; }              \
  int push(void*) {                           \
    ++g_pushed;                               \
    return 0;                                 \
  }                                           \
  int pop(void**) {                           \
    --g_pushed;                               \
    return 0;                                 \
  }

SUCL_FAKE(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRelease_v2, cuCtxPushCurrent_v2,
          cuCtxPopCurrent_v2)
SUCL_FAKE(hipDevicePrimaryCtxRetain, hipDevicePrimaryCtxRelease, hipCtxPushCurrent,
          hipCtxPopCurrent)
#undef SUCL_FAKE

int cuIpcGetMemHandle(handle* h, std::uintptr_t) { return get(h); }
int hipIpcGetMemHandle(handle* h, std::uintptr_t) { return get(h); }
int cuIpcOpenMemHandle_v2(std::uintptr_t* memory, handle h, unsigned) { return open(memory, h); }
int hipIpcOpenMemHandle(std::uintptr_t* memory, handle h, unsigned) { return open(memory, h); }
int cuIpcCloseMemHandle(std::uintptr_t memory) { return close(memory); }
int hipIpcCloseMemHandle(std::uintptr_t memory) { return close(memory); }
int cuMemGetAddressRange_v2(std::uintptr_t* base, std::size_t* size, std::uintptr_t memory) {
  return range(base, size, memory);
}
int cuPointerGetAttribute(void* value, int which, std::uintptr_t memory) {
  return attribute(value, which, memory);
}
int hipPointerGetAttribute(void* value, int which, std::uintptr_t memory) {
  return attribute(value, which, memory);
}
int cuCtxEnablePeerAccess(void*, unsigned) { return enable(); }
int hipCtxEnablePeerAccess(void*, unsigned) { return enable(); }
int hipMemGetAddressRange(std::uintptr_t* base, std::size_t* size, std::uintptr_t memory) {
  return range(base, size, memory);
}

int zeMemGetIpcHandle(void*, const void*, handle* h) { return get(h); }
// The descriptor is one that the caller has got from the other process: not the same number.
int zeMemOpenIpcHandle(void*, void*, handle h, std::uint32_t, void** memory) {
  int descriptor = -1;
  std::memcpy(&descriptor, h.bytes, sizeof descriptor);
  if (descriptor == g_descriptor) return 401;
  *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ++g_mapped;
  return *memory == MAP_FAILED ? 402 : 0;
}
int zeMemCloseIpcHandle(void*, const void* memory) {
  return close(reinterpret_cast<std::uintptr_t>(memory));
}
int zeMemGetAddressRange(void*, const void* memory, void** base, std::size_t* size) {
  std::uintptr_t start = 0;
  const int code = range(&start, size, reinterpret_cast<std::uintptr_t>(memory));
  *base = reinterpret_cast<void*>(start);
  return code;
}

}  // extern "C"
