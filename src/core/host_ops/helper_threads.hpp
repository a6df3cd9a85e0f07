// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Threads that help others of the process to copy and combine long pieces of memory.
#pragma once

#include <sucl/export.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace sucl::core {

/// One core copies at a part of the rate of its memory. Where a rank has several, these share long
/// pieces with the thread that has them. They poll for some tens of microseconds after the last
/// one, as the next mostly follows at once, and sleep then: a thread that calls them waits for a
/// part that one of them has begun, and for nothing that sleeps.
///
/// Any thread may call; while one is being helped, others do their work alone.
class SUCL_CORE_API helper_threads {
 public:
  static constexpr int max = 64;

  /// Those of this process, `count` or what the system has; null for none. They are there until the
  /// last one who holds them gives them up. Who comes first says how many.
  static std::shared_ptr<helper_threads> share(int count);
  ~helper_threads();
  helper_threads(const helper_threads&) = delete;
  helper_threads& operator=(const helper_threads&) = delete;

  int count() const { return static_cast<int>(m_threads.size()); }

  /// Calls work(begin, n) for parts of [0, total) of `part` each, the last one shorter, in any
  /// order and in several threads, and returns when all have ended: what they have written is seen
  /// then. The work throws nothing, and must not call this.
  template <class Work>
  void share_out(std::uint64_t total, std::uint64_t part, const Work& work) {
    static_assert(std::is_nothrow_invocable_v<const Work&, std::uint64_t, std::uint64_t>);
    run(
        total, part,
        [](const void* context, std::uint64_t begin, std::uint64_t n) noexcept {
          (*static_cast<const Work*>(context))(begin, n);
        },
        &work);
  }

 private:
  using function = void (*)(const void* context, std::uint64_t begin, std::uint64_t n) noexcept;

  explicit helper_threads(int count);
  void run(std::uint64_t total, std::uint64_t part, function work, const void* context);
  void help();
  void take_parts(std::uint32_t job);

  // A job's number is in the upper half of m_next, the number of its next part in the lower one: a
  // thread that is late can take no part of another job for one of the job that it has read.
  alignas(64) std::atomic<std::uint64_t> m_next{0};
  std::atomic<std::uint64_t> m_total{0}, m_part{1};
  std::atomic<std::uint32_t> m_parts{0};
  std::atomic<function> m_work{nullptr};
  std::atomic<const void*> m_context{nullptr};
  alignas(64) std::atomic<std::uint32_t> m_ended{0};  ///< parts of the job
  alignas(64) std::atomic<std::uint32_t> m_job{0};    ///< what helpers wait for
  std::atomic<bool> m_stop{false};
  std::mutex m_used;
  std::vector<std::thread> m_threads;
};

}  // namespace sucl::core
