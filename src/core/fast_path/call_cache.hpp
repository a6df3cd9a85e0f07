// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Calls that have run before, and what is known of them.
#pragma once

#include "base/direct_cache.hpp"
#include "core/operation/operation.hpp"
#include "core/record/flight_recorder.hpp"

#include <sucl/abi/backend.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

namespace sucl::core {

struct backend_instance;
struct prepared_run;

/// An operation that is called over and over, and which backend executes it.
struct persistent_call {
  sucl_operation record{};                ///< normalised; its arrays must outlive the entry
  bool blocking = true;                   ///< the form of the call
  const backend_instance* via = nullptr;  ///< null: it has not run yet
  std::uint64_t epoch = 0;  ///< what is known of it holds while that of the cache is the same
  /// Its prepared run, if there is one; made when the call is repeated.
  std::optional<std::shared_ptr<prepared_run>> prepared;
  std::uint64_t signature = 0;  ///< its hash, once it is repeated and where ranks compare it
  record_writer::mark noted{};  ///< where the record has it
};

/// The last calls of a communicator, by their arguments as they came. One thread at a time.
class call_cache {
 public:
  /// `size`: ranks of the communicator.
  void begin(int size) { m_size = size; }

  /// The call of that form that ran before with these arguments; null if it is not known. What it
  /// refers to stays until the next remember().
  persistent_call* find(const sucl_operation& requested, bool blocking) {
    entry& known = m_entries.slot(key_of(requested, blocking));
    return holds(known.call) && known.call.blocking == blocking && same(known, requested)
               ? &known.call
               : nullptr;
  }
  /// Keeps a call for the arguments `requested`, with copies of their arrays.
  void remember(const sucl_operation& requested, const sucl_operation& record, bool blocking,
                const backend_instance& via);

  /// Whether what is known of a call still holds.
  bool holds(const persistent_call& call) const { return call.via && call.epoch == m_epoch; }
  /// The call has run by `via`.
  void note(persistent_call& call, const backend_instance& via) const {
    call.via = &via;
    call.epoch = m_epoch;
  }
  /// Nothing that is known of any call holds any more: memory or the tuning table has changed.
  void forget() { ++m_epoch; }
  /// And no call will come again.
  void clear() {
    m_entries.clear();
    forget();
  }

 private:
  struct entry {
    sucl_operation requested{};  ///< as it came
    persistent_call call;
    std::vector<std::uint64_t> arrays;            ///< of both
    std::vector<sucl_operation> requested_parts;  ///< of a group
    std::vector<sucl_operation> parts;            ///< the same, of `call`
  };
  static std::uint64_t key_of(const sucl_operation& requested, bool blocking) {
    const sucl_operation& first = requested.part_count > 0 ? requested.parts[0] : requested;
    return base::key_of(reinterpret_cast<std::uintptr_t>(first.send),
                        reinterpret_cast<std::uintptr_t>(first.recv), first.count,
                        static_cast<std::uint64_t>(first.kind) * 2 + (blocking ? 1 : 0));
  }
  bool same(const entry& known, const sucl_operation& requested) const {
    static_assert(std::has_unique_object_representations_v<sucl_operation>);
    if (known.requested.part_count == 0 && known.arrays.empty())
      return std::memcmp(&known.requested, &requested, sizeof requested) == 0;
    return same_contents(known, requested);
  }
  bool same_contents(const entry& known, sucl_operation requested) const;

  base::direct_cache<entry, 16> m_entries{};
  std::uint64_t m_epoch = 1;
  int m_size = 1;
};

}  // namespace sucl::core
