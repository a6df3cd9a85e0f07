// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One random collective: its arguments, its memory, what MPI itself makes of it, and whether that
/// is what came out.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace fuzz {

enum class form { reference, blocking, started, persistent };

enum class kind {
  barrier,
  bcast,
  allreduce,
  reduce,
  reduce_scatter_block,
  reduce_scatter,
  scan,
  exscan,
  allgather,
  alltoall,
  gather,
  scatter,
  allgatherv,
  alltoallv,
  gatherv,
  scatterv,
  count
};
inline const char* const kind_names[] = {
    "barrier",        "bcast",   "allreduce",  "reduce",    "reduce_scatter_block",
    "reduce_scatter", "scan",    "exscan",     "allgather", "alltoall",
    "gather",         "scatter", "allgatherv", "alltoallv", "gatherv",
    "scatterv"};

/// What a type is filled with for reductions.
enum class content { integer, floating, complex, pair, logical, bytes };

struct element {
  const char* name;
  MPI_Datatype type;
  std::size_t extent;
  content holds;
};

// Types of MPI and of the program: the latter are made once, with the first collective.
inline const std::vector<element>& all_elements() {
  static const std::vector<element> all = [] {
    MPI_Datatype triple = MPI_DATATYPE_NULL, strided = MPI_DATATYPE_NULL, gaps = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    MPI_Type_vector(3, 1, 2, MPI_SHORT, &strided);
    MPI_Type_create_resized(strided, 0, 16, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Type_free(&strided);
    return std::vector<element>{{"int", MPI_INT, sizeof(int), content::integer},
                                {"unsigned char", MPI_UNSIGNED_CHAR, 1, content::integer},
                                {"short", MPI_SHORT, sizeof(short), content::integer},
                                {"long", MPI_LONG, sizeof(long), content::integer},
                                {"float", MPI_FLOAT, sizeof(float), content::floating},
                                {"double", MPI_DOUBLE, sizeof(double), content::floating},
                                {"complex", MPI_C_DOUBLE_COMPLEX, 16, content::complex},
                                {"double_int", MPI_DOUBLE_INT, 16, content::pair},
                                {"bool", MPI_C_BOOL, 1, content::logical},
                                {"char", MPI_CHAR, 1, content::bytes},
                                {"three ints", triple, 3 * sizeof(int), content::bytes},
                                {"type with gaps", gaps, 16, content::bytes}};
  }();
  return all;
}

inline MPI_Op own_op() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(
        [](void* in, void* inout, int* n, MPI_Datatype*) {
          for (int i = 0; i < *n; ++i) {
            unsigned a = 0, b = 0;  // nothing says that they are aligned
            std::memcpy(&a, static_cast<char*>(in) + i * 4, sizeof a);
            std::memcpy(&b, static_cast<char*>(inout) + i * 4, sizeof b);
            b += a;
            std::memcpy(static_cast<char*>(inout) + i * 4, &b, sizeof b);
          }
        },
        1, &made);
    return made;
  }();
  return op;
}

/// The seed of a run, the same on every rank: a number, or "date" for one of this second, unless
/// SUCL_FUZZ_SEED has one. Rank 0 tells it, before anything can go wrong.
std::uint64_t agree_on_seed(const char* argument);

class collective {
 public:
  const int number;  ///< of this rank's collectives

  /// Draws as many numbers whatever the communicator is. The same on every rank.
  template <class Random>
  collective(MPI_Comm comm, Random& random) : number(counter()++), m_comm(comm) {
    MPI_Comm_rank(comm, &m_rank);
    MPI_Comm_size(comm, &m_size);
    std::uint64_t drawn[8];
    for (auto& d : drawn) d = random();
    m_seed = random();
    m_kind = kind(drawn[0] % std::uint64_t(kind::count));
    const auto types = reduces() ? 9 : all_elements().size();
    m_element = all_elements()[drawn[1] % types];
#if defined(MPICH_VERSION) && !defined(I_MPI_VERSION)
    // MPICH 5.0's own MPI_Gather of pairs fails on four ranks and more, so there is no reference.
    if (m_kind == kind::gather && m_element.holds == content::pair) m_element = all_elements()[6];
#endif
    m_op = op_from(drawn[2]);
    m_root = int(drawn[3] % std::uint64_t(m_size));
    m_in_place = drawn[4] % 3 == 0;
    m_large = drawn[4] / 3 % 2 == 0;
#if defined(MPICH_VERSION) && !defined(I_MPI_VERSION)
    // Its MPI_Reduce_scatter in place aborts where a rank's block overlaps the front.
    m_in_place = m_in_place && m_kind != kind::reduce_scatter;
#endif
    static constexpr int limits[] = {1, 5, 5, 40, 40, 700, 6000, 40000};
    m_count = int(drawn[5] % std::uint64_t(limits[drawn[6] % 8] + 1));
    m_offset = m_element.extent * (drawn[7] % 4);
    if (drawn[7] / 4 % 3 == 0) m_offset += drawn[7] / 12 % m_element.extent;  // misaligned
    // Open MPI's vectors saturate sums of 8 and 16 bits.
    m_wide = (drawn[2] >> 32 & 1) && !(m_op == MPI_SUM && m_element.extent < 4);
    for (int r = 0; r < m_size; ++r) {
      m_counts.push_back(int((m_seed >> r % 8) % std::uint64_t(m_count + 1)));
      m_to.push_back(between(m_rank, r));
      m_from.push_back(between(r, m_rank));
    }
    // From the last rank to the first, with room between.
    int at = 1;
    for (int r = m_size; r-- > 0; at += m_counts[std::size_t(r)] + 1)
      m_places.insert(m_places.begin(), at);
    for (int r = 0; r < m_size; ++r) m_steps.push_back(r * m_count);
  }

  MPI_Comm comm() const { return m_comm; }

  std::string describe() const {
    return std::string(kind_names[int(m_kind)]) + (reduces() ? " (" + name_of(m_op) + ")" : "") +
           " of " + std::to_string(m_count) + " " + m_element.name + ", offset " +
           std::to_string(m_offset) + ", root " + std::to_string(m_root) + " of " +
           std::to_string(m_size) + (m_in_place ? ", in place" : "");
  }

  /// Fills the memory with new input, and has MPI say what comes out.
  void expect() {
    ++m_round;
    std::uint64_t total = std::uint64_t(m_count) * std::uint64_t(m_size);
    for (int c : m_counts) total += std::uint64_t(c) + 1;
    const std::size_t bytes = (total + 8) * m_element.extent;
    make(m_send, bytes, true);
    const bool input = m_in_place || m_kind == kind::bcast;
    make(m_expected, bytes, input);
    const std::vector<char> before = m_expected;
    const auto sent = m_send;
    m_actual.swap(m_expected);
    run(form::reference, nullptr);
    m_actual.swap(m_expected);
    m_actual.assign(before.begin(), before.end());
    m_send = sent;
    m_sent = sent;
  }

  bool right() const {
    if (m_send != m_sent) return false;
    const auto until = significant();
    for (std::size_t i = 0; i < until; ++i)
      if (m_actual[i] != m_expected[i] && !is_padding(i)) return false;
    return true;
  }

  int run(form how, MPI_Request* request);

  // Its arguments; what is not significant on this rank is null.
  kind what() const { return m_kind; }
  const void* input() const {
    const bool sends = m_kind != kind::scatter && m_kind != kind::scatterv;
    if (in_place() && sends) return MPI_IN_PLACE;
    return sends || m_rank == m_root ? m_send.data() + m_offset : nullptr;
  }
  void* output() {
    const bool gathers =
        m_kind == kind::reduce || m_kind == kind::gather || m_kind == kind::gatherv;
    if (in_place() && (m_kind == kind::scatter || m_kind == kind::scatterv)) return MPI_IN_PLACE;
    return !gathers || m_rank == m_root ? m_actual.data() + m_offset : nullptr;
  }
  int elements() const { return m_count; }
  std::size_t extent() const { return m_element.extent; }
  bool has_gaps() const { return m_element.type == all_elements().back().type; }
  MPI_Datatype type() const { return m_element.type; }
  MPI_Op op() const { return m_op; }
  int root() const { return m_root; }
  const std::vector<int>& counts() const { return m_counts; }
  const std::vector<int>& places() const { return m_places; }
  /// Of alltoallv: what goes to each rank and comes from it, and where both begin.
  const std::vector<int>& to() const { return m_to; }
  const std::vector<int>& from() const { return m_from; }
  const std::vector<int>& steps() const { return m_steps; }

 private:
  static int& counter() {
    static thread_local int next = 0;
    return next;
  }
  int call(form how, MPI_Request* request, MPI_Datatype t, const std::vector<int>& counts,
           const std::vector<int>& places);
  bool reduces() const { return m_kind >= kind::allreduce && m_kind <= kind::exscan; }
  bool rooted() const {
    return m_kind == kind::bcast || m_kind == kind::reduce || m_kind == kind::gather ||
           m_kind == kind::scatter || m_kind == kind::gatherv || m_kind == kind::scatterv;
  }

  bool in_place() const { return m_in_place && (!rooted() || m_rank == m_root); }

  // Of alltoallv. In place both directions of a pair have the same count.
  int between(int from, int to) const {
    if (m_in_place && to < from) std::swap(from, to);
    return int((m_seed >> (from * 5 + to * 3) % 40) % std::uint64_t(m_count + 1));
  }

  static std::string name_of(MPI_Op op) {
    static const std::pair<MPI_Op, const char*> known[] = {
        {MPI_SUM, "sum"},   {MPI_PROD, "prod"}, {MPI_MIN, "min"},       {MPI_MAX, "max"},
        {MPI_LAND, "land"}, {MPI_LOR, "lor"},   {MPI_LXOR, "lxor"},     {MPI_BAND, "band"},
        {MPI_BXOR, "bxor"}, {MPI_BOR, "bor"},   {MPI_MINLOC, "minloc"}, {MPI_MAXLOC, "maxloc"}};
    for (const auto& [it, name] : known)
      if (it == op) return name;
    return "its own op";
  }

  MPI_Op op_from(std::uint64_t drawn) const {
    const MPI_Op integers[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX,  MPI_LAND,
                               MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BXOR, MPI_BOR};
    const MPI_Op pairs[] = {MPI_MINLOC, MPI_MAXLOC};
    if (m_element.type == MPI_INT && drawn % 13 == 12) return own_op();
    switch (m_element.holds) {
      case content::integer: return integers[drawn % 10];
      case content::floating: return integers[drawn % 4];
      case content::logical: return integers[4 + drawn % 3];
      case content::complex: return MPI_SUM;  // of products the order shows, in the sign of 0
      default: return pairs[drawn % 2];
    }
  }

  // Small floating numbers, so that every order of the ranks gives the same result. What integers
  // lose at their upper end does not depend on it.
  void make(std::vector<char>& memory, std::size_t bytes, bool input) {
    memory.assign(bytes, 0x5a);
    if (!input) return;
    std::mt19937_64 random(m_seed + std::uint64_t(m_round * 64 + m_rank));
    const std::size_t skew = m_offset % m_element.extent, n = bytes / m_element.extent - 1;
    for (std::size_t i = 0; i < n; ++i) {
      char* at = memory.data() + skew + i * m_element.extent;
      const auto small = random() % 4;
      switch (m_element.holds) {
        case content::integer: {
          const std::uint64_t x = m_wide ? random() : small;
          std::memcpy(at, &x, m_element.extent);
          break;
        }
        case content::floating:
          if (m_element.extent == sizeof(float)) {
            const float x = float(small);
            std::memcpy(at, &x, sizeof x);
          } else {
            const double x = double(small);
            std::memcpy(at, &x, sizeof x);
          }
          break;
        case content::complex: {
          const double x[] = {double(small), double(random() % 3)};
          std::memcpy(at, x, sizeof x);
          break;
        }
        case content::pair: {
          const double x = double(small);
          const int place = int(random() % 100);
          std::memcpy(at, &x, sizeof x);
          std::memcpy(at + sizeof x, &place, sizeof place);
          break;
        }
        case content::logical: *at = char(small % 2); break;  // of others libraries differ
        case content::bytes:
          for (std::size_t b = 0; b < m_element.extent; ++b) at[b] = char(random());
      }
    }
  }

  // A library may leave anything there.
  bool is_padding(std::size_t byte) const {
    const std::size_t skew = m_offset % m_element.extent;
    return m_element.holds == content::pair && byte >= skew &&
           (byte - skew) % m_element.extent >= 12;
  }

  // How much of the output MPI defines, in bytes.
  std::size_t significant() const {
    const std::size_t all = m_actual.size();
    const auto until = [&](int n) { return m_offset + std::size_t(n) * m_element.extent; };
    switch (m_kind) {
      case kind::reduce:
      case kind::gather:
      case kind::gatherv: return m_rank == m_root ? all : 0;
      case kind::exscan: return m_rank > 0 ? all : 0;
      case kind::reduce_scatter_block: return m_in_place ? until(m_count) : all;
      case kind::reduce_scatter: return m_in_place ? until(m_counts[std::size_t(m_rank)]) : all;
      case kind::barrier: return 0;
      default: return all;
    }
  }

  MPI_Comm m_comm;
  int m_rank = 0, m_size = 1, m_round = 0;
  std::uint64_t m_seed = 0;
  kind m_kind = kind::barrier;
  element m_element{};
  MPI_Op m_op = MPI_OP_NULL;
  int m_root = 0, m_count = 0;
  bool m_in_place = false, m_wide = false;
  bool m_large = false;      // by the function for large counts, where the library has it
  std::size_t m_offset = 0;  // of the memory in its allocation
  std::vector<int> m_counts, m_places, m_to, m_from, m_steps;
  std::vector<char> m_send, m_sent, m_actual, m_expected;
};

}  // namespace fuzz
