// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// CUDA's driver and HIP's runtime, which agree in most arguments. Our own declarations of what is
// called: no vendor header is needed.
#include "interposer/device/driver.hpp"

#include <sucl/error.hpp>

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace sucl::interposer::device {
namespace {

using address = std::uintptr_t;
using stream = void*;

constexpr int ok = 0;
// A stream that waits for what the program has put on its default stream, as copies of its own
// would: even one that has returned, from pageable memory, may not have reached the device yet.
constexpr unsigned after_default_stream = 0;
constexpr unsigned portable = 1;  // memory that is pinned for all contexts

// What is asked of addresses: these numbers are the same in both.
constexpr int attribute_context = 1, attribute_memory_type = 2, attribute_device_pointer = 3,
              attribute_host_pointer = 4, attribute_is_managed = 8, attribute_ordinal = 9;
constexpr int cuda_device_memory = 2;

struct api {
  int (*get_attribute)(void* value, int attribute, address memory);
  int (*retain_context)(void** context, int device);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*create_stream)(stream* made, unsigned flags);
  int (*synchronize)(stream s);
  int (*to_host)(void* to, address from, std::size_t bytes, stream s);
  int (*to_device)(address to, const void* from, std::size_t bytes, stream s);
  int (*pin)(void* memory, std::size_t bytes, unsigned flags);
  int (*unpin)(void* memory);
};

struct name_row {
  std::size_t offset;
  const char* cuda;
  const char* hip;
};
#define SUCL_NAME(field, cuda, hip) {offsetof(api, field), cuda, hip}
constexpr name_row names[] = {
    SUCL_NAME(get_attribute, "cuPointerGetAttribute", "hipPointerGetAttribute"),
    SUCL_NAME(retain_context, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"),
    SUCL_NAME(push_context, "cuCtxPushCurrent_v2", "hipCtxPushCurrent"),
    SUCL_NAME(pop_context, "cuCtxPopCurrent_v2", "hipCtxPopCurrent"),
    SUCL_NAME(create_stream, "cuStreamCreate", "hipStreamCreateWithFlags"),
    SUCL_NAME(synchronize, "cuStreamSynchronize", "hipStreamSynchronize"),
    SUCL_NAME(to_host, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"),
    SUCL_NAME(to_device, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"),
    SUCL_NAME(pin, "cuMemHostRegister_v2", "hipHostRegister"),
    SUCL_NAME(unpin, "cuMemHostUnregister", "hipHostUnregister"),
};
#undef SUCL_NAME

void check(int code, const char* what) {
  if (code == ok) return;
  throw error({errc::native,
               std::string(what) + " between a device and the host fails with the driver's error " +
                   std::to_string(code),
               "See whether the program's own use of the device has failed before.", "",
               "interposer"});
}

class cuda_driver final : public driver {
 public:
  cuda_driver(const api& functions, bool is_hip)
      : driver(is_hip ? vendor::hip : vendor::cuda), m_api(functions), m_is_hip(is_hip) {}

  std::optional<owner> find(const void* memory) override {
    const auto at = reinterpret_cast<address>(memory);
    if (!(m_is_hip ? is_hip_memory(at) : is_cuda_memory(at))) return std::nullopt;
    owner found{this};
    if (query(found.ordinal, attribute_ordinal, at) != ok) found.ordinal = 0;
    // Memory of pools has none, and that of HIP is of the device.
    if (m_is_hip || query(found.context, attribute_context, at) != ok) found.context = nullptr;
    if (!found.context) found.context = primary(found.ordinal);
    return found;
  }

  void copy(const owner& of, char* on_device, char* on_host, const std::vector<rows>& what,
            direction to) override {
    if (what.empty()) return;
    const current here(m_api, of.context);
    const stream s = stream_of(of.context);
    for (const rows& r : what) {
      std::ptrdiff_t at = r.offset;
      for (std::size_t row = 0; row < r.count; ++row, at += r.pitch) {
        const auto there = reinterpret_cast<address>(on_device + at);
        check(to == direction::to_host ? m_api.to_host(on_host + at, there, r.bytes, s)
                                       : m_api.to_device(there, on_host + at, r.bytes, s),
              "a copy");
      }
    }
    check(m_api.synchronize(s), "a copy");
  }

  void pin(void* memory, std::size_t bytes) override { m_api.pin(memory, bytes, portable); }
  void unpin(void* memory) override { m_api.unpin(memory); }

 private:
  // A context is the calling thread's meanwhile.
  class current {
   public:
    current(const api& functions, void* context) : m_api(functions) {
      check(m_api.push_context(context), "the choice of a context");
    }
    ~current() {
      void* mine = nullptr;
      m_api.pop_context(&mine);
    }
    current(const current&) = delete;
    current& operator=(const current&) = delete;

   private:
    const api& m_api;
  };

  template <class Value>
  int query(Value& value, int attribute, address memory) const {
    return m_api.get_attribute(&value, attribute, memory);
  }
  // Before the driver is initialised, and of memory that it does not know, the answer is an error.
  bool is_cuda_memory(address memory) const {
    int type = 0;
    unsigned managed = 0;
    return query(type, attribute_memory_type, memory) == ok && type == cuda_device_memory &&
           (query(managed, attribute_is_managed, memory) != ok || !managed);
  }
  // The numbers of kinds of memory are others in each generation of HIP.
  bool is_hip_memory(address memory) const {
    unsigned managed = 0;
    void *own = nullptr, *host = nullptr;
    return query(own, attribute_device_pointer, memory) == ok && own &&
           (query(managed, attribute_is_managed, memory) != ok || !managed) &&
           (query(host, attribute_host_pointer, memory) != ok || !host);
  }

  // Kept for as long as the process lasts, as the stream in it.
  void* primary(int device) {
    const std::lock_guard lock(m_mutex);
    void*& context = m_primary[device];
    if (!context) check(m_api.retain_context(&context, device), "the choice of a context");
    return context;
  }
  stream stream_of(void* context) {
    const std::lock_guard lock(m_mutex);
    stream& s = m_streams[context];
    if (!s) check(m_api.create_stream(&s, after_default_stream), "a stream");
    return s;
  }

  const api m_api;
  const bool m_is_hip;
  std::mutex m_mutex;  // guards what follows
  std::map<int, void*> m_primary;
  std::map<void*, stream> m_streams;
};

std::unique_ptr<driver> find_driver(std::initializer_list<const char*> files, bool is_hip) {
  for (const char* file : files) {
    void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) continue;
    api functions{};
    bool complete = true;
    for (const name_row& row : names) {
      void* const found = dlsym(library, is_hip ? row.hip : row.cuda);
      complete = complete && found;
      std::memcpy(reinterpret_cast<char*>(&functions) + row.offset, &found, sizeof found);
    }
    if (complete) return std::make_unique<cuda_driver>(functions, is_hip);
    dlclose(library);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<driver> find_cuda() { return find_driver({"libcuda.so.1"}, false); }
std::unique_ptr<driver> find_hip() {
  return find_driver({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
                     true);
}

}  // namespace sucl::interposer::device
