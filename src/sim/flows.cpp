// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/flows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace sucl::sim {
namespace {

constexpr double slack = 1e-9;            // relative: rounding, not want
constexpr double put_off = 0.005;         // of the time that a flow takes
constexpr std::size_t many_bundles = 64;  // from here on

bool over(double wanted, double capacity) { return wanted > capacity * (1 + slack); }

std::uint64_t hash(const demands& through) {
  std::uint64_t h = 0;
  for (const demand& d : through) {
    h = (h ^ d.limit) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(d.weight * 16);
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

std::uint32_t flows::add_limit(double capacity) {
  m_limits.emplace_back().capacity = capacity;
  m_states.push_back(state::loose);
  return static_cast<std::uint32_t>(m_limits.size() - 1);
}

void flows::touch(std::uint32_t index) {
  bundle& b = m_bundles[index];
  if (b.changed) return;
  b.changed = true;
  m_changed.push_back(index);
}

// A bundle stays when it is empty.
std::uint32_t flows::bundle_of(const demands& through) {
  const auto fresh = static_cast<std::uint32_t>(m_bundles.size());
  std::uint32_t& first = m_by_limits.try_emplace(hash(through), none).first->second;
  for (std::uint32_t known = first; known != none; known = m_bundles[known].alike) {
    const auto others = this->through(m_bundles[known]);
    if (std::equal(through.begin(), through.end(), others.begin(), others.end(),
                   [](const demand& a, const demand& b) {
                     return a.limit == b.limit && a.weight == b.weight;
                   }))
      return known;
  }
  bundle& b = m_bundles.emplace_back();
  b.alike = std::exchange(first, fresh);
  b.first = static_cast<std::uint32_t>(m_demands.size());
  m_demands.insert(m_demands.end(), through.begin(), through.end());
  b.last = static_cast<std::uint32_t>(m_demands.size());
  m_is_open.push_back(false);
  m_next_rate.push_back(-1);
  m_held_by.push_back(none);
  b.bound = std::numeric_limits<double>::infinity();
  for (const demand& d : through) {
    const double alone = m_limits[d.limit].capacity / d.weight;
    if (alone >= b.bound) continue;
    b.bound = alone;
    b.bound_by = d.limit;
  }
  return fresh;
}

// One more flow goes through the limits of a bundle.
void flows::join(std::uint32_t index, double bytes) {
  bundle& b = m_bundles[index];
  if (b.members.empty()) b.tight = 0;
  for (demand& d : through(b)) {
    limit& l = m_limits[d.limit];
    if (b.members.empty()) {
      d.position = static_cast<std::uint32_t>(l.bundles.size());
      l.bundles.push_back(index);
      if (m_states[d.limit] != state::loose) b.tight |= bit_of(b, d);
    }
    ++l.count;
    l.wanted += d.weight * b.bound;
    l.taken += d.weight * bytes;
  }
  touch(index);
}

// One flow less goes through them; the bundle has lost it already.
void flows::leave(std::uint32_t index) {
  const bundle& b = m_bundles[index];
  for (const demand& d : through(b)) {
    limit& l = m_limits[d.limit];
    --l.count;
    // From nothing again where it can be, so that rounding does not pile up.
    l.wanted = l.count == 0 ? 0 : l.wanted - d.weight * b.bound;
    if (!b.members.empty()) continue;
    const std::uint32_t last = l.bundles.back();
    l.bundles[d.position] = last;
    l.bundles.pop_back();
    for (demand& other : through(m_bundles[last]))
      if (other.limit == d.limit) other.position = d.position;
  }
  touch(index);
}

void flows::start(std::uint32_t index, double bytes, std::uint32_t owner, ticks now) {
  join(index, bytes);
  bundle& b = m_bundles[index];
  if (b.members.empty()) {
    if (b.settled == 0) b.rate = 0;  // else what the last one left is still its own
    b.served = 0;
    b.since = now;
  }
  serve(b, now);
  b.members.push_back({b.served + bytes, now, owner, m_number++});
  std::push_heap(b.members.begin(), b.members.end(), ends_later);
  if (b.rate > 0 && b.members.front().owner == owner) set_first_end(index, now);
  postpone(expected(b, bytes), now);
}

// Seconds that a flow takes if its limits are shared evenly.
double flows::expected(const bundle& b, double bytes) {
  double seconds = 0;
  for (const demand& d : through(b)) {
    const limit& l = m_limits[d.limit];
    seconds = std::max(seconds, d.weight * static_cast<double>(l.count) / l.capacity);
  }
  return seconds * bytes;
}

void flows::postpone(double seconds, ticks now) {
  const double steps = std::min(seconds * put_off * ticks_per_second, 1e15);
  m_postponed_to = std::min(m_postponed_to, now + static_cast<ticks>(steps));
}

void flows::put_end(std::size_t at, std::uint32_t index) {
  m_ends[at] = index;
  m_bundles[index].position = static_cast<std::uint32_t>(at);
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
  bundle& b = m_bundles[index];
  if (b.end == never) {
    b.position = static_cast<std::uint32_t>(m_ends.size());
    m_ends.push_back(index);
  }
  b.end = end;
  move_end(b.position);
}

void flows::remove_end(std::uint32_t index) {
  const std::size_t at = m_bundles[index].position;
  m_bundles[index].end = never;
  const std::uint32_t last = m_ends.back();
  m_ends.pop_back();
  if (last == index) return;
  put_end(at, last);
  move_end(at);
}

std::uint32_t flows::end_one(ticks now) {
  const std::uint32_t index = m_ends.front();
  bundle& b = m_bundles[index];
  serve(b, now);
  std::pop_heap(b.members.begin(), b.members.end(), ends_later);
  const flow ended = b.members.back();
  b.members.pop_back();
  leave(index);
  if (b.members.empty())
    remove_end(index);
  else
    set_first_end(index, now);
  postpone(to_seconds(now - ended.began), now);
  return ended.owner;
}

// Counts what the flows of a bundle got until now.
void flows::serve(bundle& b, ticks now) {
  b.served += b.rate * to_seconds(now - b.since);
  b.since = now;
}

std::vector<double> flows::under_way(ticks now) const {
  std::vector<double> left(m_limits.size());
  for (const bundle& b : m_bundles) {
    if (b.members.empty()) continue;
    double bytes = -b.count() * (b.served + b.rate * to_seconds(now - b.since));
    for (const flow& f : b.members) bytes += f.until;
    for (std::uint32_t d = b.first; d < b.last; ++d)
      left[m_demands[d].limit] += m_demands[d].weight * std::max(0.0, bytes);
  }
  return left;
}

// When the first flow of a bundle ends, at the bundle's rate.
void flows::set_first_end(std::uint32_t index, ticks now) {
  const bundle& b = m_bundles[index];
  const double left = std::max(0.0, b.members.front().until - b.served);
  // A thousandth of a step is rounding.
  const double steps = std::ceil(left / b.rate * ticks_per_second - 1e-3);
  set_end(index, now + static_cast<ticks>(std::clamp(steps, 0.0, static_cast<double>(latest) + 1)));
}

void flows::set_rate(std::uint32_t index, double rate, ticks now) {
  bundle& b = m_bundles[index];
  if (std::abs(rate - b.rate) <= 1e-12 * b.rate) return;
  serve(b, now);
  b.rate = rate;
  set_first_end(index, now);
}

// A bundle is to get a new rate: what it takes of its limits is free until then.
void flows::open_bundle(std::uint32_t index) {
  if (m_is_open[index]) return;
  m_is_open[index] = true;
  m_open_bundles.push_back(index);
  bundle& b = m_bundles[index];
  b.first_share = static_cast<std::uint32_t>(m_shares.size());
  for (unsigned left = b.tight; left != 0; left &= left - 1) {
    const demand& d = m_demands[b.first + static_cast<unsigned>(std::countr_zero(left))];
    state& s = m_states[d.limit];
    limit& l = m_limits[d.limit];
    if (s == state::tight) {
      s = state::open;
      l.filled = static_cast<std::uint32_t>(m_open_limits.size());
      filling& f = m_open_limits.emplace_back();
      f.free = l.capacity - l.used;
      f.limit = d.limit;
    }
    const double weight = d.weight * b.count();
    m_shares.push_back({l.filled, weight});
    filling& f = m_open_limits[l.filled];
    f.wanted += weight;
    f.free += weight * b.rate;
    ++f.opened;
  }
  b.last_share = static_cast<std::uint32_t>(m_shares.size());
}

void flows::set_state(std::uint32_t index, bool tight) {
  m_states[index] = tight ? state::tight : state::loose;
  limit& l = m_limits[index];
  l.used = 0;
  for (const std::uint32_t i : l.bundles) {
    bundle& b = m_bundles[i];
    for (const demand& d : through(b)) {
      if (d.limit != index) continue;
      b.tight ^= bit_of(b, d);
      l.used += d.weight * b.settled * b.rate;
    }
  }
}

void flows::fix(std::uint32_t index, double rate, std::uint32_t held_by) {
  const bundle& b = m_bundles[index];
  m_next_rate[index] = rate;
  m_held_by[index] = held_by;
  --m_unfixed;
  for (std::uint32_t i = b.first_share; i < b.last_share; ++i) {
    filling& f = m_open_limits[m_shares[i].filled];
    f.left -= m_shares[i].weight * rate;
    f.weight -= m_shares[i].weight;
  }
}

// The least rate at which one of the limits is full; those all of whose flows stay are dropped.
double flows::min_share() {
  double share = std::numeric_limits<double>::infinity();
  std::size_t kept = 0;
  for (const std::uint32_t i : m_filling) {
    filling& f = m_open_limits[i];
    if (f.weight <= slack) continue;
    m_filling[kept++] = i;
    f.share = std::max(f.left, 0.0) / f.weight;
    share = std::min(share, f.share);
  }
  m_filling.resize(kept);
  return share;
}

// Finds the rates of the open bundles; the others keep theirs.
void flows::fill() {
  m_work += m_open_bundles.size();
  m_unfixed = m_open_bundles.size();
  m_bounded.clear();
  for (const std::uint32_t i : m_open_bundles) {
    m_next_rate[i] = -1;
    if (m_states[m_bundles[i].bound_by] != state::open) m_bounded.push_back(i);
  }
  std::sort(m_bounded.begin(), m_bounded.end(), [&](std::uint32_t a, std::uint32_t b) {
    const double x = m_bundles[a].bound, y = m_bundles[b].bound;
    return x != y ? x < y : a < b;
  });
  for (filling& f : m_open_limits) {
    f.left = f.free;
    f.weight = f.wanted;
  }
  m_filling.resize(m_open_limits.size());
  std::iota(m_filling.begin(), m_filling.end(), std::uint32_t{0});
  std::size_t bounded = 0;
  while (m_unfixed > 0) {
    const double share = min_share();
    bool any = false;
    for (; bounded < m_bounded.size() && m_bundles[m_bounded[bounded]].bound <= share; ++bounded) {
      const std::uint32_t b = m_bounded[bounded];
      if (m_next_rate[b] < 0) fix(b, m_bundles[b].bound, none), any = true;
    }
    if (any) continue;
    // Those that are full at the same rate, but for rounding, are so together.
    for (const std::uint32_t i : m_filling) {
      const filling& f = m_open_limits[i];
      // It does not get less by what others of its flows take in this round.
      if (over(f.share, share)) continue;
      if (f.weight <= slack || over(std::max(f.left, 0.0) / f.weight, share)) continue;
      for (const std::uint32_t b : m_limits[f.limit].bundles)
        if (m_is_open[b] && m_next_rate[b] < 0) fix(b, share, f.limit);
    }
  }
}

// Rates are max-min fair where a full limit holds each bundle, none of whose flows is faster there,
// or its own bound does. Opens the bundles for which the new rates of the open ones end that.
// Returns whether there were any.
bool flows::open_unfair() {
  m_unfair.clear();
  for (const filling& f : m_open_limits) {
    const limit& l = m_limits[f.limit];
    if (f.opened == l.bundles.size()) continue;
    const bool full = f.left <= slack * l.capacity;
    double fastest = 0;                                     // of the open ones
    double held = std::numeric_limits<double>::infinity();  // of those that this limit holds
    for (const std::uint32_t b : l.bundles) {
      if (!m_is_open[b]) continue;
      fastest = std::max(fastest, m_next_rate[b]);
      if (m_held_by[b] == f.limit) held = std::min(held, m_next_rate[b]);
    }
    for (const std::uint32_t b : l.bundles) {
      if (m_is_open[b]) continue;
      const double rate = m_bundles[b].rate;
      if (over(rate, held) || (m_held_by[b] == f.limit && (!full || over(fastest, rate))))
        m_unfair.push_back(b);
    }
  }
  for (const std::uint32_t b : m_unfair) open_bundle(b);
  return !m_unfair.empty();
}

void flows::apply(ticks now) {
  for (const std::uint32_t i : m_open_bundles) {
    m_is_open[i] = false;
    set_rate(i, m_next_rate[i], now);
  }
  for (const filling& f : m_open_limits) {
    m_states[f.limit] = state::tight;
    m_limits[f.limit].used = m_limits[f.limit].capacity - f.left;
  }
  m_open_bundles.clear();
  m_open_limits.clear();
  m_shares.clear();
}

// Counts a bundle's flows, and what they take of its limits, at the rate that they have.
void flows::count_again(bundle& b) {
  const double more = b.count() - b.settled;
  for (const demand& d : through(b)) {
    if (m_states[d.limit] == state::loose) continue;
    limit& l = m_limits[d.limit];
    l.used = l.count == 0 ? 0 : l.used + d.weight * more * b.rate;
  }
  b.settled = static_cast<std::uint32_t>(b.members.size());
  if (b.settled == 0) b.rate = 0;
}

// Opens what has other flows than when last settled, and what the limits of these held.
void flows::open_changed() {
  // Where as many flows came as went the rates are still right.
  std::erase_if(m_changed, [&](std::uint32_t i) {
    bundle& b = m_bundles[i];
    b.changed = false;
    return b.settled == b.members.size();
  });
  for (const std::uint32_t i : m_changed) count_again(m_bundles[i]);
  m_again.clear();
  for (const std::uint32_t i : m_changed)
    for (const demand& d : through(m_bundles[i])) {
      const limit& l = m_limits[d.limit];
      const bool was = m_states[d.limit] != state::loose, is = over(l.wanted, l.capacity);
      if (was != is) set_state(d.limit, is);
      if (was) m_again.push_back(d.limit);
    }
  for (const std::uint32_t i : m_changed)
    if (!m_bundles[i].members.empty()) open_bundle(i);
  m_changed.clear();
  for (const std::uint32_t l : m_again)
    for (const std::uint32_t b : m_limits[l].bundles)
      if (m_held_by[b] == l) open_bundle(b);
}

void flows::settle(ticks now) {
  if (m_last_filled >= many_bundles && now < m_postponed_to) return;
  m_postponed_to = never;
  open_changed();
  if (!m_open_bundles.empty()) do
      fill();
    while (open_unfair());
  // Small groups in between do not hide that there are large ones.
  m_last_filled = std::max(m_open_bundles.size(), m_last_filled - m_last_filled / 8);
  apply(now);
}

}  // namespace sucl::sim
