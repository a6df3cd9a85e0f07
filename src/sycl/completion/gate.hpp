// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Commands that signal the host, and wait for it, without a thread: the stream itself writes and
/// awaits words of memory, and copies. For AdaptiveCpp on CUDA and HIP devices, where a command
/// that waited in its own thread would stop everything else that the runtime is to enqueue.
#pragma once

#include "sycl/common/implementation.hpp"
#include "sycl/completion/message_queues.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace sucl::sycl_layer {

/// The gates of one device of this process. Any thread.
class gates {
 public:
  /// Those of the queue's device and context; they live as long as they are referenced.
  static std::shared_ptr<gates> of(const ::sycl::queue& queue);
  explicit gates(const ::sycl::queue& like);
  ~gates();
  gates(const gates&) = delete;
  gates& operator=(const gates&) = delete;

  /// A word of memory that is to become `value`.
  struct word {
    std::uint32_t* flag = nullptr;
    std::uint32_t value = 0;
  };
  /// One that it is not yet.
  word take();
  /// Gives it back. The values of a word only grow, so it may be used again before each stream that
  /// waits for this one has seen it.
  void give_back(const word& w);

  static bool is_set(const word& w);  ///< on the host
  static void set(const word& w);     ///< by the host
  /// Enqueue it on a native stream: set when the stream gets there; wait there until it is set.
  void set_on(void* stream, const word& w) const;
  void wait_on(void* stream, const word& w) const;
  /// Enqueues a copy between device memory and host memory that the device reaches.
  void copy_on(void* stream, void* to, const void* from, std::size_t bytes) const;

  /// Host memory that the device reaches, in use until its word is set.
  struct pooled_buffer {
    std::byte* memory = nullptr;
    word over;
  };
  pooled_buffer take_buffer(std::size_t bytes);

  /// In-order queues for the commands of one message, which wait for the program's and for the
  /// host. `waits`: those before it wait for other commands.
  message_queues::choice enter(bool waits);
  ::sycl::queue& at(std::size_t queue) { return m_queues[queue]; }
  void leave(const message_queues::choice& c);

 private:
  static constexpr std::size_t page = 1024;  // words that are taken at once

  pinned_memory m_memory;
  bool m_is_hip;
  std::vector<::sycl::queue> m_queues;
  std::mutex m_mutex;
  message_queues m_message_queues;
  std::vector<std::uint32_t*> m_unused;
  std::multimap<std::size_t, pooled_buffer> m_buffers;  ///< by their bytes
};

}  // namespace sucl::sycl_layer
#endif
