// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Finds a thread that waits in a blocking call of one rank for another rank of its process, for
/// which nothing but the thread itself would call.
#pragma once

#include "core/failure/peer_processes.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

class communicator;
class process_context;
struct record_entry;

/// A rank of this process as the others of it see it. Its functions are called by any thread while
/// its entry lives, and take no references to it.
struct local_rank {
  process_context* context = nullptr;
  /// Calls it for each communicator of the rank.
  std::function<void(const std::function<void(const std::shared_ptr<communicator>&)>&)> each;
  /// The threads of SuCL that work for it, and call into SYCL; 0: none.
  std::function<std::vector<std::int32_t>()> own_threads;
};

/// A rank is known to those of its process from the constructor to the destructor.
class local_rank_entry {
 public:
  explicit local_rank_entry(local_rank r);
  ~local_rank_entry();
  local_rank_entry(const local_rank_entry&) = delete;
  local_rank_entry& operator=(const local_rank_entry&) = delete;

 private:
  const process_context* m_of;
};

/// The search of one rank, by its watch thread.
///
/// Another thread may always make the call that is missing, unless there is none that could: twice
/// in a row all threads of the process but SuCL's own and those in such calls sleep until another
/// thread of the process wakes them, and have not run between; nothing that they may wait for is
/// in flight, or over without their knowing; and no signal is handled. Then the call is an error.
/// Where that is not so, as with a thread that sleeps or reads, the search warns; with one that
/// computes much later, as that has more to do before it calls.
class self_wait_search {
 public:
  using clock = std::chrono::steady_clock;

  explicit self_wait_search(process_context& owner) : m_owner(owner) {}

  /// A call that nothing ends any more.
  struct finding {
    std::shared_ptr<communicator> in;
    std::vector<std::shared_ptr<communicator>> siblings;  ///< of other ranks of the process
    diagnosis why;
  };
  /// To be called once in a while with the entries in whose calls the rank has waited for long.
  /// `quiet`: the process has done next to nothing for a while.
  std::vector<finding> poll(const std::vector<std::size_t>& entries, clock::time_point now,
                            bool quiet);

 private:
  // Calls by their entries, serial numbers and repetitions, and threads by their traces.
  using call_key = std::pair<const record_entry*, std::pair<std::uint64_t, std::uint32_t>>;
  struct stillness {
    std::map<call_key, std::int32_t> callers;
    std::map<std::int32_t, std::string> traces;
    bool operator==(const stillness&) const = default;
  };
  std::optional<stillness> look() const;
  bool may_warn(const call_key& call, clock::time_point now, bool quiet);

  process_context& m_owner;
  std::optional<stillness> m_last;
  std::map<call_key, bool> m_reported;           ///< calls of this rank; whether as an error
  std::map<call_key, clock::time_point> m_seen;  ///< since when they have waited for long
};

}  // namespace sucl::core
