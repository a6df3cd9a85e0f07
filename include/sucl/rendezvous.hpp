// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How the processes of a job find each other without a launcher: for runtime::join.
#pragma once

#include <sucl/export.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace sucl {

/// The id of a job: addresses and a port, and a random secret that every connection of the job has
/// to know. One process makes it and passes it to the others by any means: it is trivially
/// copyable, and has a form as text. Every process that knows it can join, so keep it secret.
class SUCL_API unique_id {
 public:
  /// An id of no job.
  unique_id() = default;

  /// Makes the id of a new job. A thread of this process then serves the store in which the ranks
  /// find each other, until all have joined: the process may be a rank or not, and has to live for
  /// so long. An id serves once. `network` is the name of an interface, a subnet as 10.1.0.0/16 or
  /// "loopback" for this machine alone; empty: tcp.interface of the configuration, or any. Port 0:
  /// any. Throws errc::unavailable, errc::configuration.
  static unique_id make(const std::string& network = {}, std::uint16_t port = 0);

  /// One line of at most 255 printable characters without blanks.
  std::string to_string() const { return m_text.data(); }
  /// The id of such a line. Throws errc::invalid_argument if it is longer; whether it is right,
  /// runtime::join says.
  static unique_id from_string(const std::string& text);

  friend bool operator==(const unique_id& a, const unique_id& b) { return a.m_text == b.m_text; }
  friend bool operator!=(const unique_id& a, const unique_id& b) { return !(a == b); }

 private:
  std::array<char, 256> m_text{};
};

/// A store of the program's own through which ranks find each other: one that all of them reach,
/// and no other process. Each job needs one of its own, or keys of its own. The functions are
/// called by the thread that is inside runtime::join, which throws what they throw.
struct rendezvous_store {
  /// Keeps a value, of any bytes and up to 32 KiB. A key is put once.
  std::function<void(const std::string& key, const std::string& value)> put;
  /// The value of a key that is there.
  std::function<std::string(const std::string& key)> get;
  /// Waits until the key is there, at most for that time. Returns whether it is there.
  std::function<bool(const std::string& key, std::chrono::milliseconds limit)> wait;
};

}  // namespace sucl
