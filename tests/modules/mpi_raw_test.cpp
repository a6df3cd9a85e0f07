// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The raw baseline of the benchmarks: `program MODULE RAW_MODULE`. What it measures must be right.
#include "mpi_module.hpp"

#include <bench/baselines/raw_mpi.h>
#include <sucl/types.hpp>

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <numeric>

namespace sucl::test {
namespace {

const sucl_raw_mpi* raw = nullptr;

using numbers = std::vector<float>;

/// All kinds with the same counts: every rank has one number for each rank, and rank r contributes
/// r * 100 + i at index i.
struct fixture {
  int rank = module().rank;
  int size = module().size;
  numbers in = numbers(static_cast<std::size_t>(size)), out = numbers(in.size(), -1.f);
  std::vector<int32_t> ones = std::vector<int32_t>(in.size(), 1), displs = ones;
  sucl_raw_call call{};

  fixture(sucl_kind kind, int32_t count) {
    std::iota(in.begin(), in.end(), static_cast<float>(rank) * 100);
    std::iota(displs.begin(), displs.end(), 0);
    call.kind = kind;
    call.type = SUCL_TYPE_FP32;
    call.op = SUCL_OP_SUM;
    call.count = call.recv_count = count;
    call.send = in.data();
    call.recv = out.data();
    call.send_counts = call.recv_counts = ones.data();
    call.send_displs = call.recv_displs = displs.data();
    call.root = call.source = size - 1;
  }
  void run() {
    ASSERT_EQ(raw->resolve(&call, module().control->group_native(module().world)), 0);
    ASSERT_EQ(raw->run[call.kind](&call), 0);
  }
  bool at_root() const { return rank == size - 1; }
  float sum(int ranks, std::size_t i) const {
    return static_cast<float>(ranks * (ranks - 1) / 2 * 100) +
           static_cast<float>(ranks) * static_cast<float>(i);
  }
};

TEST(raw, reductions) {
  for (const sucl_kind kind : {SUCL_KIND_REDUCE, SUCL_KIND_ALLREDUCE, SUCL_KIND_REDUCE_SCATTER,
                               SUCL_KIND_REDUCE_SCATTER_BLOCK, SUCL_KIND_SCAN, SUCL_KIND_EXSCAN}) {
    const bool scatters =
        kind == SUCL_KIND_REDUCE_SCATTER || kind == SUCL_KIND_REDUCE_SCATTER_BLOCK;
    fixture f(kind, scatters ? 1 : module().size);
    f.run();
    if (scatters) {
      EXPECT_EQ(f.out[0], f.sum(f.size, static_cast<std::size_t>(f.rank)));
      continue;
    }
    const int ranks = kind == SUCL_KIND_SCAN     ? f.rank + 1
                      : kind == SUCL_KIND_EXSCAN ? f.rank
                                                 : f.size;
    const bool written = (kind != SUCL_KIND_REDUCE || f.at_root()) && ranks > 0;
    for (std::size_t i = 0; i < f.out.size(); ++i)
      EXPECT_EQ(f.out[i], written ? f.sum(ranks, i) : -1.f) << name(static_cast<sucl::kind>(kind));
  }
}

TEST(raw, moves) {
  for (const sucl_kind kind :
       {SUCL_KIND_ALLGATHER, SUCL_KIND_ALLGATHERV, SUCL_KIND_ALLTOALL, SUCL_KIND_ALLTOALLV,
        SUCL_KIND_GATHER, SUCL_KIND_GATHERV, SUCL_KIND_SCATTER, SUCL_KIND_SCATTERV}) {
    const bool all_to_all = kind == SUCL_KIND_ALLTOALL || kind == SUCL_KIND_ALLTOALLV;
    const bool scatters = kind == SUCL_KIND_SCATTER || kind == SUCL_KIND_SCATTERV;
    const bool gathers = kind == SUCL_KIND_GATHER || kind == SUCL_KIND_GATHERV;
    fixture f(kind, 1);
    f.run();
    for (std::size_t i = 0; i < f.out.size(); ++i) {
      float expected = static_cast<float>(i) * 100;
      if (all_to_all) expected += static_cast<float>(f.rank);
      if (gathers && !f.at_root()) expected = -1;
      if (scatters) expected = i == 0 ? static_cast<float>((f.size - 1) * 100 + f.rank) : -1.f;
      EXPECT_EQ(f.out[i], expected) << name(static_cast<sucl::kind>(kind));
    }
  }
  fixture f(SUCL_KIND_BROADCAST, module().size);
  f.call.recv = f.in.data();
  f.run();
  for (std::size_t i = 0; i < f.in.size(); ++i)
    EXPECT_EQ(f.in[i], static_cast<float>((f.size - 1) * 100 + static_cast<int>(i)));
}

TEST(raw, messages) {
  fixture f(SUCL_KIND_SENDRECV, 1);
  f.call.root = (f.rank + 1) % f.size;
  f.call.source = (f.rank + f.size - 1) % f.size;
  f.run();
  EXPECT_EQ(f.out[0], static_cast<float>(f.call.source * 100));
  if (f.size < 2 || f.rank > 1) return;
  fixture ping(f.rank == 0 ? SUCL_KIND_SEND : SUCL_KIND_RECV, 1);
  ping.call.root = ping.call.source = 1 - f.rank;
  ping.run();
  EXPECT_EQ(ping.out[0], f.rank == 0 ? -1.f : 0.f);
}

TEST(raw, in_place) {
  fixture f(SUCL_KIND_REDUCE, module().size);
  f.call.send = nullptr;
  f.call.recv = f.in.data();
  f.run();
  EXPECT_EQ(f.in[0], f.at_root() ? f.sum(f.size, 0) : static_cast<float>(f.rank * 100));
}

TEST(raw, knows_what_mpi_lacks) {
  const void* comm = module().control->group_native(module().world);
  fixture f(SUCL_KIND_ALLREDUCE, 1);
  f.call.op = SUCL_OP_AVG;
  EXPECT_EQ(raw->resolve(&f.call, comm), 1);
  f.call.op = SUCL_OP_BIT_AND;
  EXPECT_EQ(raw->resolve(&f.call, comm), 1);
  f.call.op = SUCL_OP_SUM;
  f.call.type = SUCL_TYPE_BF16;
  EXPECT_EQ(raw->resolve(&f.call, comm), 1);
  f.call.kind = SUCL_KIND_GROUP;
  EXPECT_EQ(raw->resolve(&f.call, comm), 1);
}

TEST(raw, timing) {
  const void* comm = module().control->group_native(module().world);
  EXPECT_EQ(raw->barrier(comm), 0);
  const double mine[2] = {1.0 + module().rank, -1.0 - module().rank};
  double largest[2] = {};
  EXPECT_EQ(raw->max_reduce(comm, mine, largest, 2), 0);
  EXPECT_EQ(largest[0], module().size);
  EXPECT_EQ(largest[1], -1.0);
}

}  // namespace
}  // namespace sucl::test

int main(int argc, char** argv) {
  void* library = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto entry = reinterpret_cast<sucl_raw_mpi_entry_function>(
      library ? dlsym(library, SUCL_RAW_MPI_ENTRY) : nullptr);
  if (entry == nullptr) return 2;
  sucl::test::raw = entry();
  return sucl::test::run_tests(argc, argv);
}
