// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Who carries an operation, and why.
///
/// For each kind of operation compile() writes down the candidates of one communicator in order:
///   1. the backends of each rule that applies to the communicator, in the order of the rules;
///   2. MPI for messages below the threshold (for all of them if it is negative);
///   3. the rows of the tuning table, if there is one;
///   4. SuCL's own kernels for the messages that they carry faster on devices; the enabled backends
///      of the communicator's platform, in the order of the configuration; kernels for the others;
///   5. unless a default backend is configured, for ranks with device memory on several nodes steps
///      within nodes and between them (levels); SuCL's own plans for memory that the host reads,
///      and for messages the backend messages;
///   6. the default backend, and last MPI.
/// Both ends of a message must choose alike whatever each knows of it, so kernels and messages
/// carry all messages of a communicator, or none where another backend comes before them for any.
/// choose() takes the first candidate that fits the message and can carry it. The answer is the
/// same on every rank as long as the questions and the capabilities are.
#pragma once

#include "base/config/config.hpp"
#include "tune/table.hpp"

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

/// The backend that can always be asked: MPI.
inline constexpr const char* reference_backend = "mpi";

/// The built-in backend of SuCL's own plans, and the one that lends it memory.
inline constexpr const char* plan_backend_name = "plan";
inline constexpr const char* memory_backend_name = "ipc";

/// The built-in backend of sends and receives through shared memory.
inline constexpr const char* message_backend_name = "messages";

/// The built-in backend of SuCL's own kernels on devices.
inline constexpr const char* kernel_backend_name = "kernels";

/// The built-in backend of steps within each node and between nodes.
inline constexpr const char* hierarchical_backend_name = "levels";

/// What selection knows of a communicator.
struct selection_scope {
  std::string platform = "host";  ///< canonical name, mixed_platforms, or "host" without devices
  int ranks = 1;
  int nodes = 1;
  bool reads = false;   ///< the ranks may copy from each other's memory
  bool device = false;  ///< some rank has device memory that its host does not reach
};

/// What selection knows of an operation.
struct selection_query {
  kind what = kind::barrier;
  type element = type::bytes;
  op reduction = op::none;
  sucl_memory memory = SUCL_MEMORY_SYSTEM;
  std::uint64_t bytes = 0;  ///< of the message: count times the size of an element
  bool bytes_known = true;  ///< false where ranks may have different sizes: bytes is not looked at
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

/// One backend that may carry one kind of operation.
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
  std::vector<std::string> rule_origins;  ///< one a rule, as in "file sucl.toml:12:1"
  const tune::table* tuned = nullptr;     ///< must stay; null: none
  bool kernel_messages = false;           ///< the backend kernels is to carry messages too
  std::vector<std::vector<candidate>> all = std::vector<std::vector<candidate>>(SUCL_KIND_COUNT);
  std::vector<std::vector<candidate>> live = std::vector<std::vector<candidate>>(SUCL_KIND_COUNT);
};

/// Writes the candidates down. Cheap enough for every communicator; not for every operation.
/// `tuned` may be null.
selection_table compile(const base::config& c, const selection_scope& scope,
                        const tune::table* tuned = nullptr);

/// Whether the message of a query is one that a candidate is for.
inline bool fits(const candidate& c, const selection_query& q) noexcept {
  if ((c.memories >> q.memory & 1u) == 0) return false;
  if (c.form != tune::call_form::any && (c.form == tune::call_form::blocking) != q.blocking)
    return false;
  return q.bytes_known ? c.bytes.contains(q.bytes) : c.bytes.everything();
}

/// The candidate that carries the operation, or null if none can. `usable(backend)` says whether
/// the backend of this index is loaded and capable of it. Allocates nothing.
template <class Usable>
const candidate* choose(const selection_table& table, const selection_query& q,
                        const Usable& usable) {
  for (const candidate& c : table.live[static_cast<std::size_t>(q.what)])
    if (fits(c, q) && usable(c.backend)) return &c;
  return nullptr;
}

/// A candidate that was looked at, and what came of it.
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
  std::string backend;  ///< "" if nobody can carry it
  std::vector<consideration> considered;
};

/// choose() with reasons. `obstacle(backend)` says why the backend of this index cannot carry the
/// operation, as in "not loaded: no such file"; "" if it can.
explanation explain(const selection_table& table, const selection_query& q,
                    const std::function<std::string(int)>& obstacle);

/// An explanation for people, several lines.
std::string render(const explanation& e);

}  // namespace sucl::core
