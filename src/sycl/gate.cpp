// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/gate.hpp"

#include "sycl/adaptivecpp.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include "base/error.hpp"
#include "base/library.hpp"
#include "base/log.hpp"

#include <atomic>

namespace sucl::glue {
namespace {

// Both call it "greater or equal".
constexpr unsigned at_least = 0;

using cuda_wait = int (*)(void* stream, std::uintptr_t place, std::uint32_t value, unsigned flags);
using hip_wait = int (*)(void* stream, void* place, std::uint32_t value, unsigned flags,
                         std::uint32_t mask);

/// The function that makes a stream wait. Its library is in the process with the SYCL runtime.
struct stream_wait {
  base::library library;
  cuda_wait cuda = nullptr;
  hip_wait hip = nullptr;

  explicit stream_wait(bool is_hip)
      : library(base::library::open(is_hip ? "libamdhip64.so" : "libcuda.so.1")) {
    if (is_hip)
      hip = library.symbol_as<hip_wait>("hipStreamWaitValue32");
    else
      cuda = library.symbol_as<cuda_wait>("cuStreamWaitValue32_v2");
  }
  int operator()(void* stream, const gates::word& w) const {
    if (cuda) return cuda(stream, reinterpret_cast<std::uintptr_t>(w.place), w.value, at_least);
    return hip(stream, w.place, w.value, at_least, ~0u);
  }
};

const stream_wait& wait_function(bool is_hip) {
  static const stream_wait function(is_hip);  // a process has devices of one vendor
  return function;
}

::sycl::queue in_order(const ::sycl::queue& like) {
  return ::sycl::queue{like.get_context(), like.get_device(), ::sycl::property::queue::in_order()};
}

}  // namespace

gates::gates(const ::sycl::queue& of, pinned_memory& memory)
    : m_memory(memory), m_first(in_order(of)) {}

gates::~gates() {
  m_first.wait();
  for (auto& q : m_others) q.wait();
}

gates::word gates::close() {
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

// Values only grow, so a word may be used again before its old gate has seen it.
void gates::open(const word& w) {
  std::atomic_ref(*w.place).store(w.value, std::memory_order_release);
  const std::lock_guard lock(m_mutex);
  m_unused.push_back(w.place);
}

::sycl::event gates::wait(const word& w, bool message) {
  ::sycl::queue* queue = &m_first;
  {
    const std::lock_guard lock(m_mutex);
    if (message) {
      if (m_others.empty())
        for (std::size_t i = 0; i < message_queues; ++i) m_others.push_back(in_order(m_first));
      queue = &m_others[m_next++ % message_queues];
    }
  }
  const auto& put = wait_function(m_first.get_device().get_backend() == ::sycl::backend::hip);
  auto done = queue->submit([&](::sycl::handler& h) {
    h.AdaptiveCpp_enqueue_custom_operation([w, &put](::sycl::interop_handle& handle) {
      if (const int result = put(stream_of(handle), w))
        base::log(base::log_level::error, "sycl", "a stream cannot wait for the host: code ",
                  result, " of the driver");
    });
  });
  flush();
  return done;
}

}  // namespace sucl::glue
#endif
