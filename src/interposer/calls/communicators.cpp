// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What frees communicators, their handlers of errors, and what makes them, in Open MPI:
// creation.hpp.
#include "interposer/calls/entry.hpp"
#include "interposer/creation.hpp"
#include "interposer/interposer.hpp"
#include "interposer/next.hpp"

#include <optional>

using namespace sucl::interposer;

namespace {

template <class Call>
int end(const MPI_Comm* comm, const Call& call) {
  std::optional<being_freed> under_way;
  if (comm && interposer::active()) under_way.emplace(*comm);
  return call();
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Comm_free(MPI_Comm* comm) {
  return end(comm, [&] { return SUCL_NEXT(Comm_free)(comm); });
}

SUCL_MPI_FUNCTION MPI_Comm_disconnect(MPI_Comm* comm) {
  return end(comm, [&] { return SUCL_NEXT(Comm_disconnect)(comm); });
}

// While SuCL starts it would set a handler for the program's errors, as it does in programs that
// call it themselves. MPICH gives what is made of the world no handler as long as none was ever
// set.
SUCL_MPI_FUNCTION MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  if (interposer::is_inside() && comm == MPI_COMM_WORLD) return MPI_SUCCESS;
  return SUCL_NEXT(Comm_set_errhandler)(comm, handler);
}

#if defined(OPEN_MPI)

namespace {

template <class Call>
int make(const Call& call) {
  std::optional<creation> under_way;
  if (interposer::active()) under_way.emplace();
  return call();
}

}  // namespace

SUCL_MPI_FUNCTION MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Comm_dup)(comm, made); });
}

SUCL_MPI_FUNCTION MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Comm_dup_with_info)(comm, info, made); });
}

SUCL_MPI_FUNCTION MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Comm_create)(comm, group, made); });
}

SUCL_MPI_FUNCTION MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Comm_create_group)(comm, group, tag, made); });
}

SUCL_MPI_FUNCTION MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Comm_split)(comm, colour, key, made); });
}

SUCL_MPI_FUNCTION MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info,
                                      MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Comm_split_type)(comm, type, key, info, made); });
}

SUCL_MPI_FUNCTION MPI_Cart_create(MPI_Comm comm, int dimensions, const int* sizes,
                                  const int* periods, int reorder, MPI_Comm* made) {
  return make(
      [&] { return SUCL_NEXT(Cart_create)(comm, dimensions, sizes, periods, reorder, made); });
}

SUCL_MPI_FUNCTION MPI_Cart_sub(MPI_Comm comm, const int* kept, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Cart_sub)(comm, kept, made); });
}

SUCL_MPI_FUNCTION MPI_Graph_create(MPI_Comm comm, int nodes, const int* indices, const int* edges,
                                   int reorder, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Graph_create)(comm, nodes, indices, edges, reorder, made); });
}

SUCL_MPI_FUNCTION MPI_Dist_graph_create(MPI_Comm comm, int n, const int* nodes, const int* degrees,
                                        const int* targets, const int* weights, MPI_Info info,
                                        int reorder, MPI_Comm* made) {
  return make([&] {
    return SUCL_NEXT(Dist_graph_create)(comm, n, nodes, degrees, targets, weights, info, reorder,
                                        made);
  });
}

SUCL_MPI_FUNCTION MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int* sources,
                                                 const int* source_weights, int out,
                                                 const int* targets, const int* target_weights,
                                                 MPI_Info info, int reorder, MPI_Comm* made) {
  return make([&] {
    return SUCL_NEXT(Dist_graph_create_adjacent)(comm, in, sources, source_weights, out, targets,
                                                 target_weights, info, reorder, made);
  });
}

SUCL_MPI_FUNCTION MPI_Intercomm_create(MPI_Comm local, int leader, MPI_Comm peer, int remote,
                                       int tag, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Intercomm_create)(local, leader, peer, remote, tag, made); });
}

SUCL_MPI_FUNCTION MPI_Intercomm_merge(MPI_Comm inter, int high, MPI_Comm* made) {
  return make([&] { return SUCL_NEXT(Intercomm_merge)(inter, high, made); });
}

#endif
