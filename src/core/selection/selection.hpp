// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which backend executes an operation, and why.
///
/// For each kind of operation compile() writes down the candidates of one communicator in order:
///   1. the backends of each rule that applies to the communicator, in the order of the rules;
///   2. MPI for messages below the threshold (for all of them if it is negative);
///   3. the rows of the tuning table, if there is one;
///   4. SuCL's own kernels for the messages that they execute faster on devices; the enabled
///   backends
///      of the communicator's platform, in the order of the configuration; kernels for the others;
///   5. unless a default backend is configured, for ranks with device memory on several nodes steps
///      within nodes and between them (hierarchical); SuCL's own plans for memory that the host
///      reads, and for messages the backend messages;
///   6. the default backend, then MPI, and last the backend of the network, for jobs without MPI.
/// Both ends of a message must choose alike whatever each knows of it, so a built-in backend
/// executes all messages of a communicator, or none where another one comes before it for any.
/// choose() takes the first candidate that fits the message and can execute it. The answer is the
/// same on every rank as long as the questions and the capabilities are.
#pragma once

#include "base/config/config.hpp"
#include "tune/table/table.hpp"

#include <sucl/types.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::core {

/// Platform of a communicator whose ranks are on different ones.
inline constexpr const char* mixed_platforms = "mixed";

class built_in_backend;
/// The backends that are part of the library, each after those that it uses.
using built_in_list = std::vector<const built_in_backend*>;

/// What selection knows of a communicator.
struct selection_scope {
  std::string platform = "host";  ///< canonical name, mixed_platforms, or "host" without devices
  int ranks = 1;
  int nodes = 1;
  bool reads = false;   ///< the ranks may copy from each other's memory
  bool device = false;  ///< some rank has device memory that its host does not reach
  bool mixed = false;   ///< as topology::mixed(): ranks have unlike memory in one operation
};

/// What selection knows of an operation.
struct selection_query {
  kind what = kind::barrier;
  type element = type::bytes;
  op reduction = op::none;
  sucl_memory memory = SUCL_MEMORY_SYSTEM;
  std::uint64_t bytes = 0;  ///< of the message: count times the size of an element
  bool bytes_known = true;  ///< false where ranks may have different sizes: bytes is ignored
  bool blocking = true;     ///< the form of the call
};

/// Why a candidate is on the list.
enum class selection_stage {
  rule,
  threshold,
  table,
  platform,
  built_in,
  default_backend,
  last_resort
};

/// One backend that may execute one kind of operation.
struct candidate {
  selection_stage stage;
  int rule;     ///< index of its rule in the configuration, or of its row in the table; or -1
  int backend;  ///< index into selection_table::backends
  base::range bytes;
  std::uint32_t memories;  ///< one bit for each sucl_memory
  std::string ruled_out;   ///< why it can never be taken on this communicator; "" if it can
  tune::call_form form = tune::call_form::any;
};

/// The candidates of a communicator. Immutable once compiled: any thread may read it.
struct selection_table {
  selection_scope scope;
  std::vector<std::string> backends;      ///< names, indexed as in base::config::backends
  std::vector<base::backend_role> roles;  ///< of the same
  std::vector<std::string> rule_origins;  ///< one a rule, as in "file sucl.toml:12:1"
  std::vector<bool> no_messages;          ///< which of the backends have neither sends nor receives
  const tune::table* tuned = nullptr;     ///< must outlive the selection; null: none
  built_in_list built_ins;
  std::vector<std::vector<candidate>> all = std::vector<std::vector<candidate>>(SUCL_KIND_COUNT);
  std::vector<std::vector<candidate>> live = std::vector<std::vector<candidate>>(SUCL_KIND_COUNT);
};

/// Memory that the host reads, and all memory: a bit for each sucl_memory.
inline constexpr std::uint32_t every_memory = (1u << SUCL_MEMORY_COUNT) - 1;
inline constexpr std::uint32_t host_memory = every_memory & ~(1u << SUCL_MEMORY_DEVICE);

/// Where a built-in backend may have candidates: before and after the loadable backends of the
/// communicator's platform, where MPI would be next because no rule selects another, and after all.
enum class candidate_position { before_platforms, after_platforms, before_default, last };

/// The candidates of one kind of operation while they are written down, for one built-in backend.
class candidate_list {
 public:
  candidate_list(const base::config& c, const selection_scope& scope, std::vector<candidate>& list)
      : m_config(c), m_scope(scope), m_list(list) {}

  const selection_scope& scope() const { return m_scope; }
  /// The settings of the backend that is queried, which is enabled.
  const base::backend_entry& entry() const {
    return m_config.backends[static_cast<std::size_t>(m_backend)];
  }
  /// Why the communicator's platform is not one of the backend's; empty if it is.
  std::string other_platform() const;
  /// Whether MPI is what executes an operation that nothing else does.
  bool mpi_is_default() const {
    return m_config.has_role(m_config.default_backend, base::backend_role::reference);
  }
  void add(selection_stage stage, const base::range& bytes = {},
           std::uint32_t memories = every_memory, std::string ruled_out = {},
           tune::call_form form = tune::call_form::any);

 private:
  friend struct compiler;
  const base::config& m_config;
  const selection_scope& m_scope;
  std::vector<candidate>& m_list;
  int m_backend = -1;
};

/// Writes the candidates down. Cheap enough for every communicator; not for every operation.
/// `tuned` may be null.
SUCL_CORE_API selection_table compile(const base::config& c, const selection_scope& scope,
                                      const built_in_list& built_ins,
                                      const tune::table* tuned = nullptr,
                                      std::vector<bool> no_messages = {});

/// Whether the message of a query is one that a candidate is for.
inline bool fits(const candidate& c, const selection_query& q) noexcept {
  if ((c.memories >> q.memory & 1u) == 0) return false;
  if (c.form != tune::call_form::any && (c.form == tune::call_form::blocking) != q.blocking)
    return false;
  return q.bytes_known ? c.bytes.contains(q.bytes) : c.bytes.everything();
}

/// The candidate that executes the operation, or null if none can. `usable(backend)` says whether
/// the backend of this index is loaded and capable of it. Allocates nothing.
template <class Usable>
const candidate* choose(const selection_table& table, const selection_query& q,
                        const Usable& usable) {
  for (const candidate& c : table.live[static_cast<std::size_t>(q.what)])
    if (fits(c, q) && usable(c.backend)) return &c;
  return nullptr;
}

/// A candidate that was considered, and the result.
struct consideration {
  std::string source;   ///< as in "rules[0] (file sucl.toml:12:1)" or "threshold"
  std::string backend;  ///< its name
  bool taken = false;
  std::string why;
};

/// An answer with its reasons; the candidates after the one that was taken are not in it.
struct explanation {
  selection_scope scope;
  selection_query query;
  std::string backend;  ///< "" if no backend can execute it
  std::vector<consideration> considered;
};

/// choose() with reasons. `obstacle(backend)` says why the backend of this index cannot execute the
/// operation, as in "not loaded: no such file"; "" if it can.
explanation explain(const selection_table& table, const selection_query& q,
                    const std::function<std::string(int)>& obstacle);

/// A human-readable explanation, several lines.
std::string render(const explanation& e);

}  // namespace sucl::core
