// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the tests that run as ranks of a job share.
#pragma once

#include "support/host_command.hpp"

#include <sucl/sucl.hpp>

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sucl::testing {

/// Queues and communicators of this rank. There is one while tests run.
struct rank_fixture {
  sycl::queue queue;            ///< out of order
  sycl::queue in_order;         ///< of the same context and device
  communicator world;           ///< of `queue`
  communicator in_order_world;  ///< of `in_order`
  communicator aside;           ///< host memory only: for the tests' own messages
  /// Others of all ranks. Collective, whichever of them a rank calls.
  std::function<communicator(const sycl::queue&)> world_with;
  std::function<communicator()> world_without;
};
rank_fixture& fixture();

/// Both queues on one device, and communicators of all ranks on them. Collective.
rank_fixture make_fixture(const sycl::device& device, runtime& rt);

/// The text of each rank, of 1,023 characters at most. Collective.
std::vector<std::string> texts_of_ranks(communicator aside, const std::string& mine);

/// Runs every test on each rank of the job. Rank 0 prints, the others only failures.
int run_tests(int argc, char** argv, runtime& rt, rank_fixture& j);

#ifdef SYCL_IMPLEMENTATION_ACPP
inline constexpr const char* implementation_name = "adaptivecpp";
inline constexpr const char* cpu_platform = "cpu";
/// Whether one command that waits holds up every other: see docs/reference/sycl-implementations.md.
inline bool has_one_lane(const sycl::queue& q) { return q.get_device().is_cpu(); }
#else
inline constexpr const char* implementation_name = "dpcpp";
inline constexpr const char* cpu_platform = "opencl";
inline bool has_one_lane(const sycl::queue&) { return false; }
#endif
inline constexpr const char* one_lane = "commands that wait hold up the others here";

/// A dependency that becomes ready when the test says so: a host task that waits for it.
class latch {
 public:
  explicit latch(sycl::queue& q) {
    m_event = q.submit([&](sycl::handler& h) {
      host_command(h, [shared = m_shared] {
        std::unique_lock lock(shared->mutex);
        shared->changed.wait(lock, [&] { return shared->open; });
      });
    });
  }
  ~latch() { release(); }
  const sycl::event& event() const { return m_event; }
  void release() {
    {
      std::lock_guard lock(m_shared->mutex);
      m_shared->open = true;
    }
    m_shared->changed.notify_all();
  }

 private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  std::shared_ptr<state> m_shared = std::make_shared<state>();
  sycl::event m_event;
};

/// USM shared memory that frees itself.
template <class T>
class shared {
 public:
  shared(std::size_t count, const sycl::queue& q, T value = T{})
      : m_queue(q), m_count(count), m_data(sycl::malloc_shared<T>(count ? count : 1, q)) {
    for (std::size_t i = 0; i < count; ++i) m_data[i] = value;
  }
  ~shared() { sycl::free(m_data, m_queue); }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;
  T* get() const { return m_data; }
  T& operator[](std::size_t i) const { return m_data[i]; }
  std::size_t size() const { return m_count; }

 private:
  sycl::queue m_queue;
  std::size_t m_count;
  T* m_data;
};

inline bool is_complete(const sycl::event& e) {
  return e.get_info<sycl::info::event::command_execution_status>() ==
         sycl::info::event_command_status::complete;
}

/// The sum of 1 to n.
inline int sum_to(int n) { return n * (n + 1) / 2; }

/// Expects a call to throw sucl::error with this code; gives the error's text.
template <class Call>
std::string expect_error(errc code, Call&& call) {
  try {
    call();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error; expected " << name(code);
  return {};
}

}  // namespace sucl::testing
