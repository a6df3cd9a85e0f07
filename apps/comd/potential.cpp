// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "comd/potential.hpp"

#include <cmath>

namespace comd {
namespace {

constexpr int intervals = 4000;

template <class Function>
tabulated tabulate(double low, double high, Function f) {
  tabulated t;
  t.low = low;
  t.high = high;
  for (int i = 0; i <= intervals; ++i) {
    const auto [value, slope] = f(low + (high - low) * i / intervals);
    t.nodes.push_back(value);
    t.nodes.push_back(slope);
  }
  return t;
}

struct value_and_slope {
  double value, slope;
};

// An exponential that is switched off.
value_and_slope fading(const johnson_copper& m, double height, double decay, double r) {
  const double e = height * std::exp(-decay * (r / m.distance - 1));
  const double slope = -decay / m.distance * e;
  const double from = m.switch_from * m.distance, width = m.cutoff() - from;
  const double x = std::fmin(1, std::fmax(0, (r - from) / width));
  const double s = 1 - x * x * x * (10 - x * (15 - 6 * x));
  const double ds = -30 * x * x * (1 - x) * (1 - x) / width;
  return {e * s, slope * s + e * ds};
}

constexpr double shortest = 1.0;  // no two atoms come closer
constexpr double neighbours = 12;
constexpr double highest_density = 4;  // in units of that of the crystal

}  // namespace

double lennard_jones_parameters::shift() const {
  const double q = std::pow(sigma / cutoff, 6);
  return 4 * epsilon * q * (q - 1);
}

double lennard_jones_parameters::energy(double r) const {
  if (r >= cutoff) return 0;
  const double q = std::pow(sigma / r, 6);
  return 4 * epsilon * q * (q - 1) - shift();
}

tabulated johnson_copper::pair() const {
  return tabulate(shortest, cutoff(),
                  [this](double r) { return fading(*this, pair_energy, gamma, r); });
}

tabulated johnson_copper::density() const {
  return tabulate(shortest, cutoff(),
                  [this](double r) { return fading(*this, 1 / neighbours, beta, r); });
}

tabulated johnson_copper::embedding() const {
  const double a = alpha / beta, g = gamma / beta;
  return tabulate(0, highest_density, [=, this](double rho) {
    // The slope is infinite at zero, where no atom of a crystal is.
    const double x = std::fmax(rho, 1e-6);
    const double value = -cohesive_energy * (1 - a * std::log(x)) * std::pow(x, a) -
                         neighbours / 2 * pair_energy * std::pow(x, g);
    const double slope = cohesive_energy * a * a * std::log(x) * std::pow(x, a - 1) -
                         neighbours / 2 * pair_energy * g * std::pow(x, g - 1);
    return value_and_slope{rho > 0 ? value : 0, slope};
  });
}

double johnson_copper::equation_of_state(double stretch) const {
  const double x = alpha * (stretch - 1);
  return -cohesive_energy * (1 + x) * std::exp(-x);
}

}  // namespace comd
