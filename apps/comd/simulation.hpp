// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The atoms of a rank, their movement and their communication.
#pragma once

#include "comd/kernels.hpp"
#include "comd/serial.hpp"
#include "common/grid/grid.hpp"
#include "common/messages.hpp"

#include <array>
#include <optional>
#include <vector>

namespace comd {

/// What is simulated.
struct problem {
  apps::extents lattice{12, 12, 12};  ///< unit cells of the crystal, four atoms each
  double temperature = 600;
  double time_step = 1;
  lennard_jones_parameters lj;
  std::optional<eam_tables> eam;  ///< used if it is there
  double cutoff() const { return eam ? eam->pair.high : lj.cutoff; }
  vector3 domain() const;
  std::int64_t atoms() const { return 4 * lattice[0] * lattice[1] * lattice[2]; }
  /// The link cells of a part of the crystal.
  cell_grid cells(const apps::box& part) const;
  /// The memory that a rank with this part needs, nearly: messages and lists of cells are small.
  double bytes(const apps::box& part) const;
};

/// Sums over all atoms.
struct state_totals {
  double potential = 0, kinetic = 0;
  vector3 momentum{};
  double energy() const { return potential + kinetic; }
};

class simulation {
 public:
  simulation(apps::context& c, const problem& p, const apps::rank_grid& grid);
  /// From now on this rank computes all forces so often, as if its device were so much slower.
  void compute_times(int turns) { m_turns = turns; }

  /// Puts the atoms on the lattice, at rest, and computes the forces. Collective, as all below.
  void make_crystal();
  /// Gives them velocities for the temperature, the same for any number of ranks.
  void heat();
  /// A step of velocity Verlet.
  void step();
  /// Records `n` steps, an even number: the arrays of two steps take turns. Unless that has been
  /// done.
  void record(int n);
  /// Executes what is recorded.
  void replay();
  /// The seconds that this rank's device takes for its forces, which changes nothing. Not
  /// collective.
  double measure();
  /// Goes on with the atoms of another simulation, whose parts are others.
  void go_on(const simulation& from);
  /// Energies and momentum of now. Throws where atoms are lost or a cell is too full.
  state_totals sum();
  /// All atoms by their numbers; on rank 0.
  snapshot gather();

 private:
  /// The cells whose atoms go to a neighbour in either direction of a dimension.
  struct planes {
    apps::array<std::int32_t> cells;  ///< those that go down, then as many that go up
    messages form{};
  };

  void find_neighbours(const apps::rank_grid& grid);
  void make_cells();
  planes make_planes(std::size_t d, bool with_ghosts);
  void redistribute();
  void share_embedding();
  void compute_forces(const apps::array<std::int32_t>& cells, bool last);
  void compute_own_part(const apps::array<std::int32_t>& cells);
  void compute_embedded_forces();
  std::vector<double> atoms_of_ranks(const apps::rank_grid& grid, sucl::counts& words) const;
  void take_atoms(const std::vector<double>& atoms);
  border_planes borders(std::size_t d, const planes& p) const;
  /// Exchanges what has been packed in a dimension; returns the messages that arrive.
  const apps::array<double>& exchange(std::size_t d, const messages& form);
  template <class Work>
  void each_own(Work work) const;
  /// Launches a kernel for the slots of a list of cells, or for `items`, after everything before.
  template <class Kernel, class... Uses>
  void launch(apps::phase p, const sycl::nd_range<1>& range, const Kernel& k, const Uses&... uses);
  sycl::nd_range<1> slots_of(std::size_t cells) const;
  void throw_if_broken(double atoms);

  apps::context& m_context;
  problem m_problem;
  apps::team m_team;
  cell_grid m_grid{};
  int m_turns = 1;
  apps::rank_grid m_ranks;
  apps::box m_part;
  std::array<std::array<int, 2>, 3> m_neighbour{};
  std::array<std::array<double, 2>, 3> m_shift{};
  apps::array<std::int32_t> m_own, m_inner, m_outer, m_border;
  std::array<planes, 3> m_planes, m_embedding_planes;
  apps::array<std::int32_t> m_counts, m_new_counts, m_number, m_new_number;
  apps::array<double> m_position, m_new_position, m_momentum, m_new_momentum, m_force, m_energy;
  apps::array<double> m_derivative, m_pair, m_density, m_embedding;
  apps::array<std::int32_t> m_filled, m_overflow;
  apps::array<double> m_send, m_recv, m_parts, m_sums;
  std::optional<apps::reduction> m_reduction;
  apps::events m_ready;
  sucl::executable m_recorded;
};

}  // namespace comd
