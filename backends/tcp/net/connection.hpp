// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A connection whose two ends prove to each other that they know the secret before anything else
/// is sent; and the acceptor of such connections.
///
/// The server begins with a nonce, the client answers with one of its own and a proof, the server
/// with its proof. A proof is an HMAC of both nonces, so that none can be replayed. What
/// follows is not encrypted.
#pragma once

#include "address.hpp"
#include "reactor.hpp"
#include "sha256.hpp"
#include "wire.hpp"

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>

namespace sucl::tcp {

class connection;

/// Why a connection has ended, or has not begun.
enum class ending {
  refused,          ///< no process listens there
  unreachable,      ///< no route, or no answer in time
  unauthenticated,  ///< the secrets differ
  foreign,          ///< the other side uses another protocol
  closed,           ///< by the other side
  broken            ///< by the network, or by a frame that is too long
};

/// The observer of a connection. Called under the reactor's lock.
class listener {
 public:
  virtual ~listener() = default;
  virtual void opened(connection& c) = 0;
  virtual void received(connection& c, frame_type type, reader& message) = 0;
  /// The last call.
  virtual void ended(connection& c, ending how, const std::string& why) = 0;
};

/// Times and sizes of a connection.
struct limits {
  std::chrono::milliseconds connect{5000};       ///< for an address to answer
  std::chrono::milliseconds authenticate{5000};  ///< for the proofs
  std::uint64_t frame = 64 << 10;                ///< the most bytes of one
};

class connection final : public handler, public std::enable_shared_from_this<connection> {
 public:
  connection(std::shared_ptr<reactor> loop, std::string secret, limits allowed);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // All under the lock:
  /// Begins as a client. The listener is called with the result later, never at once.
  void connect_to(const endpoint& where, const std::shared_ptr<listener>& observer);
  /// Takes over a socket that was accepted.
  void serve(int socket, const std::shared_ptr<listener>& observer);
  void set_listener(const std::shared_ptr<listener>& observer) { m_listener = observer; }
  void allow_frames(std::uint64_t most) { m_limits.frame = most; }
  void send(std::shared_ptr<const bytes> frame);
  /// Sends nothing more; what was queued before still goes out.
  void shut_after_sending();
  void close();

  bool is_open() const { return m_stage == stage::open; }
  bool is_closed() const { return m_stage == stage::closed; }
  bool has_unsent() const { return !m_out.empty(); }
  endpoint local() const;
  const endpoint& remote() const { return m_remote; }

  void ready(std::uint32_t events) override;
  void due() override;

  int tag = -1;  ///< for the listener

 private:
  enum class stage { idle, connecting, greeting, authenticating, open, closed };
  void begin(int socket, std::uint32_t events);
  void end(ending how, const std::string& why);
  void connected();
  void fail_to_connect(int error);
  void receive();
  bool take_handshake();
  void greet();
  bool check_greeting(const unsigned char* at);
  bool check_answer(const unsigned char* at);
  void parse_frames();
  void flush();
  void watch_writable(bool wanted);
  digest proof(const char* of) const;

  std::shared_ptr<reactor> m_loop;
  std::string m_secret;
  limits m_limits;
  std::weak_ptr<listener> m_listener;
  int m_socket = -1;
  int m_connect_error = 0;
  bool m_server = false;
  stage m_stage = stage::idle;
  clock::time_point m_deadline;
  nonce m_server_nonce{}, m_client_nonce{};
  endpoint m_remote;
  bytes m_in;
  std::size_t m_consumed = 0;  ///< of m_in
  std::deque<std::shared_ptr<const bytes>> m_out;
  std::size_t m_sent = 0;  ///< of the first one
  bool m_watches_writable = false;
  bool m_shut = false;
};

/// Accepts connections and passes on those whose other end knows the secret. It keeps few of the
/// others, and none for long.
class acceptor final : public handler,
                       public listener,
                       public std::enable_shared_from_this<acceptor> {
 public:
  /// Takes a connection over; false if its owner has ended; then the connection is closed.
  using accept_callback = std::function<bool(std::shared_ptr<connection>)>;

  /// Takes over a socket that listens.
  acceptor(std::shared_ptr<reactor> loop, int socket, std::string secret, limits allowed);
  ~acceptor();

  // Under the lock:
  void start(accept_callback take);
  void close();
  /// While true, new connections stay in the system's queue.
  void hold(bool yes) { m_held = yes; }
  /// Connections whose other end did not know the secret.
  int refused() const { return m_refused; }

  void ready(std::uint32_t events) override;
  void due() override;
  void opened(connection& c) override;
  void received(connection&, frame_type, reader&) override {}
  void ended(connection& c, ending how, const std::string& why) override;

 private:
  struct pending {
    std::shared_ptr<connection> link;
    clock::time_point since;
  };
  bool make_room();
  void pause();

  std::shared_ptr<reactor> m_loop;
  int m_socket;
  std::string m_secret;
  limits m_limits;
  accept_callback m_callback;
  std::list<pending> m_pending;  ///< the oldest first
  bool m_paused = false;
  bool m_held = false;
  int m_refused = 0;
};

}  // namespace sucl::tcp
