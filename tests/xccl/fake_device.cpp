// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plays the CUDA driver: device memory is host memory, streams have finished when they are asked.
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int not_ready = 600;

struct event {
  int asked = 0;
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  static int contexts[8];
  *context = &contexts[device];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuDeviceGetUuid(unsigned char* uuid, int device) {
  std::memset(uuid, device + 1, 16);
  return 0;
}
int cuCtxPushCurrent_v2(void*) { return 0; }
int cuCtxPopCurrent_v2(void**) { return 0; }
int cuMemAlloc_v2(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory ? 0 : 2;
}
int cuMemFree_v2(void* memory) {
  std::free(memory);
  return 0;
}
int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, void*) {
  std::memmove(to, from, bytes);
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = new char;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<char*>(stream);
  return 0;
}
int cuStreamSynchronize(void*) { return 0; }
int cuEventCreate(void** made, unsigned) {
  *made = new event;
  return 0;
}
int cuEventDestroy_v2(void* e) {
  delete static_cast<event*>(e);
  return 0;
}
int cuEventRecord(void* e, void*) {
  static_cast<event*>(e)->asked = 0;
  return 0;
}
// The first look comes too early.
int cuEventQuery(void* e) { return static_cast<event*>(e)->asked++ ? 0 : not_ready; }

}  // extern "C"
