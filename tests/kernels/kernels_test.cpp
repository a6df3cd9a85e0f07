// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Kernels that are written once: what they compute on the device is what the same text computes on
// the host, bit for bit, on pointers and on buffers.
#include "kernels/sample.hpp"

#include <sucl/error.hpp>
#include <sucl/kernels.hpp>

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace {

using sucl::kernels::items;
using sucl::kernels::launch;

// Integers in halves: exact, whether or not a compiler fuses multiplication and addition.
std::vector<double> numbers(std::size_t n, double first) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = first + 0.5 * static_cast<double>(i);
  return v;
}

TEST(Kernels, WorkOnPointersInTheOrderOfEvents) {
  sycl::queue queue;
  sucl::kernels::prepare(queue);
  const std::size_t n = 1000;
  double* x = sycl::malloc_shared<double>(n, queue);
  double* y = sycl::malloc_shared<double>(n, queue);
  const auto from = numbers(n, 3), to = numbers(n, -7);
  std::copy(from.begin(), from.end(), x);
  std::copy(to.begin(), to.end(), y);
  const sample::axpy kernel{1.5, n};
  auto first = launch(queue, items(n), {}, kernel, static_cast<const double*>(x), y);
  launch(queue, items(n, 64), {first}, kernel, static_cast<const double*>(x), y).wait();
  for (std::size_t i = 0; i < n; ++i)
    ASSERT_EQ(y[i], sample::combine(1.5, from[i], sample::combine(1.5, from[i], to[i]))) << i;
  sycl::free(x, queue);
  sycl::free(y, queue);
}

TEST(Kernels, WorkOnBuffersWithoutEvents) {
  sycl::queue queue;
  const std::size_t n = 777;
  const auto from = numbers(n, 1), to = numbers(n, 2);
  sycl::buffer<double, 1> x{from.data(), sycl::range<1>(n)}, y{to.data(), sycl::range<1>(n)};
  y.set_write_back(false);
  const sample::axpy kernel{-2.5, n};
  launch(queue, items(n), {}, kernel, sucl::kernels::read(x), sucl::kernels::update(y));
  launch(queue, items(n), {}, kernel, sucl::kernels::read(x), sucl::kernels::update(y));
  sycl::host_accessor result{y, sycl::read_only};
  for (std::size_t i = 0; i < n; ++i)
    ASSERT_EQ(result[i], sample::combine(-2.5, from[i], sample::combine(-2.5, from[i], to[i])));
}

TEST(Kernels, TakeStructsAsParametersAndOverwriteBuffers) {
  sycl::queue queue;
  const int n = 30;
  std::vector<float> from(n);
  std::iota(from.begin(), from.end(), 1.0f);
  sycl::buffer<float, 1> in{from.data(), sycl::range<1>(n)}, out{sycl::range<1>(n)};
  launch(queue, items(n, 8), {}, sample::weigh{{5, 6, {1, 2, 4}}}, sucl::kernels::read(in),
         sucl::kernels::write(out));
  sycl::host_accessor result{out, sycl::read_only};
  const float weights[] = {1, 2, 4};
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(result[i],
              weights[i % 3] * from[static_cast<std::size_t>(i)] + static_cast<float>(i / 6));
}

template <class T>
void check_fill(sycl::queue& queue) {
  T* out = sycl::malloc_shared<T>(100, queue);
  launch(queue, items(100), {}, sample::fill<T>{T(5), 100}, out).wait();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(out[i], T(5 + i));
  sycl::free(out, queue);
}

TEST(Kernels, MayBeTemplates) {
  sycl::queue queue;
  check_fill<int>(queue);
  check_fill<float>(queue);
}

TEST(Kernels, ShareMemoryInAWorkGroup) {
  sycl::queue queue;
  constexpr std::size_t n = 48, group = 16;
  int* in = sycl::malloc_shared<int>(n, queue);
  int* out = sycl::malloc_shared<int>(n, queue);
  std::iota(in, in + n, 1);
  launch(queue, items(n, group), {}, sample::sum_of_group{}, static_cast<const int*>(in), out,
         sucl::kernels::local<int>(group))
      .wait();
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t start = i / group * group;
    ASSERT_EQ(out[i], std::accumulate(in + start, in + start + group, 0)) << i;
  }
  sycl::free(in, queue);
  sycl::free(out, queue);
}

#ifdef SUCL_KERNELS_AT_RUN_TIME
TEST(Kernels, ThatDoNotCompileAreAnErrorWithTheCompilersWords) {
  const sucl::kernels::file files[] = {
      {"wrong.hpp", "#pragma once\nnamespace sample { struct fill_it { int a } }\n"},
      {nullptr, nullptr}};
  sucl::kernels::detail::kernel_set wrong(files);
  wrong.add(typeid(int), {});
  sycl::queue queue;
  try {
    wrong.prepare(queue.get_context());
    FAIL() << "it compiled";
  } catch (const sucl::error& e) {
    EXPECT_EQ(e.code(), sucl::errc::unavailable);
    EXPECT_NE(std::string(e.what()).find("wrong.hpp:2"), std::string::npos) << e.what();
  }
}
#endif

}  // namespace
