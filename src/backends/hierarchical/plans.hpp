// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Compiled plans of a communicator of several nodes on memory of devices: within each node kernels
/// execute them, in waves, and between nodes whatever executes messages of the whole communicator.
#pragma once

#include "backends/composed/composed.hpp"
#include "backends/hierarchical/steps.hpp"
#include "core/communicator/communicator.hpp"
#include "core/selection/built_in.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sucl::core {

/// The plans of a rank. One thread at a time, but for draft() and allocate(), of which there is one
/// at a time.
class hierarchical_plans {
 public:
  /// `node` has the ranks of this node, `whole` all; `oob` is for this object alone.
  hierarchical_plans(const hierarchical_map& where, std::shared_ptr<communicator> node,
                     std::shared_ptr<communicator> whole, const sucl_oob& oob)
      : m_where(where), m_node(std::move(node)), m_whole(std::move(whole)), m_oob(oob) {}

  /// Why a rank's communicators cannot execute plans; empty: they can.
  static std::string obstacle(communicator& node, communicator& whole);

  /// As those of built_in_comm.
  std::unique_ptr<plan_draft> draft(const compile_request& request, base::determinism level) const;
  void allocate(plan_draft& draft);
  void add(std::uint64_t number, std::unique_ptr<plan_draft> draft);
  void remove(std::uint64_t number);

  /// What a rank does when it runs a plan, and its scratch. Throws errc::shut_down where the plan
  /// is not known.
  const step_list& steps(std::uint64_t number) const { return known(number).steps; }
  std::byte* scratch(std::uint64_t number) const { return known(number).scratch; }

 private:
  struct own_draft;
  struct stored {
    step_list steps;
    std::byte* scratch = nullptr;
    std::uint64_t of_node = 0;  ///< its number there
  };
  const stored& known(std::uint64_t number) const;
  std::vector<int> members() const;
  step_list steps_of(const plan::wave_division& division, const plan::node_part& part) const;

  const hierarchical_map& m_where;
  std::shared_ptr<communicator> m_node, m_whole;
  sucl_oob m_oob;
  std::map<std::uint64_t, stored> m_plans;
};

}  // namespace sucl::core
