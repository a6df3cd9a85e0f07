// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "comd/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>

namespace comd {
namespace {

using apps::in;
using apps::inout;
using apps::out;
using apps::phase;
using sucl::kernels::items;

constexpr std::size_t sum_items = 256;

// Between 0 and 1, different for every number and dimension, the same everywhere.
double uniform(std::uint64_t number, std::uint64_t dimension) {
  std::uint64_t x = number * 8 + dimension + 1;
  for (const std::uint64_t factor : {0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu}) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 29)) * factor;
  }
  return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53;
}

double normal(std::uint64_t number, std::uint64_t dimension) {
  return std::sqrt(-2 * std::log(uniform(number, 2 * dimension))) *
         std::cos(2 * 3.14159265358979323846 * uniform(number, 2 * dimension + 1));
}

}  // namespace

vector3 problem::domain() const {
  vector3 d{};
  for (std::size_t i = 0; i < 3; ++i) d[i] = lattice_constant * static_cast<double>(lattice[i]);
  return d;
}

cell_grid problem::cells(const apps::box& part) const {
  cell_grid g{};
  double volume = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const double length = lattice_constant * static_cast<double>(part.extent(d));
    g.origin[d] = lattice_constant * static_cast<double>(part.low[d]);
    g.own[d] = static_cast<std::int32_t>(length / cutoff());
    g.inverse[d] = g.own[d] / length;
    volume *= length / g.own[d];
  }
  // Room for the atoms of a cell, and some more when they move; a full cell is noticed.
  const double average = 4 * volume / std::pow(lattice_constant, 3);
  g.slots = static_cast<std::int32_t>((1.5 * average + 14) / 8) * 8;
  return g;
}

double problem::bytes(const apps::box& part) const {
  const cell_grid g = cells(part);
  // Numbers twice; positions and momenta twice, forces and energies; for EAM a derivative too. The
  // host fills momenta by numbers.
  const double on_device = 2 * sizeof(std::int32_t) + (eam ? 17 : 16) * sizeof(double);
  const double on_host = sizeof(std::int32_t) + 3 * sizeof(double);
  return static_cast<double>(g.slot_count()) * (on_device + on_host);
}

simulation::simulation(apps::context& c, const problem& p, const apps::rank_grid& grid)
    : m_context(c), m_problem(p), m_team(c), m_ranks(grid), m_part(grid.part(c.rank())) {
  m_grid = p.cells(m_part);
  find_neighbours(grid);
  make_cells();
  const auto slot_count = static_cast<std::size_t>(m_grid.slot_count());
  const auto cells = static_cast<std::size_t>(m_grid.cells());
  for (auto* x : {&m_counts, &m_new_counts}) *x = {c, cells};
  for (auto* x : {&m_number, &m_new_number}) *x = {c, slot_count};
  for (auto* x : {&m_position, &m_new_position, &m_momentum, &m_new_momentum, &m_force})
    *x = {c, 3 * slot_count};
  m_energy = {c, slot_count};
  if (p.eam) {
    m_derivative = {c, slot_count};
    m_pair = {c, p.eam->pair.nodes};
    m_density = {c, p.eam->density.nodes};
    m_embedding = {c, p.eam->embedding.nodes};
  }
  m_filled = {c, 2};
  m_overflow = {c, 1};
  m_parts = {c, totals * sum_items};
  m_sums = {c, totals, apps::reachable_by::shared};
  m_reduction.emplace(c, m_sums);
  std::int64_t longest = 0;
  for (const auto* all : {&m_planes, &m_embedding_planes})
    for (const planes& x : *all) longest = std::max(longest, x.form.length());
  for (auto* x : {&m_send, &m_recv})
    *x = m_team.message_memory<double>(static_cast<std::size_t>(2 * longest));
}

void simulation::find_neighbours(const apps::rank_grid& grid) {
  const apps::extents here = grid.coordinates(m_context.rank());
  for (std::size_t d = 0; d < 3; ++d)
    for (const std::size_t way : {0u, 1u}) {
      apps::extents next = here;
      next[d] += way == 0 ? -1 : 1;
      m_neighbour[d][way] = grid.rank_at(next);
      const bool wraps = next[d] < 0 || next[d] >= m_ranks.grid()[d];
      m_shift[d][way] = !wraps ? 0 : (way == 0 ? 1 : -1) * m_problem.domain()[d];
    }
}

void simulation::make_cells() {
  auto& c = m_context;
  std::vector<std::int32_t> own, inner, outer, border;
  for (std::int32_t i = -1; i <= m_grid.own[0]; ++i)
    for (std::int32_t j = -1; j <= m_grid.own[1]; ++j)
      for (std::int32_t k = -1; k <= m_grid.own[2]; ++k) {
        const std::int32_t at[3] = {i, j, k};
        std::int32_t depth = m_grid.own[0];  // 0 in the outer layer, 1 in the first own one
        for (std::size_t d = 0; d < 3; ++d)
          depth = std::min({depth, at[d] + 1, m_grid.own[d] - at[d]});
        const std::int32_t cell = m_grid.index(i, j, k);
        if (depth >= 1) own.push_back(cell);
        if (depth >= 3) inner.push_back(cell);
        if (depth == 1 || depth == 2) outer.push_back(cell);
        if (depth <= 1) border.push_back(cell);
      }
  m_own = {c, own};
  m_inner = {c, inner};
  m_outer = {c, outer};
  m_border = {c, border};
  for (std::size_t d = 0; d < 3; ++d) {
    m_planes[d] = make_planes(d, true);
    if (m_problem.eam) m_embedding_planes[d] = make_planes(d, false);
  }
}

// Atoms: the first own layer and, for those that have left, the outer one. Embedding: the first own
// layer; in dimensions that are done already, with what came from there.
simulation::planes simulation::make_planes(std::size_t d, bool with_ghosts) {
  std::vector<std::int32_t> cells;
  planes result;
  for (const std::size_t way : {0u, 1u}) {
    std::array<std::array<std::int32_t, 2>, 3> range{};
    for (std::size_t e = 0; e < 3; ++e) {
      const bool all = with_ghosts || e < d;
      range[e] = {all ? -1 : 0, all ? m_grid.own[e] : m_grid.own[e] - 1};
    }
    const std::int32_t last = m_grid.own[d] - 1;
    range[d] = {way == 0 ? (with_ghosts ? -1 : 0) : last,
                way == 0 ? 0 : (with_ghosts ? last + 1 : last)};
    for (std::int32_t i = range[0][0]; i <= range[0][1]; ++i)
      for (std::int32_t j = range[1][0]; j <= range[1][1]; ++j)
        for (std::int32_t k = range[2][0]; k <= range[2][1]; ++k)
          cells.push_back(m_grid.index(i, j, k));
  }
  result.cells = {m_context, cells};
  // Both ways have as many cells. Few atoms are in a layer that they leave by; a layer of a crystal
  // may have three of its planes where two are the average. A full message is noticed.
  const double layer = static_cast<double>(cells.size()) / (with_ghosts ? 4 : 2);
  const double average =
      4.0 * static_cast<double>(m_part.volume()) / static_cast<double>(m_own.size());
  result.form.words = with_ghosts ? atom_words : embedding_words;
  result.form.capacity = static_cast<std::int64_t>(m_context.max(1.5 * layer * average + 64));
  return result;
}

sycl::nd_range<1> simulation::slots_of(std::size_t cells) const {
  const auto slots = static_cast<std::size_t>(m_grid.slots);
  return {sycl::range<1>(cells * slots), sycl::range<1>(slots)};
}

border_planes simulation::borders(std::size_t d, const planes& p) const {
  border_planes result{};
  result.down = static_cast<std::int64_t>(p.cells.size() / 2);
  for (const std::size_t way : {0u, 1u}) result.shift[way][d] = m_shift[d][way];
  return result;
}

template <class Kernel, class... Uses>
void simulation::launch(phase p, const sycl::nd_range<1>& range, const Kernel& k,
                        const Uses&... uses) {
  m_ready = {m_context.timed(p, [&] { return m_context.launch(range, m_ready, k, uses...); })};
}

void simulation::make_crystal() {
  const auto slot_count = static_cast<std::size_t>(m_grid.slot_count());
  std::vector<std::int32_t> counts(static_cast<std::size_t>(m_grid.cells())), number(slot_count);
  std::vector<double> position(3 * slot_count);
  const double quarter = lattice_constant / 4;
  constexpr int corner[4][3] = {{1, 1, 1}, {1, 3, 3}, {3, 1, 3}, {3, 3, 1}};
  const apps::extents& n = m_problem.lattice;
  for (std::int64_t i = m_part.low[0]; i < m_part.high[0]; ++i)
    for (std::int64_t j = m_part.low[1]; j < m_part.high[1]; ++j)
      for (std::int64_t k = m_part.low[2]; k < m_part.high[2]; ++k)
        for (int a = 0; a < 4; ++a) {
          const std::int64_t unit[3] = {i, j, k};
          double x[3];
          std::int32_t at[3];
          for (std::size_t d = 0; d < 3; ++d) {
            x[d] = lattice_constant * static_cast<double>(unit[d]) + quarter * corner[a][d];
            at[d] =
                std::min(m_grid.own[d] - 1,
                         static_cast<std::int32_t>((x[d] - m_grid.origin[d]) * m_grid.inverse[d]));
          }
          const auto cell = static_cast<std::size_t>(m_grid.index(at[0], at[1], at[2]));
          const auto slot = static_cast<std::size_t>(counts[cell]++);
          if (slot >= static_cast<std::size_t>(m_grid.slots))
            throw std::runtime_error("the crystal does not fit into its link cells");
          const std::size_t index = cell * static_cast<std::size_t>(m_grid.slots) + slot;
          number[index] = static_cast<std::int32_t>(4 * ((i * n[1] + j) * n[2] + k) + a);
          for (std::size_t d = 0; d < 3; ++d) position[d * slot_count + index] = x[d];
        }
  m_counts.put(counts);
  m_number.put(number);
  m_position.put(position);
  redistribute();
}

// Calls work(index) for each own atom of now.
template <class Work>
void simulation::each_own(Work work) const {
  const auto counts = m_counts.get(), own = m_own.get();
  for (const std::int32_t cell : own)
    for (std::int32_t a = 0; a < counts[static_cast<std::size_t>(cell)]; ++a)
      work(static_cast<std::size_t>(static_cast<std::int64_t>(cell) * m_grid.slots + a));
}

void simulation::heat() {
  m_context.queue().wait_and_throw();
  const auto slot_count = static_cast<std::size_t>(m_grid.slot_count());
  const auto number = m_number.get();
  std::vector<double> momentum(3 * slot_count);
  const auto each = [&](auto work) {
    each_own([&](std::size_t index) {
      for (std::size_t d = 0; d < 3; ++d) work(momentum[d * slot_count + index], index, d);
    });
  };
  vector3 sum{};
  each([&](double& p, std::size_t index, std::size_t d) {
    p = normal(static_cast<std::uint64_t>(number[index]), d);
    sum[d] += p;
  });
  // Neither the crystal as a whole moves nor is its temperature left to chance.
  const auto atoms = static_cast<double>(m_problem.atoms());
  for (double& s : sum) s = m_context.sum(s) / atoms;
  double square = 0;
  each([&](double& p, std::size_t, std::size_t d) {
    p -= sum[d];
    square += p * p;
  });
  const double kinetic = m_context.sum(square) / (2 * copper_mass);
  const double wanted = 1.5 * boltzmann * m_problem.temperature * atoms;
  const double scale = kinetic > 0 ? std::sqrt(wanted / kinetic) : 0;
  each([&](double& p, std::size_t, std::size_t) { p *= scale; });
  m_momentum.put(momentum);
  m_ready = {};
}

void simulation::step() {
  const double dt = m_problem.time_step;
  const auto own = slots_of(m_own.size());
  launch(phase::compute, own, kick{m_grid, dt / 2, dt / copper_mass}, in(m_own), in(m_counts),
         in(m_force), inout(m_momentum), inout(m_position));
  redistribute();
  launch(phase::compute, own, kick{m_grid, dt / 2, 0}, in(m_own), in(m_counts), in(m_force),
         inout(m_momentum), inout(m_position));
}

void simulation::record(int n) {
  if (m_recorded) return;
  m_context.queue().wait_and_throw();
  m_recorded = m_context.world().record(m_context.queue(), [this, n] {
    m_ready = {};
    for (int i = 0; i < n; ++i) step();
  });
  m_ready = {};
}

void simulation::replay() { m_ready = {m_recorded.replay(m_ready)}; }

// Atoms to their cells and ranks, copies of the neighbours' atoms to the outer layer, and forces.
// Those of the inner cells, which get no atom from a neighbour, are computed meanwhile.
void simulation::redistribute() {
  launch(phase::pack, items(static_cast<std::size_t>(m_grid.cells()), 16), sort_into_cells{m_grid},
         in(m_counts), in(m_number), in(m_position), in(m_momentum), inout(m_new_counts),
         inout(m_new_number), inout(m_new_position), inout(m_new_momentum), inout(m_overflow));
  swap(m_counts, m_new_counts);
  swap(m_number, m_new_number);
  swap(m_position, m_new_position);
  swap(m_momentum, m_new_momentum);
  const apps::events sorted = m_ready;
  compute_forces(m_inner, false);
  const apps::events inner = m_ready;
  m_ready = sorted;
  for (std::size_t d = 0; d < 3; ++d) {
    const planes& p = m_planes[d];
    launch(phase::pack, slots_of(p.cells.size()), pack_atoms{m_grid, p.form, borders(d, p)},
           in(p.cells), in(m_counts), in(m_number), in(m_position), in(m_momentum), inout(m_filled),
           inout(m_send));
    const auto& arrived = exchange(d, p.form);
    launch(phase::pack, items(static_cast<std::size_t>(2 * p.form.capacity)),
           unpack_atoms{m_grid, p.form}, in(arrived), inout(m_counts), inout(m_number),
           inout(m_position), inout(m_momentum), inout(m_overflow));
  }
  launch(phase::pack, items(m_border.size(), 16),
         order_atoms{m_grid, static_cast<std::int64_t>(m_border.size())}, in(m_border),
         in(m_counts), inout(m_number), inout(m_position), inout(m_momentum));
  m_ready.insert(m_ready.end(), inner.begin(), inner.end());
  compute_forces(m_outer, true);
}

// The forces of a list of cells or, where an atom's force depends on its neighbours' embedding,
// what can be computed without it; with `last` all of it.
void simulation::compute_forces(const apps::array<std::int32_t>& cells, bool last) {
  for (int n = 0; n < m_turns; ++n) compute_own_part(cells);
  if (!m_problem.eam || !last) return;
  share_embedding();
  for (int n = 0; n < m_turns; ++n) compute_embedded_forces();
}

// What needs nothing of other ranks but their atoms.
void simulation::compute_own_part(const apps::array<std::int32_t>& cells) {
  const auto count = cells.size();
  if (count == 0) return;
  const double cutoff2 = m_problem.cutoff() * m_problem.cutoff();
  if (!m_problem.eam) {
    const auto& lj = m_problem.lj;
    launch(phase::compute, slots_of(count),
           lennard_jones{m_grid, lj.sigma * lj.sigma, lj.epsilon, cutoff2, lj.shift()}, in(cells),
           in(m_counts), in(m_position), inout(m_force), inout(m_energy));
    return;
  }
  launch(phase::compute, slots_of(count),
         eam_density{m_grid, cutoff2, reader(m_problem.eam->pair), reader(m_problem.eam->density),
                     reader(m_problem.eam->embedding)},
         in(cells), in(m_counts), in(m_position), in(m_pair), in(m_density), in(m_embedding),
         inout(m_derivative), inout(m_energy));
}

void simulation::compute_embedded_forces() {
  launch(phase::compute, slots_of(m_own.size()),
         eam_force{m_grid, m_problem.cutoff() * m_problem.cutoff(), reader(m_problem.eam->pair),
                   reader(m_problem.eam->density)},
         in(m_own), in(m_counts), in(m_position), in(m_pair), in(m_density), in(m_derivative),
         inout(m_force));
}

double simulation::measure() {
  m_context.queue().wait_and_throw();
  const auto began = std::chrono::steady_clock::now();
  for (int n = 0; n < m_turns; ++n) compute_own_part(m_own);
  for (int n = 0; n < m_turns && m_problem.eam; ++n) compute_embedded_forces();
  for (sycl::event& e : m_ready) e.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// Own atoms in the order of the ranks that have them by that grid, and how many words each gets.
std::vector<double> simulation::atoms_of_ranks(const apps::rank_grid& grid,
                                               sucl::counts& words) const {
  const auto slot_count = static_cast<std::size_t>(m_grid.slot_count());
  const auto number = m_number.get();
  const auto position = m_position.get(), momentum = m_momentum.get();
  std::vector<std::vector<double>> leaving(static_cast<std::size_t>(m_context.size()));
  each_own([&](std::size_t index) {
    apps::extents unit{};
    for (std::size_t d = 0; d < 3; ++d)
      unit[d] = std::clamp(static_cast<std::int64_t>(
                               std::floor(position[d * slot_count + index] / lattice_constant)),
                           m_part.low[d], m_part.high[d] - 1);
    auto& to = leaving[static_cast<std::size_t>(grid.owner(unit))];
    to.push_back(number[index]);
    for (const auto* from : {&position, &momentum})
      for (std::size_t d = 0; d < 3; ++d) to.push_back((*from)[d * slot_count + index]);
  });
  std::vector<double> all;
  for (const auto& atoms : leaving) {
    words.push_back(atoms.size());
    all.insert(all.end(), atoms.begin(), atoms.end());
  }
  return all;
}

// One at a border may come to lie in the next cell, or rank, when they are sorted.
void simulation::take_atoms(const std::vector<double>& atoms) {
  const auto slot_count = static_cast<std::size_t>(m_grid.slot_count());
  std::vector<std::int32_t> counts(static_cast<std::size_t>(m_grid.cells())), number(slot_count);
  std::vector<double> position(3 * slot_count), momentum(3 * slot_count);
  for (std::size_t i = 0; i < atoms.size(); i += atom_words) {
    std::int32_t at[3];
    for (std::size_t d = 0; d < 3; ++d)
      at[d] = std::clamp(m_grid.along(static_cast<std::int32_t>(d), atoms[i + 1 + d]), 0,
                         m_grid.own[d] - 1);
    const auto cell = static_cast<std::size_t>(m_grid.index(at[0], at[1], at[2]));
    const auto slot = static_cast<std::size_t>(counts[cell]++);
    if (slot >= static_cast<std::size_t>(m_grid.slots))
      throw std::runtime_error("the atoms that have moved do not fit into their link cells");
    const std::size_t index = cell * static_cast<std::size_t>(m_grid.slots) + slot;
    number[index] = static_cast<std::int32_t>(atoms[i]);
    for (std::size_t d = 0; d < 3; ++d) {
      position[d * slot_count + index] = atoms[i + 1 + d];
      momentum[d * slot_count + index] = atoms[i + 4 + d];
    }
  }
  m_counts.put(counts);
  m_number.put(number);
  m_position.put(position);
  m_momentum.put(momentum);
}

void simulation::go_on(const simulation& from) {
  m_context.queue().wait_and_throw();
  auto comm = m_context.world().blocking();
  const auto ranks = static_cast<std::size_t>(m_context.size());
  sucl::counts out, in, out_begins, in_begins;
  const std::vector<double> leaving = from.atoms_of_ranks(m_ranks, out);
  std::vector<std::uint64_t> sent(out.begin(), out.end()), received(ranks);
  comm.alltoall(sent.data(), received.data(), 1);
  std::size_t leave = 0, arrive = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    out_begins.push_back(leave);
    in_begins.push_back(arrive);
    in.push_back(received[r]);
    leave += out[r];
    arrive += received[r];
  }
  std::vector<double> arriving(arrive);
  comm.alltoallv(leaving.data(), out, out_begins, arriving.data(), in, in_begins);
  take_atoms(arriving);
  redistribute();
}

void simulation::share_embedding() {
  for (std::size_t d = 0; d < 3; ++d) {
    const planes& p = m_embedding_planes[d];
    launch(phase::pack, slots_of(p.cells.size()), pack_embedding{m_grid, p.form, borders(d, p)},
           in(p.cells), in(m_counts), in(m_number), in(m_position), in(m_derivative),
           inout(m_filled), inout(m_send));
    const auto& arrived = exchange(d, p.form);
    launch(phase::pack, items(static_cast<std::size_t>(2 * p.form.capacity)),
           unpack_embedding{m_grid, p.form}, in(arrived), in(m_counts), in(m_number),
           inout(m_derivative));
  }
}

// What goes down arrives from above.
const apps::array<double>& simulation::exchange(std::size_t d, const messages& form) {
  launch(phase::pack, items(2, 2), finish_messages{form}, inout(m_filled), inout(m_send),
         inout(m_overflow));
  if (m_ranks.grid()[d] == 1) return m_send;
  const int below = m_neighbour[d][0], above = m_neighbour[d][1];
  const auto length = static_cast<std::size_t>(form.length());
  m_ready = {m_context.timed(phase::communicate, [&] {
    return m_team.exchange(m_send, m_recv,
                           {{{below, 0, length, 0}, {above, length, length, 1}},
                            {{above, 0, length, 0}, {below, length, length, 1}}},
                           m_ready);
  })};
  return m_recv;
}

void simulation::throw_if_broken(double atoms) {
  const bool is_full = m_context.max(m_overflow.get()[0]) > 0;
  if (is_full)
    throw std::runtime_error(
        "a link cell or a message has more atoms than it has room for: the "
        "crystal has melted or exploded. Use a lower --temperature or --time-step");
  if (atoms != static_cast<double>(m_problem.atoms()))
    throw std::runtime_error("of " + std::to_string(m_problem.atoms()) + " atoms " +
                             std::to_string(static_cast<std::int64_t>(atoms)) +
                             " are left: the others moved by more than a link cell in one step. "
                             "Use a shorter --time-step");
}

state_totals simulation::sum() {
  launch(phase::compute, items(sum_items, 16),
         sum_totals{m_grid, static_cast<std::int64_t>(m_own.size()), copper_mass}, in(m_own),
         in(m_counts), in(m_momentum), in(m_energy), out(m_parts));
  launch(phase::compute, items(totals, 1), finish_totals{sum_items}, in(m_parts), out(m_sums));
  const auto reduced =
      m_context.timed(phase::communicate, [&] { return m_reduction->start(m_ready); });
  m_ready.push_back(reduced);
  double value[totals];
  for (std::size_t t = 0; t < static_cast<std::size_t>(totals); ++t)
    value[t] = m_reduction->value(t);
  throw_if_broken(value[5]);
  return {value[0], value[1], {value[2], value[3], value[4]}};
}

snapshot simulation::gather() {
  m_context.queue().wait_and_throw();
  const auto slot_count = static_cast<std::size_t>(m_grid.slot_count());
  const auto number = m_number.get();
  const auto position = m_position.get(), momentum = m_momentum.get();
  std::vector<double> mine;
  each_own([&](std::size_t index) {
    mine.push_back(number[index]);
    for (const auto* from : {&position, &momentum})
      for (std::size_t d = 0; d < 3; ++d) mine.push_back((*from)[d * slot_count + index]);
  });
  auto comm = m_context.world().blocking();
  std::uint64_t size = mine.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(m_context.size()));
  comm.allgather(&size, sizes.data(), 1);
  sucl::counts lengths, begins;
  std::size_t all = 0;
  for (const std::uint64_t s : sizes) {
    begins.push_back(all);
    lengths.push_back(s);
    all += s;
  }
  std::vector<double> atoms(m_context.rank() == 0 ? all : 1);
  comm.gatherv(mine.data(), mine.size(), atoms.data(), lengths, begins, 0);
  snapshot result;
  if (m_context.rank() != 0) return result;
  result.position.resize(static_cast<std::size_t>(m_problem.atoms()));
  result.momentum.resize(result.position.size());
  for (std::size_t i = 0; i + 7 <= atoms.size(); i += 7) {
    const auto n = static_cast<std::size_t>(atoms[i]);
    result.position[n] = {atoms[i + 1], atoms[i + 2], atoms[i + 3]};
    result.momentum[n] = {atoms[i + 4], atoms[i + 5], atoms[i + 6]};
  }
  return result;
}

}  // namespace comd
