// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Copper, and what keeps it together. Angstrom, femtoseconds, electron volts.
#pragma once

#include <string>
#include <vector>

namespace comd {

inline constexpr double lattice_constant = 3.615;
/// 63.546 atomic mass units, in eV fs^2 / Angstrom^2.
inline constexpr double copper_mass = 63.546 * 103.642697;
inline constexpr double boltzmann = 8.617333262e-5;  ///< eV / K

/// The Lennard-Jones parameters that the CoMD mini-application uses for copper.
struct lennard_jones_parameters {
  double sigma = 2.315;
  double epsilon = 0.167;
  double cutoff = 2.5 * 2.315;
  double shift() const;
  double energy(double r) const;  ///< of a pair, zero from the cutoff on
};

/// A tabulated function: values and slopes at equal distances from `low` on.
struct tabulated {
  double low = 0, high = 1;
  std::vector<double> nodes;  ///< a value and a slope for each
};

/// The embedded-atom potential of copper by R. A. Johnson, Analytic nearest-neighbor model for fcc
/// metals, Phys. Rev. B 37 (1988) 3924-3931: pair energy and density fall off exponentially, and
/// the embedding energy is the one that gives the crystal the equation of state of Rose et al. The
/// model is for nearest neighbours: a smooth switch takes both functions to zero between them and
/// the second ones.
struct johnson_copper {
  double cohesive_energy = 3.54;  ///< eV, the measured one, which the model was fitted to
  double pair_energy = 0.59;      ///< eV, at the equilibrium distance
  double alpha = 5.09, beta = 5.85, gamma = 8.00;
  double distance = lattice_constant * 0.70710678118654752;  ///< of nearest neighbours
  double switch_from = 1.20, switch_to = 1.38;               ///< in units of the distance
  double cutoff() const { return switch_to * distance; }

  tabulated pair() const;
  tabulated density() const;
  tabulated embedding() const;
  /// Energy of an atom of a crystal whose distances are `stretch` times those at equilibrium.
  double equation_of_state(double stretch) const;
};

}  // namespace comd
