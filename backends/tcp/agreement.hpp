// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Agreement of a group whose members may fail: the part of one member, without connections.
///
/// The Synod of Lamport ("Paxos made simple", 2001) with all living members as its quorum, since
/// failures are detected: the coordinator, which is the first living member, collects the state of
/// each (prepare, promise), proposes the result (accept, accepted), and reports it (decided). Its
/// successor collects anew, and keeps to what any member has accepted. In the same way
/// Buntinas ("Scalable distributed consensus to support MPI fault tolerance", 2012) elects the root
/// and combines flags and failed members.
#pragma once

#include "net/wire.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace sucl::tcp {

/// What members agree on.
struct decision {
  std::uint32_t flags = 0;           ///< the bitwise and of all that took part
  std::uint64_t id = 0;              ///< of no group of the job: for one of those that live
  std::vector<std::uint8_t> failed;  ///< one for each member: 1 if it has

  friend bool operator==(const decision&, const decision&) = default;
};

enum class paxos_step : std::uint32_t {
  prepare = 1,          ///< the coordinator starts a round
  promise = 2,          ///< flags, failed; the number of what was accepted, or 0, and that
  refused = 3,          ///< the number that was promised to another coordinator
  accept = 4,           ///< what is proposed
  accepted = 5,         ///< it is
  decided = 6,          ///< what all have accepted
  request_decision = 7  ///< failed: from a member whose coordinator has died, to the next one
};

/// From one member to another, both by their index in the group.
struct paxos_message {
  int to = 0;
  paxos_step step = paxos_step::prepare;
  std::uint64_t number = 0;
  std::uint32_t flags = 0;           ///< promise
  std::vector<std::uint8_t> failed;  ///< promise, request_decision
  std::uint64_t other = 0;           ///< promise: number that was accepted; refused: promised
  std::optional<decision> value;

  void put_into(writer& out) const;
  /// Nothing where the message makes no sense.
  static std::optional<paxos_message> take_from(reader& in);
};

/// One member's part of one agreement. Members that have not entered promise nothing, so what is
/// decided is what all that live have entered with.
class agreement {
 public:
  /// Of a member that takes part. `new_id`: for what it may have to propose.
  void enter(int own, int size, std::uint32_t flags, std::uint64_t new_id);
  bool entered() const { return m_size > 0; }
  /// A member is known to have failed.
  void note_failed(int member);
  bool has_failed(int member) const { return m_failed[static_cast<std::size_t>(member)] != 0; }
  /// The first member that is not known to have failed.
  int coordinator() const;
  const std::optional<decision>& result() const { return m_decided; }

  /// What is to be sent because a message has come, or, without one, because members have failed.
  std::vector<paxos_message> take(int from, const paxos_message& m);
  std::vector<paxos_message> advance();

 private:
  using messages = std::vector<paxos_message>;
  void answer(int from, std::uint64_t number, messages& out);
  void accept(int from, const paxos_message& m, messages& out);
  void begin_proposal(messages& out);
  void propose(messages& out);
  void decide(messages& out);
  bool contains_all_alive(const std::set<int>& these) const;
  void request_decision(messages& out);
  void send_decision(messages& out);
  void send_to_others(const paxos_message& m, messages& out) const;
  void note_failed(const std::vector<std::uint8_t>& members);

  int m_own = 0, m_size = 0;
  std::uint32_t m_flags = 0;
  std::uint64_t m_new_id = 0;
  std::vector<std::uint8_t> m_failed;
  std::map<int, std::uint64_t> m_prepares;  ///< not answered yet: coordinator, number
  std::uint64_t m_promised = 0;
  std::uint64_t m_accepted_number = 0;
  std::optional<decision> m_accepted, m_decided;
  int m_last_coordinator = 0;         ///< the coordinator, as far as was known
  std::set<int> m_undecided_members;  ///< members that wait for the decision
  // of a coordinator
  std::uint64_t m_number = 0;  ///< 0: it is none
  std::uint32_t m_all_flags = 0;
  std::uint64_t m_newest_number = 0;
  std::optional<decision> m_newest;  ///< that a member has accepted
  bool m_proposed = false;
  std::set<int> m_promises, m_acceptances;
};

}  // namespace sucl::tcp
