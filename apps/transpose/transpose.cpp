// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Transpose: a 3-D array changes its distribution as in a parallel FFT, so that one dimension after
// the other is whole and contiguous on its rank; and back. No computation.
//
// Read make_layouts() first, the distributions; then redistribution::run(), the way from one to the
// next; last, the program.
//
//   sucl run -n 2 -- apps/transpose --size 256x256x256 --iterations 100
#include "common/grid/field.hpp"
#include "common/messages.hpp"
#include "common/program/application.hpp"
#include "transpose/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

namespace transpose {
namespace {

using apps::box;
using apps::events;
using apps::extents;
using apps::in;
using apps::inout;
using apps::phase;

struct settings : apps::settings {
  extents domain{64, 64, 64};
  std::string layout = "slab";
  int chunks = 0;
  void define(apps::command_line& line) override {
    line.add_extents("--size", domain, "Elements in each dimension");
    line.add_choice<std::string>("--layout", layout, {{"slab", "slab"}, {"pencil", "pencil"}},
                                 "slab or pencil (slab)");
    line.add("--chunks", chunks, "Cut each block into N messages (1; with events 2 MiB each)", "N");
  }
  void validate() override {
    if (chunks < 0 || chunks > 4096)
      throw apps::usage_error("--chunks: use a number from 1 to 4096");
  }
};

/// How an array is distributed and stored.
struct layout {
  apps::rank_grid grid;
  std::array<std::size_t, 3> order;  ///< the dimensions, the one that varies fastest last

  /// Elements from one point of a box that is stored this way to the next, in each dimension.
  extents strides(const box& b) const {
    extents s{};
    s[order[2]] = 1;
    s[order[1]] = b.extent(order[2]);
    s[order[0]] = b.extent(order[1]) * b.extent(order[2]);
    return s;
  }
};

std::int64_t offset(const box& part, const extents& strides, const extents& point) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < 3; ++d) at += (point[d] - part.low[d]) * strides[d];
  return at;
}

/// A copy of `what` between boxes that are stored in different orders.
copy_box make_copy(const box& what, const box& from, const extents& from_strides, const box& to,
                   const extents& to_strides) {
  // The target's contiguous dimension last, then the source's.
  std::array<std::size_t, 3> dims{0, 1, 2};
  std::sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) {
    const auto rank = [&](std::size_t d) {
      return to_strides[d] == 1 ? 2 : from_strides[d] == 1 ? 1 : 0;
    };
    return rank(a) != rank(b) ? rank(a) < rank(b) : to_strides[a] > to_strides[b];
  });
  copy_box copy{};
  copy.from_start = offset(from, from_strides, what.low);
  copy.to_start = offset(to, to_strides, what.low);
  for (std::size_t i = 0; i < 3; ++i) {
    copy.extent[i] = what.extent(dims[i]);
    copy.from_stride[i] = from_strides[dims[i]];
    copy.to_stride[i] = to_strides[dims[i]];
  }
  return copy;
}

/// What redistributions communicate through, one after the other.
struct channel {
  apps::team team;
  apps::array<float> send[2], recv[2];  ///< of the two chunks that are in flight
};

/// One redistribution, from one layout to another. Messages are cut into chunks: while one travels
/// the next is packed and the one before unpacked, and they may stay in the cache. Two chunks are
/// in flight at a time.
class redistribution {
 public:
  redistribution(apps::context& c, channel& through, const layout& from, const layout& to,
                 int chunks)
      : m_context(c), m_channel(through), m_chunks(static_cast<std::size_t>(chunks)) {
    const int me = c.rank();
    const box mine = from.grid.part(me), target = to.grid.part(me);
    const box stays = intersection(mine, target);
    if (stays.volume() > 0)
      m_local.push_back(make_copy(stays, mine, from.strides(mine), target, to.strides(target)));
    for (chunk& part : m_chunks) {
      const std::size_t i = static_cast<std::size_t>(&part - m_chunks.data());
      std::size_t out = 0, in = 0;
      for (int peer = 0; peer < c.size(); ++peer) {
        if (peer == me) continue;
        const box sent = piece_of(intersection(mine, to.grid.part(peer)), from, i);
        const box received = piece_of(intersection(from.grid.part(peer), target), from, i);
        if (sent.volume() > 0) {
          auto pack = make_copy(sent, mine, from.strides(mine), sent, from.strides(sent));
          pack.to_start = static_cast<std::int64_t>(out);
          part.packs.push_back(pack);
          add(part.messages.out, peer, out, sent);
        }
        if (received.volume() > 0) {
          auto unpack =
              make_copy(received, received, from.strides(received), target, to.strides(target));
          unpack.from_start = static_cast<std::int64_t>(in);
          part.unpacks.push_back(unpack);
          add(part.messages.in, peer, in, received);
        }
      }
      m_max_out = std::max(m_max_out, out);
      m_max_in = std::max(m_max_in, in);
    }
  }

  /// The most elements of a chunk that are sent, and that are received.
  std::size_t max_out() const { return m_max_out; }
  std::size_t max_in() const { return m_max_in; }

  events run(const apps::array<float>& from, const apps::array<float>& to, const events& deps) {
    auto& c = m_context;
    events done;
    for (const copy_box& copy : m_local)
      done.push_back(c.timed(phase::pack, [&] { return start(copy, from, to, deps); }));
    events sent[2], unpacked[2];  // of the chunks that last used a slot
    events packed = pack(0, from, deps);
    for (std::size_t i = 0; i < m_chunks.size(); ++i) {
      const std::size_t slot = i % 2, next = (i + 1) % 2;
      events before = packed;
      before.insert(before.end(), unpacked[slot].begin(), unpacked[slot].end());
      before.insert(before.end(), deps.begin(), deps.end());
      if (i + 1 < m_chunks.size()) {
        events free = sent[next];
        free.insert(free.end(), deps.begin(), deps.end());
        packed = pack(i + 1, from, free);
      }
      const chunk& part = m_chunks[i];
      if (part.messages.empty()) {
        c.meet();
        continue;
      }
      events arrived = before;
      arrived.push_back(c.timed(phase::communicate, [&] {
        return m_channel.team.exchange(m_channel.send[slot], m_channel.recv[slot], part.messages,
                                       before);
      }));
      sent[slot] = {arrived.back()};
      unpacked[slot] = c.timed(phase::pack, [&] {
        events all;
        for (const copy_box& copy : part.unpacks)
          all.push_back(start(copy, m_channel.recv[slot], to, arrived));
        return all;
      });
      done.insert(done.end(), unpacked[slot].begin(), unpacked[slot].end());
      done.push_back(arrived.back());
    }
    return done;
  }

  /// What this rank sends, in elements.
  std::size_t volume() const {
    std::size_t all = 0;
    for (const chunk& part : m_chunks)
      for (const apps::piece& p : part.messages.out) all += p.count;
    return all;
  }

 private:
  struct chunk {
    std::vector<copy_box> packs, unpacks;
    apps::pattern messages;
  };

  box piece_of(box b, const layout& from, std::size_t i) const {
    const std::size_t d = from.order[0];
    const auto n = static_cast<std::int64_t>(m_chunks.size()), at = static_cast<std::int64_t>(i);
    const std::int64_t low = b.low[d], extent = b.extent(d);
    b.low[d] = low + apps::begin_of(extent, n, at);
    b.high[d] = low + apps::begin_of(extent, n, at + 1);
    return b;
  }

  static void add(std::vector<apps::piece>& pieces, int peer, std::size_t& at, const box& b) {
    const auto count = static_cast<std::size_t>(b.volume());
    pieces.push_back({peer, at, count});
    at += count;
  }

  events pack(std::size_t i, const apps::array<float>& from, const events& deps) {
    return m_context.timed(phase::pack, [&] {
      events all;
      for (const copy_box& copy : m_chunks[i].packs)
        all.push_back(start(copy, from, m_channel.send[i % 2], deps));
      return all;
    });
  }

  sycl::event start(const copy_box& copy, const apps::array<float>& from,
                    const apps::array<float>& to, const events& deps) {
    const auto groups = static_cast<std::size_t>(copy.groups());
    constexpr std::size_t lanes = copy_box::width;
    return m_context.launch({sycl::range<1>(groups * lanes), sycl::range<1>(lanes)}, deps, copy,
                            in(from), inout(to));
  }

  apps::context& m_context;
  channel& m_channel;
  std::vector<chunk> m_chunks;
  std::vector<copy_box> m_local;
  std::size_t m_max_out = 0, m_max_in = 0;
};

/// Whole dimensions: last in slabs and z-pencils, then the middle one, then the first.
std::vector<layout> make_layouts(const settings& wanted, int ranks) {
  const std::int64_t p = ranks;
  const extents& n = wanted.domain;
  if (wanted.layout == "slab")
    return {{{n, extents{p, 1, 1}}, {0, 1, 2}}, {{n, extents{1, p, 1}}, {1, 2, 0}}};
  std::int64_t rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(p)));
  while (p % rows != 0) --rows;
  const std::int64_t columns = p / rows;
  return {{{n, extents{rows, columns, 1}}, {0, 1, 2}},
          {{n, extents{rows, 1, columns}}, {0, 2, 1}},
          {{n, extents{1, rows, columns}}, {1, 2, 0}}};
}

std::string obstacle(const std::vector<layout>& layouts) {
  for (const layout& l : layouts)
    for (std::size_t d = 0; d < 3; ++d)
      if (l.grid.domain()[d] < l.grid.grid()[d])
        return "--size " + apps::print(l.grid.domain()) + " cannot be cut into " +
               apps::print(l.grid.grid()) + " parts. Use fewer ranks or a larger array";
  return {};
}

// Exact in float, and different at neighbouring points.
float value_at(const extents& n, const extents& p) {
  return static_cast<float>(((p[0] * n[1] + p[1]) * n[2] + p[2]) % (1 << 24));
}

/// The array, there and back again.
class round_trip {
 public:
  round_trip(apps::context& c, const std::vector<layout>& layouts, int chunks)
      : m_context(c), m_channel{apps::team(c), {}, {}}, m_layouts(layouts) {
    const auto add = [&](auto& way, const layout& from, const layout& to) {
      way.push_back(std::make_unique<redistribution>(c, m_channel, from, to, chunks));
      m_max_out = std::max(m_max_out, way.back()->max_out());
      m_max_in = std::max(m_max_in, way.back()->max_in());
    };
    for (std::size_t i = 0; i + 1 < layouts.size(); ++i) add(m_there, layouts[i], layouts[i + 1]);
    for (std::size_t i = layouts.size() - 1; i > 0; --i) add(m_back, layouts[i], layouts[i - 1]);
    for (const layout& l : layouts)
      m_max = std::max(m_max, static_cast<std::size_t>(l.grid.part(c.rank()).volume()));
    m_slots = std::min(2, chunks);
    allocate();
  }

  void fill() {
    std::vector<float> values(m_now.size());
    each_point(m_layouts.front(), [&](const extents& p, std::size_t i) {
      values[i] = value_at(m_layouts.front().grid.domain(), p);
    });
    m_now.put(values);
  }
  /// Through all layouts to the last one.
  void there() { walk(m_there); }
  void back() { walk(m_back); }

  /// How many elements are not what they should be, in the layout of the first or the last one.
  double wrong(const layout& l) const {
    const std::vector<float> values = m_now.get();
    double count = 0;
    each_point(l, [&](const extents& p, std::size_t i) {
      count += values[i] != value_at(l.grid.domain(), p);
    });
    return count;
  }

  /// The same against the whole array, numbered in order, on each rank.
  double differs_from_serial() const {
    const layout& l = m_layouts.back();
    const extents& n = l.grid.domain();
    std::vector<float> all(static_cast<std::size_t>(n[0] * n[1] * n[2]));
    std::iota(all.begin(), all.end(), 0.0f);
    const std::vector<float> values = m_now.get();
    double count = 0;
    each_point(l, [&](const extents& p, std::size_t i) {
      count += values[i] != all[static_cast<std::size_t>((p[0] * n[1] + p[1]) * n[2] + p[2])];
    });
    return count;
  }

  std::vector<float> values() const {
    auto result = m_now.get();
    result.resize(static_cast<std::size_t>(m_layouts.front().grid.part(m_context.rank()).volume()));
    return result;
  }

  std::size_t volume() const {
    std::size_t all = 0;
    for (const auto* way : {&m_there, &m_back})
      for (const auto& step : *way) all += step->volume();
    return all;
  }

 private:
  void allocate() {
    const std::size_t messages = static_cast<std::size_t>(m_slots) * (m_max_out + m_max_in);
    // Two arrays, and a copy on the host for the checks.
    m_context.require_memory(static_cast<double>(3 * m_max + messages) * sizeof(float));
    m_now = {m_context, m_max};
    m_next = {m_context, m_max};
    for (int slot = 0; slot < m_slots; ++slot) {
      m_channel.send[slot] = m_channel.team.message_memory<float>(m_max_out);
      m_channel.recv[slot] = m_channel.team.message_memory<float>(m_max_in);
    }
  }

  void walk(std::vector<std::unique_ptr<redistribution>>& way) {
    for (auto& step : way) {
      m_ready = step->run(m_now, m_next, m_ready);
      swap(m_now, m_next);
    }
  }

  // Calls work(point, index) in the order in which a layout stores this rank's part. What is
  // checked with it does not depend on the offsets and strides of the copies.
  template <class Work>
  void each_point(const layout& l, Work work) const {
    const box b = l.grid.part(m_context.rank());
    const auto [slow, middle, fast] = l.order;
    extents p{};
    std::size_t index = 0;
    for (p[slow] = b.low[slow]; p[slow] < b.high[slow]; ++p[slow])
      for (p[middle] = b.low[middle]; p[middle] < b.high[middle]; ++p[middle])
        for (p[fast] = b.low[fast]; p[fast] < b.high[fast]; ++p[fast]) work(p, index++);
  }

  apps::context& m_context;
  channel m_channel;
  std::vector<layout> m_layouts;
  std::vector<std::unique_ptr<redistribution>> m_there, m_back;
  std::size_t m_max = 0, m_max_out = 0, m_max_in = 0;
  int m_slots = 1;
  apps::array<float> m_now, m_next;
  events m_ready;
};

constexpr std::int64_t largest_reference = 64 * 64 * 64;

// Where calls return events, pieces of 2 MiB overlap with packing. Where the host waits for each of
// them, that costs more than it gains.
int chunks_for(apps::context& c, const settings& wanted, const extents& n) {
  if (wanted.chunks > 0) return wanted.chunks;
  if (c.uses_mpi() || c.is_blocking()) return 1;
  const double block = static_cast<double>(n[0]) * static_cast<double>(n[1]) *
                       static_cast<double>(n[2]) * sizeof(float) / c.size() / c.size();
  return std::clamp(static_cast<int>(block / (2 << 20)), 1, 1024);
}

apps::outcome run(apps::context& c, const settings& wanted) {
  const auto layouts = make_layouts(wanted, c.size());
  c.agree(obstacle(layouts));
  const extents& n = wanted.domain;
  const int chunks = chunks_for(c, wanted, n);
  round_trip trip(c, layouts, chunks);
  c.prepare_kernels();
  apps::outcome o;
  o.details["size"] = apps::print(n);
  o.details["layout"] = wanted.layout;
  o.details["chunks"] = chunks;
  o.details["sent_bytes"] = c.max(static_cast<double>(trip.volume() * sizeof(float)));
  trip.fill();
  trip.there();
  c.queue().wait_and_throw();
  if (n[0] * n[1] * n[2] <= largest_reference)
    o.check("elements wrong against a serial run", c.sum(trip.differs_from_serial()), 0);
  o.check("elements wrong there", c.sum(trip.wrong(layouts.back())), 0);
  trip.back();
  o.iterations = c.wanted().iterations;
  o.seconds = c.run(o.iterations, [&](int) {
    trip.there();
    trip.back();
  });
  o.check("elements wrong after all iterations", c.sum(trip.wrong(layouts.front())), 0);
  if (!c.wanted().plot.empty()) write_field(c, layouts.front().grid, trip.values());
  if (c.wanted().breakdown > 0)
    o.phases = c.run_timed(c.wanted().breakdown, [&](int) {
      trip.there();
      trip.back();
    });
  return o;
}

}  // namespace
}  // namespace transpose

int main(int argc, char** argv) {
  return apps::run_application(
      argc, argv, "transpose",
      "Redistributes a 3-D array between slabs or pencils of each dimension, and back.",
      transpose::run);
}
