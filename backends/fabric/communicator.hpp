// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// State of the backend: rank, communicator and request.
///
/// An operation is a schedule: stages that come one after the other, each with local work and then
/// messages. A stage is over when all its messages are. What a message does when it has arrived,
/// combining it or sending it on, happens at once, while others are still in flight.
#pragma once

#include "net/contexts.hpp"
#include "net/endpoint.hpp"
#include "net/problem.hpp"
#include "ops.hpp"

#include <sucl/abi/backend.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sucl::fabric {

/// Long messages travel in pieces, of which one is combined or sent on while the next one comes. A
/// piece is short enough to be combined while the caches hold it.
inline constexpr std::uint64_t piece_bytes = std::uint64_t{512} << 10;
/// Shorter messages have so many pieces, unless these were too short to be worth a message.
inline constexpr std::uint64_t pieces_at_least = 4;
inline constexpr std::uint64_t short_piece_bytes = std::uint64_t{64} << 10;
/// So many pieces that are combined from scratch may be in flight from one rank.
inline constexpr std::uint64_t scratch_pieces = 4;

/// A message of a schedule.
struct transfer {
  bool sends = false;
  int peer = 0;
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;       ///< of the user's; or which piece of a collective's message it is
  std::uint32_t elements = 0;  ///< of the user's: label_of() them
  // Of a receive, once it is there:
  const std::byte* fold_from = nullptr;  ///< is combined
  std::byte* fold_into = nullptr;        ///< with this
  std::uint64_t count = 0;               ///< elements; 0: nothing is combined
  int forward_to = -1;                   ///< the result goes on to this rank; -1: to none
  std::uint32_t forward_tag = 0;         ///< with this tag
  bool held = false;                     ///< is not started by its stage
  std::size_t next = none;               ///< is started when the memory of this one is free again

  static constexpr std::size_t none = static_cast<std::size_t>(-1);
};

/// The highest tag of the user's messages. Those of plans between nodes, which are such messages
/// too, have tags up to 130047.
inline constexpr std::int32_t max_user_tag = (1 << 17) - 1;

/// Type and size of the elements of a message, as far as its tag has room for them.
constexpr std::uint32_t label_of(sucl_type t, std::uint64_t element_size) {
  return (static_cast<std::uint32_t>(t) & 31u) | (static_cast<std::uint32_t>(element_size) & 511u)
                                                     << 5;
}
/// Whether one may be received as the other: elements of type 0 are as any others of their size.
constexpr bool same_elements(std::uint32_t a, std::uint32_t b) {
  return a == b || (a >> 5 == b >> 5 && ((a & 31u) == 0 || (b & 31u) == 0));
}

/// Work of this rank at the start of a stage.
struct local_work {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;  ///< that are copied; or else
  std::uint64_t count = 0;  ///< elements that are combined
  bool late = false;        ///< messages of the stage need it not, and are started before
};

/// How pieces are combined: `from` into `into`, which are the whole message's. Where one of them is
/// null, it is what has come.
struct folding {
  std::byte* memory = nullptr;  ///< where pieces arrive
  bool in_turns = false;        ///< it has room for some of them, which they take in turns
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
};

struct stage {
  std::size_t first_work = 0, first_transfer = 0;
};

}  // namespace sucl::fabric

/// State of a rank.
struct sucl_state {
  const sucl_core* core = nullptr;
  const sucl::fabric::library* from = nullptr;
  sucl::fabric::info_ptr provider;
  sucl::fabric::contexts contexts;
  std::mutex lock;                                   ///< of what follows
  std::unique_ptr<sucl::fabric::endpoint> endpoint;  ///< made for the first communicator

  sucl::fabric::endpoint& open_endpoint();
};

/// An operation in flight. Pooled by its communicator, so that its arrays keep their storage.
struct sucl_request {
  sucl_backend_comm* comm = nullptr;
  std::vector<sucl::fabric::stage> stages;
  std::vector<sucl::fabric::local_work> work;
  std::vector<sucl::fabric::transfer> transfers;
  std::size_t planned = 0;  ///< transfers of the stages; the others are sent on
  std::size_t next = 0;     ///< stage
  std::uint64_t open = 0;   ///< messages in flight
  bool running = false;     ///< advance() is at work: what ends meanwhile does not call it
  bool over = false;
  bool collective = false;
  bool pairwise = false;  ///< a collective of which pairs of ranks know the lengths alone
  bool is_long = false;   ///< its messages take longer than a poll
  std::chrono::nanoseconds expected{0};  ///< for all of them
  bool ends_comm = false;    ///< what has failed leaves the communicator in no state to go on
  std::uint32_t serial = 0;  ///< of a collective
  std::uint64_t element_size = 1;
  sucl::fabric::fold_function fold = nullptr;
  sucl::fabric::problem failure;  ///< the first one
  std::unique_ptr<std::byte[]> scratch;
  std::uint64_t scratch_bytes = 0;
};

/// A message to the own rank that has not met its other half.
struct self_message {
  sucl_request* request;
  std::size_t transfer;
};

struct sucl_backend_comm {
  sucl_state* state = nullptr;
  sucl::fabric::endpoint* endpoint = nullptr;
  int rank = 0;
  int size = 1;
  std::uint32_t context = 0;
  bool broken = false;            ///< after abort, or an error that leaves messages in flight
  bool is_in_use = false;         ///< for good, by a thread that does not return from libfabric
  std::uint32_t collectives = 0;  ///< posted so far
  std::vector<fi_addr_t> peers;
  std::deque<self_message> own_sends, own_receives;
  std::vector<std::unique_ptr<sucl_request>> requests;  ///< all there are
  std::vector<sucl_request*> idle;
};

namespace sucl::fabric {

// request.cpp

sucl_request& acquire(sucl_backend_comm& comm);
/// Begins the next stages, until one has messages in flight or none is left.
void advance(sucl_request& r);
/// Gives the request back to the pool and reports how it has ended.
sucl_status conclude(sucl_request& r);
/// Gives up all that is in flight: the communicator is lost.
void give_up(sucl_backend_comm& comm);

// Writing a schedule: what comes between two calls of next_stage() is one stage.

class schedule {
 public:
  schedule(sucl_request& r, const sucl_operation& o);

  int rank() const { return m_request.comm->rank; }
  int size() const { return m_request.comm->size; }
  std::uint64_t bytes_of(std::uint64_t elements) const { return elements * m_element; }

  void next_stage();
  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes);
  void fold(std::byte* into, const std::byte* from, std::uint64_t bytes);
  void send(int peer, const std::byte* memory, std::uint64_t bytes);
  void receive(int peer, std::byte* memory, std::uint64_t bytes);
  /// A message of the user's: `count` elements of `o`.
  void user(bool sends, int peer, const sucl_operation& o, const void* memory, std::uint64_t count);

  /// A copy that nothing of this stage reads or writes.
  void copy_aside(std::byte* to, const std::byte* from, std::uint64_t bytes);

  // In pieces, which both ends cut alike.
  void send_pieces(int peer, const std::byte* memory, std::uint64_t bytes);
  /// Receives into `memory`; each piece is sent on to `next`, unless that is -1.
  void relay_pieces(int peer, std::byte* memory, std::uint64_t bytes, int next);
  /// Receives, combines, and sends the result on to `next`, unless that is -1.
  void fold_pieces(int peer, const folding& how, std::uint64_t bytes, int next);
  /// The same with one peer, each its part: combines what comes with the own part, and sends it
  /// back; sends `from`, and receives the result of it in `to`.
  void fold_and_return(int peer, const folding& how, std::uint64_t bytes);
  void send_and_get(int peer, const std::byte* from, std::byte* to, std::uint64_t bytes);
  /// What fold_pieces() needs of scratch for a message.
  std::uint64_t turns_bytes(std::uint64_t bytes) const;

  /// Memory of the request's, for all of it: called once, before anything points into it.
  std::byte* scratch(std::uint64_t bytes);

 private:
  std::uint64_t piece_of(std::uint64_t bytes) const;
  template <class Piece>
  void in_pieces(std::uint64_t bytes, const Piece& piece);
  transfer& added() { return m_request.transfers.back(); }

  sucl_request& m_request;
  std::uint64_t m_element;
};

// collectives.cpp and messages.cpp, one function a kind. What cannot be executed throws problem.
void plan_barrier(schedule& s, const sucl_operation& o);
void plan_broadcast(schedule& s, const sucl_operation& o);
void plan_reduce(schedule& s, const sucl_operation& o);
void plan_allreduce(schedule& s, const sucl_operation& o);
void plan_reduce_scatter(schedule& s, const sucl_operation& o);
void plan_allgather(schedule& s, const sucl_operation& o);
void plan_alltoall(schedule& s, const sucl_operation& o);
void plan_gather(schedule& s, const sucl_operation& o);
void plan_scatter(schedule& s, const sucl_operation& o);
void plan_scan(schedule& s, const sucl_operation& o);
void plan_message(schedule& s, const sucl_operation& o);
void plan_group(schedule& s, const sucl_operation& o);

}  // namespace sucl::fabric
