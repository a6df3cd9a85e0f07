// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The same physics by plain loops over all pairs, on one rank: what the simulation is checked
/// with.
#pragma once

#include "comd/kernels.hpp"
#include "comd/potential.hpp"

#include <array>
#include <vector>

namespace comd {

using vector3 = std::array<double, 3>;

/// Positions and momenta of all atoms, by their numbers.
struct snapshot {
  std::vector<vector3> position, momentum;
};

/// The tables of a potential, for the device and for here.
struct eam_tables {
  tabulated pair, density, embedding;
};

/// The table that reads nodes.
table reader(const tabulated& t);

/// The energy of an atom of a perfect crystal, its lattice stretched.
double crystal_energy(const lennard_jones_parameters& lj, double stretch);
double crystal_energy(const eam_tables& eam, double stretch);

/// Moves the atoms of a periodic domain for some steps; `eam` is null for Lennard-Jones.
void move_serially(snapshot& atoms, const vector3& domain, double time_step, int steps,
                   const lennard_jones_parameters& lj, const eam_tables* eam);

}  // namespace comd
