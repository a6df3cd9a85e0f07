// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plays CUDA's driver for programs that are interposed. The host cannot touch memory of the device:
// it is mapped without access, and copies go by another mapping. Copies are executed when their
// stream is waited for. A context has to be current, and the stream's own.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

constexpr int invalid_value = 1, not_initialised = 3, invalid_context = 201, invalid_handle = 400;
constexpr int device_count = 2;

struct allocation {
  std::size_t bytes;
  char* by_copies;  // where copies reach it
  bool managed;
};

struct copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct stream {
  void* context;
  std::vector<copy> copies;
};

std::mutex g_mutex;  // guards what follows
std::map<std::uintptr_t, allocation> g_memory;
bool g_initialised = false;
char g_contexts[device_count];
thread_local std::vector<void*> t_current;

void* current() { return t_current.empty() ? nullptr : t_current.back(); }

const allocation* find(std::uintptr_t address, std::uintptr_t& base) {
  auto after = g_memory.upper_bound(address);
  if (after == g_memory.begin()) return nullptr;
  --after;
  base = after->first;
  return address < base + after->second.bytes ? &after->second : nullptr;
}

// Where copies reach `bytes` bytes of a device; null if that is not all device memory.
char* reach(std::uintptr_t address, std::size_t bytes) {
  std::uintptr_t base = 0;
  const allocation* a = find(address, base);
  if (!a || address - base + bytes > a->bytes) return nullptr;
  return a->by_copies + (address - base);
}

int allocate(void** memory, std::size_t bytes, bool managed) {
  const std::lock_guard lock(g_mutex);
  if (!current()) return invalid_context;
  const int file = memfd_create("sucl-fake-device", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return 2;
  const int access = managed ? PROT_READ | PROT_WRITE : PROT_NONE;
  *memory = mmap(nullptr, bytes, access, MAP_SHARED, file, 0);
  void* other = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (*memory == MAP_FAILED || other == MAP_FAILED) return 2;
  g_memory[reinterpret_cast<std::uintptr_t>(*memory)] = {bytes, static_cast<char*>(other), managed};
  return 0;
}

int enqueue(stream* s, void* to, const void* from, std::size_t bytes) {
  if (!to || !from) return invalid_value;
  if (!s || s->context != current()) return invalid_handle;
  s->copies.push_back({to, from, bytes});
  return 0;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  const std::lock_guard lock(g_mutex);
  g_initialised = true;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = device_count;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 0 || device >= device_count) return invalid_value;
  *context = &g_contexts[device];
  return 0;
}
int cuCtxSetCurrent(void* context) {
  t_current.assign(1, context);
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  t_current.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (t_current.empty()) return invalid_context;
  *context = t_current.back();
  t_current.pop_back();
  return 0;
}
int cuMemAlloc_v2(void** memory, std::size_t bytes) { return allocate(memory, bytes, false); }
int cuMemAllocManaged(void** memory, std::size_t bytes, unsigned) {
  return allocate(memory, bytes, true);
}
int cuMemFree_v2(std::uintptr_t memory) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_memory.find(memory);
  if (found == g_memory.end()) return invalid_value;
  munmap(found->second.by_copies, found->second.bytes);
  munmap(reinterpret_cast<void*>(memory), found->second.bytes);
  g_memory.erase(found);
  return 0;
}
int cuPointerGetAttribute(void* value, int attribute, std::uintptr_t address) {
  const std::lock_guard lock(g_mutex);
  if (!g_initialised) return not_initialised;
  std::uintptr_t base = 0;
  const allocation* a = find(address, base);
  if (!a) return invalid_value;
  // Memory of a pool is of no context.
  if (attribute == 1) *static_cast<void**>(value) = a->bytes % 2 ? &g_contexts[0] : nullptr;
  if (attribute == 2) *static_cast<unsigned*>(value) = 2;
  if (attribute == 8) *static_cast<unsigned*>(value) = a->managed;
  if (attribute == 9) *static_cast<int*>(value) = 0;
  return attribute == 1 || attribute == 2 || attribute == 8 || attribute == 9 ? 0 : invalid_value;
}
int cuMemcpyHtoD_v2(std::uintptr_t to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(g_mutex);
  char* const there = reach(to, bytes);
  if (!there) return invalid_value;
  std::memcpy(there, from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void* to, std::uintptr_t from, std::size_t bytes) {
  const std::lock_guard lock(g_mutex);
  const char* const there = reach(from, bytes);
  if (!there) return invalid_value;
  std::memcpy(to, there, bytes);
  return 0;
}
int cuStreamCreate(stream** made, unsigned) {
  *made = new stream{current(), {}};
  return current() ? 0 : invalid_context;
}
int cuMemcpyHtoDAsync_v2(std::uintptr_t to, const void* from, std::size_t bytes, stream* s) {
  const std::lock_guard lock(g_mutex);
  return enqueue(s, reach(to, bytes), from, bytes);
}
int cuMemcpyDtoHAsync_v2(void* to, std::uintptr_t from, std::size_t bytes, stream* s) {
  const std::lock_guard lock(g_mutex);
  return enqueue(s, to, reach(from, bytes), bytes);
}
int cuStreamSynchronize(stream* s) {
  const std::lock_guard lock(g_mutex);
  if (!s) return invalid_handle;
  for (const copy& c : s->copies) std::memcpy(c.to, c.from, c.bytes);
  s->copies.clear();
  return 0;
}
int cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory ? 0 : 2;
}
int cuMemFreeHost(void* memory) {
  std::free(memory);
  return 0;
}
int cuMemHostRegister_v2(void*, std::size_t, unsigned) { return 0; }
int cuMemHostUnregister(void*) { return 0; }

}  // extern "C"
