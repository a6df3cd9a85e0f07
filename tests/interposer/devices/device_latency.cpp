// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Latency of collectives on memory of CUDA's devices, interposed, against what a program does that
// copies by hand: from the device into pinned memory, MPI there, and back. Both take turns. Every
// result is compared with MPI's on the host. Prints a row for each kind and size: medians over the
// calls of the slowest rank. Before that, what calls on memory of the host take.
//
//   device_latency [LARGEST [SMALLEST]]
//
// To be run interposed, a rank on each device; by hand.
#include "device_memory.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using fuzz::device_memory;
using fuzz::memory_kind;
using fuzz::pinned_memory;

int g_rank = 0, g_ranks = 1, g_failures = 0;

enum class kind { allreduce, reduce, bcast, allgather, alltoall };
constexpr const char* names[] = {"allreduce", "reduce", "bcast", "allgather", "alltoall"};

struct memory {
  void *send, *recv;
};

// One call on some memory, by MPI_ or by PMPI_. `bytes`: of a rank's message.
template <bool Interposed>
void call(kind k, memory m, std::size_t bytes) {
  const int floats = int(bytes / sizeof(float)), n = int(bytes);
  const auto to = MPI_COMM_WORLD;
#define SUCL_CALL(name, ...) \
  return void(Interposed ? MPI_##name(__VA_ARGS__, to) : PMPI_##name(__VA_ARGS__, to))
  switch (k) {
    case kind::allreduce: SUCL_CALL(Allreduce, m.send, m.recv, floats, MPI_FLOAT, MPI_SUM);
    case kind::reduce: SUCL_CALL(Reduce, m.send, m.recv, floats, MPI_FLOAT, MPI_SUM, 0);
    case kind::bcast: SUCL_CALL(Bcast, g_rank == 0 ? m.send : m.recv, n, MPI_BYTE, 0);
    case kind::allgather: SUCL_CALL(Allgather, m.send, n, MPI_BYTE, m.recv, n, MPI_BYTE);
    case kind::alltoall: SUCL_CALL(Alltoall, m.send, n, MPI_BYTE, m.recv, n, MPI_BYTE);
  }
#undef SUCL_CALL
}

class measurement {
 public:
  measurement(kind k, std::size_t bytes)
      : m_kind(k),
        m_bytes(bytes),
        m_sent(k == kind::alltoall ? bytes * std::size_t(g_ranks) : bytes),
        m_received(k == kind::allgather || k == kind::alltoall ? bytes * std::size_t(g_ranks)
                                                               : bytes),
        m_send(memory_kind::device, m_sent),
        m_recv(memory_kind::device, m_received),
        m_host_send(m_sent),
        m_host_recv(m_received),
        m_input(m_sent / sizeof(float)),
        m_expected(m_received) {
    for (std::size_t i = 0; i < m_input.size(); ++i)
      m_input[i] = float((i * 7 + std::size_t(g_rank) * 13) % 101);
    m_send.write(m_input.data());
    call<false>(k, {m_input.data(), m_expected.data()}, bytes);
  }

  void run() {
    const bool is_long = m_bytes > (1 << 20);
    const int warm = is_long ? 24 : 100, timed = is_long ? 21 : 201;
    poison();
    for (int i = 0; i < warm; ++i) interposed();
    check("interposed, first");
    for (int i = 0; i < warm / 4; ++i) by_hand();
    std::vector<double> ours, theirs;
    for (int i = 0; i < timed; ++i) {
      ours.push_back(time([&] { interposed(); }));
      theirs.push_back(time([&] { by_hand(); }));
    }
    poison();
    by_hand();
    check("by hand");
    poison();
    interposed();
    check("interposed, last");
    const double a = median(ours), b = median(theirs);
    if (g_rank == 0)
      std::printf("| %s | %zu | %.1f | %.1f | %.2f |\n", names[int(m_kind)], m_bytes, a, b, a / b);
    std::fflush(stdout);
  }

 private:
  void interposed() { call<true>(m_kind, {m_send.data(), m_recv.data()}, m_bytes); }

  void by_hand() {
    const bool root = g_rank == 0;
    const bool broadcasts = m_kind == kind::bcast;
    if (!broadcasts || root) m_send.read(m_host_send.data());
    call<false>(m_kind, {m_host_send.data(), m_host_recv.data()}, m_bytes);
    if ((m_kind != kind::reduce && !broadcasts) || (broadcasts ? !root : root))
      m_recv.write(m_host_recv.data());
  }

  void poison() {
    const std::vector<char> scrap(m_received, '\x5a');
    m_recv.write(scrap.data());
  }

  void check(const char* when) {
    if ((m_kind == kind::reduce && g_rank != 0) || (m_kind == kind::bcast && g_rank == 0)) return;
    std::vector<char> found(m_received);
    m_recv.read(found.data());
    if (found == m_expected) return;
    ++g_failures;
    std::printf("rank %d: %s of %zu bytes is wrong, %s\n", g_rank, names[int(m_kind)], m_bytes,
                when);
  }

  template <class Call>
  static double time(const Call& timed) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    timed();
    const std::chrono::duration<double, std::micro> d = std::chrono::steady_clock::now() - begin;
    return d.count();
  }

  static double median(std::vector<double> v) {
    PMPI_Allreduce(MPI_IN_PLACE, v.data(), int(v.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    std::nth_element(v.begin(), v.begin() + std::ptrdiff_t(v.size() / 2), v.end());
    return v[v.size() / 2];
  }

  kind m_kind;
  std::size_t m_bytes, m_sent, m_received;
  device_memory m_send, m_recv;
  pinned_memory m_host_send, m_host_recv;
  std::vector<float> m_input;
  std::vector<char> m_expected;
};

// What a call on host memory takes, in which nothing is copied.
void print_host(const char* when) {
  float in = 1, out = 0;
  std::vector<double> times;
  constexpr int calls =
      20;  // at a time: a call is shorter than what a barrier leaves between ranks
  for (int i = 0; i < 2000; ++i) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    for (int c = 0; c < calls; ++c) MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const std::chrono::duration<double, std::micro> d = std::chrono::steady_clock::now() - begin;
    if (i >= 200) times.push_back(d.count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + std::ptrdiff_t(times.size() / 2), times.end());
  if (g_rank == 0)
    std::printf("allreduce of 4 bytes of the host, %s: %.3f us\n", when, times[times.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
  print_host("without a driver");
  fuzz::open_device(g_rank);
  print_host("with one");
  const std::size_t largest = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64 << 20;
  const std::size_t smallest = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 8;
  if (g_rank == 0)
    std::printf("| kind | bytes | interposed, us | by hand, us | ratio |\n|---|---|---|---|---|\n");
  for (const kind k : {kind::allreduce, kind::reduce, kind::bcast, kind::allgather, kind::alltoall})
    for (std::size_t bytes = smallest; bytes <= largest; bytes *= 8) measurement(k, bytes).run();
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
