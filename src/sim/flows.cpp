// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/flows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace sucl::sim {
namespace {

constexpr double slack = 1e-9;           // relative: rounding, not want
constexpr double put_off = 0.01;         // of the time that a flow takes
constexpr std::size_t many_flows = 256;  // from here on

bool over(double wanted, double capacity) { return wanted > capacity * (1 + slack); }

}  // namespace

std::uint32_t flows::add_limit(double capacity) {
  m_limits.emplace_back().capacity = capacity;
  return static_cast<std::uint32_t>(m_limits.size() - 1);
}

void flows::touch(std::uint32_t index) {
  limit& l = m_limits[index];
  if (l.changed) return;
  l.changed = true;
  m_changed.push_back(index);
}

void flows::start(const demands& through, double bytes, std::uint32_t owner, ticks now) {
  std::uint32_t index = 0;
  if (m_free.empty()) {
    index = static_cast<std::uint32_t>(m_flows.size());
    m_flows.emplace_back();
  } else {
    index = m_free.back();
    m_free.pop_back();
  }
  flow& f = m_flows[index];
  f.through = through;
  f.bytes = bytes;
  f.rate = 0;
  f.since = f.began = now;
  f.owner = owner;
  f.bound = std::numeric_limits<double>::infinity();
  for (const demands::one& d : through) {
    const double alone = m_limits[d.limit].capacity / d.weight;
    if (alone >= f.bound) continue;
    f.bound = alone;
    f.bound_by = d.limit;
  }
  for (demands::one& d : f.through) {
    limit& l = m_limits[d.limit];
    d.place = static_cast<std::uint32_t>(l.flows.size());
    l.flows.push_back(index);
    l.wanted += d.weight * f.bound;
    l.taken += d.weight * bytes;
    touch(d.limit);
  }
  m_started.push_back(index);
  postpone(expected(f), now);
}

// Seconds that a flow takes if its limits are shared evenly.
double flows::expected(const flow& f) const {
  double seconds = 0;
  for (const demands::one& d : f.through) {
    const limit& l = m_limits[d.limit];
    seconds = std::max(seconds, d.weight * static_cast<double>(l.flows.size()) / l.capacity);
  }
  return seconds * f.bytes;
}

void flows::postpone(double seconds, ticks now) {
  const double steps = std::min(seconds * put_off * ticks_per_second, 1e15);
  m_postponed_to = std::min(m_postponed_to, now + static_cast<ticks>(steps));
}

void flows::remove(std::uint32_t index) {
  flow& f = m_flows[index];
  for (const demands::one& d : f.through) {
    limit& l = m_limits[d.limit];
    const std::uint32_t last = l.flows.back();
    l.flows[d.place] = last;
    l.flows.pop_back();
    for (demands::one& other : m_flows[last].through)
      if (other.limit == d.limit) other.place = d.place;
    // From nothing again where it can be, so that rounding does not pile up.
    l.wanted = l.flows.empty() ? 0 : l.wanted - d.weight * f.bound;
    touch(d.limit);
  }
  m_free.push_back(index);
}

void flows::put_end(std::size_t at, std::uint32_t index) {
  m_ends[at] = index;
  m_flows[index].place = static_cast<std::uint32_t>(at);
}

// Moves an entry of the heap to where it belongs.
void flows::move_end(std::size_t at) {
  const std::uint32_t index = m_ends[at];
  for (; at > 0 && ends_before(index, m_ends[(at - 1) / 2]); at = (at - 1) / 2)
    put_end(at, m_ends[(at - 1) / 2]);
  for (std::size_t child = 2 * at + 1; child < m_ends.size(); child = 2 * at + 1) {
    if (child + 1 < m_ends.size() && ends_before(m_ends[child + 1], m_ends[child])) ++child;
    if (!ends_before(m_ends[child], index)) break;
    put_end(at, m_ends[child]);
    at = child;
  }
  put_end(at, index);
}

void flows::set_end(std::uint32_t index, ticks end) {
  flow& f = m_flows[index];
  if (f.end == never) {
    f.place = static_cast<std::uint32_t>(m_ends.size());
    m_ends.push_back(index);
  }
  f.end = end;
  move_end(f.place);
}

void flows::remove_end(std::uint32_t index) {
  const std::size_t at = m_flows[index].place;
  m_flows[index].end = never;
  const std::uint32_t last = m_ends.back();
  m_ends.pop_back();
  if (last == index) return;
  put_end(at, last);
  move_end(at);
}

std::uint32_t flows::end_one(ticks now) {
  const std::uint32_t index = m_ends.front();
  remove_end(index);
  remove(index);
  postpone(static_cast<double>(now - m_flows[index].began) / ticks_per_second, now);
  return m_flows[index].owner;
}

void flows::set_rate(std::uint32_t index, double rate, ticks now) {
  flow& f = m_flows[index];
  if (std::abs(rate - f.rate) <= 1e-12 * f.rate) return;
  f.bytes = std::max(0.0, f.bytes - f.rate * static_cast<double>(now - f.since) / ticks_per_second);
  f.since = now;
  f.rate = rate;
  // A thousandth of a step is rounding.
  const double steps = std::ceil(f.bytes / rate * ticks_per_second - 1e-3);
  set_end(index, now + static_cast<ticks>(std::max(0.0, steps)));
}

void flows::open_flow(std::uint32_t index) {
  flow& f = m_flows[index];
  if (f.open) return;
  f.open = true;
  m_open_flows.push_back(index);
  for (const demands::one& d : f.through) {
    limit& l = m_limits[d.limit];
    if (!l.tight || l.open) continue;
    l.open = true;
    m_open_limits.push_back(d.limit);
  }
}

// All flows that a chain of tight limits joins to this one.
void flows::gather(std::uint32_t seed) {
  std::size_t done = m_open_limits.size();
  open_flow(seed);
  for (; done < m_open_limits.size(); ++done)
    for (const std::uint32_t f : m_limits[m_open_limits[done]].flows) open_flow(f);
}

void flows::fix(std::uint32_t index, double rate) {
  flow& f = m_flows[index];
  f.next_rate = rate;
  for (const demands::one& d : f.through) {
    limit& l = m_limits[d.limit];
    if (!l.open) continue;
    l.left -= d.weight * rate;
    l.weight -= d.weight;
  }
}

void flows::fill(ticks now) {
  m_work += m_open_flows.size();
  m_shares.clear();
  m_bounded.clear();
  for (const std::uint32_t i : m_open_limits) {
    limit& l = m_limits[i];
    l.left = l.capacity;
    l.weight = 0;
  }
  for (const std::uint32_t i : m_open_flows) {
    flow& f = m_flows[i];
    f.next_rate = -1;
    if (!m_limits[f.bound_by].open) m_bounded.push_back(i);
    for (const demands::one& d : f.through)
      if (m_limits[d.limit].open) m_limits[d.limit].weight += d.weight;
  }
  for (const std::uint32_t i : m_open_limits)
    m_shares.emplace_back(m_limits[i].left / m_limits[i].weight, i);
  const std::greater<> later;
  std::make_heap(m_shares.begin(), m_shares.end(), later);
  std::sort(m_bounded.begin(), m_bounded.end(), [&](std::uint32_t a, std::uint32_t b) {
    return m_flows[a].bound != m_flows[b].bound ? m_flows[a].bound < m_flows[b].bound : a < b;
  });
  std::size_t bounded = 0;
  while (!m_shares.empty() || bounded < m_bounded.size()) {
    const double share =
        m_shares.empty() ? std::numeric_limits<double>::infinity() : m_shares.front().first;
    if (bounded < m_bounded.size() && m_flows[m_bounded[bounded]].bound <= share) {
      const std::uint32_t f = m_bounded[bounded++];
      if (m_flows[f].next_rate < 0) fix(f, m_flows[f].bound);
      continue;
    }
    std::pop_heap(m_shares.begin(), m_shares.end(), later);
    const std::uint32_t i = m_shares.back().second;
    m_shares.pop_back();
    limit& l = m_limits[i];
    if (l.weight <= slack) continue;  // all its flows stay already
    // Fixing others only raises a share, so an old one is a lower bound.
    const double now_share = std::max(l.left, 0.0) / l.weight;
    if (now_share > share * (1 + slack)) {
      m_shares.emplace_back(now_share, i);
      std::push_heap(m_shares.begin(), m_shares.end(), later);
      continue;
    }
    for (const std::uint32_t f : l.flows)
      if (m_flows[f].next_rate < 0) fix(f, share);
  }
  for (const std::uint32_t i : m_open_flows) {
    m_flows[i].open = false;
    set_rate(i, m_flows[i].next_rate, now);
  }
  for (const std::uint32_t i : m_open_limits) m_limits[i].open = false;
  m_open_flows.clear();
  m_open_limits.clear();
}

void flows::settle(ticks now) {
  if (m_last_filled >= many_flows && now < m_postponed_to) return;
  m_postponed_to = never;
  // Flows of limits that stopped to be tight are free now, so they count as seeds too.
  for (const std::uint32_t i : m_changed) {
    limit& l = m_limits[i];
    const bool was = l.tight;
    l.tight = over(l.wanted, l.capacity);
    l.changed = false;
    if (was || l.tight) m_started.insert(m_started.end(), l.flows.begin(), l.flows.end());
  }
  m_changed.clear();
  for (const std::uint32_t f : m_started) {
    if (m_flows[f].through.empty() || m_flows[f].open) continue;
    gather(f);
  }
  m_started.clear();
  // Small groups in between do not hide that there are large ones.
  m_last_filled = std::max(m_open_flows.size(), m_last_filled - m_last_filled / 8);
  if (!m_open_flows.empty()) fill(now);
}

}  // namespace sucl::sim
