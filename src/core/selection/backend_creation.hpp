// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the backends of a communicator are made with, and how its ranks agree on each.
#pragma once

#include "core/control/registry.hpp"
#include "core/exchange/topology.hpp"
#include "core/selection/built_in.hpp"
#include "core/staging/transfer_format.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

class communicator;
class scratch_pool;
struct hierarchical_queue;
struct kernel_device;

/// One backend that every rank of the communicator has, with the layers above it.
struct backend_instance {
  std::string name;
  backend_comm via;
  backend_traits traits;
  std::unique_ptr<built_in_comm> own;         ///< of a built-in one: itself, without the layers
  std::unique_ptr<transfer_formats> formats;  ///< what it supports, and how it does the rest
  bool layered = false;                       ///< `via` is a layer above `own`
};

/// What a communicator gives to its backends besides its topology.
struct backend_environment {
  std::uint64_t id = 0;
  int world_rank = 0;
  /// Pointer to the communicator of the control plane's library; collective, null without one.
  std::function<const void*()> native_comm;
  void* native_device = nullptr;
  void* native_context = nullptr;
  kernel_device* kernels = nullptr;            ///< null: the device has no kernels
  const tune::table* tuned = nullptr;          ///< must outlive the backends; null: none
  hierarchical_queue* hierarchical = nullptr;  ///< null: the device has no native streams
  scratch_pool* scratch = nullptr;             ///< of the host; must outlive the backends
  /// What ranks have called is compared above the backends, between the nodes too.
  bool compared = false;
  /// Makes a communicator of the ranks that give the same colour, in the order of their keys; null
  /// for a negative one. One that is flat has no levels. Collective.
  std::function<std::shared_ptr<communicator>(int colour, int key, bool flat)> split;
  bool flat = false;  ///< this one is
};

/// Whether this rank may copy from the memory of every other one.
bool can_read(const backend_comm& memory, int size);

/// The making of one communicator's backends. Every rank makes the same, in the same order.
class backend_creation {
 public:
  /// What ranks have said of their parts of a backend.
  struct agreement {
    bool all = true;                          ///< every rank has its part
    std::optional<error_info> no_memory;      ///< some rank has no memory for it
    std::optional<error_info> wrong_setting;  ///< of the backend, on some rank
  };

  /// All must outlive it. Out-of-band channels that it makes go to `oobs`.
  backend_creation(const base::config& settings, registry& backends, const sucl_oob& oob,
                   const topology& where, const backend_environment& around,
                   std::vector<std::unique_ptr<sucl_oob>>& oobs);

  const base::config& settings;
  registry& backends;
  const sucl_oob& oob;
  const topology& where;
  const backend_environment& around;
  const selection_table* table = nullptr;               ///< the candidates
  const std::vector<backend_instance>* made = nullptr;  ///< so far
  backend_comm memory_provider;                         ///< null table: none
  std::string no_memory_provider;                       ///< why

  int rank() const { return where.rank; }
  int size() const { return static_cast<int>(where.members.size()); }
  bool strict() const { return m_strict; }
  /// The platform of the ranks, if all have the same.
  const std::string& platform() const { return m_platform; }

  /// The backend that executes what no other does: that of MPI, or without it that of the network.
  base::backend_role last_resort() const;
  /// Why the backend of the network is not needed; empty: it is.
  std::string no_need_of_network() const;

  /// The settings of a backend; null: it is not in the configuration, or not enabled.
  const base::backend_entry* entry_of(const char* name) const;
  const base::backend_entry* entry_of(base::backend_role role) const;
  /// Why no operation goes to a backend; empty: some may, by a rule, its platforms or a default.
  std::string not_for_platform(const char* name) const;
  bool some_rule_names(const char* name) const;

  /// True if every rank says so. Collective.
  bool agree(bool mine) const;
  /// Whether every rank has its part, or none has memory for it. errc::success: this rank has.
  agreement agree_on_part(const error_info& mine) const;
  /// What every rank gives, in order of rank. Collective.
  template <class T>
  std::vector<T> gather(const T& mine) const {
    std::vector<T> all(static_cast<std::size_t>(size()));
    sucl_oob own = oob;
    if (const auto status = services().oob_allgather(&own, &mine, all.data(), sizeof mine))
      throw_last(status);
    return all;
  }
  /// An out-of-band channel for one user, of which the communicator disposes. Collective.
  sucl_oob& split_oob();
  void drop_last_oob();
  sucl_comm_info info(sucl_oob* own) const;
  backend_source source_of(const base::backend_entry& entry) const;

  /// What executes messages between nodes. Returns why there is nothing; empty also where there is
  /// one node. Collective.
  std::string make_transports(std::vector<transport>& made);
  /// Whether ranks may copy from each other's memory, all of them. Collective when it is first
  /// asked.
  bool reads();
  bool reads_are_known() const { return m_reads.has_value(); }
  /// Whether some rank has device memory that goes through memory of the host.
  bool stages() const;
  /// Why no memory is shared by the ranks of a node; empty: it is.
  std::string no_shared_memory() const;
  /// The same for backends that execute what the host reads. Between islands of a node all goes
  /// through such memory anyway.
  std::string no_host_memory() const;

 private:
  std::vector<std::unique_ptr<sucl_oob>>& m_oobs;
  bool m_strict;
  std::string m_platform;
  std::optional<bool> m_reads;
};

}  // namespace sucl::core
