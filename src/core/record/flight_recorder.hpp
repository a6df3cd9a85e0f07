// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The flight recorder: the last operations of a rank, kept always and written when something goes
/// wrong.
#pragma once

#include "base/threads/thread_state.hpp"
#include "core/record/record_layout.hpp"

#include <sucl/abi/backend.h>
#include <sucl/error.hpp>
#include <sucl/export.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace sucl::core {

/// The memory of a rank's record. Any thread.
///
/// It is a file in memory, without a name, that another process of the user can read at
/// /proc/PID/fd: also of a process that is stopped, or inside a library for ever.
class SUCL_CORE_API flight_recorder {
 public:
  /// What the file in memory is called there.
  static constexpr const char* memory_name = "sucl-flight-record";

  flight_recorder() = default;
  ~flight_recorder();
  flight_recorder(const flight_recorder&) = delete;
  flight_recorder& operator=(const flight_recorder&) = delete;

  /// Begins to record. `folder`: where a file is written when something fails; "": in the folder
  /// that record_folder() says; "none": nowhere. `visible`: other processes can read the memory,
  /// and signals that end the process have it written. Without memory nothing is recorded.
  void begin(std::uint64_t job, int rank, int size, const std::string& folder, bool visible);

  /// Keeps the first failure of the rank, writes the file and says where it is. The first few
  /// times.
  void fail(const std::string& what) noexcept;
  /// Writes the file; whether that went well. Safe in a signal handler.
  bool write() const noexcept;
  /// A signal ends the process: notes that and writes the file; says so of a `crash`. Safe in a
  /// signal handler.
  void end_by(int signal, bool crash) noexcept;
  /// Whether an operation has begun that is not over.
  bool busy() const noexcept;

  /// The record, or null.
  flight_record* memory() const { return m_memory; }
  /// The thread that has called the operation of an entry in the form that returns an event.
  std::int32_t caller_of(std::size_t entry) const {
    return m_callers[entry].load(std::memory_order_relaxed);
  }
  void note_caller(const record_entry* e, std::int32_t thread) noexcept {
    if (!m_memory || e < m_memory->entries.data()) return;
    const auto entry = static_cast<std::size_t>(e - m_memory->entries.data());
    if (entry < m_callers.size()) m_callers[entry].store(thread, std::memory_order_relaxed);
  }
  /// The rank has a communicator now, and later no more.
  void join(std::uint64_t communicator, int rank, int size) noexcept;
  void leave(std::uint64_t communicator) noexcept;

 private:
  void make_folder() const noexcept;

  flight_record* m_memory = nullptr;
  int m_descriptor = -1;
  std::array<char, 1024> m_path{};
  bool m_is_default = false;                                                ///< the folder is
  std::array<std::atomic<std::int32_t>, flight_record::slots> m_callers{};  ///< of its entries
  std::mutex m_mutex;  ///< of `members` and `failure`
  int m_written = 0;
};

/// The folder of records where none is named: sucl/records in the user's cache. Empty: there is
/// none.
SUCL_CORE_API std::string record_folder();
/// The name of a rank's file in a folder.
SUCL_CORE_API std::string record_name(std::uint64_t job, int rank);

/// Writes the operations of one communicator to the record. One thread at a time.
///
/// What note() returns stays the operation's own until it is over; an operation for which
/// the record has no free slot gets one that is not read.
class record_writer {
 public:
  /// An operation that is over, for as long as the record has it.
  struct mark {
    record_entry* entry = nullptr;
    std::uint64_t serial = 0;
    std::uint64_t number = 0;  ///< of the first that the entry stands for
  };

  record_writer() = default;
  ~record_writer() { end(); }
  record_writer(const record_writer&) = delete;
  record_writer& operator=(const record_writer&) = delete;

  void begin(flight_recorder& to, std::uint64_t communicator, int rank, int size);
  void end() noexcept;

  /// An operation was called. `number`: of a collective, among the calls or replays.
  record_entry* note(const sucl_operation& o, std::uint64_t number, record_state state) noexcept {
    if (m_at == m_end || m_next->load(std::memory_order_relaxed) >= m_expires ||
        is_open(m_at->state.load(std::memory_order_acquire)))
      take();
    record_entry& e = *m_at++;
    e.serial.store(0, std::memory_order_relaxed);
    e.number = number;
    e.count = o.count;
    e.element_size = static_cast<std::uint32_t>(o.element_size);
    e.repeats.store(0, std::memory_order_relaxed);
    e.kind = o.kind;
    e.type = o.type;
    e.op = o.op;
    e.communicator = m_communicator;
    e.root = o.root;
    e.source = o.source;
    e.tag = o.tag;
    if (needs_more(o)) complete(e, o);
    e.state.store(state, std::memory_order_release);
    e.serial.store(++m_serial, std::memory_order_release);
    return &e;
  }
  /// A blocking one: it joins the one before where that is the same.
  SUCL_CORE_API record_entry* note_blocking(const sucl_operation& o, std::uint64_t number,
                                            record_state state) noexcept;
  /// A blocking call was executed that `known` has noted before. `number`: of a collective, which
  /// has to be the next one; otherwise 0. False: it has an entry of its own.
  static bool repeat(const mark& known, std::uint64_t number) noexcept {
    if (!is_there(known)) return false;
    const std::uint32_t next = known.entry->repeats.load(std::memory_order_relaxed) + 1;
    if (next == 0 || (number != 0 && known.number + next != number)) return false;
    known.entry->repeats.store(next, std::memory_order_relaxed);
    return true;
  }
  /// `number`: of the last that `e` stands for.
  static mark mark_of(record_entry* e, std::uint64_t number) noexcept {
    return {e, e->serial.load(std::memory_order_relaxed),
            number - e->repeats.load(std::memory_order_relaxed)};
  }
  static void set(record_entry* e, record_state state) noexcept {
    e->state.store(state, std::memory_order_release);
  }
  /// The calling thread is the one that has called it.
  void note_caller(const record_entry* e) noexcept {
    if (m_to) m_to->note_caller(e, base::this_thread_number());
  }
  void fail(const std::string& what) noexcept {
    if (m_to) m_to->fail(what);
  }

 private:
  static bool is_there(const mark& m) noexcept {
    return m.entry && m.entry->serial.load(std::memory_order_relaxed) == m.serial;
  }
  // Whether an entry has no room for what distinguishes this call from others.
  static bool needs_more(const sucl_operation& o) noexcept {
    return (o.part_count | o.plan | reinterpret_cast<std::uintptr_t>(o.recv_counts)) != 0;
  }
  SUCL_CORE_API void take() noexcept;
  SUCL_CORE_API void complete(record_entry& e, const sucl_operation& o) const noexcept;

  static inline const std::atomic<std::uint64_t> s_none{0};
  flight_recorder* m_to = nullptr;
  flight_record* m_record = nullptr;
  const std::atomic<std::uint64_t>* m_next = &s_none;
  record_entry *m_at = nullptr, *m_end = nullptr;  ///< its slots
  std::uint64_t m_expires = 0;                     ///< when others have got them since
  std::uint64_t m_serial = 0;
  std::uint64_t m_id = 0;  ///< of the communicator
  std::uint32_t m_communicator = 0;
  mark m_last;  ///< the blocking one that came last, if it may be joined
  record_entry m_discarded;
  int m_size = 1;
};

/// The collective of an entry, without its memory and its arrays.
sucl_operation recorded_operation(const record_entry& e);

}  // namespace sucl::core
