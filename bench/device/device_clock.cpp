// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "device_clock.hpp"

#include "base/error.hpp"
#include "base/system/library.hpp"

#include <atomic>
#include <chrono>
#include <string>

namespace sucl::bench {
namespace {

using handle = void*;

// Functions of CUDA's driver.
struct driver {
  base::library library = base::library::open("libcuda.so.1");
  template <class Function>
  Function find(const char* name) const {
    return library.symbol_as<Function>(name);
  }
  int (*retain)(handle*, int) = find<int (*)(handle*, int)>("cuDevicePrimaryCtxRetain");
  int (*release)(int) = find<int (*)(int)>("cuDevicePrimaryCtxRelease_v2");
  int (*push)(handle) = find<int (*)(handle)>("cuCtxPushCurrent_v2");
  int (*pop)(handle*) = find<int (*)(handle*)>("cuCtxPopCurrent_v2");
  int (*call)(handle, void (*)(void*),
              void*) = find<int (*)(handle, void (*)(void*), void*)>("cuLaunchHostFunc");
  int (*create)(handle*, unsigned) = find<int (*)(handle*, unsigned)>("cuEventCreate");
  int (*destroy)(handle) = find<int (*)(handle)>("cuEventDestroy_v2");
  int (*record)(handle, handle) = find<int (*)(handle, handle)>("cuEventRecord");
  int (*await)(handle) = find<int (*)(handle)>("cuEventSynchronize");
  int (*between)(float*, handle,
                 handle) = find<int (*)(float*, handle, handle)>("cuEventElapsedTime");
};

void check(int code, const char* what) {
  if (code == 0) return;
  base::fail(errc::native,
             std::string("the device cannot be timed: ") + what + ": code " + std::to_string(code) +
                 " of CUDA's driver",
             "Leave device out of --timing");
}

}  // namespace

struct device_clock::state {
  driver cuda;
  int device;
  handle stream;
  handle context = nullptr;
  handle begin = nullptr;
  handle end = nullptr;
  std::atomic<bool> open{true};
  std::atomic<bool> in_time{true};
  bool held = false;  // the stream may still come to wait()

  class here {
   public:
    explicit here(const state& s) : m_cuda(s.cuda) { check(m_cuda.push(s.context), "its context"); }
    ~here() {
      handle other;
      m_cuda.pop(&other);
    }

   private:
    const driver& m_cuda;
  };

  // Stands on the stream until it is released. Not for ever: what frees memory in another thread
  // may wait for the whole device, and hold up what is to be issued.
  static void wait(void* self) {
    auto& s = *static_cast<state*>(self);
    const auto latest = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (!s.open.load(std::memory_order_acquire))
      if (std::chrono::steady_clock::now() > latest) {
        s.in_time = false;
        return;
      }
  }
};

device_clock::device_clock(int device, void* stream)
    : m_state(new state{.cuda = {}, .device = device, .stream = stream}) {
  state& s = *m_state;
  check(s.cuda.retain(&s.context, device), "its context");
  const state::here here(s);
  check(s.cuda.create(&s.begin, 0), "an event");
  check(s.cuda.create(&s.end, 0), "an event");
}

device_clock::~device_clock() {
  state& s = *m_state;
  if (s.held) {  // after an error
    release();
    (void)m_state.release();
    return;
  }
  s.cuda.push(s.context);
  s.cuda.destroy(s.begin);
  s.cuda.destroy(s.end);
  handle other;
  s.cuda.pop(&other);
  s.cuda.release(s.device);
}

void device_clock::hold() {
  state& s = *m_state;
  const state::here here(s);
  s.open.store(false, std::memory_order_relaxed);
  s.in_time = true;
  s.held = true;
  check(s.cuda.call(s.stream, state::wait, &s), "a function on its stream");
}

void device_clock::begin() {
  const state::here here(*m_state);
  check(m_state->cuda.record(m_state->begin, m_state->stream), "the beginning");
}

void device_clock::end() {
  const state::here here(*m_state);
  check(m_state->cuda.record(m_state->end, m_state->stream), "the end");
}

void device_clock::release() { m_state->open.store(true, std::memory_order_release); }

std::optional<double> device_clock::elapsed() {
  state& s = *m_state;
  const state::here here(s);
  float milliseconds = 0;
  check(s.cuda.await(s.end), "waiting");
  s.held = false;
  check(s.cuda.between(&milliseconds, s.begin, s.end), "the time");
  if (!s.in_time) return std::nullopt;
  return 1e3 * static_cast<double>(milliseconds);
}

}  // namespace sucl::bench
