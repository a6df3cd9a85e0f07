// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "identity.hpp"

#include <charconv>

namespace sucl::tcp {
namespace {

constexpr const char* head = "sucl1-";

[[noreturn]] void refuse(const std::string& text) {
  throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                "the text of " + std::to_string(text.size()) + " bytes is no id of a job",
                "Hand over what unique_id::make() or its to_string() has given, unchanged"};
}

}  // namespace

std::string identity::text() const {
  std::string line = head + hex(secret.data(), secret.size()) + "-" + std::to_string(port) + "-";
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::string more = (i > 0 ? "," : "") + address_text(addresses[i]);
    if (line.size() + more.size() > max_identity) break;
    line += more;
  }
  return line;
}

identity identity::of(const std::string& whole) {
  const std::string start = head;
  const std::string text = whole.substr(0, whole.rfind('@'));
  const auto secret_end = text.find('-', start.size());
  const auto port_end = secret_end == text.npos ? text.npos : text.find('-', secret_end + 1);
  if (text.compare(0, start.size(), start) != 0 || port_end == text.npos) refuse(text);
  identity made;
  made.secret = unhex(text.substr(start.size(), secret_end - start.size()));
  const char* end = text.data() + port_end;
  const auto [stop, wrong] = std::from_chars(text.data() + secret_end + 1, end, made.port);
  if (made.secret.size() != sizeof(nonce) || wrong != std::errc{} || stop != end || made.port == 0)
    refuse(text);
  for (std::size_t at = port_end + 1; at < text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    made.addresses.push_back(endpoint_of(text.substr(at, comma - at)));
    if (made.addresses.back().family() == 0) refuse(text);
    made.addresses.back().set_port(made.port);
    at = comma + 1;
  }
  if (made.addresses.empty()) refuse(text);
  if (text.size() < whole.size()) {
    const char* const last = whole.data() + whole.size();
    const auto [ranks_end, no_number] =
        std::from_chars(whole.data() + text.size() + 1, last, made.ranks);
    if (no_number != std::errc{} || ranks_end != last || made.ranks < 1) refuse(whole);
  }
  return made;
}

std::vector<std::string> identity::hosts() const {
  std::vector<std::string> list;
  for (const endpoint& e : addresses) list.push_back(text_of(e));
  return list;
}

identity make_identity(const std::shared_ptr<reactor>& loop, const std::string& interface,
                       std::uint16_t port, std::shared_ptr<store_server>& server) {
  identity made;
  endpoint at;
  if (interface == "loopback") {
    made.addresses.push_back(at = endpoint_of("127.0.0.1"));
  } else if (!interface.empty()) {
    made.addresses.push_back(at = own_addresses(interface).front());
  } else {
    made.addresses = own_addresses("");
    // Last: it serves where there is no network.
    made.addresses.push_back(endpoint_of("127.0.0.1"));
  }
  const nonce secret = random_nonce();
  made.secret.assign(secret.begin(), secret.end());
  bool in_use = false;
  at.set_port(port);
  const int socket = listen_at(at, &in_use);
  made.port = at.port();
  for (endpoint& e : made.addresses) e.set_port(made.port);
  server = store_server::start(loop, socket, made.secret);
  return made;
}

}  // namespace sucl::tcp
