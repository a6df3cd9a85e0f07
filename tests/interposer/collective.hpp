// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One random collective: its arguments, its memory, what MPI itself makes of it, and whether that
/// is what came out.
#pragma once

#include "devices/device_memory.hpp"
#include "elements.hpp"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
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
  alltoallw,
  count
};
inline const char* const kind_names[] = {
    "barrier",        "bcast",    "allreduce",  "reduce",    "reduce_scatter_block",
    "reduce_scatter", "scan",     "exscan",     "allgather", "alltoall",
    "gather",         "scatter",  "allgatherv", "alltoallv", "gatherv",
    "scatterv",       "alltoallw"};

/// The seed of a run, the same on every rank: a number, or "date" for one of this second, unless
/// SUCL_FUZZ_SEED has one. Rank 0 tells it, before anything can go wrong.
std::uint64_t agree_on_seed(const char* argument);

/// An array that a call is given: the same numbers for functions with int counts and for those with
/// large ones.
class numbers {
 public:
  explicit numbers(const std::vector<int>& narrow)
      : m_narrow(narrow),
        m_counts(narrow.begin(), narrow.end()),
        m_displs(narrow.begin(), narrow.end()) {}
  template <class Number>
  operator const Number*() const {
    if constexpr (std::is_same_v<Number, int>)
      return m_narrow.data();
    else if constexpr (std::is_same_v<Number, MPI_Count>)
      return m_counts.data();
    else
      return m_displs.data();
  }
  void overwrite(int with);

 private:
  std::vector<int> m_narrow;
  std::vector<MPI_Count> m_counts;
  std::vector<MPI_Aint> m_displs;
};

/// All arrays that a call may be given.
struct arrays {
  numbers counts, displs, to, from, steps, byte_steps;
  std::vector<MPI_Datatype> types_to, types_from;
  void overwrite();
};

/// When the program changes the arrays of a call that goes on after it has returned: as early as
/// MPI allows (7.12, 7.13 of MPI 4.1), which is when a non-blocking operation has completed and
/// when a persistent request has been freed, or when the call returns, as SuCL allows.
enum class change { once_over, at_return };

/// Whether ranks take memory of devices for some arguments, each as it likes.
extern bool with_devices;

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
    const auto types = reduces() ? reducible_elements() : all_elements().size();
    m_element = all_elements()[drawn[1] % types];
#if defined(MPICH_VERSION) && !defined(I_MPI_VERSION)
    // MPICH 5.0's own MPI_Gather of pairs fails on four ranks and more, so there is no reference.
    if (m_kind == kind::gather && m_element.holds == content::pair) m_element = all_elements()[8];
#endif
    m_op = op_for(m_element, drawn[2]);
    m_root = int(drawn[3] % std::uint64_t(m_size));
    m_in_place = drawn[4] % 3 == 0;
#if defined(I_MPI_NUMVERSION)
    // Intel MPI 2021.18's own MPI_Ialltoallw in place mixes up blocks.
    m_in_place = m_in_place && m_kind != kind::alltoallw;
#endif
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
      m_types_to.push_back(type_between(m_rank, r));
      m_types_from.push_back(type_between(r, m_rank));
      m_byte_steps.push_back(r * m_count * max_extent);
      m_counts.push_back(int((m_seed >> r % 8) % std::uint64_t(m_count + 1)));
      m_to.push_back(between(m_rank, r));
      m_from.push_back(between(r, m_rank));
    }
    // From the last rank to the first, with room between.
    int at = 1;
    for (int r = m_size; r-- > 0; at += m_counts[std::size_t(r)] + 1)
      m_displs.insert(m_displs.begin(), at);
    for (int r = 0; r < m_size; ++r) m_steps.push_back(r * m_count);
    // Some ranks describe the same data by other types.
    bool alike = m_kind == kind::alltoallw || m_element.ints == 0;
#if defined(MPICH_VERSION) && !defined(I_MPI_VERSION)
    // MPICH 5.0.2's own MPI_Allgatherv sends long blocks in parts of as many bytes as its type
    // makes.
    alike = alike || m_kind == kind::allgatherv;
#endif
    if (!alike && (m_seed >> (33 + m_rank % 8) & 1)) m_ints = m_element.ints;
    for (auto* numbers : {&m_counts, &m_displs, &m_to, &m_from, &m_steps})
      for (int& n : *numbers) n *= m_ints;
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
    std::size_t bytes = (total + 8) * m_element.extent;
    if (m_kind == kind::alltoallw)
      bytes = std::size_t(m_count * m_size + 1) * max_extent + m_offset;
    make(m_send, bytes, true);
    const bool input = m_in_place || m_kind == kind::bcast;
    make(m_expected, bytes, input);
    const std::vector<char> before = m_expected;
    const auto sent = m_send;
    m_actual.swap(m_expected);
    m_reference_code = run(form::reference, nullptr);
    m_actual.swap(m_expected);
    m_actual.assign(before.begin(), before.end());
    m_send = sent;
    m_sent = sent;
    if (with_devices) upload();
  }

  /// Whether MPI could say that on this rank. MPICH 5.0.2 cannot where what it receives ends a
  /// segment of shared memory within an element of several types: of 13 bytes 583, from root 1
  /// of 2.
  bool is_known() const { return m_reference_code == MPI_SUCCESS; }
  /// What MPI's own call returned.
  int reference_code() const { return m_reference_code; }

  /// Takes what has come from the device. Before right().
  void download() {
    if (m_send_there) m_send_there->read(m_send.data());
    if (m_recv_there) m_recv_there->read(m_actual.data());
  }

  bool right() const {
    if (m_send != m_sent) return false;
    const auto until = significant();
    for (std::size_t i = 0; i < until; ++i)
      if (m_actual[i] != m_expected[i] && !is_padding(i)) return false;
    return true;
  }

  int run(form how, MPI_Request* request, change when = change::once_over);
  /// The operation has completed or, if it is persistent, its request has been freed.
  void over() {
    if (m_given) m_given->overwrite();
  }

  // Its arguments; what is not significant on this rank is null.
  kind what() const { return m_kind; }
  const void* input() const {
    const bool sends = m_kind != kind::scatter && m_kind != kind::scatterv;
    if (in_place() && sends) return MPI_IN_PLACE;
    const char* const memory =
        m_is_reference || !m_send_there ? m_send.data() : m_send_there->data();
    return sends || m_rank == m_root ? memory + m_offset : nullptr;
  }
  void* output() {
    const bool gathers =
        m_kind == kind::reduce || m_kind == kind::gather || m_kind == kind::gatherv;
    if (in_place() && (m_kind == kind::scatter || m_kind == kind::scatterv)) return MPI_IN_PLACE;
    char* const memory = m_is_reference || !m_recv_there ? m_actual.data() : m_recv_there->data();
    return !gathers || m_rank == m_root ? memory + m_offset : nullptr;
  }
  int elements() const { return m_count * m_ints; }
  MPI_Datatype type() const { return m_ints > 1 ? MPI_INT : m_element.type; }
  MPI_Op op() const { return m_op; }
  int root() const { return m_root; }
  const std::vector<int>& counts() const { return m_counts; }
  const std::vector<int>& displs() const { return m_displs; }
  /// Of alltoallv: what goes to each rank and comes from it, and where both begin.
  const std::vector<int>& to() const { return m_to; }
  const std::vector<int>& from() const { return m_from; }
  const std::vector<int>& steps() const { return m_steps; }
  /// Of alltoallw, where blocks begin in bytes.
  const std::vector<MPI_Datatype>& types_to() const { return m_types_to; }
  const std::vector<MPI_Datatype>& types_from() const { return m_types_from; }
  const std::vector<int>& byte_steps() const { return m_byte_steps; }

 private:
  static constexpr int max_extent = 48;  // of all elements
  static int& counter() {
    static thread_local int next = 0;
    return next;
  }
  arrays given() const;
  int call(form how, MPI_Request* request, MPI_Datatype t, const arrays& a);
  bool reduces() const { return m_kind >= kind::allreduce && m_kind <= kind::exscan; }
  bool rooted() const {
    return m_kind == kind::bcast || m_kind == kind::reduce || m_kind == kind::gather ||
           m_kind == kind::scatter || m_kind == kind::gatherv || m_kind == kind::scatterv;
  }

  bool in_place() const { return m_in_place && (!rooted() || m_rank == m_root); }

  // Of alltoallv. In place both directions of a pair have the same count.
  int between(int from, int to) const {
    if (m_in_place && to < from) std::swap(from, to);
    const auto drawn = m_seed >> (from * 5 + to * 3) % 40;
#if defined(OPEN_MPI)
    // In place Open MPI's MPI_Ialltoallw sends opposite ranks even nothing, but not where all
    // counts of a rank are 0: the other one would wait for ever.
    if (m_kind == kind::alltoallw && m_in_place && 2 * (to - from) == m_size && m_count > 0)
      return 1 + int(drawn % std::uint64_t(m_count));
#endif
    return int(drawn % std::uint64_t(m_count + 1));
  }

  // Of alltoallw, and in place of both directions. Of types with padding it is open what is copied.
  MPI_Datatype type_between(int from, int to) const {
    if (m_in_place && to < from) std::swap(from, to);
    const auto& all = all_elements();
    for (auto at = (m_seed >> (from * 7 + to * 11) % 40) % all.size();; at = (at + 1) % all.size())
      if (all[at].gap_end == 0) return all[at].type;
  }

  void make(std::vector<char>& memory, std::size_t bytes, bool input) {
    memory.assign(bytes, 0x5a);
    if (!input) return;
    std::mt19937_64 random(m_seed + std::uint64_t(m_round * 64 + m_rank));
    if (m_kind == kind::alltoallw) {
      for (char& byte : memory) byte = char(random());
      return;
    }
    const std::size_t skew = m_offset % m_element.extent, n = bytes / m_element.extent - 1;
    for (std::size_t i = 0; i < n; ++i)
      write_element(memory.data() + skew + i * m_element.extent, m_element, m_wide, random);
  }

  // The call's memory on the device, if it is to be there, with what the host's has. It stays where
  // it is, as a persistent one needs.
  void upload() {
    std::mt19937_64 own(m_seed * 31 + std::uint64_t(m_rank));
    static constexpr memory_kind kinds[] = {memory_kind::host, memory_kind::device,
                                            memory_kind::device, memory_kind::managed};
    const auto fill = [&](std::unique_ptr<device_memory>& there, const std::vector<char>& here) {
      const memory_kind where = kinds[own() % 4];
      if (where == memory_kind::host || here.empty()) return;
      if (!there) there = std::make_unique<device_memory>(where, here.size());
      there->write(here.data());
    };
    fill(m_send_there, m_send);
    fill(m_recv_there, m_actual);
  }

  // A library may leave anything there.
  bool is_padding(std::size_t byte) const {
    const std::size_t skew = m_offset % m_element.extent;
    if (m_kind == kind::alltoallw || byte < skew) return false;
    const std::size_t offset = (byte - skew) % m_element.extent;
    return offset >= m_element.gap && offset < m_element.gap_end;
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
  int m_ints = 1;  // elements are called so many of MPI_INT, if more than 1
  bool m_in_place = false, m_wide = false;
  int m_reference_code = MPI_SUCCESS;
  bool m_large = false;      // by the function for large counts, where the library has it
  std::size_t m_offset = 0;  // of the memory in its allocation
  std::vector<int> m_counts, m_displs, m_to, m_from, m_steps, m_byte_steps;
  std::vector<MPI_Datatype> m_types_to, m_types_from;
  std::unique_ptr<arrays> m_given;  // to a call that goes on
  std::vector<char> m_send, m_sent, m_actual, m_expected;
  std::unique_ptr<device_memory> m_send_there, m_recv_there;  // of m_send and m_actual
  bool m_is_reference = false;
};

}  // namespace fuzz
