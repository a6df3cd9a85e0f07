// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "address.hpp"

#include "problem.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <thread>

namespace sucl::tcp {
namespace {

sockaddr_in& v4(endpoint& e) { return reinterpret_cast<sockaddr_in&>(e.storage); }
sockaddr_in6& v6(endpoint& e) { return reinterpret_cast<sockaddr_in6&>(e.storage); }
const sockaddr_in& v4(const endpoint& e) { return reinterpret_cast<const sockaddr_in&>(e.storage); }
const sockaddr_in6& v6(const endpoint& e) {
  return reinterpret_cast<const sockaddr_in6&>(e.storage);
}

// The bytes of an address, without its port.
std::string raw_address(const endpoint& e) {
  if (e.family() == AF_INET6)
    return {reinterpret_cast<const char*>(&v6(e).sin6_addr), sizeof(in6_addr)};
  return {reinterpret_cast<const char*>(&v4(e).sin_addr), sizeof(in_addr)};
}

endpoint in_digits(const std::string& text) {
  endpoint e;
  if (inet_pton(AF_INET, text.c_str(), &v4(e).sin_addr) == 1)
    e.storage.ss_family = AF_INET;
  else if (inet_pton(AF_INET6, text.c_str(), &v6(e).sin6_addr) == 1)
    e.storage.ss_family = AF_INET6;
  return e;
}

/// As 10.1.0.0/16.
struct subnet {
  endpoint base;
  int bits = -1;  ///< -1: the text was none

  explicit subnet(const std::string& text) {
    const auto slash = text.find('/');
    base = in_digits(text.substr(0, slash));
    if (base.family() == 0) return;
    const int most = base.family() == AF_INET6 ? 128 : 32;
    int given = most;
    if (slash != text.npos) {
      const char* end = text.data() + text.size();
      const auto [stop, wrong] = std::from_chars(text.data() + slash + 1, end, given);
      if (wrong != std::errc{} || stop != end || given < 0 || given > most) return;
    }
    bits = given;
  }

  bool contains(const endpoint& e) const {
    if (bits < 0 || e.family() != base.family()) return false;
    const std::string a = raw_address(base), b = raw_address(e);
    for (int i = 0; i < bits; ++i) {
      const int mask = 0x80 >> (i % 8);
      const auto at = static_cast<std::size_t>(i / 8);
      if (((a[at] ^ b[at]) & mask) != 0) return false;
    }
    return true;
  }
};

// What the machine has, for the error where something else was asked for.
std::string interfaces_there(const ifaddrs* list) {
  std::string there;
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    there += (there.empty() ? "" : ", ") + std::string(i->ifa_name) + " " +
             address_text(endpoint(i->ifa_addr));
  }
  return there.empty() ? "none" : there;
}

int open_listener(const endpoint& where, bool both_families, int* error) {
  const int s = socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0) {
    *error = errno;
    return -1;
  }
  const int yes = 1, only = both_families ? 0 : 1;
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (where.family() == AF_INET6) setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  if (bind(s, where.generic(), where.length()) == 0 && listen(s, 4096) == 0) return s;
  *error = errno;
  close(s);
  return -1;
}

}  // namespace

endpoint::endpoint(const sockaddr* address) {
  if (address->sa_family == AF_INET) std::memcpy(&storage, address, sizeof(sockaddr_in));
  if (address->sa_family != AF_INET6) return;
  std::memcpy(&storage, address, sizeof(sockaddr_in6));
  // One of IPv4 that came in by a socket of both families.
  if (!IN6_IS_ADDR_V4MAPPED(&v6(*this).sin6_addr)) return;
  const sockaddr_in6 mapped = v6(*this);
  storage = {};
  v4(*this).sin_family = AF_INET;
  v4(*this).sin_port = mapped.sin6_port;
  std::memcpy(&v4(*this).sin_addr, mapped.sin6_addr.s6_addr + 12, sizeof(in_addr));
}

std::uint16_t endpoint::port() const {
  return ntohs(family() == AF_INET6 ? v6(*this).sin6_port : v4(*this).sin_port);
}

void endpoint::set_port(std::uint16_t port) {
  (family() == AF_INET6 ? v6(*this).sin6_port : v4(*this).sin_port) = htons(port);
}

bool endpoint::is_loopback() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
  return family() == AF_INET && ntohl(v4(*this).sin_addr.s_addr) >> 24 == 127;
}

bool endpoint::is_link_local() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_LINKLOCAL(&v6(*this).sin6_addr);
  return family() == AF_INET && ntohl(v4(*this).sin_addr.s_addr) >> 16 == 0xa9fe;
}

bool endpoint::same_address(const endpoint& other) const {
  return family() == other.family() && raw_address(*this) == raw_address(other);
}

std::string address_text(const endpoint& e) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (e.family() == AF_INET6) inet_ntop(AF_INET6, &v6(e).sin6_addr, text, sizeof text);
  if (e.family() == AF_INET) inet_ntop(AF_INET, &v4(e).sin_addr, text, sizeof text);
  return text;
}

std::string text_of(const endpoint& e) {
  const std::string address = address_text(e);
  return (e.family() == AF_INET6 ? "[" + address + "]" : address) + ":" + std::to_string(e.port());
}

endpoint endpoint_of(const std::string& text) {
  if (endpoint e = in_digits(text); e.family() != 0) return e;
  const auto colon = text.rfind(':');
  if (colon == text.npos) return {};
  std::string address = text.substr(0, colon);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  endpoint e = in_digits(address);
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data() + colon + 1, end, port);
  if (wrong != std::errc{} || stop != end || e.family() == 0) return {};
  e.set_port(port);
  return e;
}

std::vector<endpoint> resolve(const std::string& host, std::uint16_t port, std::string* later) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int wrong = getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::vector<endpoint> list;
  for (const addrinfo* i = wrong == 0 ? found : nullptr; i; i = i->ai_next) {
    if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
    list.emplace_back(i->ai_addr);
    list.back().set_port(port);
  }
  if (!list.empty()) return list;
  const std::string why =
      "the name '" + host + "' of the machine that serves the rendezvous has " +
      "no address here: " + (wrong != 0 ? gai_strerror(wrong) : "none of IPv4 or IPv6");
  if (wrong != EAI_AGAIN || !later)
    throw problem{SUCL_ERROR_UNAVAILABLE, why,
                  "Give a name that every node can resolve, or an address in digits, in the "
                  "variable that names the machine (MASTER_ADDR, SUCL_TCP_ADDRESS)"};
  *later = why;
  return {};
}

std::vector<endpoint> resolve_within(std::chrono::steady_clock::duration limit,
                                     const std::string& host, std::uint16_t port) {
  constexpr std::chrono::milliseconds pause{100};
  std::string later;
  for (const auto until = std::chrono::steady_clock::now() + limit;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(pause))
    if (auto list = resolve(host, port, &later); !list.empty()) return list;
  return resolve(host, port);
}

bool means_loopback(const std::string& host) {
  const endpoint e = in_digits(host);
  return e.family() != 0 ? e.is_loopback() : host == "localhost" || host == "ip6-localhost";
}

std::vector<endpoint> own_addresses(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    throw problem{SUCL_ERROR_UNAVAILABLE,
                  std::string("the system does not list its networks: ") + std::strerror(errno),
                  "Allow netlink sockets"};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  const subnet net(interface);
  std::vector<endpoint> found;
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) continue;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) continue;
    const endpoint e(i->ifa_addr);
    // Link-local addresses mean something else on each machine, so they are of no use to other
    // machines.
    if (e.family() == AF_INET6 && e.is_link_local()) continue;
    const bool named = interface == i->ifa_name || net.contains(e);
    const bool any = interface.empty() && !e.is_loopback() && !(i->ifa_flags & IFF_LOOPBACK);
    if (named || any) found.push_back(e);
  }
  // IPv4 first: more networks are set up for it.
  std::stable_partition(found.begin(), found.end(),
                        [](const endpoint& e) { return e.family() == AF_INET; });
  if (found.empty() && !interface.empty())
    throw problem{SUCL_ERROR_CONFIGURATION,
                  "no interface of this machine is called '" + interface +
                      "' or has an address in that subnet. It has: " + interfaces_there(list),
                  "Correct tcp.interface (SUCL_TCP_INTERFACE): a name, or a subnet as 10.1.0.0/16"};
  return found;
}

endpoint own_address(const std::string& interface, const std::vector<endpoint>& known) {
  const std::vector<endpoint> own = own_addresses(interface);
  for (const endpoint& e : known)
    for (const endpoint& mine : own)
      if (mine.same_address(e)) return mine;
  for (const endpoint& e : known)
    for (const endpoint& mine : own)
      if (mine.family() == e.family()) return mine;
  return own.front();
}

int listen_at(endpoint& where, bool* in_use) {
  *in_use = false;
  int error = 0;
  int s = -1;
  if (where.family() != 0) {
    s = open_listener(where, false, &error);
  } else {
    const std::uint16_t port = where.port();
    v6(where).sin6_family = AF_INET6;
    v6(where).sin6_addr = in6addr_any;
    where.set_port(port);
    s = open_listener(where, true, &error);
    if (s < 0 && error != EADDRINUSE) {  // there is no IPv6
      where = {};
      v4(where).sin_family = AF_INET;
      where.set_port(port);
      s = open_listener(where, false, &error);
    }
  }
  if (s < 0) {
    *in_use = error == EADDRINUSE;
    throw problem{SUCL_ERROR_UNAVAILABLE,
                  "cannot listen at " + text_of(where) + ": " + std::strerror(error),
                  *in_use ? "Choose another port: SUCL_TCP_PORT, the same on every rank"
                          : "Choose another interface: tcp.interface (SUCL_TCP_INTERFACE)"};
  }
  socklen_t length = sizeof where.storage;
  getsockname(s, where.generic(), &length);
  return s;
}

bool accepts_connections(endpoint where) {
  if (where.family() == 0) {
    v4(where).sin_family = AF_INET;
    v4(where).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  const int s = socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0) return false;
  const int yes = 1;
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  endpoint own;
  socklen_t length = sizeof own.storage;
  bool accepted = connect(s, where.generic(), where.length()) == 0;
  // A socket can be connected to itself.
  if (accepted && getsockname(s, own.generic(), &length) == 0)
    accepted = own.port() != where.port() || !own.same_address(where);
  close(s);
  return accepted;
}

void put(writer& out, const endpoint& e) {
  out.number(static_cast<std::uint8_t>(e.family() == AF_INET6 ? 6 : 4));
  out.number(e.port());
  const std::string raw = raw_address(e);
  out.raw(raw.data(), raw.size());
}

endpoint take_endpoint(reader& in) {
  endpoint e;
  const auto family = in.number<std::uint8_t>();
  const auto port = in.number<std::uint16_t>();
  if (family == 4) {
    v4(e).sin_family = AF_INET;
    const auto address = in.number<std::uint32_t>();
    std::memcpy(&v4(e).sin_addr, &address, sizeof address);
  } else if (family == 6) {
    v6(e).sin6_family = AF_INET6;
    for (auto& part : v6(e).sin6_addr.s6_addr) part = in.number<std::uint8_t>();
  }
  e.set_port(port);
  if (!in.good()) return {};
  return e;
}

}  // namespace sucl::tcp
