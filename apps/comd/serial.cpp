// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "comd/serial.hpp"

#include <cmath>

namespace comd {
namespace {

// Calls f(distance) for every neighbour of an atom of a perfect crystal within `cutoff`.
template <class Function>
void each_shell(double lattice, double cutoff, Function f) {
  const int reach = static_cast<int>(2 * cutoff / lattice) + 2;
  for (int i = -reach; i <= reach; ++i)
    for (int j = -reach; j <= reach; ++j)
      for (int k = -reach; k <= reach; ++k) {
        if ((i + j + k) % 2 != 0 || (i == 0 && j == 0 && k == 0)) continue;
        const double r = lattice / 2 * std::sqrt(static_cast<double>(i * i + j * j + k * k));
        if (r < cutoff) f(r);
      }
}

// Calls f(a, b, separation, distance) for every pair of atoms within `cutoff`.
template <class Function>
void each_pair(const std::vector<vector3>& position, const vector3& domain, double cutoff,
               Function f) {
  for (std::size_t a = 0; a < position.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      vector3 d{};
      double r2 = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        d[i] = position[a][i] - position[b][i];
        d[i] -= domain[i] * std::round(d[i] / domain[i]);
        r2 += d[i] * d[i];
      }
      if (r2 < cutoff * cutoff) f(a, b, d, std::sqrt(r2));
    }
}

using forces = std::vector<vector3>;

void push(forces& all, std::size_t a, std::size_t b, const vector3& d, double strength) {
  for (std::size_t i = 0; i < 3; ++i) {
    all[a][i] += strength * d[i];
    all[b][i] -= strength * d[i];
  }
}

forces forces_of(const snapshot& atoms, const vector3& domain, const lennard_jones_parameters& lj,
                 const eam_tables* eam) {
  forces result(atoms.position.size(), vector3{});
  if (!eam) {
    each_pair(atoms.position, domain, lj.cutoff, [&](auto a, auto b, const vector3& d, double r) {
      const double q = std::pow(lj.sigma / r, 6);
      push(result, a, b, d, 24 * lj.epsilon * q * (2 * q - 1) / (r * r));
    });
    return result;
  }
  const table pair = reader(eam->pair), density = reader(eam->density);
  std::vector<double> rho(atoms.position.size());
  each_pair(atoms.position, domain, eam->pair.high, [&](auto a, auto b, const vector3&, double r) {
    const double f = density.at(eam->density.nodes.data(), r).value;
    rho[a] += f;
    rho[b] += f;
  });
  for (double& x : rho) x = reader(eam->embedding).at(eam->embedding.nodes.data(), x).slope;
  each_pair(
      atoms.position, domain, eam->pair.high, [&](auto a, auto b, const vector3& d, double r) {
        const double slope = pair.at(eam->pair.nodes.data(), r).slope +
                             (rho[a] + rho[b]) * density.at(eam->density.nodes.data(), r).slope;
        push(result, a, b, d, -slope / r);
      });
  return result;
}

}  // namespace

table reader(const tabulated& t) {
  const auto intervals = static_cast<std::int32_t>(t.nodes.size() / 2 - 1);
  const double step = (t.high - t.low) / intervals;
  return {t.low, 1 / step, step, intervals};
}

double crystal_energy(const lennard_jones_parameters& lj, double stretch) {
  double energy = 0;
  each_shell(stretch * lattice_constant, lj.cutoff, [&](double r) { energy += lj.energy(r) / 2; });
  return energy;
}

double crystal_energy(const eam_tables& eam, double stretch) {
  double energy = 0, rho = 0;
  each_shell(stretch * lattice_constant, eam.pair.high, [&](double r) {
    energy += reader(eam.pair).at(eam.pair.nodes.data(), r).value / 2;
    rho += reader(eam.density).at(eam.density.nodes.data(), r).value;
  });
  return energy + reader(eam.embedding).at(eam.embedding.nodes.data(), rho).value;
}

void move_serially(snapshot& atoms, const vector3& domain, double time_step, int steps,
                   const lennard_jones_parameters& lj, const eam_tables* eam) {
  forces force = forces_of(atoms, domain, lj, eam);
  const auto kick = [&] {
    for (std::size_t a = 0; a < force.size(); ++a)
      for (std::size_t i = 0; i < 3; ++i) atoms.momentum[a][i] += time_step / 2 * force[a][i];
  };
  for (int s = 0; s < steps; ++s) {
    kick();
    for (std::size_t a = 0; a < force.size(); ++a)
      for (std::size_t i = 0; i < 3; ++i)
        atoms.position[a][i] += time_step / copper_mass * atoms.momentum[a][i];
    force = forces_of(atoms, domain, lj, eam);
    kick();
  }
}

}  // namespace comd
