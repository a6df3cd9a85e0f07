// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From an operation to the plans that carry it: which algorithm, cut into which slices.
#pragma once

#include "plan/algorithms.hpp"
#include "runtime/exec/program.hpp"

#include <sucl/abi/backend.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace sucl::core {

/// How the memory of the ranks may be used.
enum class reach : std::uint8_t {
  staged,  ///< only its owner touches it: data goes through shared scratch
  mapped   ///< every rank reads and writes that of all others
};

/// A row of the table of algorithms: the first one that fits is taken.
struct tuning_row {
  sucl_kind kind;
  reach memory;
  std::uint64_t
      up_to;  ///< bytes of the operation, as selection sees them; of allreduce: on 2 ranks
  const char* algorithm;
  std::uint64_t slice;  ///< bytes that a run stages at most
};

/// The rows that hold without any other knowledge. The last row of a table must fit everything.
std::span<const tuning_row> default_tuning() noexcept;

/// Operations of one kind, size and root: everything that is worked out once.
struct shape {
  std::vector<const program*> code;  ///< of each slice; the last entry stands for all that follow
  const program* tail = nullptr;     ///< of the last slice, if it differs
  std::uint64_t slices = 0;
  std::uint64_t slice_bytes = 0;      ///< from the begin of a slice of a block to that of the next
  std::uint64_t block_bytes = 0;      ///< of a whole block, where blocks follow each other
  std::uint64_t positions_scale = 0;  ///< bytes of what displacements count; 0: none are used
  std::vector<std::uint64_t> positions;  ///< of the blocks of send in bytes, where sizes differ
  std::string recipe;                    ///< for people

  const program& of(std::uint64_t slice) const {
    if (tail && slice + 1 == slices) return *tail;
    return *code[slice < code.size() ? slice : code.size() - 1];
  }
};

/// All shapes of one communicator. One thread at a time.
class shape_table {
 public:
  /// `slot_bytes`: scratch that a run may have.
  shape_table(int rank, int size, std::uint64_t slot_bytes, std::span<const tuning_row> tuning)
      : m_rank(rank), m_size(size), m_slot_bytes(slot_bytes), m_tuning(tuning) {}

  /// The shape of an operation, made and verified if it is new. Throws what plan::build() and
  /// plan::verify_or_fail() throw. The reference stays valid until forget().
  const shape& of(const sucl_operation& o, reach memory) {
    const std::uint64_t key = quick_key(o, memory);
    quick_entry& e = m_quick[key % m_quick.size()];
    if (e.found && e.same(o, memory)) return *e.found;
    const shape& s = look_up(o, memory);
    if (!has_counts(o.kind)) e = {&s, o.kind, o.root, memory, o.count, o.element_size};
    return s;
  }

  /// Whether so many shapes are kept that they had better be forgotten.
  bool crowded() const { return m_shapes.size() > most_shapes; }
  void forget();

 private:
  static constexpr std::size_t most_shapes = 4096;
  struct quick_entry {
    const shape* found = nullptr;
    sucl_kind kind = 0;
    std::int32_t root = 0;
    reach memory = reach::staged;
    std::uint64_t count = 0, element_size = 0;
    bool same(const sucl_operation& o, reach m) const {
      return count == o.count && kind == o.kind && element_size == o.element_size &&
             root == o.root && memory == m;
    }
  };
  static bool has_counts(sucl_kind kind) {
    return kind == SUCL_KIND_ALLGATHERV || kind == SUCL_KIND_REDUCE_SCATTER;
  }
  static std::uint64_t quick_key(const sucl_operation& o, reach memory) {
    return (o.count * o.element_size * 0x9e3779b97f4a7c15u >> 40) + static_cast<unsigned>(o.kind) +
           static_cast<unsigned>(o.root) * 7 + (memory == reach::mapped ? 3 : 0);
  }
  struct program_key {
    std::string algorithm;
    sucl_kind kind;
    std::int32_t root;
    std::uint64_t element;
    bool cut;
    std::vector<std::uint64_t> counts;
    auto operator<=>(const program_key&) const = default;
  };
  const tuning_row& row_for(sucl_kind kind, reach memory, std::uint64_t bytes) const;
  const shape& look_up(const sucl_operation& o, reach memory);
  shape make(const sucl_operation& o, reach memory);
  void cut_uniform(const sucl_operation& o, const tuning_row& row, shape& s);
  void cut_counts(const sucl_operation& o, const tuning_row& row, shape& s);
  const program* program_of(program_key key);

  int m_rank, m_size;
  std::uint64_t m_slot_bytes;
  std::span<const tuning_row> m_tuning;
  std::array<quick_entry, 64> m_quick{};
  std::map<std::vector<std::uint64_t>, std::unique_ptr<shape>> m_shapes;
  std::map<program_key, std::unique_ptr<program>> m_programs;
};

/// Whether an operation of this kind can be carried, whatever its size.
bool plans_carry(sucl_kind kind) noexcept;

}  // namespace sucl::core
