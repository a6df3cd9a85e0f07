// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/tuned_pace.hpp"

#include "base/log.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

namespace sucl::core {
namespace {

// The fastest of so many says how fast it can be here: the first ones make plans and touch memory.
constexpr int samples = 30;
constexpr double too_slow = 2;

std::atomic<bool> warned{false};

}  // namespace

tuned_pace::tuned_pace(const tune::table* t) {
  if (!t || !t->measured) return;
  m_table = t;
  for (const tune::table_row& row : t->rows)
    m_rows.push_back({row.seconds > 0 ? samples : 0, std::numeric_limits<double>::infinity()});
}

std::size_t tuned_pace::row_index(const tune::table_row& row) const {
  return static_cast<std::size_t>(&row - m_table->rows.data());
}

void tuned_pace::note(const tune::table_row& row, std::uint64_t bytes,
                      std::chrono::nanoseconds took) {
  record& r = m_rows[row_index(row)];
  const double scale = std::max(
      1.0, static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(1, row.at)));
  r.least = std::min(r.least, static_cast<double>(took.count()) * 1e-9 / (row.seconds * scale));
  if (--r.left > 0 || r.least <= too_slow || warned.exchange(true)) return;
  base::log(base::log_level::warn, "tuning", sucl::name(row.what), " of ", base::print_bytes(bytes),
            " takes ", base::print_fixed(r.least, 1), " times as long as the tuning table says (",
            row.origin,
            "), at best. Look for what else uses this machine, and for ranks that wait for others;"
            " otherwise run sucl tune again. This is said once");
}

}  // namespace sucl::core
