// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The executor: runs the plans of one communicator, in order and several at once.
#pragma once

#include "runtime/exec/fold.hpp"
#include "runtime/exec/shapes.hpp"
#include "runtime/exec/shared.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace sucl::core {

/// Memory that every rank of a communicator reaches.
struct mapped_memory {
  sucl_region region{};
  std::uint64_t number = 0;  ///< the same on every rank, from 1

  bool holds(const std::byte* p) const {
    const auto* base = static_cast<const std::byte*>(region.base);
    return p >= base && p < base + region.bytes;
  }
};

/// An operation on its way through the executor.
struct execution {
  sucl_operation what{};
  const shape* how = nullptr;
  fold_function fold = nullptr;
  std::uint64_t element_size = 1;  ///< that folds count in
  std::byte* send = nullptr;       ///< where the input begins, in place too
  std::byte* recv = nullptr;
  std::uint64_t started = 0;   ///< slices
  std::uint64_t finished = 0;  ///< slices
  /// The ranks tell each other first where their memory is, and then decide how to go on.
  bool announcing = false;
  std::vector<std::byte*> peer_send;  ///< by rank, where memory is mapped
  std::vector<std::byte*> peer_recv;
  bool done() const { return !announcing && finished == how->slices; }
};

/// Runs operations of one communicator. One thread at a time.
///
/// An operation is one run of a program for each of its slices. Runs are numbered alike on every
/// rank. Up to `window` of them are in progress: while one waits for a peer, the next one goes on.
/// A run may begin when every rank has finished the one that had its slot before, which a rank
/// mostly knows already from what it has waited for since.
class runner {
 public:
  runner(const channel& memory, int rank, int size, const sharing& how,
         std::span<const tuning_row> tuning = default_tuning());
  ~runner();
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;

  const shared_memory& memory() const { return m_memory; }
  shape_table& shapes() { return m_shapes; }

  /// Queues an operation. Throws where its plan cannot be made.
  execution* start(const sucl_operation& o);
  /// Does what can be done without waiting, looking `looks` times at what is not there yet.
  void progress(int looks);
  /// Runs until the request is done, but gives up waiting when it takes long: then other work
  /// of the process has to go on.
  void finish(execution* r);
  /// Takes memory over that operations of a higher sequence number may be on. The same on every
  /// rank.
  void add(const mapped_memory& m, std::uint64_t sequence);
  /// Gives back the memory that begins at `base`; false if there is none. Nothing uses it.
  bool remove(const void* base, mapped_memory& m);
  const std::vector<mapped_memory>& memories() const { return m_memories; }

  /// Gives the request back.
  void recycle(execution* r) { m_free.push_back(r); }

 private:
  static constexpr std::uint32_t window = 3;
  struct run {
    execution* owner = nullptr;
    const program* code = nullptr;
    std::uint64_t number = 0;
    std::uint64_t shift = 0;  ///< bytes from the begin of a block to the slice
    std::uint32_t slot = 0;
    std::byte* const* scratch = nullptr;
    std::uint32_t ended = 0;  ///< channels
    std::array<std::uint32_t, most_channels> at{};
  };

  bool begin_next();
  bool may_be_mapped(const sucl_operation& o) const;
  void announce(const run& r) const;
  void decide(const run& r);
  bool all_mapped(execution& e, const run& r, const program& code) const;
  bool may_begin(std::uint64_t number);
  bool advance(run& r, int looks);
  bool advance_channel(run& r, std::uint32_t channel, int looks);
  bool wait(run& r, const step& s, int looks);
  std::byte* address(const run& r, const operand& o) const;
  void copy(const run& r, const step& s) const;
  void fold(const run& r, const step& s) const;
  void retire();
  static std::uint64_t value_of(const run& r, std::uint64_t signal) {
    return r.number << 16 | signal;
  }

  int m_rank, m_size;
  channel m_lender;
  shared_memory m_memory;
  shape_table m_shapes;
  std::vector<mapped_memory> m_memories;
  std::uint64_t m_mapped_since = ~std::uint64_t{0};  ///< operations after this one may be mapped
  int m_looks;  ///< at a word before the processor is given away

  std::vector<std::unique_ptr<execution>> m_requests;
  std::vector<execution*> m_free;
  std::vector<execution*> m_queue;  ///< in order, from m_head on
  std::size_t m_head = 0;

  std::array<run, window> m_runs{};
  std::uint64_t m_begun = 0;           ///< number of the last run that has begun
  std::uint64_t m_retired = 0;         ///< and of the last one that is over, with all before it
  std::uint64_t m_steps = 0;           ///< taken so far: whether something moves
  std::uint64_t m_sure = 0;            ///< runs up to this number may begin
  std::vector<std::uint64_t> m_known;  ///< by rank: it has finished the runs up to here
};

}  // namespace sucl::core
