// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Addresses of IPv4 and IPv6: of names, of interfaces, of sockets.
#pragma once

#include "wire.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::tcp {

/// An address and a port.
struct endpoint {
  sockaddr_storage storage{};

  endpoint() = default;
  explicit endpoint(const sockaddr* address);

  int family() const { return storage.ss_family; }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&storage); }
  socklen_t length() const {
    return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  bool is_loopback() const;
  bool is_link_local() const;
  bool same_address(const endpoint& other) const;
};

/// "10.0.0.1:4000", "[fd00::1]:4000".
std::string text_of(const endpoint& e);
/// "10.0.0.1", "fd00::1".
std::string address_text(const endpoint& e);
/// Of the texts above, or of an address alone; the family is 0 if it is none.
endpoint endpoint_of(const std::string& text);

/// Every address of a name or of an address in digits. Throws problem. Where the service of names
/// does not answer for the moment and `later` is given, nothing is found and `later` says why.
std::vector<endpoint> resolve(const std::string& host, std::uint16_t port,
                              std::string* later = nullptr);
/// The same, asking again for so long while the service does not answer.
std::vector<endpoint> resolve_within(std::chrono::steady_clock::duration limit,
                                     const std::string& host, std::uint16_t port);
/// Whether a host is written as the local machine: localhost, 127.*, ::1.
bool means_loopback(const std::string& host);

/// The addresses of this machine that others may reach it by: those of the interface of a name, or
/// in a subnet as 10.1.0.0/16 or fd00::/64; of all interfaces but the loopback for an empty text.
/// Throws problem where nothing matches a text.
std::vector<endpoint> own_addresses(const std::string& interface);

/// The address of an interface, as in own_addresses(), that others reach who reach one of `known`:
/// one of those, or else one of the family of the first of them that it has, or else its first.
endpoint own_address(const std::string& interface, const std::vector<endpoint>& known);

/// A socket that listens there. Port 0: any; `where` then gets the port. Without an address (family
/// 0) at all of them, of both families where the system has both. Throws problem, with `in_use` set
/// where another socket has the port.
int listen_at(endpoint& where, bool* in_use);

/// Whether a process of this machine accepts connections there (family 0: at 127.0.0.1), which one
/// that has the port for a connection of its own does not.
bool accepts_connections(endpoint where);

/// As part of a message, and back; the family is 0 where it is not right.
void put(writer& out, const endpoint& e);
endpoint take_endpoint(reader& in);

}  // namespace sucl::tcp
