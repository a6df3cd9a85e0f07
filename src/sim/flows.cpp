// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/flows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace sucl::sim {
namespace {

constexpr double slack = 1e-9;  // relative: rounding, not want
constexpr ticks never = std::numeric_limits<ticks>::max();

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
  f.since = now;
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
  ++f.version;
  m_free.push_back(index);
}

ticks flows::next_end() {
  while (!m_ends.empty() && m_flows[m_ends.top().flow].version != m_ends.top().version)
    m_ends.pop();
  return m_ends.empty() ? never : m_ends.top().at;
}

std::uint32_t flows::end_one(ticks) {
  const std::uint32_t index = m_ends.top().flow;
  m_ends.pop();
  remove(index);
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
  m_ends.push({now + static_cast<ticks>(std::max(0.0, steps)), index, ++f.version});
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
    for (const std::uint32_t f : l.flows)
      for (const demands::one& d : m_flows[f].through)
        if (d.limit == i) l.weight += d.weight;
    m_shares.emplace_back(l.left / l.weight, i);
  }
  for (const std::uint32_t i : m_open_flows) {
    m_flows[i].next_rate = -1;
    if (!m_limits[m_flows[i].bound_by].open) m_bounded.push_back(i);
  }
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
  if (!m_open_flows.empty()) fill(now);
}

}  // namespace sucl::sim
