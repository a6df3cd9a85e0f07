// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Collectives between neighbours: halo exchanges on grids, and on any other graph.
#pragma once

#include <sucl/communicator.hpp>
#include <sucl/export.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace sucl {

class neighborhood;

namespace detail {

/// Neighbour j of this rank as a source, or as a destination: a rank, and the tag that separates
/// several messages between the same two.
struct neighbor {
  int rank;
  int tag;
};

/// Throws errc::invalid_count unless there are as many as neighbours.
SUCL_API void check_neighbors(std::size_t given, std::size_t neighbors, const char* what);

/// Throws errc::invalid_memory for no memory of blocks that have elements, and errc::invalid_count
/// for blocks that end beyond any address space.
SUCL_API void check_blocks(const void* memory, std::size_t blocks, std::size_t count,
                           std::size_t element_size, const char* side);
SUCL_API void check_blocks(const void* memory, const sucl::counts& counts,
                           const sucl::counts& displs, std::size_t element_size, const char* side);

/// Throws errc::invalid_count where a range has no room for so many blocks of a size.
SUCL_API void check_neighbor_blocks(std::size_t blocks, std::size_t count, std::size_t elements,
                                    const char* side);
/// The size of a block where ranges have one for each destination and each source. Throws
/// errc::invalid_count where they do not.
SUCL_API std::size_t neighbor_block(std::size_t sent, std::size_t destinations,
                                    std::size_t received, std::size_t sources);
/// Throws errc::invalid_count for blocks that end beyond a range.
SUCL_API void check_placed_blocks(const sucl::counts& counts, const sucl::counts& displs,
                                  std::size_t elements, const char* side);

/// The collectives of a neighborhood. Each sends one block to every destination and receives one
/// from every source, in the order of the lists; blocks from no_rank are left unchanged. Every rank
/// of the communicator calls them, in the same order; the counts of a block are the same on both of
/// its sides. Memory, events and errors are as those of detail::operations.
/// `Derived` has `Result submit(group&, const events&)` and `const neighborhood& of()`.
template <class Derived, class Result>
class neighbor_operations {
  template <class Send, class Recv>
  using if_ranges = std::enable_if_t<is_memory<Send> &&
                                     are_ranges<std::remove_cv_t<element_of<Send>>, Send, Recv>()>;

 public:
  using events = std::vector<::sycl::event>;

  /// The same `count` elements to every destination; block j of `recv` is from source j.
  template <class T>
  Result allgather(const T* send, T* recv, std::size_t count, const events& deps = {});

  /// Block i of `send` to destination i; block j of `recv` is from source j; `count` elements each.
  template <class T>
  Result alltoall(const T* send, T* recv, std::size_t count, const events& deps = {});

  /// Blocks of different sizes: `send_counts[i]` elements at `send_displs[i]` to destination i, and
  /// `recv_counts[j]` at `recv_displs[j]` from source j.
  template <class T>
  Result alltoallv(const T* send, const sucl::counts& send_counts, const sucl::counts& send_displs,
                   T* recv, const sucl::counts& recv_counts, const sucl::counts& recv_displs,
                   const events& deps = {});

  /// @name The same on ranges of elements: std::vector, std::span and the like
  /// Their sizes are checked (errc::invalid_count). allgather sends all that `send` has; alltoall
  /// sends blocks of one size, which all elements of `send` are, or, without destinations, receives
  /// such into all of `recv`.
  /// @{
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  Result allgather(const Send& send, Recv&& recv, const events& deps = {});
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  Result alltoall(const Send& send, Recv&& recv, const events& deps = {});
  template <class Send, class Recv, class = if_ranges<Send, Recv>>
  Result alltoallv(const Send& send, const sucl::counts& send_counts,
                   const sucl::counts& send_displs, Recv&& recv, const sucl::counts& recv_counts,
                   const sucl::counts& recv_displs, const events& deps = {});
  /// @}

  /// A buffer, block or range of elements for each neighbour: `sends[i]` to destination i, and
  /// `recvs[j]` from source j. Blocks of one buffer make a halo exchange without packing by hand.
  template <class Send, class Recv>
  Result exchange(const std::vector<Send>& sends, std::vector<Recv>& recvs,
                  const events& deps = {});

 private:
  Derived& self() { return *static_cast<Derived*>(this); }
  // A block of `count` elements from every source.
  template <class T>
  void receive(group& messages, T* recv, std::size_t count);
};

}  // namespace detail

/// The blocking form: each call returns when it is done.
class [[nodiscard]] SUCL_API blocking_neighborhood
    : public detail::neighbor_operations<blocking_neighborhood, void> {
 public:
  /// @cond internal
  void submit(group& messages, const events& deps) { messages.run(deps); }
  const neighborhood& of() const { return *m_of; }
  /// @endcond

 private:
  friend class neighborhood;
  explicit blocking_neighborhood(const neighborhood& of) : m_of(&of) {}
  const neighborhood* m_of;
};

/// The ranks that this rank exchanges blocks with. It has a communicator of its own, so that its
/// messages match none of the program's. As MPI's neighbourhood collectives.
class [[nodiscard]] SUCL_API neighborhood
    : public detail::neighbor_operations<neighborhood, ::sycl::event> {
 public:
  /// Any graph: this rank receives from `sources` and sends to `destinations`. Both may name a rank
  /// several times, this one too, and no_rank; the k-th message from a rank a to a rank b is for
  /// the k-th time that b names a. Collective over the communicator; throws on every rank:
  /// errc::invalid_rank, and errc::mismatch where one rank sends what the other does not expect.
  neighborhood(const communicator& comm, const std::vector<int>& sources,
               const std::vector<int>& destinations);

  /// A grid of `extents`, one for each dimension, whose product is the size of the communicator;
  /// the last dimension varies fastest with the rank. Neighbours 2d and 2d+1 are those at the
  /// coordinate one less and one more in dimension d; at the ends no_rank, or in a dimension that
  /// is `periodic` (none is by default) the other end. Collective, with the same arguments; throws
  /// on every rank: errc::invalid_argument, and errc::mismatch where those of ranks differ.
  static neighborhood grid(const communicator& comm, const std::vector<int>& extents,
                           const std::vector<bool>& periodic = {});

  /// The rank of each neighbour, or no_rank.
  [[nodiscard]] std::vector<int> sources() const;
  [[nodiscard]] std::vector<int> destinations() const;
  /// This rank's coordinates in the grid; empty for another graph.
  [[nodiscard]] const std::vector<int>& coordinates() const { return m_coordinates; }

  /// Valid as long as this object is.
  blocking_neighborhood blocking() const { return blocking_neighborhood(*this); }

  /// @cond internal
  ::sycl::event submit(group& messages, const events& deps) { return messages.submit(deps); }
  const neighborhood& of() const { return *this; }
  const communicator& comm() const { return m_communicator; }
  const std::vector<detail::neighbor>& from() const { return m_sources; }
  const std::vector<detail::neighbor>& to() const { return m_destinations; }
  /// @endcond

 private:
  neighborhood() = default;
  communicator m_communicator;
  std::vector<detail::neighbor> m_sources, m_destinations;
  std::vector<int> m_coordinates;
};

namespace detail {

template <class Derived, class Result>
template <class T>
void neighbor_operations<Derived, Result>::receive(group& messages, T* recv, std::size_t count) {
  check_blocks(recv, self().of().from().size(), count, sizeof(T), "receive");
  for (const neighbor& n : self().of().from()) {
    messages.recv(recv, count, n.rank, n.tag);
    recv += count;
  }
}

template <class Derived, class Result>
template <class T>
Result neighbor_operations<Derived, Result>::allgather(const T* send, T* recv, std::size_t count,
                                                       const events& deps) {
  const neighborhood& of = self().of();
  group messages(of.comm());
  receive(messages, recv, count);
  check_blocks(send, of.to().empty() ? 0 : 1, count, sizeof(T), "send");
  for (const neighbor& n : of.to()) messages.send(send, count, n.rank, n.tag);
  return self().submit(messages, deps);
}

template <class Derived, class Result>
template <class T>
Result neighbor_operations<Derived, Result>::alltoall(const T* send, T* recv, std::size_t count,
                                                      const events& deps) {
  const neighborhood& of = self().of();
  group messages(of.comm());
  receive(messages, recv, count);
  check_blocks(send, of.to().size(), count, sizeof(T), "send");
  for (std::size_t i = 0; i < of.to().size(); ++i)
    messages.send(send + i * count, count, of.to()[i].rank, of.to()[i].tag);
  return self().submit(messages, deps);
}

template <class Derived, class Result>
template <class T>
Result neighbor_operations<Derived, Result>::alltoallv(
    const T* send, const sucl::counts& send_counts, const sucl::counts& send_displs, T* recv,
    const sucl::counts& recv_counts, const sucl::counts& recv_displs, const events& deps) {
  const neighborhood& of = self().of();
  check_neighbors(send_counts.size(), of.to().size(), "send counts");
  check_neighbors(send_displs.size(), of.to().size(), "send displacements");
  check_neighbors(recv_counts.size(), of.from().size(), "receive counts");
  check_neighbors(recv_displs.size(), of.from().size(), "receive displacements");
  check_blocks(send, send_counts, send_displs, sizeof(T), "send");
  check_blocks(recv, recv_counts, recv_displs, sizeof(T), "receive");
  group messages(of.comm());
  for (std::size_t j = 0; j < recv_counts.size(); ++j)
    messages.recv(recv + recv_displs[j], recv_counts[j], of.from()[j].rank, of.from()[j].tag);
  for (std::size_t i = 0; i < send_counts.size(); ++i)
    messages.send(send + send_displs[i], send_counts[i], of.to()[i].rank, of.to()[i].tag);
  return self().submit(messages, deps);
}

template <class Derived, class Result>
template <class Send, class Recv, class>
Result neighbor_operations<Derived, Result>::allgather(const Send& send, Recv&& recv,
                                                       const events& deps) {
  check_neighbor_blocks(self().of().from().size(), send.size(), recv.size(), "receive");
  return allgather(send.data(), recv.data(), send.size(), deps);
}

template <class Derived, class Result>
template <class Send, class Recv, class>
Result neighbor_operations<Derived, Result>::alltoall(const Send& send, Recv&& recv,
                                                      const events& deps) {
  const std::size_t to = self().of().to().size(), from = self().of().from().size();
  const std::size_t count = neighbor_block(send.size(), to, recv.size(), from);
  return alltoall(send.data(), recv.data(), count, deps);
}

template <class Derived, class Result>
template <class Send, class Recv, class>
Result neighbor_operations<Derived, Result>::alltoallv(
    const Send& send, const sucl::counts& send_counts, const sucl::counts& send_displs, Recv&& recv,
    const sucl::counts& recv_counts, const sucl::counts& recv_displs, const events& deps) {
  check_placed_blocks(send_counts, send_displs, send.size(), "send");
  check_placed_blocks(recv_counts, recv_displs, recv.size(), "receive");
  return alltoallv(send.data(), send_counts, send_displs, recv.data(), recv_counts, recv_displs,
                   deps);
}

template <class Derived, class Result>
template <class Send, class Recv>
Result neighbor_operations<Derived, Result>::exchange(const std::vector<Send>& sends,
                                                      std::vector<Recv>& recvs,
                                                      const events& deps) {
  const neighborhood& of = self().of();
  check_neighbors(sends.size(), of.to().size(), "blocks to send");
  check_neighbors(recvs.size(), of.from().size(), "blocks to receive");
  group messages(of.comm());
  for (std::size_t j = 0; j < recvs.size(); ++j)
    messages.recv(recvs[j], of.from()[j].rank, of.from()[j].tag);
  for (std::size_t i = 0; i < sends.size(); ++i)
    messages.send(sends[i], of.to()[i].rank, of.to()[i].tag);
  return self().submit(messages, deps);
}

}  // namespace detail
}  // namespace sucl
