// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Messages as bytes. Numbers are little-endian, texts have their length before them, and the
/// reader checks every length: what comes from a network may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::tcp {

using bytes = std::vector<std::byte>;

/// What a frame is. The first ones are requests to a store and its answers, the others are between
/// members.
enum class frame_type : std::uint32_t {
  put = 1,        ///< key, value
  wait = 2,       ///< number, keys: answered when one of them is there
  missing = 3,    ///< prefix, number: which of prefix0, prefix1... are not there
  finish = 4,     ///< no rank needs the store any more
  stored = 16,    ///< of put
  conflict = 17,  ///< of put: the key is there with another value, which it has
  value = 18,     ///< of wait: key, value
  later = 19,     ///< of wait: too many wait; milliseconds
  absent = 20,    ///< of missing: a count, the numbers
  hello = 32,     ///< rank and size of the sender, the rank that it means, its process
  welcome = 33,
  failed = 34,           ///< the set-up: status, text, hint
  up = 35,               ///< of an exchange, towards the root: group, number, blocks
  down = 36,             ///< the same from the root
  broken = 37,           ///< an exchange cannot end: group, number, status, text
  control_message = 38,  ///< group, source, text
  abort = 39,            ///< exit code, rank
  goodbye = 40,          ///< nothing more comes
  agreement = 41         ///< group, number, a paxos_message
};

/// Size of the header of each frame: the number of bytes that follow, and the type.
inline constexpr std::size_t frame_header_bytes = 12;

/// Builds a message; frame() writes its header.
class writer {
 public:
  explicit writer(frame_type type) : m_type(type), m_out(frame_header_bytes) {}

  template <class Int>
  writer& number(Int n) {
    auto v = static_cast<std::uint64_t>(n);
    for (std::size_t i = 0; i < sizeof(Int); ++i, v >>= 8)
      m_out.push_back(static_cast<std::byte>(v & 0xff));
    return *this;
  }
  writer& text(std::string_view t) {
    number(static_cast<std::uint32_t>(t.size()));
    return raw(t.data(), t.size());
  }
  writer& raw(const void* data, std::size_t n) {
    const auto* from = static_cast<const std::byte*>(data);
    m_out.insert(m_out.end(), from, from + n);
    return *this;
  }
  /// The frame, which several connections may send.
  std::shared_ptr<const bytes> frame() {
    std::uint64_t length = m_out.size() - frame_header_bytes;
    for (std::size_t i = 0; i < 8; ++i, length >>= 8)
      m_out[i] = static_cast<std::byte>(length & 0xff);
    auto type = static_cast<std::uint32_t>(m_type);
    for (std::size_t i = 8; i < frame_header_bytes; ++i, type >>= 8)
      m_out[i] = static_cast<std::byte>(type & 0xff);
    return std::make_shared<const bytes>(std::move(m_out));
  }

 private:
  frame_type m_type;
  bytes m_out;
};

/// Parses a message. After the first field that is missing all further ones are empty, and good()
/// is false.
class reader {
 public:
  reader(const std::byte* data, std::size_t n) : m_at(data), m_left(n) {}

  template <class Int>
  Int number() {
    std::uint64_t v = 0;
    if (!take(sizeof(Int))) return 0;
    for (std::size_t i = 0; i < sizeof(Int); ++i)
      v |= static_cast<std::uint64_t>(m_at[i]) << (8 * i);
    skip(sizeof(Int));
    return static_cast<Int>(v);
  }
  std::string text(std::size_t most) {
    const auto n = number<std::uint32_t>();
    if (n > most) m_good = false;
    if (!take(n)) return {};
    std::string t(reinterpret_cast<const char*>(m_at), n);
    skip(n);
    return t;
  }
  /// Everything that is left.
  const std::byte* rest() const { return m_at; }
  std::size_t left() const { return m_left; }
  bool good() const { return m_good; }
  /// All of it was read, and nothing was missing.
  bool complete() const { return m_good && m_left == 0; }

 private:
  bool take(std::size_t n) {
    m_good = m_good && n <= m_left;
    return m_good;
  }
  void skip(std::size_t n) {
    m_at += n;
    m_left -= n;
  }
  const std::byte* m_at;
  std::size_t m_left;
  bool m_good = true;
};

}  // namespace sucl::tcp
