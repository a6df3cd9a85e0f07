// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An endpoint of libfabric: messages with tags to and from any peer whose address is known.
#pragma once

#include "net/provider.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

struct sucl_request;

namespace sucl::fabric {

struct object_closer {
  template <class Object>
  void operator()(Object* o) const {
    fi_close(&o->fid);
  }
};
template <class Object>
using object = std::unique_ptr<Object, object_closer>;

/// A message in flight. libfabric knows it by its context, which comes first.
struct message {
  fi_context2 context{};
  sucl_request* owner = nullptr;  ///< null: given up, no request to notify
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::uint64_t tag = 0;
  std::uint64_t ignored = 0;  ///< of a receive: bits of the tag in which what comes may differ
  bool sends = false;
  bool started = false;     ///< libfabric has it
  std::uint32_t about = 0;  ///< its owner's own
};

/// How a message has ended.
struct ending {
  int code = 0;             ///< 0, or an error of libfabric, greater than 0
  std::uint64_t bytes = 0;  ///< that were received
  std::string text;         ///< what the provider says of an error
  std::uint64_t tag = 0;    ///< of what was received
};

/// Notifies the owner of a message of its end. The message is the endpoint's again afterwards.
void ended(message& m, const ending& how);

/// One thread at a time: callers hold `lock`. Completions notify the owner inside of
/// progress(), whichever communicator that is of.
class endpoint {
 public:
  /// Throws problem.
  endpoint(const library& from, const fi_info& info);
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  std::mutex lock;

  /// What peers need to reach it.
  const std::vector<std::byte>& address() const { return m_address; }
  /// Makes a peer known, once. Throws problem.
  fi_addr_t peer(const std::vector<std::byte>& address);

  /// A message that nothing is in yet.
  message& take();
  /// Starts it. Messages to one peer start in the order of these calls, and so do receives. Throws
  /// problem; then the message is the endpoint's again.
  void start(message& m);
  /// Takes back all messages of an owner, as far as libfabric can be stopped. No request is
  /// notified of their end.
  void give_up(const sucl_request& owner);
  void progress();

 private:
  std::ptrdiff_t try_now(message& m);
  void check(std::ptrdiff_t code, const char* what) const;
  void open_address_vector();
  void open_completion_queue();
  void open_endpoint();
  void retry(std::deque<message*>& waiting);
  bool read_error();
  void end(message& m, const ending& how);
  void give_up(message& m);

  const library& m_from;
  info_ptr m_info;
  object<fid_fabric> m_fabric;
  object<fid_domain> m_domain;
  object<fid_av> m_addresses;
  object<fid_cq> m_queue;
  object<fid_ep> m_endpoint;
  std::vector<std::byte> m_address;
  std::unordered_map<std::string, fi_addr_t> m_peers;
  std::deque<message> m_messages;  ///< all there are
  std::vector<message*> m_idle;
  std::deque<message*> m_receives;                    ///< that wait for room
  std::map<fi_addr_t, std::deque<message*>> m_sends;  ///< the same, for each peer
  std::uint64_t m_waiting = 0;                        ///< in all of these
};

}  // namespace sucl::fabric
