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
#include "interposer/arguments/transfer.hpp"
#include "process/process.hpp"

#include <sucl/error.hpp>

#include <memory>
#include <utility>

namespace {

using sucl::interposer::comm_position;
using sucl::interposer::transfer;

std::vector<std::uint64_t> in_bytes(const std::vector<int>& elements, std::size_t extent) {
  std::vector<std::uint64_t> bytes;
  for (const int n : elements) bytes.push_back(std::uint64_t(n) * extent);
  return bytes;
}

// The arrays of a collective whose blocks have lengths that only some ranks know, in bytes.
struct arrays {
  std::vector<std::uint64_t> send, send_places, recv, recv_places;
};

// These the interposer leaves to MPI.
transfer describe_blocks(fuzz::collective& c, sucl_kind kind, comm_position at, arrays& a) {
  transfer t;
  if (c.has_gaps()) return t;
  const bool all = kind == SUCL_KIND_ALLTOALLV, root = at.rank == c.root();
  a.send = in_bytes(all ? c.to() : c.counts(), c.extent());
  a.recv = in_bytes(all ? c.from() : c.counts(), c.extent());
  a.send_places = a.recv_places = in_bytes(all ? c.steps() : c.places(), c.extent());
  sucl_operation& o = t.record;
  o.struct_size = sizeof o;
  o.kind = kind;
  o.type = SUCL_TYPE_UINT8;
  o.element_size = 1;
  o.root = all ? 0 : c.root();
  o.count = all ? 0 : a.send[std::size_t(at.rank)];
  if (all || (kind == SUCL_KIND_SCATTERV && root))
    o.send_counts = a.send.data(), o.send_displs = a.send_places.data();
  if (all || (kind == SUCL_KIND_GATHERV && root))
    o.recv_counts = a.recv.data(), o.recv_displs = a.recv_places.data();
  o.send = c.input();
  o.recv = c.output();
  if (o.send == MPI_IN_PLACE || o.recv == MPI_IN_PLACE) o.flags |= SUCL_FLAG_IN_PLACE;
  if (o.send == MPI_IN_PLACE) o.send = nullptr;
  // SuCL's scatter in place has the root's block where it is among those that it sends.
  if (o.recv == MPI_IN_PLACE) o.recv = const_cast<void*>(std::exchange(o.send, nullptr));
  t.known = true;
  return t;
}

transfer describe(fuzz::collective& c, comm_position at, arrays& a) {
  using fuzz::kind;
  const sucl::interposer::side in{c.input(), c.elements(), c.type()};
  const sucl::interposer::side out{c.output(), c.elements(), c.type()};
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
    case kind::allgatherv:
      return sucl::interposer::allgatherv({in.memory, c.counts()[std::size_t(at.rank)], in.type},
                                          out.memory ? c.output() : nullptr, c.counts().data(),
                                          c.places().data(), c.type(), at);
    case kind::alltoallv: return describe_blocks(c, SUCL_KIND_ALLTOALLV, at, a);
    case kind::gatherv: return describe_blocks(c, SUCL_KIND_GATHERV, at, a);
    case kind::scatterv: return describe_blocks(c, SUCL_KIND_SCATTERV, at, a);
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
  arrays lengths;
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
    f.moved = describe(*f.what, at, f.lengths);
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
    if (f.what->right()) return;
    ++m_failures;
    std::fprintf(stderr, "rank %d: step %d: %s is wrong\n", m_rank, m_step,
                 f.what->describe().c_str());
  }

  std::shared_ptr<sucl::core::process> m_process;
  std::mt19937_64 m_common, m_own;
  int m_rank = 0, m_step = 0, m_failures = 0;
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
