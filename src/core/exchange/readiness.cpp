// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/readiness.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "core/exchange/topology.hpp"

namespace sucl::core {
namespace {

// The code of an error, its message and its hint, one a line; or 0 and the choice.
std::string text_of(const readiness& v) {
  if (!v.wrong) return "0\n" + v.choice;
  return std::to_string(static_cast<int>(v.wrong->code)) + "\n" + v.wrong->message + "\n" +
         v.wrong->hint;
}

}  // namespace

int agree(const sucl_oob& oob, int rank, int size, const readiness& mine, const char* cannot,
          const char* hint) {
  const auto all = exchange(oob, size, text_of(mine));
  if (mine.wrong) {
    error_info own = *mine.wrong;
    own.rank = rank;
    throw error(own);
  }
  int other = 0;
  for (int r = 0; r < size; ++r) {
    const auto& text = all[static_cast<std::size_t>(r)];
    const auto parts = base::split(text, '\n');
    if (parts[0] != "0")
      base::fail(static_cast<errc>(std::stoi(parts[0])),
                 "rank " + std::to_string(r) + " " + cannot + ": " + parts[1],
                 parts.size() > 2 && !parts[2].empty() ? parts[2] : std::string(hint));
    if (other == 0 && text != all[0]) other = r;
  }
  return other;
}

}  // namespace sucl::core
