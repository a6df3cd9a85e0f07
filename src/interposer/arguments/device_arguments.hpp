// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The arguments of one call, where some are memory of a device.
#pragma once

#include "interposer/arguments/layout.hpp"
#include "interposer/arguments/transfer.hpp"
#include "interposer/device/drivers.hpp"
#include "interposer/device/staged_memory.hpp"

#include <memory>
#include <type_traits>
#include <vector>

namespace sucl::interposer::device {

/// Replaces a device's memory by host memory: it changes a call's arguments, by reference. Each
/// function is for calls of one shape and does nothing in a process without drivers.
///
/// Ranks decide for themselves. What is staged on one may be host memory on another, and nothing
/// that ranks have to agree on depends on it.
class arguments {
 public:
  arguments() = default;
  arguments(const arguments&) = delete;
  arguments& operator=(const arguments&) = delete;

  bool empty() const { return !m_staged; }
  const std::shared_ptr<staged_memory>& staged() const { return m_staged; }
  /// From here on the arguments are host memory.
  void for_sucl() const { set(true); }
  /// They are what the library takes.
  void for_library() const { set(m_staged->at_library); }
  /// What went wrong in one of the functions below, MPI's code for it: the program has been told.
  int code() const { return m_code; }

  void broadcast(void*& data, std::int64_t count, MPI_Datatype type, int root, MPI_Comm comm);
  /// `count`: of the block in reduce_scatter_block.
  void reduction(sucl_kind kind, const void*& send, void*& recv, std::int64_t count,
                 MPI_Datatype type, int root, MPI_Comm comm);
  template <class Count>
  void reduce_scatter(const void*& send, void*& recv, const Count* counts, MPI_Datatype type,
                      MPI_Comm comm) {
    if (!present() || !counts || (is_plain(send) && is_plain(recv))) return;
    stage(comm, [&](comm_position at) {
      std::int64_t all = 0;
      for (int r = 0; r < at.size; ++r) all += counts[r];
      reduced(send, recv, all, counts[at.rank], type, true);
    });
  }
  /// allgather, alltoall.
  void exchange(sucl_kind kind, const void*& send, std::int64_t send_count, MPI_Datatype send_type,
                void*& recv, std::int64_t recv_count, MPI_Datatype recv_type, MPI_Comm comm);
  void gather(const void*& send, std::int64_t send_count, MPI_Datatype send_type, void*& recv,
              std::int64_t recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
  void scatter(const void*& send, std::int64_t send_count, MPI_Datatype send_type, void*& recv,
               std::int64_t recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
  /// allgatherv and, with a root, gatherv.
  template <class Count, class Displ>
  void gatherv(const void*& send, std::int64_t send_count, MPI_Datatype send_type, void*& recv,
               const Count* counts, const Displ* displs, MPI_Datatype type, int root,
               MPI_Comm comm) {
    if (!present() || (is_plain(send) && is_plain(recv))) return;
    stage(comm, [&](comm_position at) {
      const bool in_place = send == MPI_IN_PLACE;
      if ((root == at.rank || root == everywhere) && counts && displs)
        output(recv, in_place ? blocks(at.rank, at.rank + 1, counts, displs, type) : none,
               blocks(0, at.size, counts, displs, type));
      input(send, run(send_count, send_type));
    });
  }
  template <class Count, class Displ>
  void scatterv(const void*& send, const Count* counts, const Displ* displs, MPI_Datatype type,
                void*& recv, std::int64_t recv_count, MPI_Datatype recv_type, int root,
                MPI_Comm comm) {
    if (!present() || (is_plain(send) && is_plain(recv))) return;
    stage(comm, [&](comm_position at) {
      if (root == at.rank && counts && displs)
        input(send, blocks(0, at.size, counts, displs, type));
      output(recv, none, run(recv_count, recv_type));
    });
  }
  /// alltoallv and, with arrays of types, alltoallw.
  template <class Count, class Displ, class Type>
  void alltoallv(const void*& send, const Count* send_counts, const Displ* send_displs,
                 Type send_type, void*& recv, const Count* recv_counts, const Displ* recv_displs,
                 Type recv_type, MPI_Comm comm) {
    if (!present() || (is_plain(send) && is_plain(recv))) return;
    stage(comm, [&](comm_position at) {
      const bool in_place = send == MPI_IN_PLACE;
      if (!block_side{recv, recv_counts, recv_displs, recv_type}.complete()) return;
      const layout all = blocks(0, at.size, recv_counts, recv_displs, recv_type);
      output(recv, in_place ? all : none, all);
      if (!in_place && block_side{send, send_counts, send_displs, send_type}.complete())
        input(send, blocks(0, at.size, send_counts, send_displs, send_type));
    });
  }
  static constexpr int everywhere = -77;  ///< no root: every rank receives

 private:
  using layout = std::vector<rows>;
  struct argument {
    const void** in = nullptr;  // one of the two
    void** out = nullptr;
    const void* device = nullptr;
    const void* host = nullptr;
  };

  static bool is_plain(const void* memory) {
    return memory == MPI_IN_PLACE || is_surely_of_host(memory);
  }
  // Calls `each` with this rank's position, unless SuCL is to leave the call alone.
  template <class Each>
  void stage(MPI_Comm comm, const Each& each) {
    comm_position at;
    if (!begin(comm, at)) return;
    guard(
        comm, [](void* self, comm_position p) { (*static_cast<const Each*>(self))(p); },
        const_cast<Each*>(&each), at);
  }
  static bool begin(MPI_Comm comm, comm_position& at);
  void guard(MPI_Comm comm, void (*each)(void*, comm_position), void* self, comm_position at);

  void reduced(const void*& send, void*& recv, std::int64_t sent, std::int64_t received,
               MPI_Datatype type, bool may_be_in_place);
  static layout run(std::int64_t count, MPI_Datatype type) { return block(0, count, type); }
  static layout block(int number, std::int64_t count, MPI_Datatype type) {
    layout l;
    if (count > 0)
      add_rows(l, static_cast<std::ptrdiff_t>(number * count * facts_of(type).extent), count, type);
    return l;
  }
  template <class Count, class Displ, class Type>
  static layout blocks(int first, int last, const Count* counts, const Displ* displs, Type types) {
    layout l;
    for (int b = first; b < last; ++b) {
      if constexpr (std::is_same_v<Type, MPI_Datatype>)
        add_rows(l, displs[b] * static_cast<std::ptrdiff_t>(facts_of(types).extent), counts[b],
                 types);
      else
        add_rows(l, displs[b], counts[b], types[b]);
    }
    return l;
  }
  void input(const void*& argument, layout in);
  void output(void*& argument, layout in, layout out);
  char* add(const void* memory, layout& in, layout& out);
  void set(bool host) const;

  static const layout none;
  std::shared_ptr<staged_memory> m_staged;
  std::vector<argument> m_arguments;
  int m_code = MPI_SUCCESS;
};

}  // namespace sucl::interposer::device
