// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Each kind of operation in terms of the library's calls. What the library lacks is a group of its
// sends and receives, or of broadcasts or reductions.
#include "communicator.hpp"

#include <algorithm>

namespace sucl::xccl {
namespace {

/// One operation on its way to a stream.
// A rank without elements may have no memory.
template <class Byte>
Byte* at(Byte* memory, std::uint64_t offset) {
  return memory ? memory + offset : nullptr;
}

class call {
 public:
  call(sucl_backend_comm& comm, const sucl_operation& o, stream_handle stream)
      : m_comm(comm), m_api(comm.state->library.api), m_op(o), m_stream(stream) {
    m_ranks = static_cast<std::uint64_t>(comm.size);
    m_me = static_cast<std::uint64_t>(comm.rank);
    m_send = static_cast<const char*>(o.send);
    m_recv = static_cast<char*>(o.recv);
    m_in_place = (o.flags & SUCL_FLAG_IN_PLACE) != 0;
  }

  sucl_status run() {
    switch (m_op.kind) {
      case SUCL_KIND_BARRIER: return barrier();
      case SUCL_KIND_BROADCAST: return broadcast();
      case SUCL_KIND_REDUCE: return reduce();
      case SUCL_KIND_ALLREDUCE: return allreduce();
      case SUCL_KIND_REDUCE_SCATTER: return reduce_scatter();
      case SUCL_KIND_REDUCE_SCATTER_BLOCK: return reduce_scatter_block(m_op.count);
      case SUCL_KIND_ALLGATHER: return allgather();
      case SUCL_KIND_ALLGATHERV: return allgatherv();
      case SUCL_KIND_ALLTOALL:
      case SUCL_KIND_ALLTOALLV: return alltoall();
      case SUCL_KIND_GATHER:
      case SUCL_KIND_GATHERV: return gather();
      case SUCL_KIND_SCATTER:
      case SUCL_KIND_SCATTERV: return scatter();
      default: return messages();
    }
  }

 private:
  bool at_root() const { return m_comm.rank == m_op.root; }
  std::uint64_t bytes(std::uint64_t elements) const { return elements * m_op.element_size; }
  int type() const { return native_type(m_op.type).type; }
  std::uint64_t reduced(std::uint64_t elements) const {
    return elements * static_cast<std::uint64_t>(native_type(m_op.type).components);
  }
  int op() const { return native_op(m_op.op); }

  sucl_status check(int result, const char* what) const {
    return result == ok ? SUCL_SUCCESS : failed(m_comm, result, what);
  }

  // Runs calls as one group, which is ended even if one of them fails.
  template <class Body>
  sucl_status grouped(Body&& body) {
    if (const auto status = check(m_api.group_start(), "ncclGroupStart")) return status;
    const sucl_status status = body();
    const int result = m_api.group_end();
    return status ? status : check(result, "ncclGroupEnd");
  }

  sucl_status send_to(int peer, const void* from, std::uint64_t size) {
    if (size == 0) return SUCL_SUCCESS;
    return check(m_api.send(from, size, int8, peer, m_comm.native, m_stream), "ncclSend");
  }
  sucl_status receive_from(int peer, void* to, std::uint64_t size) {
    if (size == 0) return SUCL_SUCCESS;
    return check(m_api.recv(to, size, int8, peer, m_comm.native, m_stream), "ncclRecv");
  }
  sucl_status copy(void* to, const void* from, std::uint64_t size) {
    if (size == 0 || to == from) return SUCL_SUCCESS;
    const on_device here(m_comm.state->library.device, m_comm.context);
    const int result = m_comm.state->library.device.copy(to, from, size, m_stream);
    return result == device_ok ? SUCL_SUCCESS : device_failed(m_comm, result, "a copy");
  }

  stream_scratch& scratch_of_stream() {
    for (stream_scratch& one : m_comm.scratch)
      if (one.stream == m_stream) return one;
    m_comm.scratch.push_back({m_stream});
    return m_comm.scratch.back();
  }

  // Device memory of at least this size; null after a failure, which is kept in `status`.
  char* scratch(std::uint64_t size, sucl_status& status) {
    stream_scratch& own = scratch_of_stream();
    if (!own.memory || size > own.capacity) {
      const on_device here(m_comm.state->library.device, m_comm.context);
      const std::size_t capacity = std::max<std::size_t>({size, 2 * own.capacity, 256});
      void* memory = nullptr;
      const int result = m_comm.state->library.device.allocate(&memory, capacity);
      if (result != device_ok) {
        status = device_failed(m_comm, result, "an allocation of device memory");
        return nullptr;
      }
      m_comm.memory.push_back(memory);
      own.memory = memory;
      own.capacity = capacity;
    }
    return static_cast<char*>(own.memory);
  }

  sucl_status barrier() {
    sucl_status status = SUCL_SUCCESS;
    char* word = scratch(1, status);
    if (!word) return status;
    return check(m_api.all_reduce(word, word, 1, int8, max, m_comm.native, m_stream),
                 "ncclAllReduce");
  }

  sucl_status broadcast() {
    // The root's data stays where it is.
    void* data = at_root() && m_send ? const_cast<char*>(m_send) : m_recv;
    return check(
        m_api.broadcast(data, data, bytes(m_op.count), int8, m_op.root, m_comm.native, m_stream),
        "ncclBroadcast");
  }

  sucl_status reduce() {
    const void* from = m_in_place ? m_recv : m_send;
    return check(m_api.reduce(from, m_recv, reduced(m_op.count), type(), op(), m_op.root,
                              m_comm.native, m_stream),
                 "ncclReduce");
  }

  sucl_status allreduce() {
    const void* from = m_in_place ? m_recv : m_send;
    return check(
        m_api.all_reduce(from, m_recv, reduced(m_op.count), type(), op(), m_comm.native, m_stream),
        "ncclAllReduce");
  }

  // In place SuCL's result is at the start of the memory, the library's in the rank's own block.
  sucl_status reduce_scatter_block(std::uint64_t count) {
    const char* from = m_in_place ? m_recv : m_send;
    char* to = m_in_place ? m_recv + m_me * bytes(count) : m_recv;
    const auto status =
        check(m_api.reduce_scatter(from, to, reduced(count), type(), op(), m_comm.native, m_stream),
              "ncclReduceScatter");
    return status || !m_in_place ? status : copy(m_recv, to, bytes(count));
  }

  sucl_status reduce_scatter() {
    const std::uint64_t* counts = m_op.recv_counts;
    if (std::all_of(counts, counts + m_ranks, [&](auto n) { return n == counts[0]; }))
      return reduce_scatter_block(counts[0]);
    const char* from = m_in_place ? m_recv : m_send;
    const std::uint64_t mine = bytes(counts[m_me]);
    sucl_status status = SUCL_SUCCESS;
    char* to = m_in_place ? scratch(mine, status) : m_recv;
    if (status) return status;
    status = grouped([&]() -> sucl_status {
      for (int root = 0; root < m_comm.size; ++root) {
        const std::uint64_t n = counts[root];
        if (n == 0) continue;
        const auto result = check(m_api.reduce(from, root == m_comm.rank ? to : nullptr, reduced(n),
                                               type(), op(), root, m_comm.native, m_stream),
                                  "ncclReduce");
        if (result) return result;
        from += bytes(n);
      }
      return SUCL_SUCCESS;
    });
    return status || !m_in_place ? status : copy(m_recv, to, mine);
  }

  sucl_status allgather() {
    const std::uint64_t block = bytes(m_op.count);
    const void* from = m_in_place ? m_recv + m_me * block : m_send;
    return check(m_api.all_gather(from, m_recv, block, int8, m_comm.native, m_stream),
                 "ncclAllGather");
  }

  sucl_status allgatherv() {
    return grouped([&]() -> sucl_status {
      for (int root = 0; root < m_comm.size; ++root) {
        const std::uint64_t n = m_op.recv_counts[root];
        char* to = at(m_recv, bytes(m_op.recv_displs[root]));
        const void* from = root == m_comm.rank && !m_in_place ? m_send : to;
        if (n == 0) continue;
        const auto status =
            check(m_api.broadcast(from, to, bytes(n), int8, root, m_comm.native, m_stream),
                  "ncclBroadcast");
        if (status) return status;
      }
      return SUCL_SUCCESS;
    });
  }

  /// Blocks of one side of an operation, one for each rank.
  struct blocks {
    const std::uint64_t* counts;
    const std::uint64_t* displs;
    std::uint64_t same;  // without counts
    std::uint64_t count(std::uint64_t r) const { return counts ? counts[r] : same; }
    std::uint64_t start(std::uint64_t r) const { return displs ? displs[r] : r * same; }
    std::uint64_t end(std::uint64_t ranks) const {
      std::uint64_t last = 0;
      for (std::uint64_t r = 0; r < ranks; ++r)
        if (count(r) > 0) last = std::max(last, start(r) + count(r));
      return last;
    }
  };
  blocks sent() const { return {m_op.send_counts, m_op.send_displs, m_op.count}; }
  blocks received() const { return {m_op.recv_counts, m_op.recv_displs, m_op.count}; }

  sucl_status alltoall() {
    const blocks in = received();
    const blocks out = m_in_place ? in : sent();
    const char* from = m_send;
    if (m_in_place) {
      // What comes replaces what goes.
      sucl_status status = SUCL_SUCCESS;
      const std::uint64_t size = bytes(in.end(m_ranks));
      char* memory = size > 0 ? scratch(size, status) : nullptr;
      if (!status) status = copy(memory, m_recv, size);
      if (status) return status;
      from = memory;
    }
    return grouped([&]() -> sucl_status {
      for (std::uint64_t i = 0; i < m_ranks; ++i) {
        const std::uint64_t to = (m_me + i) % m_ranks;
        const std::uint64_t source = (m_me + m_ranks - i) % m_ranks;
        auto status =
            send_to(static_cast<int>(to), at(from, bytes(out.start(to))), bytes(out.count(to)));
        if (!status)
          status = receive_from(static_cast<int>(source), at(m_recv, bytes(in.start(source))),
                                bytes(in.count(source)));
        if (status) return status;
      }
      return SUCL_SUCCESS;
    });
  }

  sucl_status gather() {
    const blocks in = received();
    // In place elsewhere than at the root a rank's block lies where the root would have it.
    const bool given = m_op.kind == SUCL_KIND_GATHER;
    const char* from = m_in_place ? m_recv + (given ? bytes(m_me * m_op.count) : 0) : m_send;
    return grouped([&]() -> sucl_status {
      sucl_status status = SUCL_SUCCESS;
      if (!(at_root() && m_in_place)) status = send_to(m_op.root, from, bytes(m_op.count));
      for (std::uint64_t r = 0; at_root() && r < m_ranks && !status; ++r)
        if (!(m_in_place && r == m_me))
          status =
              receive_from(static_cast<int>(r), at(m_recv, bytes(in.start(r))), bytes(in.count(r)));
      return status;
    });
  }

  sucl_status scatter() {
    const blocks out = sent();
    const char* from = m_in_place ? m_recv : m_send;
    return grouped([&]() -> sucl_status {
      sucl_status status = SUCL_SUCCESS;
      for (std::uint64_t r = 0; at_root() && r < m_ranks && !status; ++r)
        if (!(m_in_place && r == m_me))
          status = send_to(static_cast<int>(r), at(from, bytes(out.start(r))), bytes(out.count(r)));
      if (!status && !(at_root() && m_in_place))
        status = receive_from(m_op.root, m_recv, bytes(m_op.count));
      return status;
    });
  }

  sucl_status message(const sucl_operation& o) {
    const std::uint64_t given = o.kind == SUCL_KIND_RECV ? 0 : o.count * o.element_size;
    const std::uint64_t taken = o.kind == SUCL_KIND_SEND   ? 0
                                : o.kind == SUCL_KIND_RECV ? o.count * o.element_size
                                                           : o.recv_count * o.element_size;
    const sucl_status status = send_to(o.root, o.send, given);
    return status ? status : receive_from(o.source, o.recv, taken);
  }

  sucl_status messages() {
    return grouped([&]() -> sucl_status {
      if (m_op.kind != SUCL_KIND_GROUP) return message(m_op);
      for (std::uint64_t i = 0; i < m_op.part_count; ++i)
        if (const auto status = message(m_op.parts[i])) return status;
      return SUCL_SUCCESS;
    });
  }

  sucl_backend_comm& m_comm;
  const library_api& m_api;
  const sucl_operation& m_op;
  stream_handle m_stream;
  std::uint64_t m_ranks;
  std::uint64_t m_me;
  const char* m_send;
  char* m_recv;
  bool m_in_place;
};

}  // namespace

sucl_status enqueue(sucl_backend_comm& comm, const sucl_operation& o, stream_handle stream) {
  return call(comm, o, stream).run();
}

}  // namespace sucl::xccl
