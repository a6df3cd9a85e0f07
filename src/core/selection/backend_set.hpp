// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The backends of one communicator, and the choice among them.
#pragma once

#include "backends/device_kernels/device.hpp"
#include "backends/shm_common/placement.hpp"
#include "base/config/config.hpp"
#include "base/config/determinism.hpp"
#include "core/control/core_services.hpp"
#include "core/control/registry.hpp"
#include "core/control/topology.hpp"
#include "core/operation/backend_comm.hpp"
#include "core/selection/call_board.hpp"
#include "core/selection/selection.hpp"
#include "core/staging/transfer_format.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// The file of the MPI module that is the control plane.
SUCL_CORE_API std::string control_plane_file(const base::config& settings,
                                             const std::string& flavour);

class communicator;
class hierarchical_comm;
class scratch_pool;
struct hierarchical_queue;

/// One backend that every rank of the communicator has, with the layers above it.
struct backend_instance {
  std::string name;
  backend_comm via;
  std::unique_ptr<transfer_formats> formats;  ///< what it carries, and how the rest travels
  bool independent_progress = false;  ///< it goes on while a caller is inside another backend
  bool launches = false;  ///< it launches kernels on the queue that post() is told of as `stream`
  hierarchical_comm* levels = nullptr;  ///< of the built-in backend of two levels
};

/// The backends of a communicator. Made collectively, from the same configuration on every rank.
class backend_set {
 public:
  backend_set() = default;
  backend_set(const backend_set&) = delete;
  backend_set& operator=(const backend_set&) = delete;

  /// What a communicator gives to its backends besides its topology.
  struct environment {
    std::uint64_t id = 0;
    int world_rank = 0;
    /// Pointer to the communicator of the control plane's library; collective, null without one.
    std::function<const void*()> native_comm;
    void* native_device = nullptr;
    void* native_context = nullptr;
    kernel_device* kernels = nullptr;      ///< null: the device has no kernels
    const tune::table* tuned = nullptr;    ///< must stay; null: none
    hierarchical_queue* levels = nullptr;  ///< null: the device has no native streams
    scratch_pool* scratch = nullptr;       ///< of the host; must outlive the backends
    /// Makes a communicator of the ranks that give the same colour, in the order of their keys;
    /// null for a negative one. Collective.
    std::function<std::shared_ptr<communicator>(int colour, int key)> split;
  };

  /// Creates each enabled backend that serves the communicator's platform and can be used on all
  /// its ranks, under the configured layers. Collective; throws on every rank if there is none.
  void create(const base::config& settings, registry& backends, const sucl_oob& oob,
              const topology& where, const environment& around);

  /// The backend for a record; errc::unsupported if there is none. `row`, unless null, is set to
  /// the row of the tuning table that says so, or null.
  const backend_instance& choose(const sucl_operation& record, bool blocking,
                                 const tune::table_row** row = nullptr);

  /// Goes by another tuning table, which must stay; null: by none. Nothing is in flight.
  void use_table(const base::config& settings, const tune::table* tuned);

  /// Of a record that may lack its arrays, whose message has so many bytes.
  std::string explain(const sucl_operation& record, std::uint64_t bytes);

  /// Notes for the trace layer that a collective was issued.
  void note_issue(std::uint64_t sequence) const noexcept;

  /// As in member::reach, for this rank.
  std::string reach() const;

  /// The built-in backend of plans without layers, and the one that lends it memory; null tables
  /// where it is not used.
  const backend_comm& plans() const { return m_plans; }
  const backend_comm& memory_provider() const { return m_memory_provider; }
  /// The built-in backend of messages without layers; a null table where it is not used.
  const backend_comm& messages() const { return m_messages; }
  /// The built-in backend of kernels without layers; null where it is not used.
  const backend_comm& kernels() const { return m_kernels; }
  /// Why there are no plans.
  const std::string& why_no_plans() const { return m_no_plans; }

  /// Whether ranks were found to have called different operations; then nothing may go on.
  bool mismatched() const {
    return (m_plan_board && m_plan_board->alarmed()) ||
           (m_kernel_board && m_kernel_board->alarmed());
  }
  /// What they have called.
  error_info mismatch() const;
  /// Has all kernels end that may wait for ranks that have called something else.
  void abort_kernels();
  /// Compares what ranks have had kernels do, which do not find out by themselves. No thread is in
  /// a backend.
  void compare_calls();
  bool compares_calls() const { return m_kernel_board; }

  /// Throws what work on a device has found wrong, or what failed in the steps of earlier
  /// operations, if nobody was told.
  void check() const;

  /// Gives up everything in flight.
  void abort();
  /// Destroys the channels, and what was lent to them, unless `keep`: after abort().
  void destroy(bool keep);

 private:
  static sucl_comm_info info_of(const topology& where, const environment& around, sucl_oob* oob);
  static backend_source source_of(const base::config& settings, const base::backend_entry& entry,
                                  const sucl_bootstrap* control);
  bool agree(const sucl_oob& oob, bool mine) const;
  /// What ranks have said of their parts of a backend.
  struct verdict {
    bool all = true;                      ///< every rank has its part
    std::optional<error_info> no_memory;  ///< some rank has no memory for it
  };
  verdict agree_on_part(const sucl_oob& oob, const error_info& problem) const;
  std::string try_create(const backend_source& source, const base::config& settings,
                         registry& backends, const sucl_oob& oob, const topology& where,
                         const environment& around);
  std::string make_transports(const base::config& settings, registry& backends, const sucl_oob& oob,
                              const topology& where, const environment& around,
                              std::vector<transport>& made);
  bool create_plans(const base::config& settings, registry& backends, const sucl_oob& oob,
                    const topology& where, const environment& around);
  void create_messages(const base::config& settings, registry& backends, const sucl_oob& oob,
                       const topology& where, const environment& around);
  void create_kernels(const base::config& settings, const sucl_oob& oob, const topology& where,
                      const environment& around);
  void create_levels(const base::config& settings, const sucl_oob& oob, const topology& where,
                     const environment& around);
  std::string no_shared_memory(const base::config& settings) const;
  std::string no_host_memory(const base::config& settings, const topology& where) const;
  bool agree_on(backend_instance& made, const sucl_oob& oob, std::string& obstacle,
                errc problem = errc::unavailable) const;
  void add_built_in(backend_instance made, std::size_t i, const base::config& settings,
                    const topology& where, const environment& around);
  std::string shared_device(const base::config& settings, const sucl_oob& oob,
                            kernel_device* device) const;
  void add_layers(backend_instance& made, const base::config& settings, const topology& where,
                  const environment& around);
  std::string obstacles(const base::config& settings) const;
  bool usable(int backend, const sucl_operation& record);
  bool folds_in_order(const sucl_operation& record) const;
  std::string explain_bits(const sucl_operation& record, const std::string& backend) const;

  std::vector<backend_instance> m_all;
  std::vector<std::unique_ptr<sucl_oob>> m_oobs;  ///< lent to backends and layers
  std::vector<int> m_by_index;  ///< of the configuration's backends: index into m_all, or -1
  std::vector<std::string> m_obstacles;  ///< why a backend of the configuration is not in m_all
  backend_comm m_plans, m_memory_provider, m_kernels, m_messages;
  const call_board *m_plan_board = nullptr, *m_kernel_board = nullptr;
  hierarchical_comm* m_hierarchical = nullptr;
  std::string m_no_plans = "the backend plan is not enabled";
  selection_table m_table;
  int m_size = 1;
  base::determinism m_level = base::determinism::ranks;
  bool m_strict = false;
  std::string m_platform;  ///< of this rank's device
};

}  // namespace sucl::core
