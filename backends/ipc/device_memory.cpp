// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sucl::ipc {
namespace {

constexpr unsigned lazy_peer_access = 1;
constexpr int attribute_device = 9;
constexpr int enabled_already = 704;

struct name_row {
  std::size_t offset;  // of the pointer in its table
  const char* cuda;
  const char* hip;
};

#define SUCL_NAME(field, cuda, hip) {offsetof(cuda_api, field), cuda, hip}
const name_row cuda_names[] = {
    SUCL_NAME(retain_context, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"),
    SUCL_NAME(release_context, "cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease"),
    SUCL_NAME(push_context, "cuCtxPushCurrent_v2", "hipCtxPushCurrent"),
    SUCL_NAME(pop_context, "cuCtxPopCurrent_v2", "hipCtxPopCurrent"),
    SUCL_NAME(get_handle, "cuIpcGetMemHandle", "hipIpcGetMemHandle"),
    SUCL_NAME(open_handle, "cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle"),
    SUCL_NAME(close_handle, "cuIpcCloseMemHandle", "hipIpcCloseMemHandle"),
    SUCL_NAME(get_range, "cuMemGetAddressRange_v2", "hipMemGetAddressRange"),
    SUCL_NAME(get_attribute, "cuPointerGetAttribute", "hipPointerGetAttribute"),
    SUCL_NAME(enable_peer, "cuCtxEnablePeerAccess", "hipCtxEnablePeerAccess"),
};
#undef SUCL_NAME

#define SUCL_NAME(field, name) {offsetof(level_zero_api, field), name, name}
const name_row level_zero_names[] = {
    SUCL_NAME(get_handle, "zeMemGetIpcHandle"),
    SUCL_NAME(open_handle, "zeMemOpenIpcHandle"),
    SUCL_NAME(close_handle, "zeMemCloseIpcHandle"),
    SUCL_NAME(get_range, "zeMemGetAddressRange"),
};
#undef SUCL_NAME

// Fills a table; returns what is missing, "" if nothing is.
template <class Table, std::size_t Rows>
std::string fill(Table& table, const char* file, bool is_hip, const name_row (&rows)[Rows]) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::string("there is no ") + file;
  for (const name_row& row : rows) {
    void* address = dlsym(library, is_hip ? row.hip : row.cuda);
    if (!address) return std::string(file) + " has no " + (is_hip ? row.hip : row.cuda);
    std::memcpy(reinterpret_cast<char*>(&table) + row.offset, &address, sizeof address);
  }
  return {};
}

/// CUDA and HIP.
class cuda_memory final : public device_memory {
 public:
  cuda_memory(bool is_hip, int device) : m_device(device) {
    m_problem = fill(m_api, is_hip ? "libamdhip64.so" : "libcuda.so.1", is_hip, cuda_names);
    if (m_problem.empty() && m_api.retain_context(&m_context, device) != 0) {
      m_problem = "the device cannot be used";
      m_context = nullptr;
    }
  }
  ~cuda_memory() override {
    close_all();
    if (m_context) m_api.release_context(m_device);
  }

  int get_handle(const void* memory, device_key& key) override {
    const current here(*this);
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    std::uintptr_t base = 0;
    std::size_t bytes = 0;
    if (const int code = m_api.get_range(&base, &bytes, address)) return code;
    key.offset = address - base;
    key.bytes = bytes;
    key.address = base;
    return m_api.get_handle(&key.handle, base);
  }

  // Memory of other processes is opened with access; that of another device of this one is not.
  int reach(std::uintptr_t memory) override {
    const current here(*this);
    int owner = m_device;
    if (const int code = m_api.get_attribute(&owner, attribute_device, memory)) return code;
    if (owner == m_device) return 0;
    void* theirs = nullptr;
    if (const int code = m_api.retain_context(&theirs, owner)) return code;
    const int code = m_api.enable_peer(theirs, 0);
    m_api.release_context(owner);  // the other rank keeps it
    return code == enabled_already ? 0 : code;
  }

 private:
  // The device is the calling thread's meanwhile.
  class current {
   public:
    explicit current(const cuda_memory& m) : m_memory(m) { m.m_api.push_context(m.m_context); }
    ~current() {
      void* mine = nullptr;
      m_memory.m_api.pop_context(&mine);
    }
    current(const current&) = delete;
    current& operator=(const current&) = delete;

   private:
    const cuda_memory& m_memory;
  };

  int map(const device_key& key, void** base) override {
    const current here(*this);
    std::uintptr_t address = 0;
    const int code = m_api.open_handle(&address, key.handle, lazy_peer_access);
    *base = reinterpret_cast<void*>(address);
    return code;
  }
  void unmap(void* base) override {
    const current here(*this);
    m_api.close_handle(reinterpret_cast<std::uintptr_t>(base));
  }

  cuda_api m_api{};
  int m_device;
  void* m_context = nullptr;
};

/// Level Zero. Its handles begin with a descriptor of the exporting process.
class level_zero_memory final : public device_memory {
 public:
  level_zero_memory(void* device, void* context) : m_device(device), m_context(context) {
    m_problem = fill(m_api, "libze_loader.so.1", false, level_zero_names);
  }
  ~level_zero_memory() override { close_all(); }

  int get_handle(const void* memory, device_key& key) override {
    void* base = nullptr;
    std::size_t bytes = 0;
    if (const int code = m_api.get_range(m_context, memory, &base, &bytes)) return code;
    key.offset = static_cast<std::uint64_t>(static_cast<const char*>(memory) -
                                            static_cast<const char*>(base));
    key.bytes = bytes;
    key.address = reinterpret_cast<std::uint64_t>(base);
    return m_api.get_handle(m_context, base, &key.handle);
  }

 private:
  int map(const device_key& key, void** base) override {
    memory_handle own = key.handle;
    int descriptor = -1;
    std::memcpy(&descriptor, own.bytes, sizeof descriptor);
    const auto process = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(key.pid), 0));
    if (process < 0) return errno;
    const auto taken = static_cast<int>(syscall(SYS_pidfd_getfd, process, descriptor, 0));
    const int problem = errno;
    ::close(process);
    if (taken < 0) return problem;
    std::memcpy(own.bytes, &taken, sizeof taken);
    const int code = m_api.open_handle(m_context, m_device, own, 0, base);
    ::close(taken);
    return code;
  }
  void unmap(void* base) override { m_api.close_handle(m_context, base); }

  level_zero_api m_api{};
  void* m_device;
  void* m_context;
};

}  // namespace

std::unique_ptr<device_memory> device_memory::make(const sucl_comm_info& info) {
  const std::string platform = info.platform ? info.platform : "";
  if (!info.native_device) return nullptr;
  if (platform == "cuda" || platform == "hip") {
    int device = 0;
    std::memcpy(&device, info.native_device, sizeof device);
    return std::make_unique<cuda_memory>(platform == "hip", device);
  }
  if (platform == "level_zero" && info.native_context)
    return std::make_unique<level_zero_memory>(info.native_device, info.native_context);
  return nullptr;
}

int device_memory::open(int rank, const device_key& key, void** memory) {
  auto known = std::find_if(m_mappings.begin(), m_mappings.end(), [&](const mapping& m) {
    return m.rank == rank && std::memcmp(&m.key.handle, &key.handle, sizeof key.handle) == 0;
  });
  if (known == m_mappings.end()) {
    void* base = nullptr;
    if (const int code = map(key, &base)) return code;
    m_mappings.push_back({rank, key, static_cast<std::byte*>(base), 0});
    known = m_mappings.end() - 1;
  }
  ++known->users;
  *memory = known->base + key.offset;
  return 0;
}

void device_memory::close(int rank, const void* memory) {
  const auto known = std::find_if(m_mappings.begin(), m_mappings.end(), [&](const mapping& m) {
    const auto* at = static_cast<const std::byte*>(memory);
    return m.rank == rank && at >= m.base && at < m.base + m.key.bytes;
  });
  if (known == m_mappings.end() || --known->users > 0) return;
  unmap(known->base);
  m_mappings.erase(known);
}

void device_memory::close_all() {
  for (const mapping& m : m_mappings) unmap(m.base);
  m_mappings.clear();
}

}  // namespace sucl::ipc
