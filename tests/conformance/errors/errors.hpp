// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What tests of wrong calls share.
#pragma once

#include "ranks/fixture.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::testing {

inline constexpr std::size_t n = 24;

/// Makes persistent operations, and lets go of them.
class preparing : public detail::operations<preparing, void> {
 public:
  explicit preparing(persistent_communicator of) : m_of(std::move(of)) {}
  void submit(detail::request& request, const events& deps) {
    static_cast<void>(m_of.submit(request, deps));
  }
  std::size_t share(kind k, std::size_t elements) { return m_of.share(k, elements); }

 private:
  persistent_communicator m_of;
};

class errors : public ::testing::Test {
 protected:
  void TearDown() override {
    // Every rank made the same mistakes, so all are here.
    std::vector<int> value{world.rank() + 1};
    world.blocking().allreduce(value.data(), 1, op::sum);
    EXPECT_EQ(value[0], sum_to(size)) << "the communicator is out of step";
    world.allreduce(value.data(), 1, op::max).wait();
    EXPECT_EQ(value[0], sum_to(size));
    EXPECT_NO_THROW(world.check());
  }

  /// Expects that `call` fails in every form, as an operation whose name starts with `operation`.
  template <class Call>
  void refused(errc code, const std::string& operation, const std::string& words, Call&& call) {
    auto blocking = world.blocking();
    preparing persistent(world.persistent());
    refused_once(code, operation, words, [&] { call(world); });
    refused_once(code, operation, words, [&] { call(blocking); });
    refused_once(code, operation, words, [&] { call(persistent); });
    refused_once(code, {}, words, [&] {
      group g;
      auto part = g.on(world);
      call(part);
      g.submit_each();
    });
  }

  // Not a template: tests make hundreds of calls.
  void refused_once(errc code, const std::string& operation, const std::string& words,
                    const std::function<void()>& call);

  communicator world = fixture().world;
  sycl::queue q = fixture().queue;
  int size = world.size();
  std::size_t p = static_cast<std::size_t>(size);
  shared<int> x{n * p + 8, q};
  shared<int> y{n * p + 8, q};
  std::vector<std::size_t> counts = std::vector<std::size_t>(p, 2);
  std::vector<std::size_t> displs = [this] {
    std::vector<std::size_t> d(p);
    for (std::size_t r = 0; r < p; ++r) d[r] = 3 * r;
    return d;
  }();
};

}  // namespace sucl::testing
