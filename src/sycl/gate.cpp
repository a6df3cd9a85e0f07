// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/gate.hpp"

#include "sycl/adaptivecpp.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include "base/error.hpp"
#include "base/library.hpp"
#include "base/log.hpp"

#include <atomic>
#include <cstdlib>

namespace sucl::glue {
namespace {

// CUDA gives the streams of a process 8 connections to the device unless told otherwise, and a
// stream that waits holds up all that share its connection. Read when CUDA starts; what the user
// has set stays.
[[gnu::constructor]] void ask_for_connections() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

constexpr unsigned plain = 0;  // flags: wait for "greater or equal"; write with a fence

/// The functions of the vendor. Their library is in the process with the SYCL runtime.
struct stream_words {
  base::library library;
  int (*cuda_wait)(void*, std::uintptr_t, std::uint32_t, unsigned) = nullptr;
  int (*cuda_write)(void*, std::uintptr_t, std::uint32_t, unsigned) = nullptr;
  int (*hip_wait)(void*, void*, std::uint32_t, unsigned, std::uint32_t) = nullptr;
  int (*hip_write)(void*, void*, std::uint32_t, unsigned) = nullptr;

  explicit stream_words(bool is_hip)
      : library(base::library::open(is_hip ? "libamdhip64.so" : "libcuda.so.1")) {
    if (is_hip) {
      hip_wait = library.symbol_as<decltype(hip_wait)>("hipStreamWaitValue32");
      hip_write = library.symbol_as<decltype(hip_write)>("hipStreamWriteValue32");
    } else {
      cuda_wait = library.symbol_as<decltype(cuda_wait)>("cuStreamWaitValue32_v2");
      cuda_write = library.symbol_as<decltype(cuda_write)>("cuStreamWriteValue32_v2");
    }
  }
};

const stream_words& functions(bool is_hip) {
  static const stream_words all(is_hip);  // a process has devices of one vendor
  return all;
}

void check(int result, const char* what) {
  if (result)
    base::log(base::log_level::error, "sycl", "a stream cannot ", what, " the host: code ", result,
              " of the driver");
}

::sycl::queue in_order(const ::sycl::queue& like) {
  return ::sycl::queue{like.get_context(), like.get_device(), ::sycl::property::queue::in_order()};
}

}  // namespace

gates::gates(const ::sycl::queue& of, pinned_memory& memory)
    : m_memory(memory),
      m_arrivals(in_order(of)),
      m_is_hip(of.get_device().get_backend() == ::sycl::backend::hip) {
  functions(m_is_hip);
}

gates::~gates() {
  m_arrivals.wait();
  for (auto& q : m_departures) q.wait();
}

gates::word gates::take() {
  const std::lock_guard lock(m_mutex);
  if (m_unused.empty()) {
    auto* words = static_cast<std::uint32_t*>(m_memory.take(page * sizeof(std::uint32_t)));
    if (!words)
      base::fail(errc::out_of_memory, "no host memory that the device reaches",
                 "Wait for earlier operations before issuing so many");
    for (std::size_t i = 0; i < page; ++i) {
      words[i] = 0;
      m_unused.push_back(words + i);
    }
  }
  auto* place = m_unused.back();
  m_unused.pop_back();
  return {place, std::atomic_ref(*place).load() + 1};
}

void gates::give_back(const word& w) {
  const std::lock_guard lock(m_mutex);
  m_unused.push_back(w.place);
}

bool gates::is_set(const word& w) {
  return std::atomic_ref(*w.place).load(std::memory_order_acquire) == w.value;
}

void gates::set(const word& w) {
  std::atomic_ref(*w.place).store(w.value, std::memory_order_release);
}

void gates::set_on(void* stream, const word& w) const {
  const auto& f = functions(m_is_hip);
  const auto place = reinterpret_cast<std::uintptr_t>(w.place);
  check(m_is_hip ? f.hip_write(stream, w.place, w.value, plain)
                 : f.cuda_write(stream, place, w.value, plain),
        "tell");
}

void gates::wait_on(void* stream, const word& w) const {
  const auto& f = functions(m_is_hip);
  const auto place = reinterpret_cast<std::uintptr_t>(w.place);
  check(m_is_hip ? f.hip_wait(stream, w.place, w.value, plain, ~0u)
                 : f.cuda_wait(stream, place, w.value, plain),
        "wait for");
}

::sycl::queue gates::departures() {
  const std::lock_guard lock(m_mutex);
  while (m_departures.size() < departure_queues) m_departures.push_back(in_order(m_arrivals));
  return m_departures[m_next++ % departure_queues];
}

}  // namespace sucl::glue
#endif
