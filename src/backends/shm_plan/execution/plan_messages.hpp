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
class plan_messages {
 public:
  /// `transports` must stay. `rank` is for errors.
  plan_messages(const std::vector<transport>& transports, int rank)
      : m_transports(transports), m_rank(rank) {}
  ~plan_messages();
  plan_messages(const plan_messages&) = delete;
  plan_messages& operator=(const plan_messages&) = delete;

  /// Throws what the transport reports.
  void post(const sucl_operation& message, std::uint32_t transport, posted_messages& to) const;
  /// Finishes the oldest messages until `keep` are left; false if that takes longer than `spins`
  /// polls of a flag. Throws what a transport reports.
  bool finish(posted_messages& of, std::uint64_t keep, int spins) const;
  /// Gives up what is on its way. Afterwards there is only destruction.
  void abort() const;

 private:
  bool landed(const posted_messages::message& m) const;

  const std::vector<transport>& m_transports;
  const int m_rank;
};

}  // namespace sucl::core
