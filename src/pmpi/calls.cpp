// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The functions that an MPI program calls. Each describes the call as one operation record and has
// it carried, or passes it on through MPI's profiling interface.
#include "pmpi/packed.hpp"
#include "pmpi/state.hpp"

#include <sucl/abi/backend.h>

#define SUCL_MPI_FUNCTION extern "C" SUCL_ABI_EXPORT int

namespace {

using namespace sucl::pmpi;

// A negative count is MPI's to refuse; see reduce().
constexpr std::uint64_t refused = ~std::uint64_t{0};
std::uint64_t elements(int count) {
  return count < 0 ? refused : static_cast<std::uint64_t>(count);
}

sucl_operation record_of(sucl_kind kind) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = kind;
  o.element_size = 1;
  return o;
}

// Bytes to be moved.
sucl_operation move_of(sucl_kind kind, std::uint64_t bytes, int root = 0) {
  sucl_operation o = record_of(kind);
  o.type = SUCL_TYPE_BYTES;
  o.count = bytes;
  o.root = root;
  return o;
}

void in_place(sucl_operation& o) {
  o.flags |= SUCL_FLAG_IN_PLACE;
  o.send = nullptr;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  PMPI_Comm_size(comm, &size);
  return size;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

interposer* open(MPI_Comm comm) { return comm == MPI_COMM_NULL ? nullptr : interposer::active(); }

// A rooted move as SuCL knows it: no inter-communicator's special roots, and a rank that exists.
bool rooted(int root, MPI_Comm comm) { return root >= 0 && root < size_of(comm); }

// A reduction whose type and op SuCL has; MPI asks for the same ones on every rank.
template <class Pass>
int reduce(sucl_kind kind, const void* send, void* recv, std::uint64_t count,
           const std::vector<std::uint64_t>* counts, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm, const Pass& pass) {
  interposer* const self = open(comm);
  if (!self) return pass();
  sucl_operation o = record_of(kind);
  const type_facts facts = facts_of(type);
  o.type = facts.reducible;
  o.op = op_of(op);
  o.element_size = static_cast<std::uint64_t>(facts.extent);
  o.count = count;
  o.root = root;
  o.send = send;
  o.recv = recv;
  if (counts) o.recv_counts = counts->data();
  if (send == MPI_IN_PLACE) in_place(o);
  const bool known = facts.reducible != SUCL_TYPE_BYTES && o.op != SUCL_OP_NONE &&
                     count != refused && root >= 0 && root < size_of(comm) &&
                     sucl::defined(static_cast<sucl::op>(o.op), static_cast<sucl::type>(o.type));
  return known ? self->carry(comm, o, pass) : self->leave(comm, kind, pass);
}

// A move in which every rank receives a block of every other. `send_blocks`: those that it sends.
template <class Pass>
int exchange(sucl_kind kind, int send_blocks, const void* send, int send_count,
             MPI_Datatype send_type, void* recv, int recv_count, MPI_Datatype recv_type,
             MPI_Comm comm, const Pass& pass) {
  interposer* const self = open(comm);
  if (!self) return pass();
  const bool own = send == MPI_IN_PLACE;
  packed from(send, own ? 0 : send_count, own ? MPI_BYTE : send_type, own ? 0 : send_blocks);
  packed to(recv, recv_count, recv_type, size_of(comm));
  if (!to.fits()) return self->leave(comm, kind, pass);
  sucl_operation o = move_of(kind, to.block_bytes());
  return self->carry(
      comm, o, pass,
      [&] {
        o.send = from.data();
        from.load();
        o.recv = to.data();
        if (!own) return;
        in_place(o);
        to.load();
      },
      [&] { to.store(); });
}

template <class Pass>
int leave(MPI_Comm comm, sucl_kind kind, const Pass& pass) {
  interposer* const self = open(comm);
  return self ? self->leave(comm, kind, pass) : pass();
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) interposer::start();
  return code;
}

SUCL_MPI_FUNCTION MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) interposer::start();
  return code;
}

SUCL_MPI_FUNCTION MPI_Finalize() {
  interposer::stop();
  return PMPI_Finalize();
}

SUCL_MPI_FUNCTION MPI_Barrier(MPI_Comm comm) {
  const auto pass = [&] { return PMPI_Barrier(comm); };
  interposer* const self = open(comm);
  if (!self) return pass();
  sucl_operation o = record_of(SUCL_KIND_BARRIER);
  return self->carry(comm, o, pass);
}

SUCL_MPI_FUNCTION MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const auto pass = [&] { return PMPI_Bcast(buffer, count, type, root, comm); };
  interposer* const self = open(comm);
  if (!self) return pass();
  packed data(buffer, count, type, 1);
  if (!rooted(root, comm) || !data.fits()) return self->leave(comm, SUCL_KIND_BROADCAST, pass);
  const bool at_root = rank_in(comm) == root;
  sucl_operation o = move_of(SUCL_KIND_BROADCAST, data.block_bytes(), root);
  in_place(o);
  return self->carry(
      comm, o, pass,
      [&] {
        o.recv = data.data();
        if (at_root) data.load();
      },
      [&] {
        if (!at_root) data.store();
      });
}

SUCL_MPI_FUNCTION MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm) {
  return reduce(SUCL_KIND_ALLREDUCE, send, recv, elements(count), nullptr, type, op, 0, comm,
                [&] { return PMPI_Allreduce(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                             int root, MPI_Comm comm) {
  return reduce(SUCL_KIND_REDUCE, send, recv, elements(count), nullptr, type, op, root, comm,
                [&] { return PMPI_Reduce(send, recv, count, type, op, root, comm); });
}

SUCL_MPI_FUNCTION MPI_Reduce_scatter_block(const void* send, void* recv, int count,
                                           MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return reduce(SUCL_KIND_REDUCE_SCATTER_BLOCK, send, recv, elements(count), nullptr, type, op, 0,
                comm, [&] { return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Reduce_scatter(const void* send, void* recv, const int* counts,
                                     MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto pass = [&] { return PMPI_Reduce_scatter(send, recv, counts, type, op, comm); };
  if (!open(comm)) return pass();
  const std::vector<std::uint64_t> wide(counts, counts + size_of(comm));
  return reduce(SUCL_KIND_REDUCE_SCATTER, send, recv, 0, &wide, type, op, 0, comm, pass);
}

SUCL_MPI_FUNCTION MPI_Scan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm) {
  return reduce(SUCL_KIND_SCAN, send, recv, elements(count), nullptr, type, op, 0, comm,
                [&] { return PMPI_Scan(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Exscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  return reduce(SUCL_KIND_EXSCAN, send, recv, elements(count), nullptr, type, op, 0, comm,
                [&] { return PMPI_Exscan(send, recv, count, type, op, comm); });
}

SUCL_MPI_FUNCTION MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type,
                                void* recv, int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  return exchange(
      SUCL_KIND_ALLGATHER, 1, send, send_count, send_type, recv, recv_count, recv_type, comm, [&] {
        return PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
      });
}

SUCL_MPI_FUNCTION MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                               int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  return exchange(SUCL_KIND_ALLTOALL, size_of(comm), send, send_count, send_type, recv, recv_count,
                  recv_type, comm, [&] {
                    return PMPI_Alltoall(send, send_count, send_type, recv, recv_count, recv_type,
                                         comm);
                  });
}

SUCL_MPI_FUNCTION MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                             int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  const auto pass = [&] {
    return PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  };
  interposer* const self = open(comm);
  if (!self) return pass();
  if (!rooted(root, comm)) return self->leave(comm, SUCL_KIND_GATHER, pass);
  const int rank = rank_in(comm);
  const bool at_root = rank == root;
  const bool own = at_root && send == MPI_IN_PLACE;
  packed from(send, own ? 0 : send_count, own ? MPI_BYTE : send_type, own ? 0 : 1);
  packed to(recv, at_root ? recv_count : 0, at_root ? recv_type : MPI_BYTE,
            at_root ? size_of(comm) : 0);
  const packed& known = at_root ? to : from;
  if (!known.fits()) return self->leave(comm, SUCL_KIND_GATHER, pass);
  sucl_operation o = move_of(SUCL_KIND_GATHER, known.block_bytes(), root);
  return self->carry(
      comm, o, pass,
      [&] {
        o.send = from.data();
        from.load();
        o.recv = to.data();
        if (!own) return;
        in_place(o);
        to.load(rank, rank + 1);
      },
      [&] { to.store(); });
}

SUCL_MPI_FUNCTION MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                              int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  const auto pass = [&] {
    return PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  };
  interposer* const self = open(comm);
  if (!self) return pass();
  if (!rooted(root, comm)) return self->leave(comm, SUCL_KIND_SCATTER, pass);
  const bool at_root = rank_in(comm) == root;
  const bool own = at_root && recv == MPI_IN_PLACE;
  packed from(send, at_root ? send_count : 0, at_root ? send_type : MPI_BYTE,
              at_root ? size_of(comm) : 0);
  packed to(recv, own ? 0 : recv_count, own ? MPI_BYTE : recv_type, own ? 0 : 1);
  const packed& known = at_root ? from : to;
  if (!known.fits()) return self->leave(comm, SUCL_KIND_SCATTER, pass);
  sucl_operation o = move_of(SUCL_KIND_SCATTER, known.block_bytes(), root);
  return self->carry(
      comm, o, pass,
      [&] {
        o.send = from.data();
        from.load();
        o.recv = to.data();
        // SuCL's in-place form has the root's block where it is among those that it sends.
        if (!own) return;
        o.recv = const_cast<void*>(o.send);
        in_place(o);
      },
      [&] { to.store(); });
}

SUCL_MPI_FUNCTION MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type,
                                 void* recv, const int* recv_counts, const int* displs,
                                 MPI_Datatype recv_type, MPI_Comm comm) {
  const auto pass = [&] {
    return PMPI_Allgatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type, comm);
  };
  interposer* const self = open(comm);
  if (!self) return pass();
  const type_facts facts = facts_of(recv_type);
  const int rank = rank_in(comm);
  const auto ranks = static_cast<std::size_t>(size_of(comm));
  // A copy of the blocks back to back where they cannot be written as they are.
  std::vector<packed> to;
  std::vector<std::uint64_t> counts(ranks);
  std::vector<std::uint64_t> places(ranks);
  std::uint64_t total = 0;
  bool fits = true;
  for (std::size_t r = 0; r < ranks; ++r) {
    to.emplace_back(static_cast<char*>(recv) + displs[r] * facts.extent, recv_counts[r], recv_type,
                    1);
    fits = fits && to.back().fits();
    counts[r] = to.back().block_bytes();
    places[r] = facts.dense ? static_cast<std::uint64_t>(displs[r] * facts.extent) : total;
    total += counts[r];
  }
  if (!fits) return self->leave(comm, SUCL_KIND_ALLGATHERV, pass);
  const auto mine = static_cast<std::size_t>(rank);
  const bool own = send == MPI_IN_PLACE;
  packed from(send, own ? 0 : send_count, own ? MPI_BYTE : send_type, own ? 0 : 1);
  sucl_operation o = move_of(SUCL_KIND_ALLGATHERV, counts[mine]);
  o.recv_counts = counts.data();
  o.recv_displs = places.data();
  std::vector<char> copy;
  return self->carry(
      comm, o, pass,
      [&] {
        o.send = from.data();
        from.load();
        o.recv = recv;
        if (!facts.dense) {
          copy.resize(total);
          o.recv = copy.data();
        }
        if (!own) return;
        in_place(o);
        if (!facts.dense) to[mine].write(copy.data() + places[mine]);
      },
      [&] {
        if (facts.dense) return;
        for (std::size_t r = 0; r < ranks; ++r) to[r].read(copy.data() + places[r]);
      });
}

// Ranks do not know each other's sizes in these, so that there is nothing to select by.

SUCL_MPI_FUNCTION MPI_Alltoallv(const void* send, const int* send_counts, const int* send_displs,
                                MPI_Datatype send_type, void* recv, const int* recv_counts,
                                const int* recv_displs, MPI_Datatype recv_type, MPI_Comm comm) {
  return leave(comm, SUCL_KIND_ALLTOALLV, [&] {
    return PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs,
                          recv_type, comm);
  });
}

SUCL_MPI_FUNCTION MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                              const int* recv_counts, const int* displs, MPI_Datatype recv_type,
                              int root, MPI_Comm comm) {
  return leave(comm, SUCL_KIND_GATHERV, [&] {
    return PMPI_Gatherv(send, send_count, send_type, recv, recv_counts, displs, recv_type, root,
                        comm);
  });
}

SUCL_MPI_FUNCTION MPI_Scatterv(const void* send, const int* send_counts, const int* displs,
                               MPI_Datatype send_type, void* recv, int recv_count,
                               MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return leave(comm, SUCL_KIND_SCATTERV, [&] {
    return PMPI_Scatterv(send, send_counts, displs, send_type, recv, recv_count, recv_type, root,
                         comm);
  });
}
