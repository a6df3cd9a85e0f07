// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether all ranks take part in what SuCL does where the program makes a persistent request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sucl::interposer {

/// What a rank says of the persistent requests that it has made on a communicator, in memory that
/// the ranks share; zeroed memory says that there was none.
///
/// A library may refuse a request on one rank alone. That rank has made no call, and may go on with
/// others, so ranks must not meet in a collective of the library's where the others have made
/// theirs: it would match the next one of the program. Each rank writes down the outcome of its own
/// calls instead, and the others read it.
class persistent_calls {
 public:
  /// The rank makes the next one; whether SuCL might execute it there.
  void add(bool fit);
  /// The library has refused one: the rank takes part in nothing more.
  void end() { m_ended.store(true, std::memory_order_release); }

  std::uint64_t made() const { return m_made.load(std::memory_order_acquire); }
  bool ended() const { return m_ended.load(std::memory_order_acquire); }
  /// Of call n, which is one of the last `kept`.
  bool was_fit(std::uint64_t n) const {
    return m_fit.load(std::memory_order_acquire) >> (n % kept) & 1;
  }

  static constexpr std::uint64_t kept = 64;

 private:
  std::atomic<std::uint64_t> m_made;
  std::atomic<std::uint64_t> m_fit;  ///< of the last `kept` calls
  std::atomic<bool> m_ended;
};

/// Those of all ranks of a communicator.
class persistent_agreement {
 public:
  persistent_agreement() = default;
  /// `shared`: of bytes(ranks), or null, if ranks share no memory.
  persistent_agreement(void* shared, int rank, int ranks)
      : m_calls(static_cast<persistent_calls*>(shared)), m_rank(rank), m_ranks(ranks) {}

  static std::size_t bytes(int ranks) {
    return sizeof(persistent_calls) * static_cast<std::size_t>(ranks);
  }

  /// The program has made its next request here, and the library has taken it. Waits for the same
  /// request of the others, and is true where SuCL might execute it on every rank: then every rank
  /// is here. False if a rank takes part in nothing more. `waiting` is called again and again.
  bool meet(bool fit, const std::function<void()>& waiting);
  /// The library has refused the request.
  void refuse() {
    if (m_calls) m_calls[m_rank].end();
  }

 private:
  bool wait_for(std::uint64_t made, const std::function<void()>& waiting) const;

  persistent_calls* m_calls = nullptr;
  int m_rank = 0, m_ranks = 0;
};

}  // namespace sucl::interposer
