// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "collective.hpp"

#include <ctime>
#include <type_traits>

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

namespace {

// The same numbers for functions with int counts and for those with large ones.
class numbers {
 public:
  explicit numbers(const std::vector<int>& narrow)
      : m_narrow(narrow),
        m_counts(narrow.begin(), narrow.end()),
        m_places(narrow.begin(), narrow.end()) {}
  template <class Number>
  operator const Number*() const {
    if constexpr (std::is_same_v<Number, int>)
      return m_narrow.data();
    else if constexpr (std::is_same_v<Number, MPI_Count>)
      return m_counts.data();
    else
      return m_places.data();
  }
  // A call's arrays are the program's again once it has returned.
  ~numbers() {
    std::fill(m_counts.begin(), m_counts.end(), -77777);
    std::fill(m_places.begin(), m_places.end(), -77777);
  }
  numbers(const numbers&) = delete;
  numbers& operator=(const numbers&) = delete;

 private:
  const std::vector<int>& m_narrow;
  std::vector<MPI_Count> m_counts;
  std::vector<MPI_Aint> m_places;
};

}  // namespace

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

int collective::run(form how, MPI_Request* request) {
  const bool goes_on = how == form::started || how == form::persistent;
  if (!goes_on) return call(how, request, m_element.type, m_counts, m_places);
  // Once the call has returned its arrays are the program's again, and a type may be freed.
  std::vector<int> counts = m_counts, places = m_places;
  MPI_Datatype type = m_element.type;
  // Open MPI does not keep the types of persistent ones.
  const bool own_type = how == form::started && m_element.derived;
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
  const int n = elements(), mine = m_counts[std::size_t(m_rank)];
  if (m_ints > 1) t = MPI_INT;
  const numbers all(counts), at(places), to(m_to), from(m_from), steps(m_steps),
      byte_steps(m_byte_steps), own(m_counts), own_places(m_places);
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
    case kind::reduce_scatter: SUCL_IN_FORM(Reduce_scatter, reduce_scatter, in, out, all, t, m_op)
    case kind::scan: SUCL_IN_FORM(Scan, scan, in, out, n, t, m_op)
    case kind::exscan: SUCL_IN_FORM(Exscan, exscan, in, out, n, t, m_op)
    case kind::allgather: SUCL_IN_FORM(Allgather, allgather, in, n, t, out, n, t)
    case kind::alltoall: SUCL_IN_FORM(Alltoall, alltoall, in, n, t, out, n, t)
    case kind::gather: SUCL_IN_FORM(Gather, gather, in, n, t, out, n, t, m_root)
    case kind::scatter: SUCL_IN_FORM(Scatter, scatter, in, n, t, out, n, t, m_root)
    case kind::allgatherv: SUCL_IN_FORM(Allgatherv, allgatherv, in, mine, t, out, all, at, t)
    case kind::alltoallv: SUCL_IN_FORM(Alltoallv, alltoallv, in, to, steps, t, out, from, steps, t)
    case kind::gatherv: SUCL_IN_FORM(Gatherv, gatherv, in, mine, t, out, own, own_places, t, m_root)
    case kind::alltoallw:
      SUCL_IN_FORM(Alltoallw, alltoallw, in, to, byte_steps, m_types_to.data(), out, from,
                   byte_steps, m_types_from.data())
    default: SUCL_IN_FORM(Scatterv, scatterv, in, own, own_places, t, out, mine, t, m_root)
  }
}

}  // namespace fuzz
