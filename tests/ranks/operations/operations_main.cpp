// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "ranks/fixture.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  try {
    sucl::runtime rt{argc, argv};
    sucl::testing::rank_fixture j;
    j.queue = sycl::queue(sycl::cpu_selector_v);
    j.in_order =
        sycl::queue(j.queue.get_context(), j.queue.get_device(), sycl::property::queue::in_order{});
    j.world = rt.world(j.queue);
    j.in_order_world = rt.world(j.in_order);
    j.aside = rt.world();
    j.world_with = [&](const sycl::queue& q) { return rt.world(q); };
    return sucl::testing::run_tests(argc, argv, rt, j);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
