// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Runs a case: typed memory, the call, and what the memory holds afterwards.
#pragma once

#include "elements.hpp"
#include "flow.hpp"

#include <sucl/sucl.hpp>

#include <optional>
#include <stdexcept>
#include <type_traits>

namespace sucl::conformance {

/// A communicator and its queue.
struct comm_and_queue {
  communicator comm;
  std::optional<::sycl::queue> queue;
};

struct outcome {
  std::vector<std::byte> send, recv;
};

using runner = outcome (*)(const test_case&, const flow&, const images&, comm_and_queue&);

/// The runner of an element type.
runner runner_of(int element);

/// Storage that pointers refer to.
class storage {
 public:
  storage(memory m, std::size_t bytes, comm_and_queue& where);
  ~storage();
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;
  std::byte* data() const { return m_data; }

  /// Copies; `deps` and the returned event matter where there is a queue.
  ::sycl::event write(const std::vector<std::byte>& from, const std::vector<::sycl::event>& deps);
  ::sycl::event read(std::vector<std::byte>& to, const std::vector<::sycl::event>& deps);

 private:
  ::sycl::event copy(void* to, const void* from, std::size_t bytes,
                     const std::vector<::sycl::event>& deps);
  comm_and_queue& m_where;
  std::optional<::sycl::queue> m_queue;
  bool m_symmetric, m_usm;
  std::size_t m_bytes;
  std::byte* m_data;
};

using events = std::vector<::sycl::event>;

namespace calls {

constexpr int tag = 32766;  // the greatest one

// True for every other call, alike on every rank.
inline bool in_turn() {
  static bool now = false;
  return now = !now;
}

// Keeps the event of an asynchronous call. What is persistent is run and started in turn.
template <class Call>
void keep(events& done, Call&& call) {
  using result = decltype(call());
  if constexpr (std::is_void_v<result>) {
    call();
  } else if constexpr (std::is_same_v<result, persistent>) {
    persistent made = call();
    if (in_turn()) return made.run();
    made.start().wait();
  } else {
    done.push_back(call());
  }
}

template <class Facade, class T>
auto in_place(Facade& comm, const test_case& c, const flow& f, int root, T* data,
              const events& deps) {
  const std::size_t n = c.count();
  switch (c.kind()) {
    case kind::broadcast: return comm.broadcast(data, n, root, deps);
    case kind::allgather: return comm.allgather(data, n, deps);
    case kind::allgatherv: return comm.allgatherv(data, f.recv_counts, f.recv_displs, deps);
    case kind::alltoall: return comm.alltoall(data, n, deps);
    case kind::alltoallv: return comm.alltoallv(data, f.recv_counts, f.recv_displs, deps);
    case kind::gather: return comm.gather(data, n, root, deps);
    case kind::scatter: return comm.scatter(data, n, root, deps);
    case kind::reduce: return comm.reduce(data, n, c.op(), root, deps);
    case kind::allreduce: return comm.allreduce(data, n, c.op(), deps);
    case kind::scan: return comm.scan(data, n, c.op(), deps);
    case kind::exscan: return comm.exscan(data, n, c.op(), deps);
    case kind::reduce_scatter: return comm.reduce_scatter(data, f.recv_counts, c.op(), deps);
    case kind::reduce_scatter_block: return comm.reduce_scatter_block(data, n, c.op(), deps);
    default: throw std::logic_error("no such call in place");
  }
}

template <class Facade, class T>
auto out_of_place(Facade& comm, const test_case& c, const flow& f, int root, const T* s, T* r,
                  const events& deps) {
  const std::size_t n = c.count();
  const auto own = static_cast<std::size_t>(f.in.empty() ? 0 : f.in[0].count);
  switch (c.kind()) {
    case kind::barrier: return comm.barrier(deps);
    case kind::allgather: return comm.allgather(s, r, n, deps);
    case kind::allgatherv: return comm.allgatherv(s, own, r, f.recv_counts, f.recv_displs, deps);
    case kind::alltoall: return comm.alltoall(s, r, n, deps);
    case kind::alltoallv:
      return comm.alltoallv(s, f.send_counts, f.send_displs, r, f.recv_counts, f.recv_displs, deps);
    case kind::gather: return comm.gather(s, r, n, root, deps);
    case kind::gatherv: return comm.gatherv(s, own, r, f.recv_counts, f.recv_displs, root, deps);
    case kind::scatter: return comm.scatter(s, r, n, root, deps);
    case kind::scatterv:
      return comm.scatterv(s, f.send_counts, f.send_displs, r, f.recv_size, root, deps);
    case kind::reduce: return comm.reduce(s, r, n, c.op(), root, deps);
    case kind::allreduce: return comm.allreduce(s, r, n, c.op(), deps);
    case kind::scan: return comm.scan(s, r, n, c.op(), deps);
    case kind::exscan: return comm.exscan(s, r, n, c.op(), deps);
    case kind::reduce_scatter: return comm.reduce_scatter(s, r, f.recv_counts, c.op(), deps);
    case kind::reduce_scatter_block: return comm.reduce_scatter_block(s, r, n, c.op(), deps);
    default: throw std::logic_error("no such call out of place");
  }
}

// The same for buffers; `Element` decides which calls are compiled.
template <int Element, class Facade, class Block>
auto with_block(Facade& comm, const test_case& c, int root, const Block& data, const events& deps) {
  if (c.kind() == kind::broadcast)
    return c.count() % 2 == 0
               ? comm.broadcast(data, root, deps)
               : comm.broadcast(data.buffer(), data.offset(), data.range(), root, deps);
  if (c.kind() == kind::allgather) return comm.allgather(data, deps);
  if constexpr (elements[Element].reducible)
    if (c.kind() == kind::allreduce) return comm.allreduce(data, c.op(), deps);
  if constexpr (in_buffers(kind::alltoall, Element))
    if (c.kind() == kind::alltoall) return comm.alltoall(data, deps);
  if constexpr (in_buffers(kind::scan, Element) && elements[Element].reducible) {
    switch (c.kind()) {
      case kind::reduce: return comm.reduce(data, c.op(), root, deps);
      case kind::scan: return comm.scan(data, c.op(), deps);
      case kind::exscan: return comm.exscan(data, c.op(), deps);
      case kind::reduce_scatter_block: return comm.reduce_scatter_block(data, c.op(), deps);
      default: break;
    }
  }
  throw std::logic_error("no such call with one buffer");
}

template <class Facade, class Block>
auto with_blocks_moved(Facade& comm, const test_case& c, const flow& f, int root, const Block& s,
                       const Block& r, const events& deps) {
  switch (c.kind()) {
    case kind::allgatherv: return comm.allgatherv(s, r, f.recv_counts, f.recv_displs, deps);
    case kind::alltoall: return comm.alltoall(s, r, deps);
    case kind::alltoallv:
      return comm.alltoallv(s, f.send_counts, f.send_displs, r, f.recv_counts, f.recv_displs, deps);
    case kind::gather: return comm.gather(s, r, root, deps);
    case kind::gatherv: return comm.gatherv(s, r, f.recv_counts, f.recv_displs, root, deps);
    case kind::scatter: return comm.scatter(s, r, root, deps);
    case kind::scatterv: return comm.scatterv(s, f.send_counts, f.send_displs, r, root, deps);
    default: throw std::logic_error("no such call with two buffers");
  }
}

template <int Element, class Facade, class Block>
auto with_blocks(Facade& comm, const test_case& c, const flow& f, int root, const Block& s,
                 const Block& r, const events& deps) {
  if (c.kind() == kind::allgather) return comm.allgather(s, r, deps);
  if constexpr (elements[Element].reducible)
    if (c.kind() == kind::allreduce) return comm.allreduce(s, r, c.op(), deps);
  if constexpr (in_buffers(kind::scan, Element) && elements[Element].reducible) {
    switch (c.kind()) {
      case kind::reduce: return comm.reduce(s, r, c.op(), root, deps);
      case kind::scan: return comm.scan(s, r, c.op(), deps);
      case kind::exscan: return comm.exscan(s, r, c.op(), deps);
      case kind::reduce_scatter: return comm.reduce_scatter(s, r, f.recv_counts, c.op(), deps);
      case kind::reduce_scatter_block: return comm.reduce_scatter_block(s, r, c.op(), deps);
      default: break;
    }
  }
  if constexpr (in_buffers(kind::alltoall, Element))
    return with_blocks_moved(comm, c, f, root, s, r, deps);
  else
    throw std::logic_error("not compiled for this element type");
}

inline void finish(group& g, const test_case& c, events& done, const events& deps) {
  if (c.at[f_form] == blocking_form)
    g.run(deps);
  else
    done.push_back(g.submit(deps));
}

// Whether a call starts only when the one before it is done.
inline bool one_by_one(const test_case& c) {
  return c.at[f_form] == blocking_form || c.at[f_form] == persistent_form ||
         c.at[f_comm] == in_order_comm || c.messages_in_order;
}

// A ring: where calls go one by one, even ranks send first.
template <class Facade, class Send, class Recv>
void ring(Facade&, const test_case& c, int rank, events& done, Send&& send, Recv&& recv) {
  bool send_first = c.kind() == kind::send;
  if (one_by_one(c)) send_first = rank % 2 == 0;
  if (send_first) keep(done, send);
  keep(done, recv);
  if (!send_first) keep(done, send);
}

template <class Facade, class T>
void messages(Facade& comm, communicator& whole, const test_case& c, const flow& f, const T* s,
              T* r, events& done, const events& deps) {
  if (c.kind() == kind::group) {
    group g(whole);
    for (const message& m : f.recvs) g.recv(r + m.at, m.count, m.peer, 3);
    for (const message& m : f.sends) g.send(s + m.at, m.count, m.peer, 3);
    return finish(g, c, done, deps);
  }
  const message& to = f.sends[0];
  const message& from = f.recvs[0];
  const bool alone = one_by_one(c) && whole.size() == 1;
  if (c.kind() == kind::sendrecv || alone)
    return keep(done, [&] {
      return comm.sendrecv(s, to.count, to.peer, r, from.count, from.peer, tag, deps);
    });
  ring(
      comm, c, whole.rank(), done, [&] { return comm.send(s, to.count, to.peer, tag, deps); },
      [&] { return comm.recv(r, from.count, from.peer, tag, deps); });
}

template <int Element, class Facade, class Block>
void messages_of_blocks(Facade& comm, communicator& whole, const test_case& c, const flow& f,
                        const Block& s, const Block& r, events& done, const events& deps) {
  const int to = f.sends[0].peer;
  const int from = f.recvs[0].peer;
  const bool alone = one_by_one(c) && whole.size() == 1;
  if (c.kind() == kind::sendrecv || (alone && c.kind() != kind::group))
    return keep(done, [&] { return comm.sendrecv(s, to, r, from, tag, deps); });
  if constexpr (in_buffers(kind::send, Element)) {
    if (c.kind() == kind::group) {
      group g(whole);
      g.send(s, to, 3);
      g.recv(r, from, 3);
      return finish(g, c, done, deps);
    }
    ring(
        comm, c, whole.rank(), done, [&] { return comm.send(s, to, tag, deps); },
        [&] { return comm.recv(r, from, tag, deps); });
  }
}

}  // namespace calls

template <class T>
void issue_pointers(const test_case& c, const flow& f, communicator& comm, const T* s, T* r,
                    events& done, const events& deps) {
  const int root = c.root(comm.size());
  const auto with = [&](auto&& facade) {
    if (c.message()) return calls::messages(facade, comm, c, f, s, r, done, deps);
    calls::keep(done, [&] {
      return c.in_place() ? calls::in_place(facade, c, f, root, r, deps)
                          : calls::out_of_place(facade, c, f, root, s, r, deps);
    });
  };
  if (c.at[f_form] == blocking_form)
    with(comm.blocking());
  else if (c.at[f_form] == persistent_form)
    with(comm.persistent());
  else
    with(comm);
}

template <class T>
outcome run_pointers(const test_case& c, const flow& f, const images& before,
                     comm_and_queue& where) {
  const memory m = c.memory_of(where.comm.rank());
  storage send(m, before.send.size(), where);
  storage recv(m, before.recv.size(), where);
  const bool chained = c.at[f_form] == chained_form;
  const bool ordered = where.queue && where.queue->is_in_order();
  events filled{send.write(before.send, {}), recv.write(before.recv, {})};
  if (!chained) ::sycl::event::wait(filled);
  // What is not needed may be null.
  const bool null = c.at[f_form] != blocking_form;
  const auto* s = reinterpret_cast<const T*>(send.data()) + before.send_layout.array_index(0);
  auto* r = reinterpret_cast<T*>(recv.data()) + before.recv_layout.array_index(0);
  if (f.send_size == 0 && null) s = nullptr;
  if (f.recv_size == 0 && null) r = nullptr;
  events done;
  issue_pointers<T>(c, f, where.comm, s, r, done, chained && !ordered ? filled : events{});
  if (!chained || !where.queue) ::sycl::event::wait(done);
  outcome result;
  const auto first = send.read(result.send, ordered ? events{} : done);
  recv.read(result.recv, ordered ? events{} : done).wait();
  ::sycl::event(first).wait();
  return result;
}

template <int Element, class T, int D>
void issue_blocks(const test_case& c, const flow& f, communicator& comm, const block<T, D>& s,
                  const block<T, D>& r, events& done) {
  const int root = c.root(comm.size());
  const auto with = [&](auto&& facade) {
    if (c.kind() == kind::barrier) return calls::keep(done, [&] { return facade.barrier(); });
    if (c.message()) return calls::messages_of_blocks<Element>(facade, comm, c, f, s, r, done, {});
    calls::keep(done, [&] {
      return c.in_place() ? calls::with_block<Element>(facade, c, root, r, {})
                          : calls::with_blocks<Element>(facade, c, f, root, s, r, {});
    });
  };
  if (c.at[f_form] == blocking_form)
    with(comm.blocking());
  else
    with(comm);
}

/// A buffer and the block in it.
template <class T, int D>
class blocked {
 public:
  explicit blocked(const layout& l)
      : m_buffer(three<::sycl::range<D>>(l.extent)),
        m_block(m_buffer, three<::sycl::id<D>>(l.offset), three<::sycl::range<D>>(l.range)) {}
  const block<T, D>& part() const { return m_block; }

  void write(const std::vector<std::byte>& from, ::sycl::queue* queue) {
    if (queue) {
      queue->submit([&](::sycl::handler& h) {
        ::sycl::accessor to(m_buffer, h, ::sycl::write_only, ::sycl::no_init);
        h.copy(reinterpret_cast<const T*>(from.data()), to);
      });
    } else {
      ::sycl::host_accessor to(m_buffer, ::sycl::write_only, ::sycl::no_init);
      std::memcpy(static_cast<void*>(&to[::sycl::id<D>()]), from.data(), from.size());
    }
  }
  void read(std::vector<std::byte>& to, ::sycl::queue* queue) {
    to.resize(m_buffer.size() * sizeof(T));
    if (queue) {
      queue
          ->submit([&](::sycl::handler& h) {
            ::sycl::accessor from(m_buffer, h, ::sycl::read_only);
            h.copy(from, reinterpret_cast<T*>(to.data()));
          })
          .wait();
    } else {
      ::sycl::host_accessor from(m_buffer, ::sycl::read_only);
      std::memcpy(to.data(), &from[::sycl::id<D>()], to.size());
    }
  }

 private:
  template <class Point>
  static Point three(const std::size_t (&from)[3]) {
    if constexpr (D == 1) return Point(from[2]);
    if constexpr (D == 2) return Point(from[1], from[2]);
    if constexpr (D == 3) return Point(from[0], from[1], from[2]);
  }
  ::sycl::buffer<T, D> m_buffer;
  block<T, D> m_block;
};

template <int Element, class T, int D>
outcome run_blocks(const test_case& c, const flow& f, const images& before, comm_and_queue& where) {
  blocked<T, D> send(before.send_layout);
  blocked<T, D> recv(before.recv_layout);
  const bool chained = c.at[f_form] == chained_form && where.queue;
  ::sycl::queue* queue = chained ? &*where.queue : nullptr;
  send.write(before.send, queue);
  recv.write(before.recv, queue);
  events done;
  issue_blocks<Element, T, D>(c, f, where.comm, send.part(), recv.part(), done);
  outcome result;
  send.read(result.send, queue);
  recv.read(result.recv, queue);
  ::sycl::event::wait(done);
  return result;
}

template <int Element, class T>
outcome run_case(const test_case& c, const flow& f, const images& before, comm_and_queue& where) {
  switch (c.memory_of(where.comm.rank())) {
    case buffer_1d: return run_blocks<Element, T, 1>(c, f, before, where);
    case buffer_2d: return run_blocks<Element, T, 2>(c, f, before, where);
    case buffer_3d: return run_blocks<Element, T, 3>(c, f, before, where);
    default: return run_pointers<T>(c, f, before, where);
  }
}

}  // namespace sucl::conformance
