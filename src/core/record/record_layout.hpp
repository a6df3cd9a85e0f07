// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The flight record as it lies in memory and in files: plain data of this machine's byte order.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sucl::core {

/// How far an operation has come on this rank.
enum class record_state : std::int32_t {
  nothing = 0,   ///< the entry has not been used
  issued = 1,    ///< called; what it depends on may not be done
  posted = 2,    ///< begun by its backend
  enqueued = 3,  ///< on a native stream: the host is not notified when it is done
  done = 4,
  failed = 5
};

/// Whether it is not over yet.
constexpr bool is_open(record_state s) {
  return s == record_state::issued || s == record_state::posted;
}

/// The number of a message whose call waits for it.
inline constexpr std::uint64_t blocking_message = 1;

/// An operation, or the same blocking one called several times one after another, in one cache
/// line. A reader works out what follows from these fields. Fields that writers of the same memory
/// read are atomic; the others are written before the state, and are final once the operation is
/// over.
struct alignas(64) record_entry {
  std::atomic<std::uint64_t> serial{0};  ///< grows with the calls of the rank; 0: being written
  /// Of the first collective among its communicator's calls, or replays; of a message
  /// blocking_message or 0.
  std::uint64_t number = 0;
  std::uint64_t count = 0;  ///< of a group of messages: how many; of a compiled plan: which
  std::uint32_t element_size = 0;
  std::atomic<std::uint32_t> repeats{0};  ///< how often the same has followed
  std::int32_t kind = 0, type = 0, op = 0;
  std::uint32_t communicator = 0;  ///< the lower half of its number
  std::int32_t root = 0;
  std::int32_t source = 0;  ///< of a collective with arrays: 32 bits of the hash of its signature
  std::int32_t tag = 0;
  std::atomic<record_state> state{record_state::nothing};
};

/// A communicator that the rank belongs to, or has belonged to.
struct record_member {
  std::uint64_t communicator = 0;
  std::int32_t rank = 0, size = 0;
  std::int32_t ended = 0, reserved = 0;
};

/// What stands before the entries.
struct alignas(64) record_header {
  static constexpr std::uint64_t magic_of_this_version = 0x016365726c637573;  // "suclrec", 1

  std::uint64_t magic = magic_of_this_version;
  std::uint64_t job = 0;  ///< the same on all ranks
  std::int32_t rank = 0;  ///< in the job
  std::int32_t size = 0;  ///< of the job
  std::int64_t process = 0;
  std::int32_t signal = 0;  ///< that has ended the process, or 0
  std::int32_t reserved = 0;
  std::atomic<std::uint64_t> next{0};  ///< slots that were given out
  std::array<char, 64> host{};
  std::array<char, 768> failure{};  ///< the first one
  std::array<record_member, 128> members{};
};

/// Entries in a record; one writer at a time has `chunk` of them in a row.
struct flight_record {
  static constexpr std::uint64_t slots = 1024;
  static constexpr std::uint64_t chunk = 8;

  record_header head;
  std::array<record_entry, slots> entries;
};

static_assert(sizeof(record_entry) == 64, "an operation writes to one cache line");
static_assert(offsetof(flight_record, entries) == sizeof(record_header),
              "a file has the entries behind the header");

}  // namespace sucl::core
