// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The part of a peer buffer that messages use, and how messages are cut. Both ends of a message
/// work this out for themselves, from the same numbers.
///
/// It has channels. Piece i of a message goes through channel i modulo their number, and each
/// channel passes pieces on in one order, counted from 0 for as long as the communicator lives.
#pragma once

#include <cstdint>

namespace sucl::kernels {

inline constexpr int max_channels = 64;

/// Bytes, but for the channels; the same on every rank.
struct message_layout {
  static constexpr std::uint64_t slots = 4;          ///< of a channel: pieces that may lie there
  static constexpr std::uint64_t header_bytes = 32;  ///< two LL lines

  std::int32_t channels = 0;   ///< 0: the buffer takes no messages
  std::uint64_t at = 0;        ///< where the part begins in the buffer
  std::uint64_t ll_bytes = 0;  ///< most data of a piece that goes by the LL protocol; whole quads
  std::uint64_t slot = 0;      ///< and of one that goes through staging memory

  /// Of each channel a flag: pieces that are ready, and, of the buffer in the other direction,
  /// freed.
  constexpr std::uint64_t ready(int channel) const { return at + 8u * index(channel); }
  constexpr std::uint64_t freed(int channel) const {
    return at + 8u * (max_channels + index(channel));
  }
  /// Of each piece what it belongs to, and the data.
  constexpr std::uint64_t header(int channel, std::uint64_t piece) const {
    return headers() + offset(channel, piece) * header_bytes;
  }
  constexpr std::uint64_t ll(int channel, std::uint64_t piece) const {
    return headers() + all() * header_bytes + offset(channel, piece) * 2 * ll_bytes;
  }
  constexpr std::uint64_t stage(int channel, std::uint64_t piece) const {
    return headers() + all() * (header_bytes + 2 * ll_bytes) + offset(channel, piece) * slot;
  }
  constexpr std::uint64_t bytes() const {
    return channels == 0 ? 0 : headers() + all() * (header_bytes + 2 * ll_bytes + slot) - at;
  }

 private:
  static constexpr std::uint64_t index(int n) { return static_cast<std::uint64_t>(n); }
  constexpr std::uint64_t all() const { return index(channels) * slots; }
  constexpr std::uint64_t headers() const { return at + 16u * max_channels; }
  constexpr std::uint64_t offset(int channel, std::uint64_t piece) const {
    return index(channel) * slots + piece % slots;
  }
};

/// How a message is cut: in pieces of so many bytes, the last one shorter. One of no bytes has one.
struct message_cut {
  std::uint64_t piece, pieces;
  bool ll;  ///< they go by the LL protocol
};

constexpr message_cut cut_of(const message_layout& s, std::uint64_t bytes) {
  constexpr std::uint64_t unit = 128;
  const auto channels = static_cast<std::uint64_t>(s.channels);
  message_cut cut{s.ll_bytes, 1, bytes <= channels * s.ll_bytes};
  if (!cut.ll) {
    const std::uint64_t each = ((bytes + channels - 1) / channels + unit - 1) / unit * unit;
    cut.piece = each < s.slot ? each : s.slot;
  }
  if (bytes > 0) cut.pieces = (bytes + cut.piece - 1) / cut.piece;
  return cut;
}

}  // namespace sucl::kernels
