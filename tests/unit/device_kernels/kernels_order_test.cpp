// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Kernels fold in order of rank whichever protocol they use: their bits are those of a plain loop
// over the ranks, and so those of every other backend in the fixed order.
#include "support/ordered_sums.hpp"
#include "unit/device_kernels/thread_device.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace sucl;
using namespace sucl::testing;

struct summed {
  type element;
  op reduction;
};

tune::table table_of_protocol(const char* protocol) {
  tune::table t;
  for (int k = 0; k < SUCL_KIND_COUNT; ++k) {
    tune::table_row r;
    r.what = static_cast<kind>(k);
    r.memory = tune::memory_kind::device;
    r.backend = "kernels";
    r.protocol = protocol;
    r.origin = "file t.toml:1:1";
    t.rows.push_back(r);
  }
  return t;
}

void expect_fixed_order(const kernel_rank& j, kind k, const summed& s, std::uint64_t count,
                        bool in_place, const char* protocol) {
  const int rank = j.info.rank, size = j.info.size;
  const bool blocks = k == kind::reduce_scatter_block;
  const std::uint64_t elements = blocks ? count * static_cast<std::uint64_t>(size) : count;
  auto send = ordered_input(s.element, s.reduction, rank, elements);
  std::vector<std::byte> recv(send.size());
  auto o = operation(k, s.element, count, s.reduction);
  o.root = k == kind::reduce ? size - 1 : 0;
  const bool inside = in_place && (k != kind::reduce || rank == o.root);
  if (inside) recv = send;
  if (inside) o.flags |= SUCL_FLAG_IN_PLACE;
  o.send = inside ? nullptr : send.data();
  o.recv = recv.data();
  const flight done = run(j.kernels, o);
  EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
  const auto wanted = ordered_result(k, s.element, s.reduction, rank, size, count, o.root);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), recv.begin()))
      << protocol << ": " << name(k) << " of " << count << " " << name(s.element) << ", "
      << name(s.reduction) << ", rank " << rank << (in_place ? ", in place" : "");
}

class kernels_fold_on : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, kernels_fold_on, ::testing::Values(2, 3, 4));

TEST_P(kernels_fold_on, in_order_of_rank) {
  for (const char* protocol : kernels::protocol_names) {
    const tune::table table = table_of_protocol(protocol);
    for_devices(GetParam(), peer_access::all, [&](const kernel_rank& j) {
      j.device.on_host = false;
      j.comm().retune(&table);
      unsigned turn = 0;
      for (const kind k :
           {kind::allreduce, kind::reduce, kind::reduce_scatter_block, kind::scan, kind::exscan})
        for (const summed& s : {summed{type::fp32, op::sum}, summed{type::fp64, op::prod},
                                summed{type::complex_fp32, op::sum}, summed{type::bf16, op::sum},
                                summed{type::fp64, op::avg}}) {
          const bool scans = k == kind::scan || k == kind::exscan;
          if (scans && s.reduction == op::avg) continue;
          for (const std::uint64_t count : {1, 5, 333, 3001})
            expect_fixed_order(j, k, s, count, turn++ % 3 == 0, protocol);
        }
    });
  }
}

}  // namespace
