// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/completion/gate.hpp"

#include "sycl/common/adaptivecpp.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/system/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>

namespace sucl::sycl_layer {
namespace {

// Read when CUDA starts; what the user has set stays. CUDA gives the streams of a process 8
// connections to the device unless configured otherwise, and a stream that waits holds up all that
// share its connection. It loads a kernel when that is first used, which waits for all streams,
// also those that wait for another rank. Python's libraries have gigabytes of kernels.
[[gnu::constructor]] void configure_cuda() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (!dlsym(RTLD_DEFAULT, "Py_GetVersion")) setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

constexpr unsigned plain = 0;  // flags: wait for "greater or equal"; write with a fence
constexpr int by_address = 4;  // hipMemcpyDefault

/// The functions of the vendor. Their library is in the process with the SYCL runtime.
struct stream_words {
  base::library library;
  int (*cuda_wait)(void*, std::uintptr_t, std::uint32_t, unsigned) = nullptr;
  int (*cuda_write)(void*, std::uintptr_t, std::uint32_t, unsigned) = nullptr;
  int (*hip_wait)(void*, void*, std::uint32_t, unsigned, std::uint32_t) = nullptr;
  int (*hip_write)(void*, void*, std::uint32_t, unsigned) = nullptr;
  int (*cuda_copy)(std::uintptr_t, std::uintptr_t, std::size_t, void*) = nullptr;
  int (*hip_copy)(void*, const void*, std::size_t, int, void*) = nullptr;

  explicit stream_words(bool is_hip)
      : library(base::library::open(is_hip ? "libamdhip64.so" : "libcuda.so.1")) {
    if (is_hip) {
      hip_wait = library.symbol_as<decltype(hip_wait)>("hipStreamWaitValue32");
      hip_write = library.symbol_as<decltype(hip_write)>("hipStreamWriteValue32");
      hip_copy = library.symbol_as<decltype(hip_copy)>("hipMemcpyAsync");
    } else {
      cuda_wait = library.symbol_as<decltype(cuda_wait)>("cuStreamWaitValue32_v2");
      cuda_write = library.symbol_as<decltype(cuda_write)>("cuStreamWriteValue32_v2");
      cuda_copy = library.symbol_as<decltype(cuda_copy)>("cuMemcpyAsync");
    }
  }
};

const stream_words& functions(bool is_hip) {
  static const stream_words all(is_hip);  // a process has devices of one vendor
  return all;
}

void check(int result, const char* what) {
  if (result)
    base::log(base::log_level::error, "sycl", "a stream cannot ", what, ": code ", result,
              " of the driver");
}

[[noreturn]] void out_of_memory() {
  base::fail(errc::out_of_memory, "no host memory that the device reaches",
             "Wait for earlier operations before issuing so many");
}

constexpr std::size_t min_buffer_bytes = 4096;

}  // namespace

std::shared_ptr<gates> gates::of(const ::sycl::queue& queue) {
  struct entry {
    ::sycl::context context;
    ::sycl::device device;
    std::weak_ptr<gates> made;
  };
  static auto& all = *new std::vector<entry>;  // communicators may outlive the end of this library
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const entry& e) { return e.made.expired(); });
  for (const entry& e : all)
    if (e.context == queue.get_context() && e.device == queue.get_device())
      if (auto made = e.made.lock()) return made;
  auto made = std::make_shared<gates>(queue);
  all.push_back({queue.get_context(), queue.get_device(), made});
  return made;
}

gates::gates(const ::sycl::queue& like)
    : m_memory(like), m_is_hip(like.get_device().get_backend() == ::sycl::backend::hip) {
  functions(m_is_hip);
  while (m_queues.size() < message_queues::all) m_queues.push_back(own_queue(like, true));
}

gates::~gates() {
  for (auto& q : m_queues) q.wait();
}

gates::word gates::take() {
  const std::lock_guard lock(m_mutex);
  if (m_unused.empty()) {
    auto* words = static_cast<std::uint32_t*>(m_memory.take(page * sizeof(std::uint32_t)));
    if (!words) out_of_memory();
    for (std::size_t i = 0; i < page; ++i) {
      words[i] = 0;
      m_unused.push_back(words + i);
    }
  }
  auto* flag = m_unused.back();
  m_unused.pop_back();
  return {flag, std::atomic_ref(*flag).load() + 1};
}

void gates::give_back(const word& w) {
  const std::lock_guard lock(m_mutex);
  m_unused.push_back(w.flag);
}

bool gates::is_set(const word& w) {
  return std::atomic_ref(*w.flag).load(std::memory_order_acquire) == w.value;
}

void gates::set(const word& w) {
  std::atomic_ref(*w.flag).store(w.value, std::memory_order_release);
}

void gates::set_on(void* stream, const word& w) const {
  const auto& f = functions(m_is_hip);
  const auto address = reinterpret_cast<std::uintptr_t>(w.flag);
  check(m_is_hip ? f.hip_write(stream, w.flag, w.value, plain)
                 : f.cuda_write(stream, address, w.value, plain),
        "notify the host");
}

void gates::wait_on(void* stream, const word& w) const {
  const auto& f = functions(m_is_hip);
  const auto address = reinterpret_cast<std::uintptr_t>(w.flag);
  check(m_is_hip ? f.hip_wait(stream, w.flag, w.value, plain, ~0u)
                 : f.cuda_wait(stream, address, w.value, plain),
        "wait for the host");
}

void gates::copy_on(void* stream, void* to, const void* from, std::size_t bytes) const {
  const auto& f = functions(m_is_hip);
  check(m_is_hip ? f.hip_copy(to, from, bytes, by_address, stream)
                 : f.cuda_copy(reinterpret_cast<std::uintptr_t>(to),
                               reinterpret_cast<std::uintptr_t>(from), bytes, stream),
        "copy");
}

gates::pooled_buffer gates::take_buffer(std::size_t bytes) {
  const std::size_t unit = std::max(min_buffer_bytes, std::bit_ceil(bytes) / 8);
  const std::size_t size = (bytes + unit - 1) / unit * unit;
  {
    const std::lock_guard lock(m_mutex);
    for (auto [one, last] = m_buffers.equal_range(size); one != last; ++one) {
      pooled_buffer& l = one->second;
      if (!is_set(l.over)) continue;
      ++l.over.value;
      return l;
    }
  }
  pooled_buffer fresh{static_cast<std::byte*>(m_memory.take(size)), take()};
  if (!fresh.memory) out_of_memory();
  const std::lock_guard lock(m_mutex);
  m_buffers.emplace(size, fresh);
  return fresh;
}

message_queues::choice gates::enter(bool waits) {
  const std::lock_guard lock(m_mutex);
  return m_message_queues.enter(waits);
}

void gates::leave(const message_queues::choice& c) {
  const std::lock_guard lock(m_mutex);
  m_message_queues.leave(c);
}

}  // namespace sucl::sycl_layer
#endif
