// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend of two levels: collectives of a communicator of several nodes, made of
/// collectives on two communicators of their own, of which each has its own selection.
#pragma once

#include "backends/hierarchical/steps.hpp"
#include "core/communicator/communicator.hpp"
#include "core/operation/backend_comm.hpp"
#include "core/staging/scratch_pool.hpp"

#include <sucl/export.hpp>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// Settings of [backends.levels].
struct level_settings {
  std::uint64_t leaders = 0;                ///< of each node; 0: all that there can be
  std::uint64_t single_leader = 64u << 10;  ///< bytes below which one leader carries all

  /// Throws errc::configuration.
  static level_settings read(const std::vector<std::pair<std::string, std::string>>& table);
  int leaders_of(const level_map& where) const;
};

/// What the device side of a communicator lends for steps on a queue.
struct level_queue {
  virtual ~level_queue() = default;
  /// What start() has to know of a communicator; it keeps that.
  virtual std::shared_ptr<void> attach(std::shared_ptr<communicator> part) = 0;
  /// Puts one step on the queue that `target` names, behind what is there. Where `step` and the
  /// operation have buffers, `record` has no addresses. Throws sucl::error.
  virtual void start(void* attached, const sucl_operation& record, const level_step& step,
                     void* target) = 0;
};

/// The communicators of a rank; null where it takes part in none.
struct level_parts {
  std::shared_ptr<communicator> node, across;
};

/// Where scratch comes from.
struct level_memory {
  scratch_pool* host = nullptr;
  kernel_device* device = nullptr;  ///< null: scratch is the host's whatever the operation has
};

struct level_request;

/// A communicator's two levels. One thread at a time, but for abort().
///
/// Operations carried from the host come one after the other, since they share scratch; those on
/// streams are ordered there, and have scratch of their own.
class level_comm {
 public:
  /// `queue` may be null: nothing comes with a stream.
  level_comm(level_map where, const level_settings& settings, level_parts parts,
             const level_memory& memory, level_queue* queue);
  ~level_comm();
  level_comm(const level_comm&) = delete;
  level_comm& operator=(const level_comm&) = delete;

  /// Starts an operation that test() is asked for; null: it is done.
  level_request* start(const sucl_operation& operation);
  bool test(level_request* request);
  /// Puts all steps of an operation on the queue that `target` names.
  void launch(const sucl_operation& operation, void* target);
  /// Whether whoever carries each of its steps now orders it on a stream.
  bool orders_on_stream(const sucl_operation& operation);
  bool has_queue() const { return m_queue != nullptr; }

  /// Throws what has failed on the two communicators and nobody was told of.
  void check();
  /// Gives up everything. Any thread.
  void abort();
  /// Who carries which step, in a line for people.
  std::string describe(const sucl_operation& operation);
  const level_map& where() const { return m_where; }

 private:
  struct area {
    std::vector<scratch> host;  ///< the last one is in use, the others may be
    std::vector<std::shared_ptr<void>> device;
    std::uint64_t host_bytes = 0, device_bytes = 0;
  };
  step_list steps(const sucl_operation& operation) const;
  communicator& part(const level_step& step) const;
  bool on_device(const sucl_operation& operation) const;
  std::byte* memory_for(const sucl_operation& operation, const step_list& what, area& of);
  sucl_operation record_of(const sucl_operation& operation, const step_list& what,
                           const level_step& step, std::byte* memory) const;
  void advance();
  bool advance(level_request& request);
  bool carry_on(level_request& request);
  void fail(level_request& request) const;
  bool conclude(level_request* request);

  level_map m_where;
  int m_leaders;
  std::uint64_t m_single_leader;
  level_parts m_parts;
  level_memory m_memory;
  level_queue* m_queue;
  std::shared_ptr<void> m_node_queue, m_across_queue;  ///< attached
  area m_from_host, m_on_streams;
  std::list<level_request> m_requests;  ///< in order
  std::atomic<bool> m_aborted{false};
};

/// What make_levels() works with.
struct level_makers {
  /// As carriers::environment::split.
  std::function<std::shared_ptr<communicator>(int colour, int key)> split;
  std::function<bool(bool mine)> agree;  ///< whether it is true on every rank; collective
  level_memory memory;
  level_queue* queue = nullptr;
  /// What has to be ordered on streams within every node of several ranks; null: nothing.
  const sucl_operation* must_order = nullptr;
};

/// Makes the two communicators and a channel above them, on every rank or on none: then its table
/// is null, and `*obstacle` says why. Collective.
channel make_levels(const std::vector<std::pair<std::string, std::string>>& settings,
                    const level_map& where, const level_makers& how, std::string* obstacle);

/// Its table; `state` of its channels is the level_comm.
SUCL_CORE_API const sucl_backend& level_backend() noexcept;
level_comm& levels_of(const channel& c);

}  // namespace sucl::core
