// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// oneCCL on host memory, in the way of `sucl bench`: a program of its own, because oneCCL brings
// its own SYCL runtime and MPI. scripts/results/host_results.py builds it against the wheel
// oneccl-devel and runs it. Prints one JSON object a line: collective, bytes, median_us, valid.
#include <oneapi/ccl.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

int rank, ranks;

// Element i of what rank r sends. Sums are exact.
float input(int r, std::size_t i) {
  return static_cast<float>((i % 251) + 3 * static_cast<std::size_t>(r));
}

struct memory {
  float *send, *recv;
  std::size_t count;  // elements of a message or a block
};

struct collective {
  const char* name;
  std::function<ccl::event(const memory&, ccl::communicator&)> start;
  // What element i of the result is, of `blocks` of them.
  std::function<float(std::size_t i, std::size_t count)> expected;
  bool sends_all, receives_all, at_root;
};

float sum_of_ranks(std::size_t i) {
  float sum = 0;
  for (int r = 0; r < ranks; ++r) sum += input(r, i);
  return sum;
}

std::vector<collective> collectives() {
  using ccl::reduction;
  return {
      {"allreduce",
       [](const memory& m, ccl::communicator& c) {
         return ccl::allreduce(m.send, m.recv, m.count, reduction::sum, c);
       },
       [](std::size_t i, std::size_t) { return sum_of_ranks(i); }, false, false, false},
      {"reduce",
       [](const memory& m, ccl::communicator& c) {
         return ccl::reduce(m.send, m.recv, m.count, reduction::sum, 0, c);
       },
       [](std::size_t i, std::size_t) { return sum_of_ranks(i); }, false, false, true},
      {"broadcast",
       [](const memory& m, ccl::communicator& c) { return ccl::broadcast(m.recv, m.count, 0, c); },
       [](std::size_t i, std::size_t) { return input(0, i); }, false, false, false},
      {"allgather",
       [](const memory& m, ccl::communicator& c) {
         const std::vector<std::size_t> counts(static_cast<std::size_t>(ranks), m.count);
         return ccl::allgatherv(m.send, m.count, m.recv, counts, c);
       },
       [](std::size_t i, std::size_t n) { return input(static_cast<int>(i / n), i % n); }, false,
       true, false},
      {"reduce_scatter_block",
       [](const memory& m, ccl::communicator& c) {
         return ccl::reduce_scatter(m.send, m.recv, m.count, reduction::sum, c);
       },
       [](std::size_t i, std::size_t n) {
         return sum_of_ranks(i + n * static_cast<std::size_t>(rank));
       },
       true, false, false},
      {"alltoall",
       [](const memory& m, ccl::communicator& c) {
         return ccl::alltoall(m.send, m.recv, m.count, c);
       },
       [](std::size_t i, std::size_t n) {
         return input(static_cast<int>(i / n), i % n + n * static_cast<std::size_t>(rank));
       },
       true, true, false},
  };
}

float* allocate(std::size_t count) {
  const std::size_t bytes = (count * sizeof(float) + 4095) / 4096 * 4096 + 4096;
  return static_cast<float*>(std::aligned_alloc(4096, bytes));
}

bool right(const collective& c, const memory& m) {
  const std::size_t all = m.count * static_cast<std::size_t>(c.receives_all ? ranks : 1);
  if (c.at_root && rank != 0) return true;
  for (std::size_t i = 0; i < all; ++i)
    if (m.recv[i] != c.expected(i, m.count)) return false;
  return true;
}

void measure(const collective& c, std::size_t bytes, double seconds, ccl::communicator& comm) {
  const auto p = static_cast<std::size_t>(ranks);
  const memory m{allocate(bytes / 4 * p), allocate(bytes / 4 * p), bytes / sizeof(float)};
  for (std::size_t i = 0; i < m.count * (c.sends_all ? p : 1); ++i) m.send[i] = input(rank, i);
  std::memset(m.recv, 0x5b, m.count * p * sizeof(float));
  if (std::strcmp(c.name, "broadcast") == 0 && rank == 0)
    for (std::size_t i = 0; i < m.count; ++i) m.recv[i] = input(0, i);
  for (int i = 0; i < 3; ++i) c.start(m, comm).wait();
  std::vector<double> times;
  double spent = 0;
  for (int i = 0; i < 1000 && (i < 5 || spent < seconds * 1e6); ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = clock_type::now();
    c.start(m, comm).wait();
    double took = std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    times.push_back(took);
    spent += took;
  }
  int valid = right(c, m) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  if (rank == 0) {
    std::printf("{\"collective\": \"%s\", \"bytes\": %zu, \"median_us\": %.3f, \"valid\": %s}\n",
                c.name, bytes, times[times.size() / 2], valid ? "true" : "false");
    std::fflush(stdout);
  }
  std::free(m.send);
  std::free(m.recv);
}

}  // namespace

// oneccl SECONDS BYTES...
int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  ccl::init();
  ccl::kvs::address_type address;
  ccl::shared_ptr_class<ccl::kvs> store;
  if (rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank != 0) store = ccl::create_kvs(address);
  {
    auto comm = ccl::create_communicator(ranks, rank, store);
    for (const collective& c : collectives())
      for (int i = 2; i < argc; ++i)
        measure(c, std::strtoull(argv[i], nullptr, 10), std::atof(argv[1]), comm);
  }
  store.reset();
  MPI_Finalize();
  return 0;
}
