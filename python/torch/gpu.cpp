// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "gpu.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

namespace sucl::torch {

track::~track() {
  // Who lets go of tensors gives their memory to operations of torch's streams.
  for (auto& [over, held] : m_held) over->synchronize();
}

c10::Stream track::current() const {
  return c10::impl::VirtualGuardImpl(device().type()).getStream(device());
}

void track::follow() {
  m_before.record(current());
  m_before.block(m_stream);
}

void track::issue(const sucl_operation& o) {
  const c10::DeviceGuard on(device());
  const std::lock_guard lock(m_mutex);
  follow();
  sucl_port_operation* nothing = nullptr;
  m_calls->check(m_calls->calls().issue(m_calls->get(), &o, &nothing));
}

void track::end_group() {
  const c10::DeviceGuard on(device());
  const std::lock_guard lock(m_mutex);
  follow();
  m_calls->check(m_calls->calls().end_group(m_calls->get()));
}

std::shared_ptr<c10::Event> track::mark(tensors held) {
  auto over = std::make_shared<c10::Event>(device().type());
  const std::lock_guard lock(m_mutex);
  over->record(m_stream);
  m_held.emplace_back(over, std::move(held));
  return over;
}

void track::sweep() {
  std::vector<tensors> unused;  // end without the lock
  const std::lock_guard lock(m_mutex);
  while (!m_held.empty() && m_held.front().first->query()) {
    unused.push_back(std::move(m_held.front().second));
    m_held.pop_front();
  }
}

gpu_work::gpu_work(work_parts parts, std::shared_ptr<track> on, std::shared_ptr<c10::Event> over,
                   bool blocks)
    : Work(parts.rank, parts.type, parts.title.c_str(), shown(parts)),
      m_parts(std::move(parts)),
      m_on(std::move(on)),
      m_over(std::move(over)),
      m_blocks(blocks) {}

bool gpu_work::isCompleted() {
  if (!m_over->query()) return false;
  m_on->sweep();
  return true;
}

bool gpu_work::wait(milliseconds timeout) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + timeout;
  while (timeout.count() > 0 && !m_over->query()) {
    if (clock::now() >= end)
      throw failure(SUCL_ERROR_TIMEOUT,
                    m_parts.title + ": Operation timed out! It is not done after " +
                        std::to_string(timeout.count()) + " ms",
                    "Look at what the other ranks do, or wait longer");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  m_over->block(m_on->current());
  if (m_blocks) m_over->synchronize();
  m_on->sweep();
  m_on->calls().check(m_on->calls().calls().check(m_on->calls().get()));
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> gpu_work::getFuture() {
  const std::lock_guard lock(mutex_);
  if (m_future) return m_future;
  m_future = c10::make_intrusive<c10::ivalue::Future>(type_of_value(m_parts),
                                                      std::vector<c10::Device>{m_on->device()});
  // It marks the streams of its devices that are current; those of who waits for it wait for
  // these.
  const c10::StreamGuard on(m_on->stream());
  m_future->markCompleted(value_of(m_parts));
  return m_future;
}

}  // namespace sucl::torch
