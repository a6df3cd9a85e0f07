// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Random collectives of SuCL itself, blocking and not, on communicators of its own and of MPI, each
// compared with what MPI gives.
//
//   core_fuzz SEED|date STEPS
//
// A failure is repeated by the same seed and steps on as many ranks; SUCL_FUZZ_SEED goes before.
#include "collective.hpp"
#include "core/operation/operation.hpp"
#include "interposer/arguments/own_ops.hpp"
#include "interposer/arguments/transfer.hpp"
#include "process/process.hpp"

#include <sucl/error.hpp>

#include <memory>
#include <utility>

namespace {

using sucl::interposer::block_side;
using sucl::interposer::comm_position;
using sucl::interposer::side;
using sucl::interposer::transfer;

transfer describe(fuzz::collective& c, comm_position at) {
  using fuzz::kind;
  const side in{c.input(), c.elements(), c.type()};
  const side out{c.output(), c.elements(), c.type()};
  const int mine = c.counts()[std::size_t(at.rank)];
  const side own_in{in.memory, mine, in.type};
  const block_side blocks_out{out.memory, c.counts().data(), c.displs().data(), c.type()};
  const auto reduced = [&](sucl_kind k) {
    return sucl::interposer::reduction(k, in, c.output(), c.op(), c.root(), at);
  };
  switch (c.what()) {
    case kind::barrier: return sucl::interposer::barrier();
    case kind::bcast: return sucl::interposer::broadcast(out, c.root(), at);
    case kind::allreduce: return reduced(SUCL_KIND_ALLREDUCE);
    case kind::reduce: return reduced(SUCL_KIND_REDUCE);
    case kind::reduce_scatter_block: return reduced(SUCL_KIND_REDUCE_SCATTER_BLOCK);
    case kind::reduce_scatter:
      return sucl::interposer::reduce_scatter(in, c.output(), c.counts().data(), c.op(), at);
    case kind::scan: return reduced(SUCL_KIND_SCAN);
    case kind::exscan: return reduced(SUCL_KIND_EXSCAN);
    case kind::allgather: return sucl::interposer::exchange(SUCL_KIND_ALLGATHER, in, out, at);
    case kind::alltoall: return sucl::interposer::exchange(SUCL_KIND_ALLTOALL, in, out, at);
    case kind::gather: return sucl::interposer::rooted(SUCL_KIND_GATHER, in, out, c.root(), at);
    case kind::scatter: return sucl::interposer::rooted(SUCL_KIND_SCATTER, in, out, c.root(), at);
    case kind::allgatherv: return sucl::interposer::allgatherv(own_in, blocks_out, at);
    case kind::alltoallv:
      return sucl::interposer::alltoallv(
          block_side{in.memory, c.to().data(), c.steps().data(), c.type()},
          block_side{out.memory, c.from().data(), c.steps().data(), c.type()}, at);
    case kind::gatherv: return sucl::interposer::gatherv(own_in, blocks_out, c.root(), at);
    case kind::scatterv:
      return sucl::interposer::scatterv(
          block_side{in.memory, c.counts().data(), c.displs().data(), c.type()},
          side{out.memory, mine, c.type()}, c.root(), at);
    case kind::alltoallw:
      return sucl::interposer::alltoallv(
          block_side{in.memory, c.to().data(), c.byte_steps().data(), c.types_to().data()},
          block_side{out.memory, c.from().data(), c.byte_steps().data(), c.types_from().data()},
          at);
    default: return {};
  }
}

struct pair {
  MPI_Comm mpi;
  std::shared_ptr<sucl::core::communicator> sucl;
};

struct flight {
  std::unique_ptr<fuzz::collective> what;
  transfer moved;
  std::shared_ptr<sucl::core::communicator> on;
  sucl::core::ticket operation;
};

class player {
 public:
  player(std::shared_ptr<sucl::core::process> process, std::uint64_t seed)
      : m_process(std::move(process)), m_common(seed), m_own(seed + 1) {
    MPI_Comm_rank(MPI_COMM_WORLD, &m_rank);
    m_pairs.push_back({MPI_COMM_WORLD, m_process->world({})});
  }

  int play(int steps) {
    for (m_step = 0; m_step < steps; ++m_step) {
      if (m_common() % 25 == 0) change();
      operate();
      if (m_flights.size() > m_own() % 6) land();
    }
    while (!m_flights.empty()) land();
    for (std::size_t i = 1; i < m_pairs.size(); ++i) MPI_Comm_free(&m_pairs[i].mpi);
    std::printf("rank %d: %d collectives for which MPI itself fails\n", m_rank, m_unknown);
    return m_failures;
  }

 private:
  void change() {
    while (!m_flights.empty()) land();
    if (m_pairs.size() > 3) {
      MPI_Comm_free(&m_pairs[1].mpi);
      m_pairs.erase(m_pairs.begin() + 1);
      return;
    }
    pair made{MPI_COMM_NULL, nullptr};
    const int colour = m_common() % 2 ? m_rank % 2 : 0, key = m_common() % 2 ? -m_rank : m_rank;
    MPI_Comm_split(MPI_COMM_WORLD, colour, key, &made.mpi);
    made.sucl = m_common() % 2 ? m_pairs[0].sucl->split(colour, key, {})
                               : m_process->adopt(&made.mpi, sizeof made.mpi, {});
    m_pairs.push_back(made);
  }

  void operate() {
    const pair& on = m_pairs[m_common() % m_pairs.size()];
    flight f;
    f.what = std::make_unique<fuzz::collective>(on.mpi, m_common);
    const bool waits = m_common() % 2;
    const comm_position at{on.sucl->rank(), on.sucl->size()};
    f.what
        ->expect();  // before it is described: without memory its arguments are wrong on some ranks
    // A rank that has done its part may still have to send, which MPI does when it is called; the
    // core alone does not call it.
    MPI_Barrier(on.mpi);
    f.moved = describe(*f.what, at);
    if (!f.moved.known) return;
    f.on = on.sucl;
    sucl_operation o = f.moved.filled();
    sucl::core::normalise(o, at.rank, at.size);
    if (waits) {
      on.sucl->run(o, {});
      return check(f);
    }
    f.operation = on.sucl->issue(o, {}, true, {}).operation;
    m_flights.push_back(std::move(f));
  }

  void land() {
    const auto i = m_own() % m_flights.size();
    m_flights[i].on->wait(m_flights[i].operation);
    check(m_flights[i]);
    m_flights.erase(m_flights.begin() + std::ptrdiff_t(i));
  }

  void check(flight& f) {
    f.moved.finish();
    if (!f.what->is_known()) return void(++m_unknown);
    if (f.what->right()) return;
    ++m_failures;
    std::fprintf(stderr, "rank %d: step %d: %s is wrong\n", m_rank, m_step,
                 f.what->describe().c_str());
  }

  std::shared_ptr<sucl::core::process> m_process;
  std::mt19937_64 m_common, m_own;
  int m_rank = 0, m_step = 0, m_failures = 0, m_unknown = 0;
  std::vector<pair> m_pairs;
  std::vector<flight> m_flights;
};

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 2 ? std::atoi(argv[2]) : 1000;
  int provided = 0, failures = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::uint64_t seed = fuzz::agree_on_seed(argc > 1 ? argv[1] : "1");
  sucl::interposer::own_ops::add(fuzz::own_sum());
  sucl::interposer::own_ops::add(fuzz::own_chain());
  try {
    const auto process = sucl::core::process::start(nullptr, nullptr);
    failures = player(process, seed).play(steps);
    process->shut_down();
  } catch (const sucl::error& e) {
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::printf("rank %d: %d failures with seed %llu and %d steps\n", rank, failures,
              static_cast<unsigned long long>(seed), steps);
  std::fflush(stdout);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
