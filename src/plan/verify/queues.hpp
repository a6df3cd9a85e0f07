// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// First-in, first-out queues of things that wait for their match, found by a key.
#pragma once

#include "plan/verify/order.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace sucl::plan {

/// Snapshots by number, so that what waits with one is plain data. 0 is none.
class held_snapshots {
 public:
  std::uint32_t hold(clocks::snapshot s) {
    if (!s) return 0;
    if (m_free.empty()) {
      m_all.push_back(std::move(s));
      return static_cast<std::uint32_t>(m_all.size());
    }
    const std::uint32_t at = m_free.back();
    m_free.pop_back();
    m_all[at - 1] = std::move(s);
    return at;
  }
  clocks::snapshot take(std::uint32_t at) {
    if (at == 0) return nullptr;
    m_free.push_back(at);
    return std::move(m_all[at - 1]);
  }

 private:
  std::vector<clocks::snapshot> m_all;
  std::vector<std::uint32_t> m_free;
};

/// A send, receive or signal that was started and not matched.
struct parcel {
  std::uint32_t thread = 0;
  std::uint32_t ticket = 0;  ///< number among the thread's transfers
  std::uint32_t pc = 0;
  std::uint32_t next = 0;       ///< 1 + index; 0: the last
  std::uint64_t bytes = 0;      ///< of a message
  symbol value;                 ///< of a send whose bytes all have one; offsets are in the message
  std::uint32_t published = 0;  ///< a number of held_snapshots
};

/// What waits between two ranks: messages of a channel and level, or signals of a flag.
struct queue {
  std::uint64_t pair = ~std::uint64_t{0};  ///< from and to; all ones: an empty slot of the table
  std::uint64_t slot = 0;
  std::uint32_t first = 0, last = 0;  ///< 1 + index of parcels; 0: empty
  std::uint32_t sender = access::no_thread;
  std::uint32_t receiver = access::no_thread;
  bool sends = false;  ///< what lies in it: sends or receives
};

/// All queues of one kind. A `Parcel` is what waits; its `next` belongs to the queues.
template <class Parcel>
class queues {
 public:
  queues() : m_table(64) {}

  queue& find(int from, int to, std::uint64_t slot) {
    const auto pair = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
    if ((m_used + 1) * 2 > m_table.size()) grow();
    queue& q = m_table[index_of(pair, slot)];
    if (q.pair != pair) {
      q.pair = pair;
      q.slot = slot;
      ++m_used;
    }
    return q;
  }

  void push(queue& q, Parcel p) {
    std::uint32_t at = m_free;
    if (at != 0) {
      m_free = m_parcels[at - 1].next;
      m_parcels[at - 1] = std::move(p);
    } else {
      m_parcels.push_back(std::move(p));
      at = static_cast<std::uint32_t>(m_parcels.size());
    }
    m_parcels[at - 1].next = 0;
    (q.first == 0 ? q.first : m_parcels[q.last - 1].next) = at;
    q.last = at;
  }

  Parcel pop(queue& q) {
    const std::uint32_t at = q.first;
    Parcel p = std::move(m_parcels[at - 1]);
    q.first = p.next;
    m_parcels[at - 1].next = std::exchange(m_free, at);
    return p;
  }

  const Parcel& front(const queue& q) const { return m_parcels[q.first - 1]; }

  /// Calls `visit` with every queue that is not empty, in no order.
  template <class Visit>
  void for_each_waiting(const Visit& visit) const {
    for (const queue& q : m_table)
      if (q.first != 0) visit(q);
  }

 private:
  std::size_t index_of(std::uint64_t pair, std::uint64_t slot) const {
    std::uint64_t h = (pair + slot * 0xbf58476d1ce4e5b9ull) * 0x9fb21c651e98df25ull;
    h ^= h >> 32;
    const std::size_t mask = m_table.size() - 1;
    std::size_t i = h & mask;
    while (m_table[i].pair != ~std::uint64_t{0} &&
           (m_table[i].pair != pair || m_table[i].slot != slot))
      i = (i + 1) & mask;
    return i;
  }

  void grow() {
    std::vector<queue> old(m_table.size() * 2);
    old.swap(m_table);
    for (const queue& q : old)
      if (q.pair != ~std::uint64_t{0}) m_table[index_of(q.pair, q.slot)] = q;
  }

  std::vector<queue> m_table;  // open addressing
  std::size_t m_used = 0;
  std::vector<Parcel> m_parcels;
  std::uint32_t m_free = 0;  // 1 + index
};

}  // namespace sucl::plan
