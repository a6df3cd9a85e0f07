// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/graph/assemble.hpp"

#include <algorithm>
#include <optional>

namespace sucl::tune {
namespace {

// Messages that a channel has in flight, or is ready for, at once.
constexpr std::uint64_t window = 64;
// Of the latency: what takes longer is sent in two parts.
constexpr double shortest_split = 1.25;
constexpr double longest_split = 3000;  // and what takes longer still is not
constexpr double moment = 1e-12;        // seconds: rounding of times

}  // namespace

std::uint64_t assembly::line_of(std::uint32_t link, std::uint32_t tree, int from, int to) const {
  if (!m_by_pair) return link;
  const auto ranks = static_cast<std::uint64_t>(m_builder.ranks());
  return (tree * ranks + static_cast<std::uint64_t>(from)) * ranks + static_cast<std::uint64_t>(to);
}

int assembly::track_of(int rank, std::uint64_t line) {
  const auto [known, fresh] =
      m_tracks_of[index(rank)].try_emplace(line, static_cast<int>(m_tracks.size()));
  if (fresh) {
    m_tracks.push_back({rank, {}});
    if (line != no_line) m_tracks_by[line].push_back(known->second);
  }
  return known->second;
}

assembly::arrival assembly::add(int track, item i) {
  std::vector<item>& items = m_tracks[index(track)].items;
  const auto number = static_cast<std::uint32_t>(items.size());
  for (const auto& [from, which] : i.needs) {
    auto& waiters = m_tracks[index(from)].items[which].waiters;
    if (std::none_of(waiters.begin(), waiters.end(),
                     [&](const auto& t) { return t.first == track; }))
      waiters.emplace_back(track, 0);
  }
  m_tracks[index(track)].items.push_back(std::move(i));
  return {track, number};
}

// A receive waits for what was to be there before it was to begin.
assembly::arrival assembly::add_receive(std::uint32_t link, int track, item i) {
  if (!m_strict) {
    i.ready = 0;
    return add(track, std::move(i));
  }
  std::vector<arrival>& before = m_inbound[link];
  const auto last = std::find_if(before.rbegin(), before.rend(), [&](const arrival& a) {
    return m_tracks[index(a.first)].items[a.second].done <= i.ready + moment;
  });
  if (last != before.rend() && last->first != track) i.needs.push_back(*last);
  if (m_gathered.size() > index(track)) i.ready = std::max(i.ready, m_gathered[index(track)]);
  before.push_back(add(track, std::move(i)));
  return before.back();
}

// A message of a transfer, in one part or two: two where its last link is shared by senders and the
// latency counts.
assembly::arrival assembly::add_message(std::uint32_t link, bool is_shared, int from, int to,
                                        item out, item in, double latency) {
  const double seconds = in.done - in.ready - latency;
  const std::uint64_t element = m_builder.what().element_bytes;
  const std::uint64_t elements = in.bytes / element;
  const auto tail =
      m_strict && is_shared && seconds > shortest_split * latency &&
              seconds < longest_split * latency
          ? static_cast<std::uint64_t>(static_cast<double>(elements) * (latency / seconds)) *
                element
          : 0;
  if (tail == 0) {
    add(from, std::move(out));
    return add_receive(link, to, std::move(in));
  }
  item last_out = out, last_in = in;
  out.bytes -= tail;
  last_out.before.clear();
  last_out.needs.clear();
  last_out.bytes = tail;
  last_out.at.offset += out.bytes;
  add(from, std::move(out));
  add(from, std::move(last_out));
  in.bytes -= tail;
  in.done -= latency;
  last_in.bytes = tail;
  last_in.at.offset += in.bytes;
  add_receive(link, to, std::move(in));
  return add_receive(link, to, std::move(last_in));
}

void assembly::spread(const std::vector<tree>& trees, const std::vector<parcel>& parcels,
                      const timetable& t, const address_of& at) {
  // Tracks spread after they have gathered, whatever the times say.
  m_inbound.clear();
  for (const track& l : m_tracks) {
    m_gathered.push_back(0);
    for (const item& i : l.items) m_gathered.back() = std::max(m_gathered.back(), i.done);
  }
  constexpr arrival nothing{-1, 0};
  std::vector<arrival> there(parcels.size() * rank_count(), nothing);  // by parcel and rank
  const auto at_rank = [&](std::uint32_t parcel, int rank) -> arrival& {
    return there[parcel * rank_count() + index(rank)];
  };
  for (const transfer& one : t) {
    const parcel& p = parcels[one.parcel];
    const tree& along = trees[p.tree];
    const hop& h = along.hops[one.hop];
    if (p.bytes == 0) continue;
    item out;
    out.what = action::send;
    out.peer = h.to;
    out.at = at(p, along.root, h.from);
    out.bytes = p.bytes;
    if (const arrival came = at_rank(one.parcel, h.from); came != nothing)
      out.needs.push_back(came);
    else if (!m_results.empty())
      need_results(out, along.root, p);
    item in;
    in.what = action::receive;
    in.peer = h.from;
    in.at = at(p, along.root, h.to);
    in.bytes = p.bytes;
    in.ready = one.start;
    in.done = one.end;
    const std::uint64_t line = line_of(one.first, p.tree, h.from, h.to);
    at_rank(one.parcel, h.to) =
        add_message(one.last, one.first != one.last, track_of(h.from, line), track_of(h.to, line),
                    std::move(out), std::move(in), one.latency);
  }
}

// Waits for what the root reduces of these bytes.
void assembly::need_results(item& i, int root, const parcel& p) const {
  auto at = m_results.upper_bound({root, p.offset});
  if (at != m_results.begin()) --at;
  for (; at != m_results.end() && at->first < std::pair{root, p.offset + p.bytes}; ++at)
    if (at->first.first == root && at->second.first > p.offset)
      i.needs.push_back(at->second.second);
}

void assembly::gather(const std::vector<tree>& trees, const std::vector<parcel>& parcels,
                      const timetable& t, const address_of& own, const address_of& result) {
  // What came from below, by parcel and rank: where it is, and what brought it.
  std::map<std::pair<std::uint32_t, int>, std::vector<std::pair<plan::address, arrival>>> below;
  std::vector<std::size_t> left(parcels.size());  // hops that end at the root
  for (const transfer& one : t) {
    const tree& along = trees[parcels[one.parcel].tree];
    left[one.parcel] += along.hops[one.hop].from == along.root ? 1 : 0;
  }
  const auto combine = [&](item& i, std::uint32_t p, int rank, plan::address into,
                           plan::address first) {
    i.before_bytes = i.bytes;
    i.before.push_back({into != first, into, first});
    for (const auto& [slot, came] : below[{p, rank}]) {
      i.needs.push_back(came);
      if (slot != into) i.before.push_back({true, into, slot});
    }
  };
  double end = 0;
  for (const transfer& one : t) end = std::max(end, one.end);
  for (auto one = t.rbegin(); one != t.rend(); ++one) {
    const parcel& p = parcels[one->parcel];
    const tree& along = trees[p.tree];
    const int from = along.hops[one->hop].to, to = along.hops[one->hop].from;
    if (p.bytes == 0) continue;
    item out;
    out.what = action::send;
    out.peer = to;
    out.at = own(p, along.root, from);
    out.bytes = p.bytes;
    if (const auto& came = below[{one->parcel, from}]; !came.empty()) {
      const plan::address mine = out.at;
      out.at = came.front().first;
      combine(out, one->parcel, from, out.at, mine);
    }
    item in;
    in.what = action::receive;
    in.peer = from;
    in.at = m_builder.scratch(to, p.bytes);
    in.bytes = p.bytes;
    const plan::address slot = in.at;
    in.ready = end - one->end;
    in.done = end - one->start;
    const std::uint64_t line = line_of(one->last, p.tree, from, to);
    below[{one->parcel, to}].emplace_back(
        slot, add_message(one->first, one->first != one->last, track_of(from, line),
                          track_of(to, line), std::move(out), std::move(in), one->latency));
    if (to != along.root || --left[one->parcel] > 0) continue;
    item done;
    done.before_bytes = p.bytes;
    const plan::address into = result(p, along.root, to), mine = own(p, along.root, to);
    done.before.push_back({false, into, mine});
    for (const auto& [address, came] : below[{one->parcel, to}]) {
      done.needs.push_back(came);
      done.before.push_back({true, into, address});
    }
    m_results[{to, p.offset}] = {p.offset + p.bytes, add(track_of(to, no_line), std::move(done))};
  }
}

void assembly::keep(int rank, plan::address to, plan::address from, std::uint64_t bytes) {
  item i;
  i.before_bytes = bytes;
  i.before.push_back({false, to, from});
  if (bytes > 0) add(track_of(rank, no_line), std::move(i));
}

// Tracks of one link have one channel on all ranks that they are of, and a rank's tracks have
// different ones.
void assembly::choose_channels() {
  m_channel.assign(m_tracks.size(), -1);
  std::vector<std::vector<bool>> used(rank_count());
  const auto take = [&](const std::vector<int>& tracks) {
    int channel = 0;
    const auto is_used = [&](int l) {
      const auto& of = used[index(m_tracks[index(l)].rank)];
      return index(channel) < of.size() && of[index(channel)];
    };
    while (std::any_of(tracks.begin(), tracks.end(), is_used)) ++channel;
    for (const int l : tracks) {
      auto& of = used[index(m_tracks[index(l)].rank)];
      if (of.size() <= index(channel)) of.resize(index(channel) + 1);
      of[index(channel)] = true;
      m_channel[index(l)] = channel;
    }
  };
  for (const auto& [link, tracks] : m_tracks_by) take(tracks);
  for (int l = 0; l < static_cast<int>(m_tracks.size()); ++l)
    if (m_channel[index(l)] < 0) take({l});
}

// The signals of a track arrive at another one in the order of their sender.
void assembly::number_signals() {
  for (std::size_t l = 0; l < m_tracks.size(); ++l) {
    std::map<int, std::uint64_t> counts;
    for (item& i : m_tracks[l].items)
      for (auto& [to, count] : i.waiters) count = ++counts[to];
  }
}

std::uint64_t assembly::flag_of(int from, int to) {
  const int rank = m_tracks[index(from)].rank;
  const auto [known, fresh] = m_flags.try_emplace({from, to}, m_next_flag[index(rank)]);
  if (fresh) ++m_next_flag[index(rank)];
  return known->second;
}

void assembly::signal_waiters(const track& l, int number, const item& i) {
  for (const auto& [to, count] : i.waiters) m_builder.signal(l.rank, l.rank, flag_of(number, to));
}

// Waits for what an item needs.
void assembly::await(int number, const item& i) {
  for (const auto& [from, which] : i.needs) {
    const track& other = m_tracks[index(from)];
    const auto& waiters = other.items[which].waiters;
    const auto mine = std::find_if(waiters.begin(), waiters.end(),
                                   [&](const auto& t) { return t.first == number; });
    for (std::uint64_t& taken = m_taken[{from, number}]; taken < mine->second; ++taken)
      m_builder.wait(other.rank, other.rank, flag_of(from, number));
  }
}

void assembly::write(const track& l, int number) {
  m_builder.set_channel(m_channel[index(number)]);
  if (!l.items.empty() && l.items.front().what == action::receive) return write_receives(l, number);
  for (const item& i : l.items) {
    await(number, i);
    for (const local_step& s : i.before) {
      if (s.reduces)
        m_builder.reduce(l.rank, s.dst, s.src, i.before_bytes);
      else
        m_builder.copy(l.rank, s.dst, s.src, i.before_bytes);
    }
    if (i.what == action::send) {
      m_builder.send(l.rank, i.peer, i.at, i.bytes);
      m_builder.fence(l.rank, window);
    }
    signal_waiters(l, number, i);
  }
  m_builder.fence(l.rank);
}

// Posts and ends in the order of their times, as each holds up what comes after it.
void assembly::write_receives(const track& l, int number) {
  const std::size_t all = l.items.size();
  std::size_t posted = 0;
  for (std::size_t done = 0; done < all; ++done) {
    while (posted < all && posted < done + window &&
           (posted == done || l.items[posted].ready < l.items[done].done)) {
      const item& next = l.items[posted++];
      await(number, next);
      m_builder.receive(l.rank, next.peer, next.at, next.bytes);
    }
    m_builder.fence(l.rank, posted - done - 1);
    signal_waiters(l, number, l.items[done]);
  }
}

void assembly::finish() {
  m_next_flag.assign(rank_count(), 0);
  number_signals();
  choose_channels();
  for (std::size_t l = 0; l < m_tracks.size(); ++l) write(m_tracks[l], static_cast<int>(l));
}

}  // namespace sucl::tune
