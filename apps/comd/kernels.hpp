// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Molecular dynamics in link cells. Each cell has room for `slots` atoms; arrays with three
/// components have all x first, then all y, then all z. A layer of cells around the rank's own ones
/// holds the atoms of its neighbours.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>

namespace comd {

/// The link cells of a rank; the own ones are 0 to own[d] - 1, and -1 and own[d] around them.
struct cell_grid {
  double origin[3];   ///< corner of the rank's box, in Angstrom
  double inverse[3];  ///< cells for each Angstrom
  std::int32_t own[3];
  std::int32_t slots;

  std::int64_t cells() const {
    return static_cast<std::int64_t>(own[0] + 2) * (own[1] + 2) * (own[2] + 2);
  }
  std::int64_t slot_count() const { return cells() * slots; }
  std::int32_t index(std::int32_t i, std::int32_t j, std::int32_t k) const {
    return ((i + 1) * (own[1] + 2) + j + 1) * (own[2] + 2) + k + 1;
  }
  /// The cell of a coordinate; what lies beyond the outer layer counts to it.
  std::int32_t along(std::int32_t d, double x) const {
    const double at = sycl::floor((x - origin[d]) * inverse[d]);
    return at < 0 ? -1 : at >= own[d] ? own[d] : static_cast<std::int32_t>(at);
  }
  std::int32_t cell_of(double x, double y, double z) const {
    return index(along(0, x), along(1, y), along(2, z));
  }
};

/// Where a work item is: one for each slot of the cells of a list.
struct slot {
  std::int32_t cell;
  std::int32_t number;
  std::int64_t index;
  slot(sycl::nd_item<1> item, const std::int32_t* list, std::int32_t slots)
      : cell(list[item.get_group(0)]),
        number(static_cast<std::int32_t>(item.get_local_id(0))),
        index(static_cast<std::int64_t>(cell) * slots + number) {}
};

/// Half a step of the velocities and, with `drift`, a step of the positions.
struct kick {
  cell_grid grid;
  double half_step;
  double drift;  ///< the time step over the mass, or zero
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  const double* force, double* momentum, double* position) const {
    const slot s(item, list, grid.slots);
    if (s.number >= counts[s.cell]) return;
    const std::int64_t n = grid.slot_count();
    for (std::int64_t d = 0; d < 3; ++d) {
      const std::int64_t at = d * n + s.index;
      momentum[at] += half_step * force[at];
      position[at] += drift * momentum[at];
    }
  }
};

/// Atoms into the cells that they have moved to. Each cell, also of the outer layer, looks for its
/// atoms in the own cells around it, so the order is that of their numbers on any device.
struct sort_into_cells {
  cell_grid grid;
  void operator()(sycl::nd_item<1> item, const std::int32_t* counts, const std::int32_t* number,
                  const double* position, const double* momentum, std::int32_t* new_counts,
                  std::int32_t* new_number, double* new_position, double* new_momentum,
                  std::int32_t* overflow) const {
    const auto me = static_cast<std::int64_t>(item.get_global_id(0));
    if (me >= grid.cells()) return;
    const std::int32_t k0 = static_cast<std::int32_t>(me % (grid.own[2] + 2)) - 1;
    const std::int32_t j0 =
        static_cast<std::int32_t>(me / (grid.own[2] + 2) % (grid.own[1] + 2)) - 1;
    const std::int32_t i0 =
        static_cast<std::int32_t>(me / (grid.own[2] + 2) / (grid.own[1] + 2)) - 1;
    const std::int64_t n = grid.slot_count(), first = me * grid.slots;
    std::int32_t found = 0;
    for (std::int32_t i = i0 - 1; i <= i0 + 1; ++i) {
      if (i < 0 || i >= grid.own[0]) continue;
      for (std::int32_t j = j0 - 1; j <= j0 + 1; ++j) {
        if (j < 0 || j >= grid.own[1]) continue;
        for (std::int32_t k = k0 - 1; k <= k0 + 1; ++k) {
          if (k < 0 || k >= grid.own[2]) continue;
          const std::int32_t cell = grid.index(i, j, k);
          for (std::int32_t a = 0; a < counts[cell]; ++a) {
            const std::int64_t from = static_cast<std::int64_t>(cell) * grid.slots + a;
            const double x = position[from], y = position[n + from], z = position[2 * n + from];
            if (grid.cell_of(x, y, z) != me) continue;
            if (found == grid.slots) {
              overflow[0] = 1;
              continue;
            }
            std::int64_t to = first + found;
            for (; to > first && new_number[to - 1] > number[from]; --to) {
              new_number[to] = new_number[to - 1];
              for (std::int64_t d = 0; d < 3; ++d) {
                new_position[d * n + to] = new_position[d * n + to - 1];
                new_momentum[d * n + to] = new_momentum[d * n + to - 1];
              }
            }
            new_number[to] = number[from];
            for (std::int64_t d = 0; d < 3; ++d) {
              new_position[d * n + to] = position[d * n + from];
              new_momentum[d * n + to] = momentum[d * n + from];
            }
            ++found;
          }
        }
      }
    }
    new_counts[me] = found;
  }
};

/// A number that work items count up together.
using counter =
    sycl::atomic_ref<std::int32_t, sycl::memory_order::relaxed, sycl::memory_scope::device,
                     sycl::access::address_space::global_space>;

/// Doubles of an atom in a message: number, position, and momentum or the derivative of the
/// embedding energy.
inline constexpr std::int64_t atom_words = 7;
inline constexpr std::int64_t embedding_words = 5;

/// The messages for both directions of a dimension, one behind the other: the number of atoms, and
/// room for as many as there may be. Their length is fixed, so that no rank waits to learn it.
struct messages {
  std::int64_t words;     ///< of an atom
  std::int64_t capacity;  ///< of a message, in atoms
  std::int64_t length() const { return 1 + words * capacity; }
  std::int64_t offset(std::int64_t way, std::int64_t atom) const {
    return way * length() + 1 + words * atom;
  }
};

/// The cells of a list that go down a dimension, and then those that go up.
struct border_planes {
  std::int64_t down;   ///< how many go down
  double shift[2][3];  ///< across the border of a periodic domain, for each direction
  std::int64_t way(sycl::nd_item<1> item) const {
    return static_cast<std::int64_t>(item.get_group(0)) < down ? 0 : 1;
  }
};

/// Atoms into messages, in any order: order_atoms makes one.
struct pack_atoms {
  cell_grid grid;
  messages form;
  border_planes planes;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  const std::int32_t* number, const double* position, const double* momentum,
                  std::int32_t* filled, double* message) const {
    const slot s(item, list, grid.slots);
    if (s.number >= counts[s.cell]) return;
    const std::int64_t n = grid.slot_count(), way = planes.way(item);
    const std::int64_t at = counter(filled[way]).fetch_add(1);
    if (at >= form.capacity) return;
    double* to = message + form.offset(way, at);
    to[0] = number[s.index];
    for (std::int64_t d = 0; d < 3; ++d) {
      to[1 + d] = position[d * n + s.index] + planes.shift[way][d];
      to[4 + d] = momentum[d * n + s.index];
    }
  }
};

/// Two work items, one for each direction: the number of atoms into the message.
struct finish_messages {
  messages form;
  void operator()(sycl::nd_item<1> item, std::int32_t* filled, double* message,
                  std::int32_t* overflow) const {
    const auto way = static_cast<std::int64_t>(item.get_global_id(0));
    if (way > 1) return;
    const bool fits = filled[way] <= form.capacity;
    if (!fits) overflow[0] = 1;
    message[way * form.length()] = fits ? filled[way] : static_cast<double>(form.capacity);
    filled[way] = 0;
  }
};

/// Where an atom of a message is: a work item for each that may be there.
struct message_atom {
  bool exists = false;
  const double* words = nullptr;
  message_atom(sycl::nd_item<1> item, const messages& form, const double* message) {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    const std::int64_t way = i / form.capacity, atom = i % form.capacity;
    if (way > 1 || atom >= static_cast<std::int64_t>(message[way * form.length()])) return;
    exists = true;
    words = message + form.offset(way, atom);
  }
};

struct unpack_atoms {
  cell_grid grid;
  messages form;
  void operator()(sycl::nd_item<1> item, const double* message, std::int32_t* counts,
                  std::int32_t* number, double* position, double* momentum,
                  std::int32_t* overflow) const {
    const message_atom atom(item, form, message);
    if (!atom.exists) return;
    const double* from = atom.words;
    const std::int64_t n = grid.slot_count();
    const std::int32_t cell = grid.cell_of(from[1], from[2], from[3]);
    const std::int32_t at = counter(counts[cell]).fetch_add(1);
    if (at >= grid.slots) {
      counter(counts[cell]).fetch_sub(1);
      overflow[0] = 1;
      return;
    }
    const std::int64_t to = static_cast<std::int64_t>(cell) * grid.slots + at;
    number[to] = static_cast<std::int32_t>(from[0]);
    for (std::int64_t d = 0; d < 3; ++d) {
      position[d * n + to] = from[1 + d];
      momentum[d * n + to] = from[4 + d];
    }
  }
};

/// One work item for each cell of a list: its atoms in the order of their numbers, which makes the
/// order of all sums, and so the trajectory, the same in every run.
struct order_atoms {
  cell_grid grid;
  std::int64_t cells;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  std::int32_t* number, double* position, double* momentum) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i >= cells) return;
    const std::int64_t n = grid.slot_count();
    const std::int64_t first = static_cast<std::int64_t>(list[i]) * grid.slots;
    for (std::int64_t a = first + 1; a < first + counts[list[i]]; ++a) {
      for (std::int64_t b = a; b > first && number[b - 1] > number[b]; --b) {
        swap(number[b - 1], number[b]);
        for (std::int64_t d = 0; d < 3; ++d) {
          swap(position[d * n + b - 1], position[d * n + b]);
          swap(momentum[d * n + b - 1], momentum[d * n + b]);
        }
      }
    }
  }
  template <class T>
  static void swap(T& a, T& b) {
    const T c = a;
    a = b;
    b = c;
  }
};

/// The embedding derivatives of a neighbour's atoms, which the receiver finds by position and
/// number.
struct pack_embedding {
  cell_grid grid;
  messages form;
  border_planes planes;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  const std::int32_t* number, const double* position, const double* embedding,
                  std::int32_t* filled, double* message) const {
    const slot s(item, list, grid.slots);
    if (s.number >= counts[s.cell]) return;
    const std::int64_t n = grid.slot_count(), way = planes.way(item);
    const std::int64_t at = counter(filled[way]).fetch_add(1);
    if (at >= form.capacity) return;
    double* to = message + form.offset(way, at);
    to[0] = number[s.index];
    for (std::int64_t d = 0; d < 3; ++d)
      to[1 + d] = position[d * n + s.index] + planes.shift[way][d];
    to[4] = embedding[s.index];
  }
};

struct unpack_embedding {
  cell_grid grid;
  messages form;
  void operator()(sycl::nd_item<1> item, const double* message, const std::int32_t* counts,
                  const std::int32_t* number, double* embedding) const {
    const message_atom atom(item, form, message);
    if (!atom.exists) return;
    const double* from = atom.words;
    const std::int32_t cell = grid.cell_of(from[1], from[2], from[3]);
    for (std::int32_t a = 0; a < counts[cell]; ++a) {
      const std::int64_t at = static_cast<std::int64_t>(cell) * grid.slots + a;
      if (number[at] == static_cast<std::int32_t>(from[0])) embedding[at] = from[4];
    }
  }
};

/// Calls `pair(dx, dy, dz, r2, index)` for every atom within the cutoff of the atom of a slot.
template <class Pair>
void each_neighbour(const cell_grid& grid, const slot& s, double cutoff2,
                    const std::int32_t* counts, const double* position, Pair pair) {
  const std::int64_t n = grid.slot_count();
  const double x = position[s.index], y = position[n + s.index], z = position[2 * n + s.index];
  const std::int32_t row = grid.own[2] + 2, plane = row * (grid.own[1] + 2);
  for (std::int32_t i = -1; i <= 1; ++i) {
    for (std::int32_t j = -1; j <= 1; ++j) {
      for (std::int32_t k = -1; k <= 1; ++k) {
        const std::int32_t cell = s.cell + i * plane + j * row + k;
        const std::int64_t first = static_cast<std::int64_t>(cell) * grid.slots;
        const std::int64_t last = first + counts[cell];
        for (std::int64_t a = first; a < last; ++a) {
          const double dx = x - position[a], dy = y - position[n + a], dz = z - position[2 * n + a];
          const double r2 = dx * dx + dy * dy + dz * dz;
          if (r2 < cutoff2 && a != s.index) pair(dx, dy, dz, r2, a);
        }
      }
    }
  }
}

/// The Lennard-Jones potential, cut off and shifted to be zero there.
struct lennard_jones {
  cell_grid grid;
  double sigma2, epsilon, cutoff2, shift;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  const double* position, double* force, double* energy) const {
    const slot s(item, list, grid.slots);
    if (s.number >= counts[s.cell]) return;
    const std::int64_t n = grid.slot_count();
    double fx = 0, fy = 0, fz = 0, e = 0;
    each_neighbour(grid, s, cutoff2, counts, position,
                   [&](double dx, double dy, double dz, double r2, std::int64_t) {
                     const double q2 = sigma2 / r2, q6 = q2 * q2 * q2;
                     const double f = 24 * epsilon * q6 * (2 * q6 - 1) / r2;
                     fx += f * dx;
                     fy += f * dy;
                     fz += f * dz;
                     e += 4 * epsilon * q6 * (q6 - 1) - shift;
                   });
    force[s.index] = fx;
    force[n + s.index] = fy;
    force[2 * n + s.index] = fz;
    energy[s.index] = e / 2;
  }
};

/// A function by its values and slopes at equal distances, cubic in between.
struct table {
  double low, inverse_step, step;
  std::int32_t intervals;

  struct result {
    double value, slope;
  };
  /// `nodes` has a value and a slope for each node.
  result at(const double* nodes, double x) const {
    const double u = (x - low) * inverse_step;
    std::int32_t i = static_cast<std::int32_t>(u);
    i = i < 0 ? 0 : i >= intervals ? intervals - 1 : i;
    const double t = u - i;
    const double* p = nodes + 2 * static_cast<std::int64_t>(i);
    const double rise = p[2] - p[0], a = p[1] * step, b = p[3] * step;
    const double c2 = 3 * rise - 2 * a - b, c3 = a + b - 2 * rise;
    return {p[0] + t * (a + t * (c2 + t * c3)), (a + t * (2 * c2 + t * 3 * c3)) * inverse_step};
  }
};

/// The embedded-atom method, first pass: density at each atom, its embedding energy and the
/// derivative of that, and half the pair energies.
struct eam_density {
  cell_grid grid;
  double cutoff2;
  table pair, density, embedding;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  const double* position, const double* pair_nodes, const double* density_nodes,
                  const double* embedding_nodes, double* derivative, double* energy) const {
    const slot s(item, list, grid.slots);
    if (s.number >= counts[s.cell]) return;
    double e = 0, rho = 0;
    each_neighbour(grid, s, cutoff2, counts, position,
                   [&](double, double, double, double r2, std::int64_t) {
                     const double r = sycl::sqrt(r2);
                     e += pair.at(pair_nodes, r).value / 2;
                     rho += density.at(density_nodes, r).value;
                   });
    const table::result f = embedding.at(embedding_nodes, rho);
    derivative[s.index] = f.slope;
    energy[s.index] = e + f.value;
  }
};

/// Second pass: forces.
struct eam_force {
  cell_grid grid;
  double cutoff2;
  table pair, density;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  const double* position, const double* pair_nodes, const double* density_nodes,
                  const double* derivative, double* force) const {
    const slot s(item, list, grid.slots);
    if (s.number >= counts[s.cell]) return;
    const std::int64_t n = grid.slot_count();
    const double own = derivative[s.index];
    double fx = 0, fy = 0, fz = 0;
    each_neighbour(grid, s, cutoff2, counts, position,
                   [&](double dx, double dy, double dz, double r2, std::int64_t a) {
                     const double r = sycl::sqrt(r2);
                     const double f =
                         -(pair.at(pair_nodes, r).slope +
                           (own + derivative[a]) * density.at(density_nodes, r).slope) /
                         r;
                     fx += f * dx;
                     fy += f * dy;
                     fz += f * dz;
                   });
    force[s.index] = fx;
    force[n + s.index] = fy;
    force[2 * n + s.index] = fz;
  }
};

/// Potential and kinetic energy, momentum and number of atoms, over every n-th own cell.
inline constexpr std::int64_t totals = 6;
struct sum_totals {
  cell_grid grid;
  std::int64_t cells;
  double mass;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int32_t* counts,
                  const double* momentum, const double* energy, double* parts) const {
    const auto me = static_cast<std::int64_t>(item.get_global_id(0));
    const auto n = static_cast<std::int64_t>(item.get_global_range(0));
    const std::int64_t slot_count = grid.slot_count();
    double sum[totals] = {};
    for (std::int64_t c = me; c < cells; c += n) {
      const std::int64_t first = static_cast<std::int64_t>(list[c]) * grid.slots;
      for (std::int64_t a = first; a < first + counts[list[c]]; ++a) {
        sum[0] += energy[a];
        for (std::int64_t d = 0; d < 3; ++d) {
          const double p = momentum[d * slot_count + a];
          sum[1] += p * p / (2 * mass);
          sum[2 + d] += p;
        }
        sum[5] += 1;
      }
    }
    for (std::int64_t t = 0; t < totals; ++t) parts[t * n + me] = sum[t];
  }
};

/// One work item for each total.
struct finish_totals {
  std::int64_t parts;
  void operator()(sycl::nd_item<1> item, const double* from, double* sums) const {
    const auto t = static_cast<std::int64_t>(item.get_global_id(0));
    if (t >= totals) return;
    sums[t] = 0;
    for (std::int64_t i = 0; i < parts; ++i) sums[t] += from[t * parts + i];
  }
};

}  // namespace comd
