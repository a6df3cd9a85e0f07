// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The backends of one communicator, and the choice among them.
#pragma once

#include "base/config.hpp"
#include "runtime/adapt_wire.hpp"
#include "runtime/channel.hpp"
#include "runtime/core_services.hpp"
#include "runtime/registry.hpp"
#include "runtime/selection.hpp"
#include "runtime/topology.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sucl::core {

/// One backend that every rank of the communicator has, with the layers above it.
struct carrier {
  std::string name;
  channel via;
  sucl_oob oob;                       ///< lent to the backend, freed after it
  std::unique_ptr<wire_table> wires;  ///< what it carries, and how the rest travels
};

/// The backends of a communicator. Made collectively, from the same configuration on every rank.
class carriers {
 public:
  carriers() = default;
  carriers(const carriers&) = delete;
  carriers& operator=(const carriers&) = delete;

  /// Creates each enabled backend that serves a platform of the communicator and can be used on
  /// all its ranks, wrapped in the configured layers. Collective.
  void create(const base::config& settings, registry& backends, const sucl_oob& oob,
              const topology& where, std::uint64_t id, const void* native_comm,
              void* native_device, void* native_context);

  /// The carrier for a record; errc::unsupported if there is none.
  const carrier& choose(const sucl_operation& record);

  std::string explain(kind k, std::uint64_t bytes, type t, op o);

  /// As in member::reach, for this rank.
  std::string reach() const;

  /// Gives up everything in flight.
  void abort();
  /// Destroys the channels. `collective_end` false: the control plane is gone already.
  void destroy();

 private:
  bool usable(int backend, const sucl_operation& record);

  std::vector<carrier> m_all;
  std::vector<int> m_by_index;  ///< of the configuration's backends: index into m_all, or -1
  std::vector<std::string> m_obstacles;  ///< why a backend of the configuration is not in m_all
  selection_table m_table;
  int m_size = 1;
};

}  // namespace sucl::core
