// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend of levels: collectives of a communicator of several nodes, or islands, made
/// of collectives on communicators of their own, of which each has its own selection.
#pragma once

#include "backends/hierarchical/plans.hpp"
#include "backends/hierarchical/steps.hpp"
#include "core/communicator/communicator.hpp"
#include "core/operation/backend_comm.hpp"
#include "core/staging/scratch_pool.hpp"

#include <sucl/export.hpp>

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// The name of the backend in the configuration.
inline constexpr const char* hierarchical_backend_name = "hierarchical";

/// Settings of [backends.hierarchical].
struct hierarchical_settings {
  std::uint64_t leaders = 0;                ///< of each node; 0: all that there can be
  std::uint64_t single_leader = 64u << 10;  ///< bytes below which one leader sends all
  std::uint64_t piece = 4u << 20;           ///< bytes that go through the levels together; 0: all

  /// Throws errc::configuration.
  static hierarchical_settings read(const std::vector<std::pair<std::string, std::string>>& table);
  int leaders_of(const hierarchical_map& where) const;
};

/// Memory of the operation that a step uses.
struct step_operand {
  std::size_t part = 0;  ///< of a group
  bool sends = false;
  step_memory::area where = step_memory::area::none;
  std::uint64_t start = 0;  ///< bytes
};

/// What the device side of a communicator provides for steps on a queue.
struct hierarchical_queue {
  virtual ~hierarchical_queue() = default;
  /// What start() has to know of a communicator; it keeps that.
  virtual std::shared_ptr<void> attach(std::shared_ptr<communicator> part) = 0;
  /// Puts one step on the queue that `target` names, behind what is there. Where the operation has
  /// buffers, `record` has no addresses, and `operands` says what it uses of them. Throws
  /// sucl::error.
  virtual void start(void* attached, const sucl_operation& record,
                     const std::vector<step_operand>& operands, void* target) = 0;
};

/// The communicators of a rank; null where it takes part in none.
struct hierarchical_parts {
  std::shared_ptr<communicator> node, across, whole;
};

/// Where scratch comes from.
struct hierarchical_memory {
  scratch_pool* host = nullptr;
  kernel_device* device = nullptr;  ///< null: scratch is the host's whatever the operation has
};

struct hierarchical_request;

/// A communicator's levels. One thread at a time, but for abort().
///
/// Operations executed from the host come one after the other, since they share scratch; those on
/// streams are ordered there, and have scratch of their own.
class hierarchical_comm {
 public:
  /// `queue` may be null: nothing comes with a stream.
  hierarchical_comm(hierarchical_map where, const hierarchical_settings& settings,
                    hierarchical_parts parts, const hierarchical_memory& memory,
                    hierarchical_queue* queue);
  ~hierarchical_comm();
  hierarchical_comm(const hierarchical_comm&) = delete;
  hierarchical_comm& operator=(const hierarchical_comm&) = delete;

  /// Starts an operation, which test() polls; null: it is done.
  hierarchical_request* start(const sucl_operation& operation);
  bool test(hierarchical_request* request);
  /// Puts all steps of an operation on the queue that `target` names.
  void launch(const sucl_operation& operation, void* target);
  /// Whether the backend of each of its steps orders it on a stream now.
  bool orders_on_stream(const sucl_operation& operation);
  bool has_queue() const { return m_queue != nullptr; }
  /// Whether it reaches memory of a kind in plans.
  bool runs_plans_on(sucl_memory memory) const;
  /// It runs compiled plans; `oob` is for them alone.
  void add_plans(const sucl_oob& oob);
  /// Null: it does not.
  hierarchical_plans* plans() { return m_plans ? &*m_plans : nullptr; }

  /// Throws what has failed on the two communicators and was not reported yet.
  void check();
  /// Gives up everything. Any thread.
  void abort();
  /// Ranks have called different operations: no step waits for them any longer. Any thread.
  void report_mismatch(const std::string& what);
  /// Which backend executes which step, as text.
  std::string describe(const sucl_operation& operation);
  const hierarchical_map& where() const { return m_where; }

 private:
  struct area {
    std::vector<scratch> host;  ///< the last one is in use, the others may be
    std::vector<std::shared_ptr<void>> device;
    std::uint64_t host_bytes = 0, device_bytes = 0;
  };
  step_list steps(const sucl_operation& operation) const;
  std::string words_of(level on) const;
  communicator& part(const hierarchical_step& step) const;
  bool on_device(const sucl_operation& operation) const;
  sucl_memory scratch_memory_of(const sucl_operation& operation) const;
  std::byte* memory_for(const sucl_operation& operation, const step_list& what, area& of);
  // What is issued of a step.
  struct step_record {
    sucl_operation whole{};
    std::vector<sucl_operation> parts;  // of a group
  };
  step_record record_of(const sucl_operation& operation, const step_list& what,
                        const hierarchical_step& step, std::byte* memory) const;
  step_record group_of(const sucl_operation& operation, const step_list& what,
                       const hierarchical_step& step, std::byte* memory) const;
  void advance();
  bool advance(hierarchical_request& request);
  bool advance_wave(hierarchical_request& request);
  void fail(hierarchical_request& request) const;
  bool conclude(hierarchical_request* request);

  hierarchical_map m_where;
  int m_leaders;
  std::uint64_t m_single_leader, m_piece;
  std::array<std::shared_ptr<communicator>, level_count> m_parts;  ///< by level
  hierarchical_memory m_memory;
  hierarchical_queue* m_queue;
  std::array<std::shared_ptr<void>, level_count> m_queues;  ///< attached, by level
  std::optional<hierarchical_plans> m_plans;
  area m_from_host, m_on_streams;
  std::list<hierarchical_request> m_requests;  ///< in order
  std::atomic<bool> m_aborted{false};
  std::atomic<bool> m_mismatch_reported{false};  ///< that ranks have called different operations
};

/// The arguments of make_hierarchical().
struct hierarchical_makers {
  /// As backend_environment::split.
  std::function<std::shared_ptr<communicator>(int colour, int key, bool flat)> split;
  std::function<bool(bool mine)> agree;  ///< whether it is true on every rank; collective
  hierarchical_memory memory;
  hierarchical_queue* queue = nullptr;
  /// What has to be ordered on streams within every node of several ranks; null: nothing.
  const sucl_operation* must_order = nullptr;
  bool collectives = true;          ///< it is for these
  const sucl_oob* plans = nullptr;  ///< for compiled plans too, by this channel; null: it is not
};

/// Makes the communicators of the levels and an instance above them, on every rank or on none: then
/// its table is null, and `*obstacle` says why. Collective.
backend_comm make_hierarchical(const std::vector<std::pair<std::string, std::string>>& settings,
                               const hierarchical_map& where, const hierarchical_makers& how,
                               std::string* obstacle);

/// The table of the backend `hierarchical`; `state` of its instances is the hierarchical_comm.
SUCL_CORE_API const sucl_backend& hierarchical_backend() noexcept;
hierarchical_comm& hierarchical_of(const backend_comm& c);

}  // namespace sucl::core
