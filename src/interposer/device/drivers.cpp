// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/device/drivers.hpp"

#include "base/error.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace sucl::interposer::device {

namespace detail {

constinit watch watched;

}  // namespace detail

namespace {

using detail::watched;

// Outlives whatever the end of the process calls.
struct all_drivers {
  std::mutex mutex;  // guards what follows
  // The library that was the last one stays loaded while it is watched, and the one before it, too:
  // another thread may be looking at it.
  void* held = nullptr;
  void* held_before = nullptr;
  std::unique_ptr<driver> cuda, hip;
  // Looked at without the lock: they are never taken away.
  std::atomic<driver*> found[2] = {nullptr, nullptr};
};

all_drivers& drivers() {
  static all_drivers& all = *new all_drivers;
  return all;
}

// The name of the library that was loaded last.
int keep_name(dl_phdr_info* info, std::size_t, void* name) {
  if (info->dlpi_name && *info->dlpi_name) *static_cast<std::string*>(name) = info->dlpi_name;
  return 0;
}

// It stays loaded. Null if it has been unloaded by now: then the next call looks again.
const link_map* hold_last(all_drivers& all) {
  std::string name;
  dl_iterate_phdr(&keep_name, &name);
  void* const now = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!now) return nullptr;
  if (all.held_before) dlclose(all.held_before);
  all.held_before = std::exchange(all.held, now);
  link_map* map = nullptr;
  return dlinfo(now, RTLD_DI_LINKMAP, &map) == 0 ? map : nullptr;
}

}  // namespace

void detail::look() {
  all_drivers& all = drivers();
  const std::lock_guard lock(all.mutex);
  // First the last one, then what is there: nothing is missed that comes in between. Other threads
  // see that there is nothing new when they can see what there is.
  const link_map* const last = hold_last(all);
  if (!all.cuda) all.found[0].store((all.cuda = find_cuda()).get());
  if (!all.hip) all.found[1].store((all.hip = find_hip()).get());
  if (all.cuda || all.hip) watched.any.store(true, std::memory_order_release);
  if (last) watched.last.store(last, std::memory_order_release);
}

void enable() {
  for (int tries = 8; tries > 0 && !watched.last.load(); --tries) detail::look();
}

namespace {

struct span {
  std::uintptr_t begin = 0, end = 0;
  bool contains(std::uintptr_t at) const { return at >= begin && at < end; }
};

span find_stack() {
  span found;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return found;
  void* begin = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0)
    found = {reinterpret_cast<std::uintptr_t>(begin),
             reinterpret_cast<std::uintptr_t>(begin) + bytes};
  pthread_attr_destroy(&attributes);
  return found;
}

// Where the heap begins that malloc() extends.
std::uintptr_t find_heap() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("[heap]") != std::string::npos) return std::stoull(line, nullptr, 16);
  return std::numeric_limits<std::uintptr_t>::max();
}

// Where it ends at the moment; 0 if the C library does not tell. Not by sbrk(0): UCX
// replaces it by one that reads the end and sets it to that, which takes away what a malloc() of
// another thread has added in between.
std::uintptr_t heap_end() {
  static const auto* const end =
      static_cast<const std::uintptr_t*>(dlsym(RTLD_DEFAULT, "__curbrk"));
  return end ? __atomic_load_n(end, __ATOMIC_RELAXED) : 0;
}

}  // namespace

bool is_surely_of_host(const void* address) {
  static thread_local const span stack = find_stack();
  static const std::uintptr_t heap = find_heap();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return stack.contains(at) || (at >= heap && at < heap_end());
}

std::optional<owner> find(const void* address) {
  for (const auto& found : drivers().found) {
    driver* const d = found.load(std::memory_order_acquire);
    if (!d) continue;
    if (auto where = d->find(address)) return where;
  }
  return std::nullopt;
}

namespace {

// Pinned memory that is kept for later calls; beyond that it goes back at once.
constexpr std::size_t max_kept_bytes = std::size_t{1} << 30;

struct host_pool {
  std::mutex mutex;  // guards what follows
  std::map<std::pair<driver*, std::size_t>, std::vector<void*>> unused;
  std::size_t kept_bytes = 0;
};

host_pool& pool() {
  static host_pool& one = *new host_pool;
  return one;
}

// To an eighth of a power of two: few sizes, and little that is pinned in vain.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t step = std::max(std::bit_floor(bytes) / 8, page);
  return (bytes + step - 1) / step * step;
}

}  // namespace

void* take_host_memory(driver& by, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  {
    const std::lock_guard lock(pool().mutex);
    auto& unused = pool().unused[{&by, size}];
    if (!unused.empty()) {
      void* const memory = unused.back();
      unused.pop_back();
      pool().kept_bytes -= size;
      return memory;
    }
  }
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw error({errc::out_of_memory,
                 "no host memory of " + std::to_string(size) + " bytes for a buffer on a device",
                 "Use types and buffers that span less memory.", "", "interposer"});
  by.pin(memory, size);
  return memory;
}

void give_back_host_memory(driver& by, void* memory, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  {
    const std::lock_guard lock(pool().mutex);
    if (pool().kept_bytes + size <= max_kept_bytes) {
      pool().unused[{&by, size}].push_back(memory);
      pool().kept_bytes += size;
      return;
    }
  }
  by.unpin(memory);
  munmap(memory, size);
}

}  // namespace sucl::interposer::device
