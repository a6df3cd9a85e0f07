// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Random steps: what all ranks of a job do next, drawn from the seed and the number of the step
/// alone, so that each can be repeated on its own.
#pragma once

#include "conformance/flow.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::torture {

using conformance::memory;

/// Numbers that depend on nothing but the key.
class dice {
 public:
  explicit dice(std::uint64_t a, std::uint64_t b = 0) : m_key(reference::mix(a, b)) {}
  std::uint64_t next() { return reference::mix(m_key, ++m_at); }
  /// From 0 to n - 1.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  int rank(int ranks) { return static_cast<int>(below(static_cast<std::size_t>(ranks))); }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t m_key;
  std::uint64_t m_at = 0;
};

/// How a step calls and awaits its operations.
enum class form {
  blocking,
  event,       ///< one call after the other, each awaited
  window,      ///< several at once, on several communicators, after each other's or own events
  chained,     ///< filled and read by commands of the queue, without a wait between
  persistent,  ///< made once, started several times on other values
  compiled,    ///< a composition
  allocated,   ///< on memory of allocate() of a size of each rank's own, made for the step
  threads,     ///< blocking calls of two threads, with a communicator each
  renewed,     ///< on communicators made for the step by dup() and split()
  count
};
const char* name(form f);

/// Communicators of the pool.
enum class group_of {
  world,
  in_order,   ///< with an in-order queue
  queueless,  ///< host memory only
  copy,       ///< made by dup()
  reversed,   ///< ranks in reversed order
  parity,     ///< two halves, of even and of odd ranks
  but_last,   ///< without the last rank
  count
};
const char* name(group_of g);

/// What reduced values are.
enum class values {
  exact,    ///< such that the order of the reduction changes nothing
  finite,   ///< any finite number
  special,  ///< also NaN, infinities, subnormal numbers, zeros of both signs, overflow
  count
};
const char* name(values v);

/// One operation on one communicator.
struct operation {
  conformance::call_spec call;
  reference::element element{type::bytes, 1};
  sucl::op op = op::none;
  values drawn = values::exact;
  std::uint64_t key = 0;  ///< of its values and of where they lie
  int memory = 0;         ///< conformance::memory

  /// Where this rank's operands are: never mixed_memory.
  conformance::memory memory_of(int rank, bool has_queue) const;
  std::string text() const;
};

/// The communicator of a step's operation, as this rank sees it.
struct membership {
  int rank = 0;
  int size = 0;    ///< 0: this rank has no part
  int colour = 0;  ///< tells apart what split() made at once
};

/// Of a rank of the job.
membership membership_of(group_of g, int rank, int ranks);

struct step {
  torture::form form = form::blocking;
  /// A communicator for each operation. Those of one step that this rank has no part in remain in
  /// the list, and no operation is drawn for them.
  std::vector<group_of> groups;
  std::vector<operation> operations;
  std::uint64_t key = 0;
  /// Of a compiled step: 0: an allreduce in two steps, 1: an allgather, 2: an allreduce by one
  /// rank; and the elements of a block.
  int composition = 0;
  std::size_t block = 0;
};

step draw_step(std::uint64_t seed, std::uint64_t index, int rank, int ranks);

/// Which steps are run, by names of forms, communicators, kinds, types, ops and sorts of values.
struct filter {
  std::set<std::string, std::less<>> without;  ///< none that has one of these
  std::set<std::string, std::less<>> only;     ///< if there are any: those that have one of these
  /// The same on every rank.
  bool allows(std::uint64_t seed, std::uint64_t index, int ranks) const;
};
std::set<std::string, std::less<>> names(std::string_view list);

/// An operation for `ranks` ranks whose operands have about that many bytes at most.
operation draw_operation(dice& d, int ranks, std::size_t bytes);

/// The input of one element of `rank` at `index`, and inputs of several.
void write_inputs(const operation& o, int ranks, int rank, std::uint64_t index, std::size_t count,
                  std::byte* out);

/// Bytes of an operand at most.
inline constexpr std::size_t max_bytes = std::size_t{2} << 20;

}  // namespace sucl::torture
