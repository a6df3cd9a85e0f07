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

namespace {

// Older releases of torch cannot say it.
template <class Stream>
bool is_capturing(const Stream& s) {
  if constexpr (requires { s.is_capturing(); })
    return s.is_capturing();
  else
    return false;
}

}  // namespace

track::~track() {
  // Who lets go of tensors gives their memory to operations of torch's streams.
  for (auto& [over, held] : m_held) over->synchronize();
}

c10::Stream track::current() const {
  return c10::impl::VirtualGuardImpl(device().type()).getStream(device());
}

void track::follow() {
  // The graph would have this one operation's numbers in it, and repeat them with each replay.
  if (is_capturing(current()))
    throw failure(
        SUCL_ERROR_UNSUPPORTED,
        "a graph of the device, as of torch.cuda.graph, cannot capture an operation of the "
        "backend sucl",
        "End the capture before it and begin another one behind it, or use the backend "
        "nccl for what is captured");
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

std::unique_ptr<c10::Event> track::mark() {
  std::unique_ptr<c10::Event> over;
  const std::lock_guard lock(m_mutex);
  if (m_unused.empty()) {
    over = std::make_unique<c10::Event>(device().type());
  } else {
    over = std::move(m_unused.back());
    m_unused.pop_back();
  }
  over->record(m_stream);
  return over;
}

void track::give_back(std::unique_ptr<c10::Event> over) {
  const std::lock_guard lock(m_mutex);
  m_unused.push_back(std::move(over));
}

void track::adopt(std::unique_ptr<c10::Event> over, tensors held) {
  const std::lock_guard lock(m_mutex);
  m_held.emplace_back(std::move(over), std::move(held));
}

void track::sweep() {
  std::vector<tensors> unused;  // end without the lock
  const std::lock_guard lock(m_mutex);
  while (!m_held.empty() && m_held.front().first->query()) {
    unused.push_back(std::move(m_held.front().second));
    m_unused.push_back(std::move(m_held.front().first));
    m_held.pop_front();
  }
}

gpu_work::gpu_work(work_parts parts, std::shared_ptr<track> on, tensors held, bool blocks)
    : Work(parts.rank, parts.type, parts.title.c_str(), shown(parts)),
      m_parts(std::move(parts)),
      m_on(std::move(on)),
      m_over(m_on->mark()),
      m_held(std::move(held)),
      m_blocks(blocks) {}

// Who has not waited may use the memory for something else before the operation is done.
gpu_work::~gpu_work() {
  if (m_held.empty())
    m_on->give_back(std::move(m_over));
  else
    m_on->adopt(std::move(m_over), std::move(m_held));
}

bool gpu_work::isCompleted() { return m_over->query(); }

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
  tensors unused;  // end without the lock
  {
    const std::lock_guard lock(m_letting_go);
    unused.swap(m_held);
  }
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
