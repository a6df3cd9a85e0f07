// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "device_clock.hpp"

#include "cuda_context.hpp"

#include <atomic>
#include <chrono>

namespace sucl::bench {

struct device_clock::state {
  using handle = cuda_handle;

  cuda_context cuda;
  handle stream;
  int (*call)(handle, void (*)(void*),
              void*) = cuda.find<int (*)(handle, void (*)(void*), void*)>("cuLaunchHostFunc");
  int (*create)(handle*, unsigned) = cuda.find<int (*)(handle*, unsigned)>("cuEventCreate");
  int (*destroy)(handle) = cuda.find<int (*)(handle)>("cuEventDestroy_v2");
  int (*record)(handle, handle) = cuda.find<int (*)(handle, handle)>("cuEventRecord");
  int (*await)(handle) = cuda.find<int (*)(handle)>("cuEventSynchronize");
  int (*between)(float*, handle,
                 handle) = cuda.find<int (*)(float*, handle, handle)>("cuEventElapsedTime");
  handle begin = nullptr;
  handle end = nullptr;
  std::atomic<bool> open{true};
  std::atomic<bool> in_time{true};
  bool held = false;  // the stream may still come to wait()

  state(int device, void* on)
      : cuda(device, "the device cannot be timed", "Leave device out of --timing"), stream(on) {}

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

device_clock::device_clock(int device, void* stream) : m_state(new state(device, stream)) {
  state& s = *m_state;
  const cuda_context::here here(s.cuda);
  s.cuda.check(s.create(&s.begin, 0), "an event");
  s.cuda.check(s.create(&s.end, 0), "an event");
}

device_clock::~device_clock() {
  state& s = *m_state;
  if (s.held) {  // after an error
    release();
    (void)m_state.release();
    return;
  }
  const cuda_context::here here(s.cuda);
  s.destroy(s.begin);
  s.destroy(s.end);
}

void device_clock::hold() {
  state& s = *m_state;
  const cuda_context::here here(s.cuda);
  s.open.store(false, std::memory_order_relaxed);
  s.in_time = true;
  s.held = true;
  s.cuda.check(s.call(s.stream, state::wait, &s), "a function on its stream");
}

void device_clock::begin() {
  const cuda_context::here here(m_state->cuda);
  m_state->cuda.check(m_state->record(m_state->begin, m_state->stream), "the beginning");
}

void device_clock::end() {
  const cuda_context::here here(m_state->cuda);
  m_state->cuda.check(m_state->record(m_state->end, m_state->stream), "the end");
}

void device_clock::release() { m_state->open.store(true, std::memory_order_release); }

std::optional<double> device_clock::elapsed() {
  state& s = *m_state;
  const cuda_context::here here(s.cuda);
  float milliseconds = 0;
  s.cuda.check(s.await(s.end), "waiting");
  s.held = false;
  s.cuda.check(s.between(&milliseconds, s.begin, s.end), "the time");
  if (!s.in_time) return std::nullopt;
  return 1e3 * static_cast<double>(milliseconds);
}

}  // namespace sucl::bench
