// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A communicator of the members of another one that live.
#pragma once

#include "core/context/communicator_context.hpp"

#include <sucl/error.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

class communicator;

/// Members agree on which have failed, make a communicator of the others, and agree on whether each
/// of them has it; again if more have failed meanwhile. So all that return have the same one. One
/// thread at a time.
class shrinking {
 public:
  /// `c` is the communicator that is given up; it must outlive this object.
  explicit shrinking(communicator_context& c) : m_context(c) {}

  /// Throws errc::unsupported where the control plane does not outlive its processes.
  void check() const;
  /// Blocks. After errc::timeout the next call goes on where this one was.
  std::shared_ptr<communicator> run(const device_services& device);

 private:
  bool agree(bool ready);
  void make(const device_services& device);
  void drop_made();
  [[noreturn]] void throw_failure() const;
  std::string label() const { return "shrink() of " + m_context.label; }

  communicator_context& m_context;
  std::mutex m_mutex;
  std::uint64_t m_agreements = 0;      ///< so far
  bool m_chosen = false;               ///< the remaining members have been agreed on
  bool m_attempted = false;            ///< to make it of them
  std::vector<std::uint8_t> m_failed;  ///< one for each member, by the last agreement
  std::shared_ptr<communicator> m_made;
  std::optional<error_info> m_failure;  ///< why it is not made
};

}  // namespace sucl::core
