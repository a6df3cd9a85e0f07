// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From an operation to the plans that execute it: which algorithm, cut into which slices.
#pragma once

#include "backends/shm_common/cpu_cache.hpp"
#include "backends/shm_plan/plans/program.hpp"
#include "base/config/determinism.hpp"
#include "base/direct_cache.hpp"
#include "base/narrow.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "tune/table/table.hpp"

#include <sucl/abi/backend.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sucl::core {

/// The name of the backend in the configuration and in tuning tables.
inline constexpr const char* plan_backend_name = "plan";

/// How the memory of the ranks may be used.
enum class access_mode : std::uint8_t {
  staged,  ///< only its owner touches it: data goes through shared scratch
  mapped,  ///< every rank reads and writes that of all others
  read     ///< every rank copies from that of all others
};

/// A row of the table of algorithms: the first one that fits is taken.
struct tuning_row {
  sucl_kind kind;
  access_mode memory;
  base::range bytes;  ///< of the operation, as selection sees them; of allreduce: on 2 ranks
  std::string recipe;
  std::uint64_t slice;  ///< bytes that a run takes at most
  std::string origin;   ///< of a row of a tuning table, whose bytes are those of so many ranks
  base::range ranks{};
  /// Of a read: only where it proves faster than staging (copy_mode_tuner.hpp).
  bool tuned_online = false;
};

/// Below this, what is to be mapped is staged: data beside the flag is as fast as can be.
inline constexpr std::uint64_t min_mapped_bytes = 2048;
/// Below this, what is to be read is staged: that is faster than the system call.
inline constexpr std::uint64_t min_read_bytes = 8192;

/// The rows that hold on one node without any other knowledge. The last ones must fit everything.
const std::vector<tuning_row>& default_tuning();

/// The rows of a tuning table that are about plans on that many ranks and nodes. Algorithms that go
/// along the nodes go along those of `where`. On one node the default rows follow; between nodes a
/// model stands for them (between_nodes.hpp). `tuned` may be null.
std::vector<tuning_row> tuning_of(const tune::table* tuned, const placement& where);

/// Operations of one kind, size and root: everything that is worked out once.
struct plan_instance {
  std::vector<const program*> code;  ///< of each slice; the last entry stands for all that follow
  const program* tail = nullptr;     ///< of the last slice, if it differs
  std::uint64_t slices = 0;
  std::uint64_t slice_bytes = 0;      ///< from the begin of a slice of a block to that of the next
  std::uint64_t block_bytes = 0;      ///< of a whole block, where blocks follow each other
  std::uint64_t positions_scale = 0;  ///< bytes of what displacements count; 0: none are used
  std::vector<std::uint64_t> positions;  ///< of the blocks of send in bytes, where sizes differ
  /// Blocks have lengths of their own, which only some ranks know: steps copy what there is.
  bool clipped = false;
  bool tuned_online = false;  ///< as of a tuning_row
  /// The memory of the ranks does not fit into their caches: results go past them.
  bool copies_nontemporal = false, folds_nontemporal = false;
  std::string recipe;  ///< human-readable
  bool there = true;   ///< false: no plan

  const program& of(std::uint64_t slice) const {
    if (tail && slice + 1 == slices) return *tail;
    return *code[slice < code.size() ? slice : code.size() - 1];
  }
};

/// All plan instances of one communicator. One thread at a time.
class plan_cache {
 public:
  /// `slot_bytes`: scratch that a run may have.
  plan_cache(const placement& where, std::uint64_t slot_bytes, std::vector<tuning_row> tuning)
      : m_where(where),
        m_size(where.size),
        m_slot_bytes(slot_bytes),
        m_cache_bytes(last_cache().share(static_cast<int>(where.neighbours().size()))),
        m_tuning(std::move(tuning)),
        m_several_nodes(where.several_nodes()) {}

  /// Goes by another tuning table, or by none (null). Forgets all instances.
  void use(const tune::table* tuned) {
    m_tuning = tuning_of(tuned, m_where);
    forget();
  }

  /// By which plans an operation of known size is executed: a line for each access mode. Any
  /// thread.
  std::string describe(const sucl_operation& o) const;

  /// Why an operation is not executed by a row of a tuning table, as if that were the first one
  /// that fits; empty: it is. The same on every rank. Any thread.
  std::string obstacle(const tune::table_row& row, const sucl_operation& o) const;

  /// The plan instance of an operation, made and verified if it is new. Throws what plan::build()
  /// and plan::verify_or_fail() throw. The reference stays valid until forget(). `in_place`: some
  /// rank's input lies in its output, which matters where peers reach it. An instance that is not
  /// `there`: no plan is meant for that access mode.
  const plan_instance& of(const sucl_operation& o, access_mode memory, bool in_place = false) {
    quick_entry& e = m_quick.slot(quick_key(o, memory));
    if (e.found && e.same(o, memory, in_place, demands(o), m_size)) return *e.found;
    const auto& [key, made] = look_up(o, memory, in_place);
    const std::uint64_t* counts = has_counts(o.kind) ? key.data() + key.size() - m_size : nullptr;
    e = {made.get(),
         o.kind,
         o.root,
         memory,
         in_place,
         demands(o),
         has_counts(o.kind) ? 0 : o.count,
         o.element_size,
         counts};
    return *made;
  }

  /// Where the order of operands matters, plans fold in the fixed order. Before the first
  /// operation.
  void fold_in_order() { m_folds_in_order = true; }

  /// Memory of peers may be copied from. The same on every rank.
  void allow_reads() { m_reads = true; }
  bool reads() const { return m_reads; }

  /// The same for an operation whose blocks have different lengths that only some ranks know; the
  /// longest of all has `bytes` bytes. `reads`: blocks are copied from where they lie.
  const plan_instance& clipped(const sucl_operation& o, std::uint64_t bytes, bool reads);
  /// The row by which such blocks may be copied from where they lie; null: they are staged.
  const tuning_row* row_of_clipped_reads(const sucl_operation& o, std::uint64_t bytes) const;

  /// Whether so many instances are kept that they should be forgotten.
  bool is_full() const { return m_plans.size() > max_instances; }
  void forget();

 private:
  static constexpr std::size_t max_instances = 4096;
  struct quick_entry {
    const plan_instance* found = nullptr;
    sucl_kind kind = 0;
    std::int32_t root = 0;
    access_mode memory = access_mode::staged;
    bool in_place = false;
    unsigned demands = 0;
    std::uint64_t count = 0, element_size = 0;
    const std::uint64_t* counts = nullptr;  ///< of the blocks, where those have their own
    bool same(const sucl_operation& o, access_mode m, bool together, unsigned demanded,
              int size) const {
      return kind == o.kind && element_size == o.element_size && root == o.root && memory == m &&
             in_place == together && demands == demanded &&
             (counts ? std::equal(counts, counts + size, o.recv_counts) : count == o.count);
    }
  };
  static bool has_counts(sucl_kind kind) {
    return kind == SUCL_KIND_ALLGATHERV || kind == SUCL_KIND_REDUCE_SCATTER;
  }
  // Whether every contribution has to be combined in one fold: twice rounded is not the same.
  static bool rounds(const sucl_operation& o) {
    return o.op == SUCL_OP_AVG || base::is_narrow_float(o.type);
  }
  // Whether contributions have to be combined in the fixed order.
  bool ordered(const sucl_operation& o) const {
    return m_folds_in_order && base::order_matters(o.kind, o.type, o.op);
  }
  // What type and op require of a plan, besides the size of elements.
  unsigned demands(const sucl_operation& o) const { return rounds(o) + 2u * ordered(o); }
  std::uint64_t quick_key(const sucl_operation& o, access_mode memory) const {
    std::uint64_t size = o.count;
    if (has_counts(o.kind)) {
      size = 0;
      for (int r = 0; r < m_size; ++r) size = size * 31 + o.recv_counts[r];
    }
    return base::key_of(size * o.element_size, o.kind, o.root, memory);
  }
  struct program_key {
    std::string algorithm;
    sucl_kind kind;
    std::int32_t root;
    std::uint64_t element;
    bool cut;
    bool entered;
    std::vector<std::uint64_t> counts;
    bool ordered = false;
    auto operator<=>(const program_key&) const = default;
  };
  // What executes an operation, and how much of it a run takes.
  struct choice {
    std::string algorithm;
    std::uint64_t slice;
    bool entered = false;       ///< all have said before that they are there
    bool tuned_online = false;  ///< as of a tuning_row
  };
  using instance_map = std::map<std::vector<std::uint64_t>, std::unique_ptr<plan_instance>>;
  const tuning_row* row_for(const sucl_operation& o, access_mode memory, std::uint64_t bytes,
                            const tuning_row* after = nullptr) const;
  std::string obstacle(const tuning_row& row, const sucl_operation& o, std::uint64_t bytes) const;
  choice between_nodes(const sucl_operation& o, std::uint64_t bytes) const;
  instance_map::value_type& look_up(const sucl_operation& o, access_mode memory, bool in_place);
  plan_instance make(const sucl_operation& o, access_mode memory, bool in_place);
  plan_instance make_clipped(const sucl_operation& uniform, bool reads, std::uint64_t slice,
                             std::uint64_t slices);
  plan_instance make_by(choice c, const sucl_operation& o);
  bool serves_in_place(const plan_instance& s) const;
  void choose_stores(const sucl_operation& o, plan_instance& s) const;
  bool cut_uniform(const sucl_operation& o, const choice& c, plan_instance& s);
  bool cut_counts(const sucl_operation& o, const choice& c, plan_instance& s);
  plan::problem problem_of(const program_key& key) const;
  plan::schedule schedule_of(const program_key& key) const;
  blocking blocking_of(const program_key& key) const;
  const program* program_of(program_key key);

  const placement& m_where;
  int m_size;
  std::uint64_t m_slot_bytes;
  std::uint64_t m_cache_bytes;  ///< of the last cache, that a rank has for itself
  std::vector<tuning_row> m_tuning;
  bool m_reads = false;
  bool m_folds_in_order = false;
  bool m_several_nodes;
  base::direct_cache<quick_entry, 64> m_quick{};
  instance_map m_plans;
  std::vector<std::uint64_t> m_key;  ///< of the plan_instance that is looked up; keeps its memory
  std::map<program_key, std::unique_ptr<program>> m_programs;
  /// The instances that clipped() returned last.
  struct clipped_entry {
    const plan_instance* found = nullptr;
    sucl_kind kind = 0;
    std::int32_t root = 0;
    bool reads = false;
    std::uint64_t slice = 0, slices = 0;
    bool same(const clipped_entry& o) const {
      return kind == o.kind && root == o.root && reads == o.reads && slice == o.slice &&
             slices == o.slices;
    }
  };
  base::direct_cache<clipped_entry, 16> m_clipped{};
};

/// Whether peers may reach the memory of operations of this kind: all know where its blocks lie.
constexpr bool may_be_reached(sucl_kind kind) noexcept {
  return kind != SUCL_KIND_BARRIER && kind != SUCL_KIND_SCAN && kind != SUCL_KIND_EXSCAN &&
         kind != SUCL_KIND_ALLGATHERV;
}
/// Whether peers may copy from the input of an operation.
constexpr bool has_readable_input(sucl_kind kind) noexcept {
  return may_be_reached(kind) || kind == SUCL_KIND_ALLGATHERV;
}

/// Whether an operation of this kind is supported, whatever its size. `ordered`: in the fixed
/// order.
bool plans_support(sucl_kind kind, bool several_nodes, bool ordered = false) noexcept;

/// Whether the counts of an operation are known to some ranks only.
constexpr bool has_hidden_counts(sucl_kind kind) noexcept {
  return kind == SUCL_KIND_ALLTOALLV || kind == SUCL_KIND_GATHERV || kind == SUCL_KIND_SCATTERV;
}
/// The kind with blocks of one length that such an operation resembles.
constexpr sucl_kind uniform_kind(sucl_kind kind) noexcept {
  if (kind == SUCL_KIND_ALLTOALLV) return SUCL_KIND_ALLTOALL;
  return kind == SUCL_KIND_GATHERV ? SUCL_KIND_GATHER : SUCL_KIND_SCATTER;
}

}  // namespace sucl::core
