// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A layer that compares the arguments of collectives between ranks before they run.
#pragma once

#include "core/exchange/core_services.hpp"
#include "core/operation/argument_comparison.hpp"

#include <sucl/export.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace sucl::core {

/// Compares the collectives of one communicator, one after the other, before the backend of
/// each is chosen: ranks that disagree might choose differently. Never blocks. Not thread-safe.
class SUCL_CORE_API validator {
 public:
  /// Collective. A channel of its own is split off `oob`.
  validator(const sucl_oob& oob, int rank, int size, std::uint64_t id);
  ~validator();
  validator(const validator&) = delete;
  validator& operator=(const validator&) = delete;

  /// Begins with the next collective; the one before it is done. `wrong`, unless null, is what this
  /// rank alone knows to be wrong with its arguments: then nothing else of the operation is read.
  /// Otherwise its arrays must stay valid until the comparison is done.
  void start(const sucl_operation& operation, const error_info* wrong);
  /// Whether start() was called and the comparison is not known to be done.
  bool busy() const { return m_at != stage::idle; }
  /// Whether every rank's arguments have come and were compared. Then failure() has the answer.
  bool test();
  /// Why the operation must not run: the same on every rank, with the first argument that differs
  /// and which ranks passed what, or what is wrong and where. Nothing if it may run.
  const std::optional<error_info>& failure() const { return m_failure; }

  /// Gives up what is in flight, because a peer is lost or late. The layer will only be destroyed.
  void abort();

 private:
  enum class stage { idle, digests, counts };
  struct exchange;

  void begin(stage next, const void* mine, void* all, std::uint64_t bytes);
  void settle(std::optional<error_info> failure);
  void compare_digests();

  sucl_oob m_oob;
  int m_rank;
  int m_size;
  std::uint64_t m_id;
  std::uint64_t m_ordinal = 0;  ///< of the collectives, from 1
  stage m_at = stage::idle;
  sucl_operation m_operation{};
  std::unique_ptr<exchange> m_exchange;
  std::optional<error_info> m_failure;
};

}  // namespace sucl::core
