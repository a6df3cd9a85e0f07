// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace sucl::sycl_layer {

/// Which of a few in-order queues the commands of each message go to. A queue that waits holds up
/// what comes behind it there, so what comes before a message never stands behind what waits for
/// the end of another one: else messages whose peers wait likewise would never begin. Among more
/// messages than there are queues some share one, and end in the order in which they were issued.
/// Not for several threads at once.
class message_queues {
 public:
  /// Few, because a stream that waits holds up all those that share its connection to the device.
  static constexpr std::size_t at_once = 1, after_others = 4, ends = 8;
  static constexpr std::size_t all = at_once + after_others + ends;

  struct choice {
    std::size_t before;  ///< the queue of what comes before the message
    std::size_t after;   ///< and of what waits for its end
  };

  /// `waits`: what comes before the message waits for other commands.
  choice enter(bool waits) {
    return {waits ? least(at_once, after_others) : least(0, at_once),
            least(at_once + after_others, ends)};
  }
  void leave(const choice& c) {
    --m_messages[c.before];
    --m_messages[c.after];
  }

 private:
  std::size_t least(std::size_t first, std::size_t count) {
    const auto begin = m_messages.begin() + static_cast<std::ptrdiff_t>(first);
    const auto found = std::min_element(begin, begin + static_cast<std::ptrdiff_t>(count));
    ++*found;
    return static_cast<std::size_t>(found - m_messages.begin());
  }

  std::array<int, all> m_messages{};
};

}  // namespace sucl::sycl_layer
