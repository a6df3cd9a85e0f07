// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Messages of plans, over the transports between nodes.
#pragma once

#include "backends/shm_common/placement.hpp"

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// The messages of a channel, of which no fence has finished those from `head` on.
struct posted_messages {
  struct message {
    sucl_request* request;
    std::uint32_t transport;
    bool foreign = false;  ///< what came is of another call
  };
  std::vector<message> list;
  std::size_t head = 0;
  void clear() {
    list.clear();
    head = 0;
  }
};

/// Posts and finishes messages of plans. Owns the transports, which end with it. One thread at a
/// time.
///
/// Plans of one call agree on the lengths of their messages. Where what ranks have called is
/// compared above, a message of another length is never delivered: ranks soon get the error.
class plan_messages {
 public:
  /// `where` must outlive this object.
  explicit plan_messages(const placement& where) : m_where(where) {}
  ~plan_messages();
  plan_messages(const plan_messages&) = delete;
  plan_messages& operator=(const plan_messages&) = delete;

  /// Throws what the transport reports.
  void post(const sucl_operation& message, std::uint32_t transport, posted_messages& to) const;
  /// Finishes the oldest messages until `keep` are left; false if that takes longer than `spins`
  /// polls of a flag. Throws what a transport reports.
  bool finish(posted_messages& of, std::uint64_t keep, int spins) const;
  /// Gives up what is in flight. Afterwards there is only destruction.
  void abort() const;

 private:
  bool landed(posted_messages::message& m) const;
  bool is_foreign(sucl_status status) const {
    return status == SUCL_ERROR_INVALID_COUNT && m_where.compared;
  }
  const transport& by(std::uint32_t transport) const { return m_where.transports[transport]; }

  const placement& m_where;
};

}  // namespace sucl::core
