// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/symbolic/symbolic.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace sucl::plan {
namespace {

bool before(const share& a, const share& b) {
  return std::tie(a.first, a.shift) < std::tie(b.first, b.shift);
}

// Appends to a sorted list, joining with the share before it.
void append(std::vector<share>& list, const share& s) {
  if (!list.empty()) {
    share& last = list.back();
    if (last.shift == s.shift && last.first + last.count == s.first) {
      last.count += s.count;
      return;
    }
  }
  list.push_back(s);
}

// Whether some rank contributes the same offset through two shares of a list sorted by first rank.
bool repeats(const std::vector<share>& list) {
  constexpr std::size_t max_compared = 64;  // each with each
  if (list.size() > max_compared) {
    std::vector<share> by_shift = list;
    std::sort(by_shift.begin(), by_shift.end(), [](const share& a, const share& b) {
      return std::tie(a.shift, a.first) < std::tie(b.shift, b.first);
    });
    return std::adjacent_find(by_shift.begin(), by_shift.end(), [](const share& a, const share& b) {
             return a.shift == b.shift && b.first < a.first + a.count;
           }) != by_shift.end();
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t j = i + 1; j < list.size() && list[j].first < list[i].first + list[i].count;
         ++j)
      if (list[j].shift == list[i].shift) return true;
  return false;
}

}  // namespace

bool normalise(std::vector<share>& shares) {
  std::sort(shares.begin(), shares.end(), before);
  if (repeats(shares)) return false;
  std::vector<share> joined;
  for (const share& s : shares) append(joined, s);
  shares = std::move(joined);
  return true;
}

value_table::value_table(int ranks, ordering order, fold_rules rules, proof_cost& cost)
    : m_order(order), m_rules(rules), m_cost(cost) {
  m_values.resize(1);
  m_made_of.resize(static_cast<std::size_t>(ranks) + 1);
  for (std::int32_t r = 0; r < ranks; ++r) {
    m_values.push_back({static_cast<std::uint32_t>(m_shares.size()), 1});
    m_shares.push_back({r, 1, 0});
  }
  m_memos.resize(1024);
}

value_table::memo& value_table::slot(std::uint32_t a, std::uint32_t b, std::int64_t delta) {
  std::uint64_t h = (static_cast<std::uint64_t>(a) << 32 | b) * 0x9fb21c651e98df25ull;
  h = (h ^ (h >> 32) ^ static_cast<std::uint64_t>(delta)) * 0xbf58476d1ce4e5b9ull;
  const std::size_t mask = m_memos.size() - 1;
  for (std::size_t i = (h >> 20) & mask;; i = (i + 1) & mask) {
    memo& m = m_memos[i];
    if (m.a == 0 || (m.a == a && m.b == b && m.delta == delta)) return m;
  }
}

void value_table::grow() {
  std::vector<memo> old = std::move(m_memos);
  m_memos.assign(old.size() * 2, {});
  for (const memo& m : old)
    if (m.a != 0) slot(m.a, m.b, m.delta) = m;
}

// Merges two sorted lists into m_merged, the second shifted. False if they share a contribution.
bool value_table::merge(std::span<const share> a, std::span<const share> b, std::int64_t delta) {
  m_merged.clear();
  std::size_t i = 0, j = 0;
  bool simple = true;  // no two shares seen so far overlap in ranks
  std::int32_t end = 0;
  const auto take = [&](share s) {
    simple = simple && s.first >= end;
    end = std::max(end, s.first + s.count);
    append(m_merged, s);
  };
  while (i < a.size() || j < b.size()) {
    if (j == b.size()) {
      take(a[i++]);
      continue;
    }
    const share other{b[j].first, b[j].count, b[j].shift + delta};
    if (i < a.size() && before(a[i], other)) {
      take(a[i++]);
    } else {
      take(other);
      ++j;
    }
  }
  return simple || !repeats(m_merged);
}

namespace {

// Marks the right operand of a fold that goes on, where that is something else than a new one.
constexpr std::uint32_t goes_on = 0x80000000;

}  // namespace

value_table::outcome value_table::combine(symbol a, symbol b, bool open, symbol& result) {
  open = open && m_rules.widens;
  const bool later = a.id > b.id || (a.id == b.id && a.shift > b.shift);
  if (later && m_rules.commutative && !open) std::swap(a, b);
  const std::int64_t delta = b.shift - a.shift;
  const std::uint32_t right = b.id | (open ? goes_on : 0);
  {
    const memo& known = slot(a.id, right, delta);
    if (known.a != 0) {
      result = {known.result.id, a.shift + known.result.shift};
      return outcome::good;
    }
  }
  m_cost.take_steps(shares(a.id).size() + shares(b.id).size());
  if (!merge(shares(a.id), shares(b.id), delta)) return outcome::twice;
  if (m_order == ordering::ranked) {
    const bool runs = shares(a.id).size() == 1 && shares(b.id).size() == 1;
    if (!runs || m_merged.size() != 1) return outcome::order;
  }
  const std::int64_t base = m_merged[0].shift;
  for (share& s : m_merged) s.shift -= base;
  m_cost.take_bytes(sizeof(extent_of_shares) + sizeof(operands) + 2 * sizeof(memo) +
                    m_merged.size() * sizeof(share));
  const auto id = static_cast<std::uint32_t>(m_values.size());
  m_values.push_back(
      {static_cast<std::uint32_t>(m_shares.size()), static_cast<std::uint32_t>(m_merged.size())});
  m_made_of.push_back({a.id, b.id, open});
  m_shares.insert(m_shares.end(), m_merged.begin(), m_merged.end());
  if (++m_used * 2 > m_memos.size()) grow();
  slot(a.id, right, delta) = {a.id, right, delta, {id, base}};
  result = {id, a.shift + base};
  return outcome::good;
}

std::string value_table::text_of(std::uint32_t id) const {
  std::string text;
  int left = 24;
  add_text(id, left, text);
  return text;
}

// Appends an expression of at most `left` operands.
void value_table::add_text(std::uint32_t id, int& left, std::string& text) const {
  const operands& o = m_made_of[id];
  if (o.left == 0) {
    --left;
    text += std::to_string(m_shares[m_values[id].begin].first);
    return;
  }
  const auto add = [&](std::uint32_t part, bool apart) {
    if (left <= 0) {
      if (!text.ends_with("...")) text += "...";
      return;
    }
    const bool brackets = apart && m_made_of[part].left != 0;
    if (brackets) text += '(';
    add_text(part, left, text);
    if (brackets) text += ')';
  };
  add(o.left, !o.open);
  text += " + ";
  add(o.right, true);
}

namespace {

// Segments of a block before it is split, and in the parts that it is split into.
constexpr std::size_t max_in_block = 96;
constexpr std::size_t split_into = 48;
constexpr std::size_t near_by = 6;  // segments that are looked at before searching

std::ptrdiff_t distance(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

// The last of `count` sorted begins that is not after `offset`; the first one is not. They lie in
// [from, to), often evenly: the search begins where it would be then, and widens.
template <class Begin>
std::size_t last_until(std::uint64_t offset, std::size_t count, std::uint64_t from,
                       std::uint64_t to, const Begin& begin) {
  const double part = static_cast<double>(offset - from) / static_cast<double>(to - from);
  std::size_t low =
      std::min(static_cast<std::size_t>(part * static_cast<double>(count)), count - 1);
  std::size_t high = low + 1, step = 1;
  if (begin(low) <= offset) {
    for (; high < count && begin(high) <= offset; step *= 2) {
      low = high;
      high = std::min(high + step, count);
    }
  } else {
    for (; begin(low) > offset; step *= 2) {
      high = low;
      low -= std::min(step, low);
    }
  }
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (begin(middle) <= offset ? low : high) = middle;
  }
  return low;
}

}  // namespace

void memory::reset(std::uint64_t bytes, access start, proof_cost& cost) {
  m_bytes = bytes;
  m_cost = &cost;
  m_blocks.clear();
  m_first.clear();
  if (bytes == 0) return;
  m_first.push_back(0);
  m_blocks.emplace_back(1);
  m_blocks[0][0].write = start;
}

memory::cursor memory::find(std::uint64_t offset, cursor& hint) const {
  if (hint.block >= m_blocks.size()) return hint = search(offset);
  const block& in = m_blocks[hint.block];
  if (offset < m_first[hint.block] || offset >= end_of_block(hint.block))
    return hint = search(offset);
  // The segment is often beside the last one, or a few segments away.
  std::size_t i = std::min<std::size_t>(hint.index, in.size() - 1);
  for (std::size_t tries = 0; tries < near_by; ++tries) {
    if (offset < in[i].begin) {
      --i;
    } else if (i + 1 < in.size() && in[i + 1].begin <= offset) {
      ++i;
    } else {
      hint.index = static_cast<std::uint32_t>(i);
      return hint;
    }
  }
  return hint = search(offset);
}

memory::cursor memory::search(std::uint64_t offset) const {
  if (m_blocks.empty()) return {};
  const std::size_t b =
      last_until(offset, m_first.size(), 0, m_bytes, [&](std::size_t i) { return m_first[i]; });
  const auto in_block = static_cast<std::uint32_t>(b);
  const block& in = m_blocks[b];
  const std::size_t i = last_until(offset, in.size(), m_first[b], end_of_block(in_block),
                                   [&](std::size_t k) { return in[k].begin; });
  return {in_block, static_cast<std::uint32_t>(i)};
}

void memory::split(std::uint32_t b) {
  if (m_blocks[b].size() <= max_in_block) return;
  const block whole = std::move(m_blocks[b]);
  std::vector<block> parts;
  for (std::size_t i = 0; i < whole.size(); i += split_into)
    parts.emplace_back(whole.begin() + distance(i),
                       whole.begin() + distance(std::min(i + split_into, whole.size())));
  std::vector<std::uint64_t> first;
  for (std::size_t i = 1; i < parts.size(); ++i) first.push_back(parts[i].front().begin);
  m_first.insert(m_first.begin() + distance(b) + 1, first.begin(), first.end());
  m_blocks[b] = std::move(parts[0]);
  m_blocks.insert(m_blocks.begin() + distance(b) + 1, std::make_move_iterator(parts.begin() + 1),
                  std::make_move_iterator(parts.end()));
}

// Cuts segment `at`, which holds the byte, so that one begins there.
void memory::cut_at(cursor at, std::uint64_t offset, std::vector<std::vector<access>>& lists) {
  segment upper = (*this)[at];
  upper.begin = offset;
  m_cost->take_bytes(sizeof upper);
  if (upper.more_reads != 0) {
    auto copy = lists[upper.more_reads - 1];
    m_cost->take_steps(copy.size());
    m_cost->take_bytes(sizeof copy + copy.size() * sizeof copy[0]);
    lists.push_back(std::move(copy));
    upper.more_reads = static_cast<std::uint32_t>(lists.size());
  }
  block& in = m_blocks[at.block];
  in.insert(in.begin() + distance(at.index) + 1, upper);
  split(at.block);
}

memory::cursor memory::cut(std::uint64_t offset, std::uint64_t bytes,
                           std::vector<std::vector<access>>& lists, cursor& hint) {
  cursor first = find(offset, hint);
  if ((*this)[first].begin != offset) {
    cut_at(first, offset, lists);
    first = find(offset, hint);
  }
  const std::uint64_t end = offset + bytes, here = end_of(first);
  if (here == end || end == m_bytes) return first;
  cursor last = first;
  if (here < end) last = find(end, last);
  if ((*this)[last].begin != end) cut_at(last, end, lists);
  return find(offset, hint);
}

// Takes out the segments from a cursor to a byte.
void memory::erase(cursor from, std::uint64_t end) {
  std::uint32_t b = from.block, begin = from.index;
  for (bool more = true; more && b < m_blocks.size(); begin = 0) {
    block& in = m_blocks[b];
    std::size_t to = begin;
    while (to < in.size() && in[to].begin < end) ++to;
    more = to == in.size();
    m_cost->give_bytes((to - begin) * sizeof(segment));
    in.erase(in.begin() + distance(begin), in.begin() + distance(to));
    if (in.empty()) {
      m_blocks.erase(m_blocks.begin() + distance(b));
      m_first.erase(m_first.begin() + distance(b));
    } else {
      m_first[b] = in.front().begin;
      ++b;
    }
  }
}

void memory::replace(cursor first, std::uint64_t bytes, std::span<const segment> segments) {
  const std::uint64_t end = (*this)[first].begin + bytes;
  cursor walk = first, last = first;
  std::size_t done = 0;
  for (; done < segments.size() && !past(walk, end); next(walk)) {
    (*this)[walk] = segments[done++];
    last = walk;
  }
  if (!past(walk, end)) return erase(walk, end);  // fewer than there were
  if (done == segments.size()) return;
  block& in = m_blocks[last.block];
  m_cost->take_bytes((segments.size() - done) * sizeof(segment));
  in.insert(in.begin() + distance(last.index) + 1, segments.begin() + distance(done),
            segments.end());
  split(last.block);
}

}  // namespace sucl::plan
