// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Native streams of CUDA and HIP devices: what libsucl knows of a device that has them.
#pragma once

#include <sucl/sycl.hpp>
#ifndef SYCL_IMPLEMENTATION_ACPP
#include <sycl/ext/oneapi/backend/hip.hpp>
#endif

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace sucl::sycl_layer {

#ifndef SYCL_IMPLEMENTATION_ACPP
/// Whether this DPC++ lets a command put native work on its stream. It takes function objects, and
/// no pointers to functions.
struct native_command {
  void operator()(const ::sycl::interop_handle&) const {}
};
template <class Handler>
concept with_native_commands =
    requires(Handler& h, native_command f) { h.ext_codeplay_enqueue_native_command(f); };
#endif

/// Whether commands can be enqueued on native streams of this device.
bool has_native_streams(const ::sycl::device& d);

/// The device's number in the API of its vendor; only for devices with native streams.
int native_number(const ::sycl::device& d);

/// Host memory that a device reaches, for what operations need while they are in flight. The
/// device's library may wait for everything that runs on the device before it gives such memory,
/// and that may wait for the operation; so a good piece of it is taken when a communicator is made.
class pinned_memory {
 public:
  explicit pinned_memory(const ::sycl::queue& of);
  ~pinned_memory();
  pinned_memory(const pinned_memory&) = delete;
  pinned_memory& operator=(const pinned_memory&) = delete;

  /// Aligned to pages; null if there is none left. It is given back all at once, at the end.
  void* take(std::size_t bytes);

 private:
  struct block {
    std::byte* start;
    std::size_t size;
    std::size_t used;
  };
  bool grow(std::size_t bytes);

  ::sycl::queue m_queue;
  std::mutex m_mutex;
  std::vector<block> m_blocks;
};

/// A queue, and which of its streams commands shall go to. AdaptiveCpp gives the commands of an
/// out-of-order queue to a few streams of the device.
class submitter {
 public:
  explicit submitter(::sycl::queue& queue, [[maybe_unused]] std::optional<std::size_t> stream = {})
      : m_queue(queue) {
#ifdef SYCL_IMPLEMENTATION_ACPP
    if (stream)
      m_properties = {::sycl::property::command_group::AdaptiveCpp_prefer_execution_lane(*stream)};
#endif
  }
  template <class Function>
  ::sycl::event submit(const Function& f) {
#ifdef SYCL_IMPLEMENTATION_ACPP
    return m_queue.submit(m_properties, f);
#else
    return m_queue.submit(f);
#endif
  }
  ::sycl::queue& queue() { return m_queue; }

 private:
  ::sycl::queue& m_queue;
#ifdef SYCL_IMPLEMENTATION_ACPP
  ::sycl::property_list m_properties;
#endif
};

/// Keeps threads that query events apart from one that captures a stream. With coarse-grained
/// events AdaptiveCpp asks the stream whether a command is done. While the stream is captured that
/// is an error, which ends the capture, and the program.
class capture_gate {
 public:
  /// A capture by the calling thread, while this lives. Waits until no thread queries events; none
  /// begins to meanwhile.
  class capture {
   public:
    capture() {
      std::unique_lock lock(of_process().m_mutex);
      ++of_process().m_captures;
      of_process().m_changed.wait(lock, [] { return of_process().m_queries == 0; });
    }
    ~capture() {
      const std::lock_guard lock(of_process().m_mutex);
      --of_process().m_captures;
    }
    capture(const capture&) = delete;
    capture& operator=(const capture&) = delete;
  };

  /// A query of events, while this lives; is not allowed during a capture.
  class query {
   public:
    query() {
      const std::lock_guard lock(of_process().m_mutex);
      m_is_allowed = of_process().m_captures == 0;
      of_process().m_queries += m_is_allowed;
    }
    ~query() {
      const std::lock_guard lock(of_process().m_mutex);
      of_process().m_queries -= m_is_allowed;
      of_process().m_changed.notify_all();
    }
    query(const query&) = delete;
    query& operator=(const query&) = delete;
    bool is_allowed() const { return m_is_allowed; }

   private:
    bool m_is_allowed = false;
  };

 private:
  static capture_gate& of_process() {
    static auto* const gate = new capture_gate;  // threads may query until the process has ended
    return *gate;
  }

  std::mutex m_mutex;
  std::condition_variable m_changed;
  int m_captures = 0, m_queries = 0;
};

/// Keeps an eye on operations that are on streams, where the core does not see them. Any thread.
class stream_tracker {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `watched`: pending_since() is going to be called.
  explicit stream_tracker(bool watched = false) : m_is_watched(watched) {}

  /// An operation was put on a stream, behind all the ones before it. The queue is the user's.
  /// `has_buffers`: its command has accessors. `before`: what it waits for, from marks().
  void add(const ::sycl::event& done, ::sycl::queue& queue, bool has_buffers = false,
           std::vector<::sycl::event> before = {});

  /// The events that are complete once the command that is submitted next to the queue, behind
  /// `deps`, could begin, if the tracker is watched. Other commands before it are the program's
  /// own, so waiting for them is no hang.
  std::vector<::sycl::event> marks(::sycl::queue& queue,
                                   const std::vector<::sycl::event>& deps) const;

  /// What the next operation must wait for if it goes to this queue; nothing if the queue itself
  /// sees to that.
  std::optional<::sycl::event> before(const ::sycl::queue& queue) const;

  /// For commands of operations. Those of two communicators, which ranks may issue in different
  /// order, must not follow one another on a stream: each prefers one of an out-of-order queue.
  submitter submitter_to(::sycl::queue& queue);

  /// Since when the oldest operation has been seen unfinished although it could begin.
  std::optional<time_point> pending_since();

  /// How many operations were unfinished at the last call of pending_since(), or came since.
  std::size_t unfinished() const;

  /// Whether the oldest unfinished operation could not begin at the last call of pending_since().
  bool is_held() const;

  /// Returns when all are done.
  void drain() const;

 private:
  struct operation {
    ::sycl::event done;
    std::vector<::sycl::event> before;
    std::optional<time_point> began;
  };
  void forget_done();

  const bool m_is_watched;
  mutable std::mutex m_mutex;
  std::optional<std::size_t> m_stream;
  std::optional<::sycl::event> m_last;
  std::optional<::sycl::queue> m_queue;  ///< of the last one
  std::deque<operation> m_unfinished;    ///< as far as is known, if watched; in order
};

}  // namespace sucl::sycl_layer
