// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The store through which processes find each other: keys and values, which one process
/// serves during set-up.
#pragma once

#include "net/connection.hpp"
#include "net/problem.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sucl::tcp {

/// Serves the store. The reactor's lock guards it.
class store_server final : public listener, public std::enable_shared_from_this<store_server> {
 public:
  /// Takes over a socket that listens.
  static std::shared_ptr<store_server> start(const std::shared_ptr<reactor>& loop, int socket,
                                             const std::string& secret);
  explicit store_server(std::shared_ptr<reactor> loop) : m_loop(std::move(loop)) {}

  /// Ends it. Takes the lock.
  void stop();
  /// Puts a value of its own. `on_put` is called with the lock held when a client puts one. Takes
  /// the lock.
  void put(const std::string& key, const std::string& value, std::function<void()> on_put);
  /// Processes that did not know the secret. Takes the lock.
  int refused();
  /// Whether a client has said that it is not needed any more. Takes the lock.
  bool finished();

  void opened(connection&) override {}
  void received(connection& c, frame_type type, reader& message) override;
  void ended(connection& c, ending how, const std::string& why) override;

 private:
  struct waiter {
    std::uint64_t number = 0;
    std::vector<std::string> keys;
  };
  struct client {
    std::shared_ptr<connection> link;
    std::optional<waiter> waits;
  };
  void take(const std::shared_ptr<connection>& link);
  void drop(connection& c);
  void hold_connections();
  void put_value(connection& c, reader& message);
  void wait_for(connection& c, reader& message);
  void list_missing(connection& c, reader& message);
  bool answer(connection& c, const waiter& w);
  void finish();

  std::shared_ptr<reactor> m_loop;
  std::shared_ptr<acceptor> m_acceptor;
  std::map<connection*, client> m_clients;
  std::size_t m_waiting = 0;
  std::map<std::string, std::string> m_values;
  std::function<void()> m_on_put;
  std::size_t m_bytes = 0;
  int m_refused = 0;
  bool m_finished = false;
};

/// What a client may do with a store, wherever it is. Used by one thread. All throw problem.
class key_value_store {
 public:
  using found = std::pair<std::string, std::string>;
  virtual ~key_value_store() = default;
  /// Waits until it is reachable.
  virtual void connect() {}
  /// Closes the connection until the next request.
  virtual void disconnect() {}
  /// Nothing, or the value that the key had before and keeps, where it is another one.
  virtual std::optional<std::string> put(const std::string& key, const std::string& value) = 0;
  /// The first of the keys that is there, with its value; nothing if none is within about `limit`.
  /// To be called again with the same keys.
  virtual std::optional<found> wait(const std::vector<std::string>& keys,
                                    std::chrono::milliseconds limit) = 0;
  /// Which of prefix0, prefix1... are not there, the first ones.
  virtual std::vector<int> missing(const std::string& prefix, int size) = 0;
  /// No rank needs it any more.
  virtual void finish() = 0;
  /// Where it is, human-readable.
  virtual std::string location() const = 0;
  /// The address of this process that the store was reached from; family 0: unknown.
  virtual endpoint local() const { return {}; }
};

/// Called while waiting; throws problem to end the wait.
using wait_check = std::function<void()>;

/// A client of a store_server.
class tcp_store final : public key_value_store {
 public:
  /// `hosts` are names or addresses, with the same port, or addresses with ports of their own.
  /// The server may not be there yet, nor the service of names: they are tried until `wait` throws.
  tcp_store(std::shared_ptr<reactor> loop, std::string secret, std::vector<std::string> hosts,
            std::uint16_t port, wait_check wait);
  ~tcp_store() override;

  void connect() override;
  void disconnect() override { leave(); }
  std::optional<std::string> put(const std::string& key, const std::string& value) override;
  std::optional<found> wait(const std::vector<std::string>& keys,
                            std::chrono::milliseconds limit) override;
  std::vector<int> missing(const std::string& prefix, int size) override;
  void finish() override;
  std::string location() const override;
  endpoint local() const override { return m_local; }

 private:
  class link;
  void leave();
  std::shared_ptr<link> try_addresses(std::string* why);
  std::vector<endpoint> addresses(std::string* later) const;
  bool await(clock::time_point until);
  std::optional<found> take_answer();

  std::shared_ptr<reactor> m_loop;
  std::string m_secret;
  std::vector<std::string> m_hosts;
  std::uint16_t m_port;
  wait_check m_wait;
  std::shared_ptr<link> m_link;
  std::vector<std::string> m_waiting_for;  ///< the keys of the open request
  std::uint64_t m_number = 0;
  clock::time_point m_not_before{};
  endpoint m_local;
};

}  // namespace sucl::tcp
