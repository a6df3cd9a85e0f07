// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A process of the job: its connections to others, its groups, what they exchange.
///
/// In the start each process puts the address at which it listens into the store and connects to
/// its parent in a tree, along which the addresses of all ranks are exchanged. Further connections
/// are made when they are first needed.
#pragma once

#include "agreement.hpp"
#include "net/connection.hpp"
#include "net/problem.hpp"
#include "store/store.hpp"
#include "tree.hpp"

#include <sucl/abi/bootstrap.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sucl::tcp {

/// What a process sends the others about itself.
struct contact {
  int rank = -1;
  int size = 0;
  std::int64_t process = 0;
  std::uint64_t machine = 0;  ///< equal for processes that have the same loopback
  std::string host;
  std::vector<endpoint> addresses;

  std::string packed() const;
  static contact of(const std::string& text);
  void put_into(writer& out) const;
  static contact take_from(reader& in);
  /// "process 17 of node3".
  std::string process_text() const;
};

struct job_process_settings {
  int rank = 0;
  int size = 1;
  std::string secret;  ///< empty: agreed on through the store
  std::string interface;
  bool loopback = false;  ///< all are on this machine: listen there alone
  std::chrono::milliseconds timeout{300'000};
  bool store_at_rank_0 = false;  ///< rank 0 serves the store
  /// Called while waiting; a status other than SUCL_SUCCESS ends the wait.
  std::function<sucl_status()> keep_waiting = [] { return sucl_status{SUCL_SUCCESS}; };
  /// Processes that were refused because they did not know the secret.
  std::function<int()> refused = [] { return 0; };
  /// Prints for what this rank has waited for long, once: on rank 0 who has not come, on others
  /// that the store does not answer.
  std::function<void(const std::string&)> late = [](const std::string&) {};
  std::chrono::milliseconds long_wait{10000};
  /// The process of that rank has ended the job.
  std::function<void(int code, int rank)> aborted = [](int, int) {};
};

class job_process;

}  // namespace sucl::tcp

struct sucl_group {
  struct control_message {
    int source = -1;
    std::string text;
  };
  std::shared_ptr<sucl::tcp::job_process> owner;
  std::uint64_t id = 0;
  std::vector<int> members;  ///< their ranks in the job
  int rank = 0;
  int size = 0;
  sucl::tcp::tree_position position;
  std::uint64_t exchanges = 0;  ///< started so far
  std::deque<control_message> control_messages;
  std::uint64_t agreements = 0;               ///< that have ended here
  std::optional<sucl::tcp::decision> agreed;  ///< by the last of them
};

struct sucl_oob_request {
  std::uint64_t group = 0;
  std::uint64_t number = 0;
  void* all = nullptr;
  std::uint64_t bytes = 0;
};

namespace sucl::tcp {

class job_process final : public listener, public std::enable_shared_from_this<job_process> {
 public:
  job_process(std::shared_ptr<reactor> loop, job_process_settings settings);
  ~job_process();

  /// Finds the others; blocks. Throws problem, on every process if on one.
  void start(key_value_store& store);
  /// For a thread that waits during set-up: throws problem once the wait has failed or timed out.
  void check_wait();
  bool is_late_now();
  /// Ends all connections in good order.
  void leave();
  /// Ends every process of the job.
  void abort(int code);

  int rank() const { return m_settings.rank; }
  int size() const { return m_settings.size; }
  const job_process_settings& settings() const { return m_settings; }
  /// Sockets that it has open, and the processes that it is connected to.
  std::size_t connections();

  // Groups. Collective as in the contract; all throw problem.
  sucl_group* world();
  sucl_group* split(sucl_group& group, int colour, int key);
  /// A group of these ranks of the job, this one among them, which they have agreed on with its id.
  /// Nothing is sent.
  sucl_group* group_among(std::uint64_t id, std::vector<int> members);
  void free(sucl_group* group);
  /// Agrees with the members that live. `has_failed` says which members the caller knows to have
  /// failed.
  decision agree(sucl_group& group, std::uint32_t flags,
                 const std::function<bool(int index)>& has_failed);
  /// The group of those that had not failed by the last agreement.
  sucl_group* shrink(sucl_group& group);
  sucl_oob_request* start_exchange(sucl_group& group, const void* mine, void* all,
                                   std::uint64_t bytes);
  /// True at its end, which frees it; also if it throws.
  bool test(sucl_group& group, sucl_oob_request* request);
  /// Waits for it.
  void finish(sucl_group& group, sucl_oob_request* request);
  void notify(sucl_group& group, int rank, const void* data, std::uint64_t bytes);
  /// The next control message, if it is not longer than `most`, which is a problem.
  std::optional<sucl_group::control_message> poll(sucl_group& group, std::uint64_t most);

  void opened(connection& c) override;
  void received(connection& c, frame_type type, reader& message) override;
  void ended(connection& c, ending how, const std::string& why) override;

 private:
  using frame = std::shared_ptr<const bytes>;
  using exchange_key = std::pair<std::uint64_t, std::uint64_t>;  ///< group, number

  /// A connection to or from another process of the job.
  struct link {
    std::shared_ptr<connection> at;
    bool outgoing = false;  ///< made by this process
    bool welcome = false;   ///< both sides have identified themselves
    std::string process;    ///< the other process, of an incoming one
  };
  struct peer {
    connection* link = nullptr;  ///< through which frames are sent
    std::deque<frame> waiting;   ///< for a link
    std::size_t addresses_tried = 0;
    bool connecting = false;
    bool refused = true;  ///< by all that were tried
    std::string reasons;
    std::optional<clock::time_point> lost_since;  ///< nothing comes from it any more
    std::string lost_text;                        ///< "has died"
  };
  /// Of an exchange that this process has not finished.
  struct exchange {
    bool started = false;
    bool sent_up = false;
    clock::time_point since;
    bytes mine;
    std::map<int, bytes> from;  ///< of children, by their ranks in the job
    std::optional<bytes> result;
    problem failure;
  };

  // set-up, in set_up.cpp
  void listen(const endpoint& towards_store);
  void publish_contact(key_value_store& store);
  void connect_to_parent(key_value_store& store);
  void gather_contacts(key_value_store& store);
  void agree_on_secret(key_value_store& store);
  problem find_cause(key_value_store& store, problem why);
  std::string late_ranks_text(key_value_store& store);
  std::string unreachable_text(const key_value_store& store, const std::string& why);
  void report(key_value_store& store, const problem& why);
  void fail_start(const problem& why);
  void read_contacts(bytes all);
  contact contact_of(int rank) const;

  // connections, in job_process.cpp
  void accept_member(const std::shared_ptr<connection>& c);
  void handle_hello(connection& c, reader& message);
  bool check_identity(connection& c, int rank, int size, const std::string& process);
  void refuse(connection& c, const problem& why);
  void handle_welcome(connection& c);
  bool is_neighbour(int rank) const;
  void handle_goodbye(connection& c);
  void send_to(int rank, frame what);
  void connect(int rank);
  void use_link(int rank, connection& c);
  void mark_lost(int rank, const std::string& how);
  std::vector<endpoint> endpoints_of(int rank) const;

  // agreements, in agree.cpp
  void handle_agreement(connection& c, reader& message);
  void handle_paxos(const sucl_group& group, std::uint64_t number, int from,
                    const paxos_message& m);
  void handle_early_paxos(const sucl_group& group);
  void check_members(agreement& a, const sucl_group& group, const std::vector<bool>& known);
  void send_paxos(const sucl_group& group, std::uint64_t number,
                  const std::vector<paxos_message>& out);

  // exchanges, in exchange.cpp
  void handle_up(connection& c, reader& message);
  void handle_down(reader& message);
  void handle_broken(connection& c, reader& message);
  void advance(const sucl_group& group, std::uint64_t number, exchange& e);
  void send_up(const sucl_group& group, std::uint64_t number, exchange& e);
  void send_down(const sucl_group& group, std::uint64_t number, const std::byte* all,
                 std::size_t n);
  void fail_exchange(const sucl_group* group, exchange_key key, exchange& e, const problem& why,
                     int except);
  void check_neighbours(const sucl_group& group, std::uint64_t number, exchange& e);
  bool has_ended(std::uint64_t group) const;
  void handle_control_message(reader& message);
  void handle_abort(connection& c, reader& message);
  std::unique_ptr<sucl_group> make_group(std::uint64_t id, std::vector<int> members);
  sucl_oob_request* begin_exchange(sucl_group& group, bytes mine, void* all, std::uint64_t each);
  exchange* find(const sucl_oob_request& request);

  std::shared_ptr<reactor> m_loop;
  job_process_settings m_settings;
  std::shared_ptr<acceptor> m_acceptor;
  contact m_own;
  bytes m_contacts;                            ///< of all, packed: there may be thousands
  std::vector<std::uint32_t> m_contact_begin;  ///< of each
  std::optional<contact> m_parent;             ///< known before the others
  std::condition_variable m_changed;
  bool m_set_up = false;
  bool m_leaving = false;
  problem m_failed;  ///< the start
  std::optional<clock::time_point>
      m_grace_end;             ///< the start has failed; until then its cause is sought
  bool m_polls_store = false;  ///< the store, while the contacts come
  std::string m_connects_to;   ///< the store, until it has answered
  bool m_is_late = false;      ///< and has said so
  std::map<connection*, link> m_links;
  std::unordered_map<int, peer> m_peers;
  std::unique_ptr<sucl_group> m_root;
  std::uint32_t m_ids_made = 0;  ///< groups that were numbered by this process
  std::map<std::uint64_t, sucl_group*> m_groups;
  std::map<exchange_key, exchange> m_exchanges;
  std::map<exchange_key, agreement> m_agreements;  ///< kept: others may request the decision
  struct early_paxos {
    std::uint64_t number;
    int from;  ///< rank in the job
    paxos_message message;
  };
  std::map<std::uint64_t, std::vector<early_paxos>> m_early_paxos;  ///< for later groups
  std::map<std::uint64_t, std::deque<sucl_group::control_message>>
      m_early;  ///< messages for later groups
  std::size_t m_early_messages = 0;
  std::deque<std::uint64_t> m_ended_order;  ///< the groups that were ended last
  std::set<std::uint64_t> m_ended;
  clock::time_point m_begun;
};

}  // namespace sucl::tcp
