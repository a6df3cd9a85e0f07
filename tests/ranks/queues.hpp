// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory and checks for tests of several ranks in a process.
#pragma once

#include <sucl/sucl.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace sucl::testing {

inline std::vector<communicator> g_mine;

enum class form { events, grouped, threads };
inline constexpr form forms[] = {form::events, form::grouped, form::threads};

// Has every rank of this process call the same, and waits for all.
template <class Call>
void on_all(form f, std::vector<communicator>& ranks, Call call) {
  std::vector<sycl::event> done;
  if (f == form::threads) {
    each_rank(ranks, [&](communicator& c, std::size_t i) {
      auto calls = c.blocking();
      call(calls, i);
    });
  } else if (f == form::grouped) {
    group all;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      auto calls = all.on(ranks[i]);
      call(calls, i);
    }
    done = all.submit_each();
  } else {
    for (std::size_t i = 0; i < ranks.size(); ++i) done.push_back(call(ranks[i], i));
  }
  for (auto& e : done) e.wait();
  for (const auto& c : ranks) c.check();
}

/// Memory of one rank, of some kind.
template <class T>
class memory {
 public:
  memory(std::size_t count, const communicator& c, sycl::usm::alloc kind, int value = -1)
      : m_queue(c.queue()), m_kind(kind), m_count(count), m_values(count) {
    if (kind == sycl::usm::alloc::unknown)
      m_data = static_cast<T*>(std::malloc(count * sizeof(T)));
    else
      m_data = static_cast<T*>(sycl::malloc(count * sizeof(T), m_queue, kind));
    fill([&](std::size_t) { return value; });
  }
  ~memory() {
    if (!m_data) return;
    if (m_kind == sycl::usm::alloc::unknown)
      std::free(m_data);
    else
      sycl::free(m_data, m_queue);
  }
  memory(memory&& other) noexcept
      : m_queue(other.m_queue),
        m_kind(other.m_kind),
        m_count(other.m_count),
        m_values(std::move(other.m_values)),
        m_data(std::exchange(other.m_data, nullptr)) {}

  T* get() const { return m_data; }
  template <class Value>
  void fill(Value value) {
    for (std::size_t i = 0; i < m_count; ++i) m_values[i] = static_cast<T>(value(i));
    move(m_data, m_values.data());
  }
  const std::vector<T>& values() {
    move(m_values.data(), m_data);
    return m_values;
  }

 private:
  void move(T* to, const T* from) {
    if (m_kind == sycl::usm::alloc::device)
      m_queue.memcpy(to, from, m_count * sizeof(T)).wait();
    else
      std::copy_n(from, m_count, to);
  }
  sycl::queue m_queue;
  sycl::usm::alloc m_kind;
  std::size_t m_count;
  std::vector<T> m_values;
  T* m_data = nullptr;
};

struct several : ::testing::TestWithParam<form> {
  form how = GetParam();
  std::vector<communicator>& mine = g_mine;
  int size = g_mine.front().size();

  void SetUp() override {
    if (how != form::threads && needs_blocking_forms()) GTEST_SKIP() << "it needs blocking forms";
  }
  int rank(std::size_t i) const { return mine[i].rank(); }
  // Of rank r at index i.
  static int value(int r, std::size_t i) { return (r + 1) * (1 + static_cast<int>(i % 3)); }
  int sum(std::size_t i) const { return size * (size + 1) / 2 * (1 + static_cast<int>(i % 3)); }

  template <class T>
  std::vector<memory<T>> make(std::size_t count,
                              sycl::usm::alloc kind = sycl::usm::alloc::unknown) {
    std::vector<memory<T>> all;
    for (std::size_t r = 0; r < mine.size(); ++r) {
      all.emplace_back(count, mine[r], kind);
      all.back().fill([&](std::size_t i) { return value(rank(r), i); });
    }
    return all;
  }
  template <class T, class Expected>
  void expect(std::vector<memory<T>>& all, Expected expected, const char* what) {
    for (std::size_t r = 0; r < all.size(); ++r) {
      const auto& values = all[r].values();
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], static_cast<T>(expected(rank(r), i)))
            << what << " at " << i << " of rank " << rank(r);
    }
  }
  template <class T>
  void check_vectors(std::size_t n, sycl::usm::alloc kind);
  template <class T>
  void check_equal_blocks(std::size_t n, sycl::usm::alloc kind);
  template <class T>
  void check_displaced_blocks(std::size_t n, sycl::usm::alloc kind);
  template <class T>
  void check_all_kinds(std::size_t n, sycl::usm::alloc kind) {
    check_vectors<T>(n, kind);
    check_equal_blocks<T>(n, kind);
    check_displaced_blocks<T>(n, kind);
  }
  void check_messages(std::size_t n);
  /// At least one of the ranks of this process.
  bool on_gpus() const {
    return std::any_of(mine.begin(), mine.end(),
                       [](const communicator& c) { return c.queue().get_device().is_gpu(); });
  }
  /// AdaptiveCpp's CPU device lets the commands of one rank wait for those of the others for ever.
  bool needs_blocking_forms() const {
#ifdef SYCL_IMPLEMENTATION_ACPP
    return mine.size() > 1 && std::any_of(mine.begin(), mine.end(), [](const communicator& c) {
             return c.queue().get_device().is_cpu();
           });
#else
    return false;
#endif
  }
};

}  // namespace sucl::testing
