// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What processes need to find each other, as one line of text: the addresses and the port of the
/// store, and a secret.
#pragma once

#include "net/address.hpp"
#include "store.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sucl::tcp {

/// The most bytes of the text.
inline constexpr std::size_t max_identity = 255;

struct identity {
  std::string secret;
  std::uint16_t port = 0;
  std::vector<endpoint> addresses;
  int ranks = 0;  ///< of the job; 0: any number

  /// "sucl1-SECRET-PORT-ADDRESS,ADDRESS...": as many addresses as there is room for. It may be
  /// followed by "@" and the number of ranks.
  std::string text() const;
  /// Throws problem.
  static identity of(const std::string& text);
  /// The addresses with the port.
  std::vector<std::string> hosts() const;
};

/// Makes one, and serves its store until all processes have found each other. `interface`: as in
/// own_addresses(); "loopback": this machine alone.
identity make_identity(const std::shared_ptr<reactor>& loop, const std::string& interface,
                       std::uint16_t port, std::shared_ptr<store_server>& server);

}  // namespace sucl::tcp
