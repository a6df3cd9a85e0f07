// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "collective.hpp"

#include <ctime>

namespace fuzz {

bool with_devices = false;

std::uint64_t agree_on_seed(const char* argument) {
  const char* setting = std::getenv("SUCL_FUZZ_SEED");
  const std::string text = setting ? setting : argument;
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

void numbers::overwrite(int with) {
  std::fill(m_narrow.begin(), m_narrow.end(), with);
  std::fill(m_counts.begin(), m_counts.end(), with);
  std::fill(m_displs.begin(), m_displs.end(), with);
}

void arrays::overwrite() {
  for (numbers* n : {&counts, &to, &from}) n->overwrite(1 << 30);
  for (numbers* n : {&displs, &steps, &byte_steps}) n->overwrite(-77777);
  for (auto* types : {&types_to, &types_from})
    std::fill(types->begin(), types->end(), MPI_DATATYPE_NULL);
}

// The function NAME in the form that is asked for: MPI_NAME, MPI_INAME, MPI_NAME_init, those with
// large counts, or, as the reference, PMPI_NAME.
#define SUCL_IN_WIDTH(name, small_name, suffix, ...)                                        \
  switch (how) {                                                                            \
    case form::reference: return PMPI_##name(__VA_ARGS__, m_comm);                          \
    case form::blocking: return MPI_##name##suffix(__VA_ARGS__, m_comm);                    \
    case form::started: return MPI_I##small_name##suffix(__VA_ARGS__, m_comm, request);     \
    default: return MPI_##name##_init##suffix(__VA_ARGS__, m_comm, MPI_INFO_NULL, request); \
  }
#if MPI_VERSION >= 4
#define SUCL_IN_FORM(name, small_name, ...)          \
  if (m_large) {                                     \
    SUCL_IN_WIDTH(name, small_name, _c, __VA_ARGS__) \
  } else {                                           \
    SUCL_IN_WIDTH(name, small_name, , __VA_ARGS__)   \
  }
#else
#define SUCL_IN_FORM(name, small_name, ...) SUCL_IN_WIDTH(name, small_name, , __VA_ARGS__)
#endif

arrays collective::given() const {
  return {numbers(m_counts), numbers(m_displs),     numbers(m_to), numbers(m_from),
          numbers(m_steps),  numbers(m_byte_steps), m_types_to,    m_types_from};
}

int collective::run(form how, MPI_Request* request, change when) {
  const bool goes_on = how == form::started || how == form::persistent;
  if (!goes_on) {
    arrays a = given();
    const int code = call(how, request, m_element.type, a);
    a.overwrite();
    return code;
  }
  m_given = std::make_unique<arrays>(given());
  // A type may be freed while it is in use, but Open MPI does not keep those of persistent ones.
  MPI_Datatype type = m_element.type;
  const bool own_type = how == form::started && m_element.derived;
  if (own_type) MPI_Type_dup(m_element.type, &type);
  const int code = call(how, request, type, *m_given);
  if (own_type) MPI_Type_free(&type);
  if (when == change::at_return) m_given->overwrite();
  return code;
}

int collective::call(form how, MPI_Request* request, MPI_Datatype t, const arrays& a) {
  // A persistent one is made before there is input: its memory must not move afterwards.
  if (how == form::persistent) expect();
  m_is_reference = how == form::reference;
  const void* const in = input();
  void* const out = output();
  const int n = elements(), mine = m_counts[std::size_t(m_rank)];
  if (m_ints > 1) t = MPI_INT;
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
      SUCL_IN_FORM(Reduce_scatter, reduce_scatter, in, out, a.counts, t, m_op)
    case kind::scan: SUCL_IN_FORM(Scan, scan, in, out, n, t, m_op)
    case kind::exscan: SUCL_IN_FORM(Exscan, exscan, in, out, n, t, m_op)
    case kind::allgather: SUCL_IN_FORM(Allgather, allgather, in, n, t, out, n, t)
    case kind::alltoall: SUCL_IN_FORM(Alltoall, alltoall, in, n, t, out, n, t)
    case kind::gather: SUCL_IN_FORM(Gather, gather, in, n, t, out, n, t, m_root)
    case kind::scatter: SUCL_IN_FORM(Scatter, scatter, in, n, t, out, n, t, m_root)
    case kind::allgatherv:
      SUCL_IN_FORM(Allgatherv, allgatherv, in, mine, t, out, a.counts, a.displs, t)
    case kind::alltoallv:
      SUCL_IN_FORM(Alltoallv, alltoallv, in, a.to, a.steps, t, out, a.from, a.steps, t)
    case kind::gatherv:
      SUCL_IN_FORM(Gatherv, gatherv, in, mine, t, out, a.counts, a.displs, t, m_root)
    case kind::alltoallw:
      SUCL_IN_FORM(Alltoallw, alltoallw, in, a.to, a.byte_steps, a.types_to.data(), out, a.from,
                   a.byte_steps, a.types_from.data())
    default: SUCL_IN_FORM(Scatterv, scatterv, in, a.counts, a.displs, t, out, mine, t, m_root)
  }
}

}  // namespace fuzz
