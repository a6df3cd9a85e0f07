// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the tests that run as ranks of a job share.
#pragma once

#include <sucl/sucl.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace sucl::testing {

/// The job of this process; there is one while tests run.
struct job {
  sycl::queue queue;            ///< out of order
  sycl::queue in_order;         ///< of the same context and device
  communicator world;           ///< of `queue`
  communicator in_order_world;  ///< of `in_order`
  communicator aside;           ///< host memory only: for the tests' own messages
};
job& the_job();

/// Runs every test on each rank of the job. Rank 0 prints, the others only failures.
int run_tests(int argc, char** argv, runtime& rt, job& j);

/// A dependency that becomes ready when the test says so.
class latch {
 public:
  explicit latch(sycl::queue& q) {
    m_held.emplace(m_buffer);
    m_event = q.submit([&](sycl::handler& h) {
      sycl::accessor<char, 1, sycl::access_mode::read, sycl::target::host_task> held(m_buffer, h);
      h.host_task([held] { (void)held; });
    });
  }
  const sycl::event& event() const { return m_event; }
  void release() { m_held.reset(); }

 private:
  sycl::buffer<char, 1> m_buffer{sycl::range<1>(1)};
  std::optional<sycl::host_accessor<char, 1, sycl::access_mode::read_write>> m_held;
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
