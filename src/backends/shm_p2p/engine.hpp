// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Sends and receives between the ranks of a node, through memory that they share.
#pragma once

#include "backends/shm_common/placement.hpp"
#include "backends/shm_p2p/fifo.hpp"
#include "core/host_ops/nt_copy.hpp"
#include "core/operation/backend_comm.hpp"

#include <sucl/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::core {

/// An operation in flight: its messages between ranks of the node, and those that a transport has.
struct p2p_request {
  int open = 0;                                ///< messages of the node that are not done
  std::vector<sucl_request*> far;              ///< of the transport; null: done
  std::optional<error_info> failure;           ///< the first one
  std::unique_ptr<std::byte[]> bounce_buffer;  ///< what is sent from memory that is received into
  std::uint64_t bounce_bytes = 0;
};

/// The messages of one communicator. One thread at a time.
///
/// Messages of a pair of ranks are matched by tag, in the order in which they were posted. Short
/// ones go eagerly through the ring of their FIFO and are done for the sender once they are there.
/// Long ones use a rendezvous: a request goes through the ring, and the receiver replies when it
/// has a receive for it.
class p2p_engine {
 public:
  /// Takes memory from `memory provider`. Collective. `reads`: every rank may copy from the memory
  /// of every other one.
  p2p_engine(const backend_comm& memory_provider, placement where, bool reads);
  ~p2p_engine();
  p2p_engine(const p2p_engine&) = delete;
  p2p_engine& operator=(const p2p_engine&) = delete;

  /// Whether the memory of every rank of the node is within reach.
  bool complete() const { return m_complete; }
  const placement& where() const { return m_where; }
  bool reads() const { return m_reads; }
  /// How often a blocking call makes progress before other work may run.
  int spin_limit() const { return m_where.oversubscribed ? 64 : m_spin_limit; }

  /// Starts an operation.
  p2p_request* start(const sucl_operation& o);
  /// Does what can be done without waiting for long.
  void progress();
  /// Whether it is over. Polls the transport, too.
  bool over(p2p_request& d);
  /// Whether a message of that rank and tag is here that no receive has taken. Nothing: what comes
  /// from that rank is not seen before it is received.
  std::optional<bool> arrived(int from, int tag);
  /// Frees the request.
  void recycle(p2p_request* d) { m_free_requests.push_back(d); }
  /// Gives up what is on its way through transports. Afterwards there is only destruction.
  void abort();

  /// Memory of this number that every rank reaches is there, or is about to be freed.
  void add(std::uint64_t number, const sucl_region& region);
  void remove(const void* base);

 private:
  /// One message at one of its ends.
  struct item {
    item* next = nullptr;
    p2p_request* owner = nullptr;
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0, moved = 0;
    std::uint64_t element_size = 1;
    sucl_type type = SUCL_TYPE_BYTES;
    std::int32_t tag = 0;
    rendezvous_request about;           ///< of a long one
    const std::byte* source = nullptr;  ///< receiver: the data, where this process reaches them
    std::byte* target = nullptr;        ///< sender: where to, in memory that both reach
    bool read = false;                  ///< receiver: copies from the sender's memory
    bool refused = false;               ///< receiver: does not want the data
    bool pushed = false;  ///< the first chunk says whether the sender reaches the receiver's memory
  };
  /// A message that arrived before its receive.
  struct unexpected_message {
    unexpected_message* next = nullptr;
    envelope what;
    rendezvous_request about;
    std::vector<std::byte> data;
  };
  template <class T>
  struct queue {
    T* head = nullptr;
    T** end = &head;
    queue() = default;
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    void push(T* t) {
      t->next = nullptr;
      *end = t;
      end = &t->next;
    }
    T* pop() { return take(&head); }
    /// Takes out the element that `*at` points to.
    T* take(T** at) {
      T* t = *at;
      *at = t->next;
      if (!*at) end = at;
      return t;
    }
  };
  struct peer {
    int rank = 0;
    fifo_sender out;
    fifo_receiver in;
    std::uint64_t rendezvous_serial = 0;
    queue<item> unsent;             ///< sends that wait for room in the ring
    queue<item> waiting_for_reply;  ///< long sends that wait for the reply
    queue<item> sending;            ///< those whose data is being sent, in the order of the replies
    queue<item> receives;           ///< that have no message yet
    queue<item> matched;            ///< long receives that have not replied, or copy themselves
    queue<item> receiving;          ///< those whose data is arriving
    queue<unexpected_message> unexpected;
    int open = 0;  ///< items in these queues
  };

  void report_unreceived() noexcept;
  [[noreturn]] void give_up(p2p_request* d, const error_info& info);
  void post_far(sucl_operation o, sucl_kind half, p2p_request* d);
  void send(const sucl_operation& o, const void* data, p2p_request* d);
  void receive(const sucl_operation& o, p2p_request* d);
  static envelope envelope_of(const item& i);
  static bool fits(const item& r, const envelope& e);
  bool put(peer& p, item& i);
  void collect(peer& p);
  void keep_unexpected(peer& p, const envelope& e);
  bool match_unexpected(peer& p, item& r);
  void match_long(peer& p, item* r, const envelope& e, const rendezvous_request& about);
  static void refuse(const item& i, const envelope& sent, int from, const envelope& wanted, int to);
  bool advance(peer& p);
  bool send_waiting(peer& p);
  bool take_replies(peer& p);
  bool fill_chunk(peer& p);
  bool handle_matched(peer& p);
  void copy_piece(peer& p, item& r);
  bool take_chunk(peer& p);
  void finish(peer& p, item* i);
  peer& near(int rank) { return *m_peers[static_cast<std::size_t>(rank)]; }
  void locate(const std::byte* memory, std::uint64_t bytes, std::uint64_t& region,
              std::uint64_t& offset) const;
  std::byte* mapped_address(int rank, std::uint64_t region, std::uint64_t offset) const;
  item* take_item();
  p2p_request* take_request();

  const placement m_where;
  const int m_rank;
  backend_comm m_memory_provider;
  bool m_reads;
  bool m_complete = true;
  nt_store_policy m_copier;
  int m_spin_limit;           ///< before progress() returns while data arrives
  unsigned m_idle_polls = 0;  ///< polls with nothing to do
  sucl_region m_region{};
  std::vector<std::unique_ptr<peer>> m_peers;  ///< by rank; null: on another node
  std::vector<peer*> m_near;
  struct shared_region {
    std::uint64_t number;
    sucl_region region;
  };
  std::vector<shared_region> m_regions;
  int m_open = 0;                      ///< items in all queues, and messages that transports have
  std::optional<error_info> m_broken;  ///< why nothing goes on
  bool m_given_up = false;             ///< by abort()
  std::vector<std::unique_ptr<item>> m_items;
  std::vector<item*> m_free_items;
  std::vector<std::unique_ptr<unexpected_message>> m_unexpected;
  std::vector<unexpected_message*> m_free_unexpected;
  std::vector<std::unique_ptr<p2p_request>> m_requests;
  std::vector<p2p_request*> m_free_requests;
};

}  // namespace sucl::core
