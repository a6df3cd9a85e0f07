// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Sets of a machine's processors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sucl::core {

/// Processors by number, however many the machine has.
class processor_set {
 public:
  /// More than any kernel is built for.
  static constexpr std::size_t most = std::size_t{1} << 16;

  /// Those that this process may run on; none where the system does not say.
  static processor_set own();
  /// As "0-7,16", and back. What is no such text makes none, or those up to there.
  std::string text() const;
  static processor_set of(const std::string& text);

  /// Adds the processors `first` to `last`; those from `most` on are left out.
  void add(std::size_t first, std::size_t last);
  void add(const processor_set& others);
  bool has(std::size_t processor) const { return processor < m_has.size() && m_has[processor]; }
  std::size_t count() const;

 private:
  std::vector<bool> m_has;
};

}  // namespace sucl::core
