// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether operations are as fast as the tuning table says.
#pragma once

#include "tune/table/table.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// Times the first operations of each row of a measured table, and warns, once in a process, where
/// even the fastest of them takes more than twice as long. One thread at a time.
class tuned_pace {
 public:
  tuned_pace() = default;
  /// `t` must outlive this object; null: nothing is watched.
  explicit tuned_pace(const tune::table* t);

  /// Whether an operation that goes by `row` (or null) is to be timed.
  bool watches(const tune::table_row* row) const {
    return row && m_table && m_rows[row_index(*row)].left > 0;
  }
  void note(const tune::table_row& row, std::uint64_t bytes, std::chrono::nanoseconds took);

 private:
  struct record {
    int left = 0;
    double least = 0;  ///< times as long as the table says
  };
  std::size_t row_index(const tune::table_row& row) const;

  const tune::table* m_table = nullptr;
  std::vector<record> m_rows;
};

}  // namespace sucl::core
