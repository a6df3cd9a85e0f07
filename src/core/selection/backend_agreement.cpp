// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What ranks tell each other while the backends of a communicator are made.
#include "core/selection/backend_set.hpp"

#include <algorithm>
#include <cstring>

namespace sucl::core {

// A rank without memory is no reason to go without a backend, as one without a library is: the
// communicator is not made.
backend_set::verdict backend_set::agree_on_part(const sucl_oob& oob,
                                                const error_info& problem) const {
  struct card {
    std::int32_t code;
    char text[252];
  };
  card mine{static_cast<std::int32_t>(problem.code), {}};
  problem.message.copy(mine.text, sizeof mine.text - 1);
  std::vector<card> cards(static_cast<std::size_t>(m_size));
  sucl_oob channel = oob;
  if (const auto status = services().oob_allgather(&channel, &mine, cards.data(), sizeof mine))
    throw_last(status);
  verdict v;
  for (std::size_t r = 0; r < cards.size(); ++r) {
    if (cards[r].code == SUCL_SUCCESS) continue;
    v.all = false;
    if (cards[r].code != SUCL_ERROR_OUT_OF_MEMORY || v.no_memory) continue;
    v.no_memory.emplace();
    v.no_memory->code = errc::out_of_memory;
    // What every rank says they have agreed on already.
    const bool agreed = std::all_of(cards.begin(), cards.end(), [&](const card& c) {
      return std::strcmp(c.text, cards[r].text) == 0;
    });
    v.no_memory->message = cards[r].text;
    if (!agreed || m_size == 1)
      v.no_memory->message =
          "rank " + std::to_string(r) + " has no memory for a communicator: " + cards[r].text;
    v.no_memory->hint = "Free memory of the device first, or make fewer communicators";
  }
  return v;
}

// True if every rank says so.
bool backend_set::agree(const sucl_oob& oob, bool mine) const {
  error_info said;
  said.code = mine ? errc::success : errc::unavailable;
  return agree_on_part(oob, said).all;
}

// Whether every rank has made its part of a built-in backend; if not, it ends.
bool backend_set::agree_on(backend_instance& made, const sucl_oob& oob, std::string& obstacle,
                           errc problem) const {
  error_info mine;
  mine.code = made.via.table ? errc::success : problem;
  mine.message = obstacle;
  const auto v = agree_on_part(oob, mine);
  if (v.all) return true;
  if (made.via.table) made.via.table->comm_destroy(made.via.comm);
  if (v.no_memory) throw error(*v.no_memory);
  if (obstacle.empty()) obstacle = "it cannot be used on every rank";
  return false;
}

std::string backend_set::reach() const {
  static constexpr const char* names[] = {"system", "host", "shared", "device"};
  std::string text;
  for (const auto& c : m_all) {
    text += (text.empty() ? "" : "; ") + c.name + ":";
    for (sucl_memory m = 0; m < SUCL_MEMORY_COUNT; ++m) {
      sucl_query q{};
      q.struct_size = sizeof q;
      q.kind = SUCL_KIND_BROADCAST;
      q.type = SUCL_TYPE_UINT8;
      q.element_size = 1;
      q.memory = m;
      q.platform = m_platform.c_str();
      sucl_capability a{};
      a.struct_size = sizeof a;
      if (!c.via.table->query(c.via.state, &q, &a) && a.supported)
        text += " " + std::string(names[m]);
    }
  }
  return text;
}

}  // namespace sucl::core
