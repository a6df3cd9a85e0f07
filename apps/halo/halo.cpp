// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Halo: a 3-D field, periodic in all dimensions, cut into boxes. Each iteration smooths the field,
// which reads one layer of the neighbours' points across faces, edges and corners.
//
// Read solver::step() first, an iteration. Before it: which points go to whom; after it: what the
// field is checked with; last, the program.
//
//   sucl run -n 2 -- apps/halo --size 256x256x256 --iterations 100
#include "common/grid/field.hpp"
#include "common/kernels.hpp"
#include "common/messages.hpp"
#include "common/program/application.hpp"
#include "common/shares.hpp"
#include "halo/kernels.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <memory>

namespace halo {
namespace {

using apps::box;
using apps::events;
using apps::extents;
using apps::in;
using apps::inout;
using apps::phase;

struct settings : apps::settings {
  extents domain{64, 64, 64};
  apps::share_options shares;
  void define(apps::command_line& line) override {
    line.add_extents("--size", domain, "Points in each dimension");
    shares.define(line);
  }
};

/// Lists of points that are packed, unpacked, or copied within this rank, and the messages.
struct lists {
  std::vector<std::int32_t> pack, unpack, local_from, local_to;
  apps::pattern messages;
};

/// A rank's box with one layer of its neighbours' points around it.
class local_box {
 public:
  explicit local_box(const box& part) : m_part(part), m_size(part.size()) {}
  const box& part() const { return m_part; }
  const extents& size() const { return m_size; }
  std::int64_t row() const { return m_size[2] + 2; }
  std::int64_t plane() const { return (m_size[1] + 2) * row(); }
  std::int64_t points() const { return (m_size[0] + 2) * plane(); }
  /// Of a point in the box's own coordinates: -1 and size() are the neighbours'.
  std::int64_t index(const extents& p) const {
    return (p[0] + 1) * plane() + (p[1] + 1) * row() + p[2] + 1;
  }
  /// The layer of own points that the neighbour in a direction needs (or, with `halo`, the layer of
  /// the neighbour's points), row by row.
  std::vector<std::int32_t> layer(const extents& direction, bool halo) const {
    extents low{}, high{};
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t last = m_size[d] - 1;
      low[d] = direction[d] > 0 ? last + (halo ? 1 : 0) : (direction[d] < 0 && halo ? -1 : 0);
      high[d] = direction[d] == 0 ? last : low[d];
    }
    std::vector<std::int32_t> result;
    for (std::int64_t i = low[0]; i <= high[0]; ++i)
      for (std::int64_t j = low[1]; j <= high[1]; ++j)
        for (std::int64_t k = low[2]; k <= high[2]; ++k)
          result.push_back(static_cast<std::int32_t>(index({i, j, k})));
    return result;
  }

 private:
  box m_part;
  extents m_size;
};

const std::vector<extents>& directions() {
  static const std::vector<extents> all = [] {
    std::vector<extents> result;
    for (std::int64_t i = -1; i <= 1; ++i)
      for (std::int64_t j = -1; j <= 1; ++j)
        for (std::int64_t k = -1; k <= 1; ++k)
          if (i != 0 || j != 0 || k != 0) result.push_back({i, j, k});
    return result;
  }();
  return all;
}

void append(std::vector<std::int32_t>& to, const std::vector<std::int32_t>& what) {
  to.insert(to.end(), what.begin(), what.end());
}

// One message for each neighbour, whatever number of faces, edges and corners it shares with us;
// what goes in a direction arrives from the opposite one, so both sides take the sender's order.
lists make_lists(const apps::rank_grid& grid, const local_box& own, int rank) {
  lists result;
  struct pair {
    std::vector<std::int32_t> pack, unpack;
  };
  std::map<int, pair> peers;
  const extents here = grid.coordinates(rank);
  for (const extents& d : directions()) {
    const extents opposite{-d[0], -d[1], -d[2]};
    const auto neighbour = [&](const extents& way) {
      return grid.rank_at({here[0] + way[0], here[1] + way[1], here[2] + way[2]});
    };
    const int to = neighbour(d), from = neighbour(opposite);
    const auto packed = own.layer(d, false), halo = own.layer(opposite, true);
    if (to == rank) {  // then the one that sends to us in this direction is this rank too
      append(result.local_from, packed);
      append(result.local_to, halo);
    } else {
      append(peers[to].pack, packed);
      append(peers[from].unpack, halo);
    }
  }
  for (const auto& [peer, points] : peers) {
    result.messages.out.push_back({peer, result.pack.size(), points.pack.size()});
    result.messages.in.push_back({peer, result.unpack.size(), points.unpack.size()});
    append(result.pack, points.pack);
    append(result.unpack, points.unpack);
  }
  return result;
}

/// The state of a rank, and an iteration.
class solver {
 public:
  solver(apps::context& c, const apps::rank_grid& grid)
      : m_context(c), m_grid(grid), m_own(grid.part(c.rank())), m_team(c) {
    lists all = make_lists(grid, m_own, c.rank());
    m_pack = {c, all.pack};
    m_unpack = {c, all.unpack};
    m_local_from = {c, all.local_from};
    m_local_to = {c, all.local_to};
    m_messages = all.messages;
    m_now = {c, static_cast<std::size_t>(m_own.points())};
    m_next = {c, static_cast<std::size_t>(m_own.points())};
    m_send = m_team.message_memory<float>(all.pack.size());
    m_recv = m_team.message_memory<float>(all.unpack.size());
    cut(grid.grid());
  }

  /// From now on this rank computes everything so often, as if its device were so much slower.
  void compute_times(int turns) { m_turns = turns; }

  const local_box& own() const { return m_own; }
  std::size_t message_bytes() const { return m_pack.size() * sizeof(float); }

  /// Sets the points of the box to f(global coordinates).
  template <class Field>
  void set(Field f) {
    std::vector<float> values(static_cast<std::size_t>(m_own.points()));
    each_point(
        [&](const extents& p, std::int64_t i) { values[static_cast<std::size_t>(i)] = f(p); });
    m_now.put(values);
  }

  /// The largest difference to f(global coordinates) on this rank.
  template <class Field>
  double difference(Field f) const {
    const std::vector<float> values = m_now.get();
    double largest = 0;
    each_point([&](const extents& p, std::int64_t i) {
      const double off = std::abs(values[static_cast<std::size_t>(i)] - f(p));
      largest = off <= largest ? largest : off;  // NaN is larger
    });
    return largest;
  }

  std::vector<float> points() const {
    const std::vector<float> values = m_now.get();
    std::vector<float> result;
    each_point([&](const extents&, std::int64_t i) {
      result.push_back(values[static_cast<std::size_t>(i)]);
    });
    return result;
  }

  /// Goes on with the field of another solver, whose parts are others. What stays on this rank
  /// stays on its device.
  void go_on(const solver& from) {
    m_context.queue().wait_and_throw();
    const box stays = apps::intersection(m_own.part(), from.m_own.part());
    std::vector<box> leaving, arriving;
    sucl::counts send_counts, send_displs, recv_counts, recv_displs;
    std::size_t sent = 0, received = 0;
    for (int peer = 0; peer < m_context.size(); ++peer) {
      const bool is_other = peer != m_context.rank();
      leaving.push_back(is_other ? apps::intersection(from.m_own.part(), m_grid.part(peer))
                                 : box{});
      arriving.push_back(is_other ? apps::intersection(m_own.part(), from.m_grid.part(peer))
                                  : box{});
      send_counts.push_back(static_cast<std::size_t>(leaving.back().volume()));
      recv_counts.push_back(static_cast<std::size_t>(arriving.back().volume()));
      send_displs.push_back(sent);
      recv_displs.push_back(received);
      sent += send_counts.back();
      received += recv_counts.back();
    }
    const apps::array<float> out(m_context, sent), arrived(m_context, received);
    events copied{copy(stays, from.m_now, from.position_of(stays), m_now, position_of(stays))};
    for (std::size_t peer = 0; peer < leaving.size(); ++peer) {
      const box& b = leaving[peer];
      copied.push_back(copy(b, from.m_now, from.position_of(b), out, packed(b, send_displs[peer])));
    }
    for (auto& e : copied) e.wait();
    m_context.exchange_all(out, send_counts, send_displs, arrived, recv_counts, recv_displs);
    for (std::size_t peer = 0; peer < arriving.size(); ++peer) {
      const box& b = arriving[peer];
      copy(b, arrived, packed(b, recv_displs[peer]), m_now, position_of(b)).wait();
    }
  }

  /// The seconds that this rank's device takes for its box, which changes nothing.
  double measure() {
    m_context.queue().wait_and_throw();
    const auto began = std::chrono::steady_clock::now();
    events all;
    if (m_inner.volume() > 0) all.push_back(smooth_box(m_inner, m_ready));
    for (const box& b : m_outer) all.push_back(smooth_box(b, m_ready));
    for (auto& e : all) e.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  // What needs no neighbour is computed while the messages travel.
  void step() {
    auto& c = m_context;
    sycl::event packed, arrived;
    const bool has_peers = !m_messages.empty();
    if (has_peers)
      packed = c.timed(phase::pack, [&] {
        return c.launch(sucl::kernels::items(m_pack.size()), m_ready,
                        apps::gather<float>{static_cast<std::int64_t>(m_pack.size())}, in(m_now),
                        in(m_pack), apps::out(m_send));
      });
    events local = m_ready;
    if (m_local_from.size() > 0)
      local = {c.timed(phase::pack, [&] {
        return c.launch(sucl::kernels::items(m_local_from.size()), m_ready,
                        apps::copy_within<float>{static_cast<std::int64_t>(m_local_from.size())},
                        in(m_local_from), in(m_local_to), inout(m_now));
      })};
    events computed;
    if (m_inner.volume() > 0)
      computed.push_back(c.timed(phase::compute, [&] { return smooth_box(m_inner, local); }));
    if (has_peers) {
      arrived = c.timed(phase::communicate,
                        [&] { return m_team.exchange(m_send, m_recv, m_messages, {packed}); });
      local.push_back(c.timed(phase::pack, [&] {
        return c.launch(sucl::kernels::items(m_unpack.size()), {packed, arrived},
                        apps::scatter<float>{static_cast<std::int64_t>(m_unpack.size())},
                        in(m_recv), in(m_unpack), inout(m_now));
      }));
      for (const box& b : m_outer)
        computed.push_back(c.timed(phase::compute, [&] { return smooth_box(b, local); }));
    }
    m_ready = computed;
    swap(m_now, m_next);
  }

 private:
  // The part of the box that needs no message, and slabs around it that do.
  void cut(const extents& grid) {
    m_inner = {{0, 0, 0}, m_own.size()};
    for (std::size_t d = 0; d < 3; ++d) {
      if (grid[d] == 1) continue;
      box first = m_inner, last = m_inner;
      first.high[d] = std::min(m_inner.high[d], m_inner.low[d] + 1);
      last.low[d] = std::max(m_inner.low[d] + 1, m_inner.high[d] - 1);
      for (const box& b : {first, last})
        if (b.volume() > 0) m_outer.push_back(b);
      m_inner.low[d] += 1;
      m_inner.high[d] = std::max(m_inner.low[d], m_inner.high[d] - 1);
    }
  }

  sycl::event smooth_box(const box& b, const events& deps) {
    const extents size = b.size();
    const smooth kernel{{b.low[0] + 1, b.low[1] + 1, b.low[2] + 1},
                        {size[0], size[1], size[2]},
                        m_own.plane(),
                        m_own.row()};
    constexpr std::size_t lanes = 64;
    const auto rows = static_cast<std::size_t>(size[0] * size[1]);
    events done = deps;
    for (int n = 0; n < m_turns; ++n)
      done = {m_context.launch({sycl::range<1>(rows * lanes), sycl::range<1>(lanes)}, done, kernel,
                               in(m_now), inout(m_next))};
    return done.front();
  }

  // Where a part of the box is, and where it is with nothing between its points.
  placement position_of(const box& b) const {
    const extents& low = m_own.part().low;
    const extents first{b.low[0] - low[0], b.low[1] - low[1], b.low[2] - low[2]};
    return {m_own.index(first), m_own.plane(), m_own.row()};
  }
  static placement packed(const box& b, std::size_t start) {
    return {static_cast<std::int64_t>(start), b.extent(1) * b.extent(2), b.extent(2)};
  }
  sycl::event copy(const box& b, const apps::array<float>& from, const placement& at,
                   const apps::array<float>& copied, const placement& to) {
    if (b.volume() == 0) return {};
    constexpr std::size_t lanes = 64;
    const auto rows = static_cast<std::size_t>(b.extent(0) * b.extent(1));
    return m_context.launch({sycl::range<1>(rows * lanes), sycl::range<1>(lanes)}, {},
                            copy_box{b.extent(1), b.extent(2), at, to}, in(from), inout(copied));
  }

  template <class Work>
  void each_point(Work work) const {
    const extents& n = m_own.size();
    const extents& low = m_own.part().low;
    for (std::int64_t i = 0; i < n[0]; ++i)
      for (std::int64_t j = 0; j < n[1]; ++j)
        for (std::int64_t k = 0; k < n[2]; ++k)
          work(extents{low[0] + i, low[1] + j, low[2] + k}, m_own.index({i, j, k}));
  }

  apps::context& m_context;
  apps::rank_grid m_grid;
  int m_turns = 1;
  local_box m_own;
  apps::team m_team;
  apps::pattern m_messages;
  apps::array<std::int32_t> m_pack, m_unpack, m_local_from, m_local_to;
  apps::array<float> m_now, m_next, m_send, m_recv;
  box m_inner;
  std::vector<box> m_outer;
  events m_ready;
};

std::array<std::size_t, 3> cells_of(const extents& e) {
  return {static_cast<std::size_t>(e[0]), static_cast<std::size_t>(e[1]),
          static_cast<std::size_t>(e[2])};
}

std::array<int, 3> ranks_of(const extents& e) {
  return {static_cast<int>(e[0]), static_cast<int>(e[1]), static_cast<int>(e[2])};
}

/// The domain, and which rank has which box of it.
class problem {
 public:
  problem(apps::context& c, const apps::rank_grid& even, const apps::share_options& how)
      : m_even(even),
        m_all(c,
              sucl::box_balancer(cells_of(even.domain()), ranks_of(even.grid()),
                                 how.speeds_of(c.size())),
              how,
              [&c, even](const sucl::box_balancer& b) { return make(c, {even, b.current()}); }) {
    if (how.how == apps::balance::probe) m_all.probe();
  }

  solver& boxes() { return m_all.solver(); }
  apps::rank_grid grid() const { return {m_even, m_all.balancer().current()}; }
  const std::vector<int>& moves() const { return m_all.moves(); }
  double seconds_of_moves() const { return m_all.seconds_of_moves(); }

  void step() { m_all.step(); }

 private:
  static std::unique_ptr<solver> make(apps::context& c, const apps::rank_grid& grid) {
    const box part = grid.part(c.rank());
    const double points = static_cast<double>(part.extent(0) + 2) *
                          static_cast<double>(part.extent(1) + 2) *
                          static_cast<double>(part.extent(2) + 2);
    c.agree(points > std::numeric_limits<std::int32_t>::max()
                ? "--size: a rank's part has more than 2^31 points. Use more ranks"
                : "");
    c.require_memory(points * 3 * sizeof(float));  // two fields, and a copy for checks
    return std::make_unique<solver>(c, grid);
  }

  apps::rank_grid m_even;
  apps::balanced<solver, sucl::box_balancer> m_all;
};

constexpr double pi = 3.14159265358979323846;

/// A plane wave on a constant, 1 + sin(1/2 + 2 pi (x/nx + y/ny + z/nz)): it shrinks by the same
/// factor in every iteration.
class plane_wave {
 public:
  explicit plane_wave(const extents& n) {
    for (std::size_t d = 0; d < 3; ++d) {
      const double step = 2 * pi / static_cast<double>(n[d]);
      for (std::int64_t i = 0; i < n[d]; ++i)
        m_factor[d].push_back(std::polar(1.0, (d == 0 ? 0.5 : 0) + step * static_cast<double>(i)));
      m_shrinkage *= (1 + std::cos(step)) / 2;
    }
  }
  /// How high the wave is after some iterations.
  double height(int iterations) const { return std::pow(m_shrinkage, iterations); }
  /// The field at a point, with a wave of that height.
  double at(const extents& p, double height) const {
    const auto factor = [&](std::size_t d) { return m_factor[d][static_cast<std::size_t>(p[d])]; };
    const std::complex<double> a = factor(0) * factor(1), b = factor(2);
    return 1 + height * (a.real() * b.imag() + a.imag() * b.real());
  }

 private:
  std::vector<std::complex<double>> m_factor[3];  ///< of exp(i angle), for each dimension
  double m_shrinkage = 1;
};

// Different at every point, and the same on every rank.
float noise(const extents& n, const extents& p) {
  auto x = static_cast<std::uint64_t>((p[0] * n[1] + p[1]) * n[2] + p[2]) * 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  return static_cast<float>(x >> 40) * 0x1p-24f;
}

// The whole field by plain loops.
std::vector<double> serial_reference(const extents& n, int steps) {
  const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const auto wrap = [](std::int64_t x, std::int64_t m) { return (x + m) % m; };
    return static_cast<std::size_t>((wrap(i, n[0]) * n[1] + wrap(j, n[1])) * n[2] + wrap(k, n[2]));
  };
  std::vector<double> now(static_cast<std::size_t>(n[0] * n[1] * n[2])), next(now.size());
  const auto each = [&](auto work) {
    for (std::int64_t i = 0; i < n[0]; ++i)
      for (std::int64_t j = 0; j < n[1]; ++j)
        for (std::int64_t k = 0; k < n[2]; ++k) work(i, j, k);
  };
  each([&](auto i, auto j, auto k) { now[at(i, j, k)] = noise(n, {i, j, k}); });
  for (int s = 0; s < steps; ++s) {
    each([&](auto i, auto j, auto k) {
      double sum = 0;
      for (const extents& d : directions()) {
        const auto nonzero = (d[0] != 0) + (d[1] != 0) + (d[2] != 0);
        sum += (8 >> nonzero) * now[at(i + d[0], j + d[1], k + d[2])];
      }
      next[at(i, j, k)] = (sum + 8 * now[at(i, j, k)]) / 64;
    });
    now.swap(next);
  }
  return now;
}

constexpr std::int64_t largest_reference = 64 * 64 * 64;

void check_against_serial(apps::context& c, problem& all, const extents& n, apps::outcome& o) {
  if (n[0] * n[1] * n[2] > largest_reference) return;
  const int steps = 3;
  all.boxes().set([&](const extents& p) { return noise(n, p); });
  for (int i = 0; i < steps; ++i) all.step();
  c.queue().wait_and_throw();
  const std::vector<double> expected = serial_reference(n, steps);
  const double off = all.boxes().difference([&](const extents& p) {
    return expected[static_cast<std::size_t>((p[0] * n[1] + p[1]) * n[2] + p[2])];
  });
  o.check("noise after " + std::to_string(steps) + " steps against a serial run", c.max(off), 1e-6);
}

apps::outcome run(apps::context& c, const settings& wanted) {
  const extents n = wanted.domain;
  const apps::rank_grid even(n, c.size());
  c.prepare_kernels();
  problem all(c, even, wanted.shares);
  apps::outcome o;
  o.details["size"] = apps::print(n);
  o.details["grid"] = apps::print(even.grid());
  o.details["message"] = c.max(static_cast<double>(all.boxes().message_bytes()));
  check_against_serial(c, all, n, o);

  const plane_wave wave(n);
  all.boxes().set([&](const extents& p) { return static_cast<float>(wave.at(p, 1)); });
  const int before = 2;  // to warm up
  for (int i = 0; i < before; ++i) all.step();
  o.iterations = c.wanted().iterations;
  o.seconds = c.run(o.iterations, [&](int) { all.step(); });
  o.details["moves"] = all.moves().size();
  o.details["moved_after"] = all.moves();
  o.details["seconds_of_moves"] = all.seconds_of_moves();
  o.details["points_of_rank_0"] = all.grid().part(0).volume();
  const int total = before + o.iterations;
  const double height = wave.height(total);
  const double off = all.boxes().difference([&](const extents& p) { return wave.at(p, height); });
  o.check("wave against the analytic field", c.max(off), 1e-6 + 1e-7 * total);
  if (!c.wanted().plot.empty()) write_field(c, all.grid(), all.boxes().points());
  if (c.wanted().breakdown > 0)
    o.phases = c.run_timed(c.wanted().breakdown, [&](int) { all.step(); });
  return o;
}

}  // namespace
}  // namespace halo

int main(int argc, char** argv) {
  return apps::run_application(argc, argv, "halo",
                               "A 3-D stencil with halo exchange across faces, edges and corners.",
                               halo::run);
}
