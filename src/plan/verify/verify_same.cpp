// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Checks that ranks have received reductions by the same expressions.
#include "plan/verify/checker.hpp"

#include <algorithm>
#include <iterator>

namespace sucl::plan {

// That an element of a piece is the left fold of its terms in order of rank.
void checker::check_fixed(int rank, const piece& part, std::uint64_t offset, symbol found) {
  if (m_schedule.what.order != ordering::fixed) return;
  symbol sum;
  int folded = 0;
  for (const term& t : part.terms) {
    m_cost.take_steps(static_cast<std::uint64_t>(t.count));
    for (std::int32_t r = t.first; r < t.first + t.count; ++r, ++folded) {
      const auto shift =
          static_cast<std::int64_t>(t.source) - static_cast<std::int64_t>(part.offset);
      const symbol next = m_values.input_of(r, shift);
      if (folded == 0) {
        sum = next;
      } else {
        m_values.combine(sum, next, folded > 1, sum);
      }
    }
  }
  if (found.id == sum.id) return;
  verdict v;
  v.what = fault::order;
  v.rank = rank;
  v.where = space::recv;
  v.offset = offset;
  v.bytes = m_schedule.what.element_bytes;
  const std::uint64_t element = offset / v.bytes;
  stop(std::move(v), "element " + std::to_string(element) + " is " + m_values.text_of(found.id) +
                         " of the inputs of these ranks; in the fixed order it is " +
                         m_values.text_of(sum.id));
}

// That no rank has received the same reduction of the same elements by another expression.
void checker::check_same(int rank, std::uint64_t offset, std::uint64_t end, symbol found) {
  if (m_received_of.size() <= found.id) m_received_of.resize(m_values.size());
  received_map*& map = m_received_of[found.id];
  if (!map) {
    m_key.clear();
    for (const share& s : m_values.shares(found.id))
      m_key.insert(m_key.end(), {s.first, s.count, s.shift});
    map = &m_received[m_key];
  }
  // Offsets in the input of the first rank of the shares.
  const std::int64_t from = static_cast<std::int64_t>(offset) + found.shift;
  const std::int64_t to = static_cast<std::int64_t>(end) + found.shift;
  const std::int64_t base = static_cast<std::int64_t>(offset) - from;
  auto at = map->upper_bound(from);
  if (at != map->begin() && std::prev(at)->second.end > from) --at;
  std::int64_t begin = from;  // what is new
  for (; at != map->end() && at->first < to; ++at) {
    m_cost.take_steps(1);
    const received& known = at->second;
    if (known.value != found.id) {
      m_identical = false;
      if (m_schedule.what.order == ordering::free) return;
      const std::int64_t address = std::max(from, at->first);
      verdict v;
      v.what = fault::differs;
      v.rank = rank;
      v.where = space::recv;
      v.offset = static_cast<std::uint64_t>(address + base);
      v.bytes = m_schedule.what.element_bytes;
      const std::uint64_t element = v.offset / v.bytes;
      stop(std::move(v), "element " + std::to_string(element) + " is " +
                             m_values.text_of(found.id) + " on rank " + std::to_string(rank) +
                             ", but " + m_values.text_of(known.value) + " on rank " +
                             std::to_string(known.rank) +
                             " (of the inputs of these ranks): rounding makes them differ");
    }
    if (begin < at->first) map->emplace_hint(at, begin, received{at->first, found.id, rank});
    begin = std::max(begin, known.end);
  }
  if (begin < to) map->emplace_hint(at, begin, received{to, found.id, rank});
}

}  // namespace sucl::plan
