// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "net/provider.hpp"

#include "net/kept_signals.hpp"
#include "net/problem.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <vector>

namespace sucl::fabric {
namespace {

// Of IP: four or sixteen bytes; none otherwise.
struct ip_address {
  std::array<unsigned char, 16> bytes{};
  std::size_t length = 0;

  bool loopback() const {
    if (length == 4) return bytes[0] == 127;
    static constexpr std::array<unsigned char, 16> one{0, 0, 0, 0, 0, 0, 0, 0,
                                                       0, 0, 0, 0, 0, 0, 0, 1};
    return length == 16 && bytes == one;
  }
  // Of one link: of no use to a peer that does not know which.
  bool link_local() const { return length == 16 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
};

ip_address address_of(const fi_info& info) {
  ip_address a;
  if (info.src_addr == nullptr) return a;
  if (info.addr_format == FI_SOCKADDR_IN && info.src_addrlen >= sizeof(sockaddr_in)) {
    a.length = 4;
    std::memcpy(a.bytes.data(), &static_cast<sockaddr_in*>(info.src_addr)->sin_addr, a.length);
  } else if (info.addr_format == FI_SOCKADDR_IN6 && info.src_addrlen >= sizeof(sockaddr_in6)) {
    a.length = 16;
    std::memcpy(a.bytes.data(), &static_cast<sockaddr_in6*>(info.src_addr)->sin6_addr, a.length);
  }
  return a;
}

std::string_view name_of(const fi_info& info) { return info.fabric_attr->prov_name; }

bool on_interface(const fi_info& info, const std::string& wanted) {
  if (wanted == "loopback") return address_of(info).loopback() || address_of(info).length == 0;
  if (wanted.find('/') != wanted.npos) return in_subnet(info, wanted);
  return info.domain_attr->name != nullptr && wanted == info.domain_attr->name;
}

// What comes before what, where neither provider nor interface are given: lower is better.
int address_rank(const fi_info& info) {
  const ip_address a = address_of(info);
  return (a.loopback() ? 4 : 0) + (a.link_local() ? 2 : 0) + (a.length == 16 ? 1 : 0);
}

info_ptr hints_for(const library& from, const settings& wanted) {
  info_ptr hints(from.dupinfo(nullptr), {&from});
  if (!hints) throw std::bad_alloc();
  hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // Memory of messages is not registered.
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if (!wanted.provider.empty()) hints->fabric_attr->prov_name = strdup(wanted.provider.c_str());
  return hints;
}

std::string names_in(const fi_info* list) {
  std::vector<std::string> names;
  for (; list != nullptr; list = list->next) {
    const std::string name(name_of(*list));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string domains_in(const fi_info* list) {
  std::string text;
  for (; list != nullptr; list = list->next) {
    const std::string name = list->domain_attr->name ? list->domain_attr->name : "";
    if (!provider_rank(name_of(*list))) continue;
    if (text.find("'" + name + "'") == text.npos) text += (text.empty() ? "'" : ", '") + name + "'";
  }
  return text;
}

info_ptr query(const library& from, const settings& wanted, int* code) {
  const kept_signals kept;  // the first call loads providers
  const info_ptr hints = hints_for(from, wanted);
  fi_info* list = nullptr;
  const std::uint32_t version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
  *code = from.getinfo(std::min(version, from.version()), nullptr, nullptr, 0, hints.get(), &list);
  return info_ptr(list, {&from});
}

[[noreturn]] void refuse(const library& from, const settings& wanted, int code) {
  const std::string version = "libfabric " + from.version_text() + " (" + from.path + ")";
  int ignored = 0;
  settings any = wanted;
  any.provider.clear();
  const info_ptr others = query(from, any, &ignored);
  const std::string names = others ? names_in(others.get()) : "";
  const std::string cure =
      names.empty() ? "Install a libfabric with a provider for this machine's network, "
                      "and give its path in fabric.library (SUCL_FABRIC_LIBRARY)."
                    : "Set fabric.provider (SUCL_FABRIC_PROVIDER) to one of: " + names + ".";
  throw problem{
      SUCL_ERROR_UNAVAILABLE,
      version + (wanted.provider.empty()
                     ? " has no provider of tagged messages between machines here"
                     : " has no provider \"" + wanted.provider + "\" of tagged messages here"),
      cure, code};
}

}  // namespace

// Within TCP: the provider that has datagrams of its own. libfabric 1.17 has two others below a
// layer that makes them: with tcp, and with net alone, a receive whose message has another length
// never ends there.
std::optional<int> provider_rank(std::string_view name) {
  for (const char* other : {"shm", "sm2", "udp", "ofi_rxd", "sockets", "mrail", "lnx", "hook"})
    if (name.find(other) != name.npos) return std::nullopt;
  if (name == "net") return std::nullopt;
  if (name == "tcp") return 1;
  if (name == "net;ofi_rxm") return 2;
  return name == "tcp;ofi_rxm" ? 3 : 0;
}

bool in_subnet(const fi_info& info, const std::string& subnet) {
  const std::size_t slash = subnet.find('/');
  const std::string first = subnet.substr(0, slash);
  ip_address net;
  net.length = inet_pton(AF_INET, first.c_str(), net.bytes.data()) == 1    ? 4
               : inet_pton(AF_INET6, first.c_str(), net.bytes.data()) == 1 ? 16
                                                                           : 0;
  unsigned bits = 0;
  const char* end = subnet.data() + subnet.size();
  const auto read = slash == subnet.npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                         : std::from_chars(subnet.data() + slash + 1, end, bits);
  if (net.length == 0 || read.ec != std::errc() || read.ptr != end || bits > 8 * net.length)
    throw problem{SUCL_ERROR_CONFIGURATION, "fabric.interface: '" + subnet + "' is no subnet",
                  "Write one as 10.1.0.0/16 or fd00:1::/64, or the name of an interface."};
  const ip_address own = address_of(info);
  if (own.length != net.length) return false;
  for (unsigned i = 0; i < bits; ++i)
    if (((own.bytes[i / 8] ^ net.bytes[i / 8]) >> (7 - i % 8) & 1) != 0) return false;
  return true;
}

info_ptr choose_provider(const library& from, const settings& wanted) {
  int code = 0;
  const info_ptr list = query(from, wanted, &code);
  const fi_info* best = nullptr;
  std::array<int, 2> best_rank{};
  bool elsewhere = false;
  for (const fi_info* one = list.get(); one != nullptr; one = one->next) {
    auto rank = provider_rank(name_of(*one));
    if (!wanted.provider.empty() && !rank) rank = 0;
    if (!rank) continue;
    if (!wanted.interface.empty() && !on_interface(*one, wanted.interface)) {
      elsewhere = true;
      continue;
    }
    const std::array<int, 2> mine{*rank, address_rank(*one)};
    if (best != nullptr && best_rank <= mine) continue;
    best = one;
    best_rank = mine;
  }
  if (best == nullptr && elsewhere)
    throw problem{SUCL_ERROR_UNAVAILABLE,
                  "libfabric has no provider at the interface '" + wanted.interface + "'",
                  "Set fabric.interface (SUCL_FABRIC_INTERFACE; where that is empty, "
                  "SUCL_TCP_INTERFACE counts) to one of: " +
                      domains_in(list.get()) + ", or to a subnet."};
  if (best == nullptr) refuse(from, wanted, code);
  info_ptr chosen(from.dupinfo(best), {&from});
  if (!chosen) throw std::bad_alloc();
  return chosen;
}

}  // namespace sucl::fabric
