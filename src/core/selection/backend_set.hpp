// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The backends of one communicator, and the choice among them.
#pragma once

#include "base/config/config.hpp"
#include "base/config/determinism.hpp"
#include "core/selection/backend_creation.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// The backends of a communicator. Made collectively, from the same configuration on every rank.
class backend_set {
 public:
  backend_set() = default;
  backend_set(const backend_set&) = delete;
  backend_set& operator=(const backend_set&) = delete;

  /// Creates each enabled backend that serves the communicator's platform and can be used on all
  /// its ranks, under the configured layers. Collective; throws on every rank if there is none.
  void create(const base::config& settings, registry& backends, const built_in_list& built_ins,
              const sucl_oob& oob, const topology& where, const backend_environment& around);

  /// The backend for a record; errc::unsupported if there is none. `row`, unless null, is set to
  /// the row of the tuning table that says so, or null.
  const backend_instance& choose(const sucl_operation& record, bool blocking,
                                 const tune::table_row** row = nullptr);

  /// Uses another tuning table, which must outlive this object; null: none. Nothing is in flight.
  void use_table(const base::config& settings, const tune::table* tuned);

  /// Explains the choice for a record, which may lack its arrays, of a message of so many bytes.
  std::string explain(const sucl_operation& record, std::uint64_t bytes);

  /// Notes for the trace layer that a collective was issued.
  void note_issue(std::uint64_t sequence) const noexcept;

  /// As member::native_memory, for this rank.
  std::string native_memory() const;

  /// All of them, in the order in which they were made.
  const std::vector<backend_instance>& all() const { return m_all; }
  /// The backends that run plans of programs, the best one first; without any,
  /// custom_plan_obstacle() says why.
  const std::vector<built_in_comm*>& custom_plans() const { return m_custom; }
  const std::string& custom_plan_obstacle() const { return m_no_custom; }
  /// Operations of this plan go to that backend from now on, which gets it.
  void add_plan(std::uint64_t number, built_in_comm& runs, std::unique_ptr<plan_draft> plan);
  void remove_plan(std::uint64_t number);
  /// The backend that gives memory of a device; null: none.
  built_in_comm* device_memory() const { return m_device_memory; }
  /// The backend whose memory the ranks of a node share, where one of the others has its operations
  /// there; its table is null where there is none.
  backend_comm shared_memory() const;

  /// Whether ranks were found to have called different operations, and this rank has done what they
  /// had called before: then nothing may go on.
  bool mismatched() const {
    if (m_mismatch_reported.load(std::memory_order_acquire)) return true;
    for (const compared& c : m_compared)
      if (c.board->alarmed() && c.by->meets_alarm()) return true;
    return false;
  }
  /// What they have called.
  error_info mismatch() const;
  /// How many of the calls that ranks compare are over on this rank, and whether one of the first
  /// so many is known to differ from another rank's.
  std::uint64_t calls_over() const {
    std::uint64_t most = 0;
    for (const compared& c : m_compared) most = std::max(most, c.by->calls_over());
    return most;
  }
  bool differs_within(std::uint64_t calls) const {
    return std::any_of(m_compared.begin(), m_compared.end(),
                       [&](const compared& c) { return c.board->ends(calls); });
  }
  /// Ranks on other nodes have found that. The first time counts.
  void report_mismatch(const std::string& what);
  /// Makes kernels end that may wait for ranks that have called something else.
  void end_kernels();
  /// Compares what ranks have had kernels do, which do not find out by themselves. No thread is in
  /// a backend.
  void compare_calls();
  bool compares_calls() const { return m_compares; }
  /// Whether the other ranks have followed what this one has begun.
  bool followed() const;

  /// Throws what work on a device has found wrong, or what failed in the steps of earlier
  /// operations, if they were not reported.
  void check() const {
    for (built_in_comm* c : m_checked) c->check();
  }

  /// Gives up everything in flight.
  void abort();
  /// Destroys the backend communicators, and what was given to them, unless `keep`: after abort().
  void destroy(bool keep);

 private:
  /// `why`, unless null, is what this rank says of it, if it does.
  std::string try_create(backend_creation& c, const base::backend_entry& entry,
                         error_info* why = nullptr);
  /// Which backends of the configuration have no messages here.
  std::vector<bool> without_messages() const;
  error_info no_network(const backend_creation& c) const;
  void create_network(backend_creation& c);
  void create_built_in(backend_creation& c, const built_in_backend& b);
  void add_built_in(backend_creation& c, backend_instance made, std::size_t index);
  void add_layers(backend_creation& c, backend_instance& made);
  const backend_instance* named(const std::string& name) const;
  std::string obstacles(const base::config& settings) const;
  [[noreturn]] void refuse_all(const backend_creation& c) const;
  bool usable(int backend, const sucl_operation& record);
  /// `bytes`: the size of the message, where that is not the record's.
  explanation reasons_for(const sucl_operation& record, bool blocking,
                          std::optional<std::uint64_t> bytes);
  bool folds_in_order(const sucl_operation& record) const;
  std::string explain_bits(const sucl_operation& record, const std::string& backend) const;

  std::vector<backend_instance> m_all;
  std::vector<std::unique_ptr<sucl_oob>> m_oobs;  ///< given to backends and layers
  std::vector<int> m_by_index;  ///< of the configuration's backends: index into m_all, or -1
  error_info m_no_network;      ///< what this rank says of it
  std::string m_no_mpi;         ///< why MPI is no last resort; "": it is, or the process is alone
  std::vector<std::string> m_obstacles;  ///< why a backend of the configuration is not in m_all
  backend_comm m_memory_provider;
  std::vector<built_in_comm*> m_custom;
  std::map<std::uint64_t, built_in_comm*> m_plans;  ///< runs the compiled plan of this number
  built_in_comm* m_device_memory = nullptr;
  std::string m_no_custom = "no backend that runs plans is enabled";
  struct compared {
    const call_board* board;
    const built_in_comm* by;
  };
  std::vector<compared> m_compared;
  std::atomic<bool> m_mismatch_reported{false};
  std::string m_mismatch;  ///< what was reported, once it was
  std::vector<built_in_comm*> m_checked;
  bool m_compares = false;
  int m_fallback = -1;  ///< index into m_all of the one for a process that is alone, or -1
  selection_table m_table;
  int m_size = 1;
  base::determinism m_level = base::determinism::ranks;
  bool m_strict = false;
  std::string m_platform;  ///< of the ranks' devices, if it is the same for all
};

}  // namespace sucl::core
