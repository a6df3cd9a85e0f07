// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The comparison of arguments between ranks, as the issue queue needs it.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/layers/validate.hpp"
#include "core/queue/op_request.hpp"

#include <cstdint>
#include <optional>

namespace sucl::core {

/// Holds back each collective until the arguments of all ranks have been compared, where the
/// configuration says so. Only with the mutex of the communicator's issue_queue.
class call_validation {
 public:
  /// From now on arguments are compared. Collective; before the first operation.
  void begin(const communicator_context& c) {
    m_validator.emplace(c.oob(), c.rank(), c.size(), c.id);
  }
  bool active() const { return m_validator.has_value(); }
  /// Whether it compares operations of this kind.
  bool covers(sucl_kind kind) const { return active() && kind >= 0 && kind <= SUCL_KIND_EXSCAN; }

  /// Whether it is known of the operation whose turn it is that it may run, or, by n.failure, that
  /// it must not. `arrived` becomes its number once this rank takes part in its comparison, even if
  /// others do not yet.
  bool may_run(op_request& n, int rank, std::uint64_t& arrived) {
    return !m_validator || n.record.kind > SUCL_KIND_EXSCAN || compare(n, rank, arrived);
  }

  /// Gives up what is in flight, because a peer is lost or late.
  void abort() {
    if (m_validator) m_validator->abort();
  }
  /// The communicator has ended.
  void end() { m_validator.reset(); }

 private:
  bool compare(op_request& n, int rank, std::uint64_t& arrived);

  std::optional<validator> m_validator;
};

}  // namespace sucl::core
