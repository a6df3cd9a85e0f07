// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Commands that wait for the host without a thread: the stream itself waits for a word of memory.
/// For AdaptiveCpp on CUDA and HIP devices, where a command that waited in its own thread would
/// stop everything else that the runtime is to enqueue.
#pragma once

#include "sycl/implementation.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include <cstdint>
#include <mutex>
#include <vector>

namespace sucl::glue {

/// The gates of one device. Any thread.
class gates {
 public:
  gates(const ::sycl::queue& of, pinned_memory& memory);
  ~gates();
  gates(const gates&) = delete;
  gates& operator=(const gates&) = delete;

  /// A word that a stream waits for, until it is `value`.
  struct word {
    std::uint32_t* place = nullptr;
    std::uint32_t value = 0;
  };
  word close();
  /// Lets what waits for the word go on. Once a word.
  void open(const word& w);

  /// A command that ends when the word is opened. `message`: it may be opened after words that were
  /// closed later.
  ::sycl::event wait(const word& w, bool message);

 private:
  static constexpr std::size_t page = 1024;  // words that are allocated at once
  static constexpr std::size_t message_queues = 8;

  pinned_memory& m_memory;
  ::sycl::queue m_first;  ///< for collectives, which end in order
  std::vector<::sycl::queue> m_others;
  std::size_t m_next = 0;
  std::mutex m_mutex;
  std::vector<std::uint32_t*> m_unused;
};

}  // namespace sucl::glue
#endif
