// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/common/streams.hpp"

#include "sycl/common/adaptivecpp.hpp"

#include <algorithm>
#include <atomic>

namespace sucl::sycl_layer {

#ifdef SYCL_IMPLEMENTATION_ACPP

bool has_native_streams(const ::sycl::device& d) {
  const auto backend = d.get_backend();
  return backend == ::sycl::backend::cuda || backend == ::sycl::backend::hip;
}

int native_number(const ::sycl::device& d) { return d.AdaptiveCpp_device_id().get_id(); }

#else

// Without native commands, host tasks execute everything.
bool has_native_streams(const ::sycl::device& d) {
  const auto backend = d.get_backend();
  return with_native_commands<::sycl::handler> && (backend == ::sycl::backend::ext_oneapi_cuda ||
                                                   backend == ::sycl::backend::ext_oneapi_hip);
}

int native_number(const ::sycl::device& d) {
  if (d.get_backend() == ::sycl::backend::ext_oneapi_hip)
    return static_cast<int>(::sycl::get_native<::sycl::backend::ext_oneapi_hip>(d));
  return static_cast<int>(::sycl::get_native<::sycl::backend::ext_oneapi_cuda>(d));
}

#endif

namespace {

constexpr std::size_t pinned_at_first = std::size_t{16} << 20;
constexpr std::size_t page = 4096;

// What means the same as the event of a command with accessors, and may be kept. In AdaptiveCpp
// such an event keeps the buffers' memory, which would be freed by the thread that releases it
// last, and freeing waits for all kernels that run, which may be waiting for that very thread.
::sycl::event without_buffers(const ::sycl::event& done, [[maybe_unused]] ::sycl::queue& queue) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  // This library submits instantly, so an in-order queue has the command with accessors already.
  const bool ordered = queue.is_in_order();
  auto behind = queue.submit([&](::sycl::handler& h) {
    if (!ordered) h.depends_on(done);
    h.AdaptiveCpp_enqueue_custom_operation([](::sycl::interop_handle&) {});
  });
  if (!ordered) flush();
  return behind;
#else
  return done;
#endif
}

}  // namespace

namespace {

/// First blocks of communicators that have ended, for the next ones: getting one takes longer than
/// most of what else a communicator needs.
struct unused_blocks {
  static constexpr std::size_t most = 8;
  struct entry {
    ::sycl::context context;
    std::byte* start;
  };
  std::mutex mutex;
  std::vector<entry> blocks;

  std::byte* take(const ::sycl::context& context) {
    const std::lock_guard lock(mutex);
    const auto it = std::find_if(blocks.begin(), blocks.end(),
                                 [&](const entry& e) { return e.context == context; });
    if (it == blocks.end()) return nullptr;
    std::byte* start = it->start;
    blocks.erase(it);
    return start;
  }
  bool keep(const ::sycl::context& context, std::byte* start) {
    const std::lock_guard lock(mutex);
    if (blocks.size() < most) blocks.push_back({context, start});
    return blocks.size() <= most && !blocks.empty() && blocks.back().start == start;
  }
};

unused_blocks& unused() {
  static auto& all = *new unused_blocks;  // communicators may outlive the end of this library
  return all;
}

}  // namespace

pinned_memory::pinned_memory(const ::sycl::queue& of) : m_queue(of) {
  if (auto* start = unused().take(m_queue.get_context()))
    m_blocks.push_back({start, pinned_at_first, 0});
  else
    grow(pinned_at_first);
}

pinned_memory::~pinned_memory() {
  for (const block& b : m_blocks)
    if (b.size != pinned_at_first || !unused().keep(m_queue.get_context(), b.start))
      ::sycl::free(b.start, m_queue);
}

bool pinned_memory::grow(std::size_t bytes) {
  auto* start = ::sycl::malloc_host<std::byte>(bytes, m_queue);
  if (start)
    m_blocks.push_back({start, bytes, 0});
  else
    take_errors(m_queue);
  return start != nullptr;
}

void* pinned_memory::take(std::size_t bytes) {
  const std::size_t size = (bytes + page - 1) / page * page;
  const std::lock_guard lock(m_mutex);
  if (m_blocks.empty() || m_blocks.back().size - m_blocks.back().used < size)
    if (!grow(std::max(size, pinned_at_first))) return nullptr;
  block& b = m_blocks.back();
  void* address = b.start + b.used;
  b.used += size;
  return address;
}

// In turns: streams are few, and communicators that are used first together follow one another.
submitter stream_tracker::submitter_to(::sycl::queue& queue) {
  static std::atomic<std::size_t> next = 0;
  if (queue.is_in_order()) return submitter(queue);
  const std::lock_guard lock(m_mutex);
  if (!m_stream) m_stream = next.fetch_add(1, std::memory_order_relaxed);
  return submitter(queue, m_stream);
}

std::vector<::sycl::event> stream_tracker::marks(::sycl::queue& queue,
                                                 const std::vector<::sycl::event>& deps) const {
  if (!m_is_watched) return {};
#ifdef SYCL_IMPLEMENTATION_ACPP
  // An event of a command of its own: those of the program may keep buffers; see without_buffers().
  if (queue.is_in_order() && !program_submits_instantly()) flush_and_enqueue();
  auto mark = queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    h.AdaptiveCpp_enqueue_custom_operation([](::sycl::interop_handle&) {});
  });
  if (!queue.is_in_order()) flush();
  return {mark};
#else
  std::vector<::sycl::event> all = deps;
  if (queue.is_in_order())
    if (auto last = queue.ext_oneapi_get_last_event()) all.push_back(std::move(*last));
  return all;
#endif
}

void stream_tracker::add(const ::sycl::event& done, ::sycl::queue& queue, bool has_buffers,
                         std::vector<::sycl::event> before) {
  auto kept = has_buffers ? std::optional(without_buffers(done, queue)) : std::nullopt;
  const std::lock_guard lock(m_mutex);
  if (kept)
    m_last = std::move(kept);
  else
    m_last = done;
  if (!m_queue || *m_queue != queue) m_queue = queue;
  if (!m_is_watched) return;
  forget_done();
  m_unfinished.push_back({*m_last, std::move(before), {}});
}

void stream_tracker::forget_done() {
  while (!m_unfinished.empty() && complete({m_unfinished.front().done})) m_unfinished.pop_front();
}

std::optional<::sycl::event> stream_tracker::before(const ::sycl::queue& queue) const {
  const std::lock_guard lock(m_mutex);
  if (!m_last || (queue.is_in_order() && *m_queue == queue)) return std::nullopt;
  return m_last;
}

std::optional<stream_tracker::time_point> stream_tracker::pending_since() {
  const std::lock_guard lock(m_mutex);
  const capture_gate::query now;
  if (!now.is_allowed()) return std::nullopt;  // the next time
  forget_done();
  if (m_unfinished.empty()) return std::nullopt;
  operation& oldest = m_unfinished.front();
  if (!oldest.began && complete(oldest.before)) {
    oldest.before.clear();
    oldest.began = std::chrono::steady_clock::now();
  }
  return oldest.began;
}

std::size_t stream_tracker::unfinished() const {
  const std::lock_guard lock(m_mutex);
  return m_unfinished.size();
}

bool stream_tracker::is_held() const {
  const std::lock_guard lock(m_mutex);
  return !m_unfinished.empty() && !m_unfinished.front().began;
}

void stream_tracker::drain() const {
  std::optional<::sycl::event> last;
  {
    const std::lock_guard lock(m_mutex);
    last = m_last;
  }
  if (last) await_event(*last);
}

}  // namespace sucl::sycl_layer
