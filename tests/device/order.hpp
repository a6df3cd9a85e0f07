// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the tests of order on devices share.
#pragma once

#include <sucl/sucl.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace sucl::order {

using std::size_t;

inline constexpr size_t n = 5000;

struct rank_fixture {
  sycl::queue queue;     // out of order
  sycl::queue in_order;  // of the same device
  communicator world, in_order_world, other, coarse_world;
  bool gpu = false;
};
extern rank_fixture* g_fixture;

/// Whether the device executes such operations, on its streams.
inline bool are_on_stream(const communicator& comm, kind k, size_t bytes) {
  const auto backend = comm.selected_backend(k, bytes);
  return backend == "kernels" || backend == "nccl" || backend == "rccl";
}

struct device : ::testing::Test {
  rank_fixture& j = *g_fixture;
  const int rank = j.world.rank();
  const int size = j.world.size();
  int sum() const { return size * (size + 1) / 2; }
  void SetUp() override {
    if (!j.gpu) GTEST_SKIP() << "there is no GPU";
  }
};

inline bool is_complete(const sycl::event& e) {
  return e.get_info<sycl::info::event::command_execution_status>() ==
         sycl::info::event_command_status::complete;
}

/// Device memory that frees itself.
class numbers {
 public:
  numbers(const sycl::queue& q, size_t count = n)
      : m_queue(q), m_count(count), m_data(sycl::malloc_device<int>(count, q)) {}
  ~numbers() { sycl::free(m_data, m_queue); }
  numbers(const numbers&) = delete;
  numbers& operator=(const numbers&) = delete;
  int* get() const { return m_data; }
  std::vector<int> read(const std::vector<sycl::event>& deps = {}, size_t count = 0) {
    std::vector<int> host(count ? count : m_count);
    m_queue
        .submit([&](sycl::handler& h) {
          h.depends_on(deps);
          h.memcpy(host.data(), m_data, host.size() * sizeof(int));
        })
        .wait();
    return host;
  }

 private:
  sycl::queue m_queue;
  size_t m_count;
  int* m_data;
};

/// A kernel that runs until the host lets it end, or too long: then it leaves a mark.
class long_kernel {
 public:
  explicit long_kernel(sycl::queue& q) : m_queue(q), m_words(sycl::malloc_host<int>(2, q)) {
    m_words[0] = m_words[1] = 0;
    int* words = m_words;
    m_event = q.submit([&](sycl::handler& h) {
      h.single_task([=] {
        const volatile int* go = words;
        long looks = 0;
        while (*go == 0 && looks < 3'000'000) ++looks;
        if (*go == 0) words[1] = 1;
      });
    });
    flush(q);
  }
  ~long_kernel() {
    end();
    m_event.wait();
    sycl::free(m_words, m_queue);
  }
  long_kernel(const long_kernel&) = delete;
  long_kernel& operator=(const long_kernel&) = delete;

  const sycl::event& event() const { return m_event; }
  void end() { *static_cast<volatile int*>(m_words) = 1; }
  /// Whether it was not ended by the host. After its end.
  bool gave_up() const { return m_words[1] != 0; }

  static void flush(sycl::queue&) {
#ifdef SYCL_IMPLEMENTATION_ACPP
    hipsycl::rt::runtime_keep_alive_token runtime;
    runtime.get()->dag().flush_async();
#endif
  }

 private:
  sycl::queue m_queue;
  int* m_words;
  sycl::event m_event;
};

template <class Function>
sycl::event each(sycl::queue& q, size_t count, const std::vector<sycl::event>& deps, Function f) {
  return q.submit([&](sycl::handler& h) {
    h.depends_on(deps);
    h.parallel_for(sycl::range<1>(count), [=](sycl::id<1> i) { f(i[0]); });
  });
}

}  // namespace sucl::order
