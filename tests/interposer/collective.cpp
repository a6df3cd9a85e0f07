// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "collective.hpp"

#include <ctime>

namespace fuzz {

std::uint64_t agree_on_seed(const char* argument) {
  const char* asked = std::getenv("SUCL_FUZZ_SEED");
  const std::string text = asked ? asked : argument;
  std::uint64_t seed =
      text == "date" ? std::uint64_t(std::time(nullptr)) : std::strtoull(text.c_str(), nullptr, 10);
  PMPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    std::printf("seed %llu; SUCL_FUZZ_SEED=%llu repeats it\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

// The function NAME in the form that is asked for: MPI_NAME, MPI_INAME, MPI_NAME_init, or, as the
// reference, PMPI_NAME.
#define SUCL_IN_FORM(name, small_name, ...)                                         \
  switch (how) {                                                                    \
    case form::reference: return PMPI_##name(__VA_ARGS__, m_comm);                  \
    case form::blocking: return MPI_##name(__VA_ARGS__, m_comm);                    \
    case form::started: return MPI_I##small_name(__VA_ARGS__, m_comm, request);     \
    default: return MPI_##name##_init(__VA_ARGS__, m_comm, MPI_INFO_NULL, request); \
  }

int collective::run(form how, MPI_Request* request) {
  const bool goes_on = how == form::started || how == form::persistent;
  if (!goes_on) return call(how, request, m_element.type, m_counts, m_places);
  // Once the call has returned its arrays are the program's again, and a type may be freed.
  std::vector<int> counts = m_counts, places = m_places;
  MPI_Datatype type = m_element.type;
  // Open MPI does not keep the types of persistent ones.
  const bool own_type =
      how == form::started && m_element.holds == content::bytes && m_element.extent > 1;
  if (own_type) MPI_Type_dup(m_element.type, &type);
  const int code = call(how, request, type, counts, places);
  if (own_type) MPI_Type_free(&type);
  std::fill(counts.begin(), counts.end(), 1 << 30);
  std::fill(places.begin(), places.end(), -77777);
  return code;
}

int collective::call(form how, MPI_Request* request, MPI_Datatype t, const std::vector<int>& counts,
                     const std::vector<int>& places) {
  // A persistent one is made before there is input: its memory must not move afterwards.
  if (how == form::persistent) expect();
  const void* const in = input();
  void* const out = output();
  const int n = m_count, mine = m_counts[std::size_t(m_rank)];
  switch (m_kind) {
    case kind::barrier:
      switch (how) {
        case form::reference: return PMPI_Barrier(m_comm);
        case form::blocking: return MPI_Barrier(m_comm);
        case form::started: return MPI_Ibarrier(m_comm, request);
        default: return MPI_Barrier_init(m_comm, MPI_INFO_NULL, request);
      }
    case kind::bcast: SUCL_IN_FORM(Bcast, bcast, out, n, t, m_root)
    case kind::allreduce: SUCL_IN_FORM(Allreduce, allreduce, in, out, n, t, m_op)
    case kind::reduce: SUCL_IN_FORM(Reduce, reduce, in, out, n, t, m_op, m_root)
    case kind::reduce_scatter_block:
      SUCL_IN_FORM(Reduce_scatter_block, reduce_scatter_block, in, out, n, t, m_op)
    case kind::reduce_scatter:
      SUCL_IN_FORM(Reduce_scatter, reduce_scatter, in, out, counts.data(), t, m_op)
    case kind::scan: SUCL_IN_FORM(Scan, scan, in, out, n, t, m_op)
    case kind::exscan: SUCL_IN_FORM(Exscan, exscan, in, out, n, t, m_op)
    case kind::allgather: SUCL_IN_FORM(Allgather, allgather, in, n, t, out, n, t)
    case kind::alltoall: SUCL_IN_FORM(Alltoall, alltoall, in, n, t, out, n, t)
    case kind::gather: SUCL_IN_FORM(Gather, gather, in, n, t, out, n, t, m_root)
    case kind::scatter: SUCL_IN_FORM(Scatter, scatter, in, n, t, out, n, t, m_root)
    case kind::allgatherv:
      SUCL_IN_FORM(Allgatherv, allgatherv, in, mine, t, out, counts.data(), places.data(), t)
    case kind::alltoallv:
      SUCL_IN_FORM(Alltoallv, alltoallv, in, m_to.data(), m_steps.data(), t, out, m_from.data(),
                   m_steps.data(), t)
    case kind::gatherv:
      SUCL_IN_FORM(Gatherv, gatherv, in, mine, t, out, m_counts.data(), m_places.data(), t, m_root)
    default:
      SUCL_IN_FORM(Scatterv, scatterv, in, m_counts.data(), m_places.data(), t, out, mine, t,
                   m_root)
  }
}

}  // namespace fuzz
