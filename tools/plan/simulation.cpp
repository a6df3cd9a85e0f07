// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace sucl::tools {

sim::prediction simulate_within(const plan::schedule& s, const sim::machine& m,
                                const sim::simulate_options& options) {
  sim::prediction p = sim::simulate(s, m, options);
  if (p.gave_up)
    base::fail(errc::out_of_memory,
               "the simulation takes more than " + std::to_string(options.max_work) + " steps",
               "Take fewer ranks or instructions, or allow more with --effort.");
  return p;
}

std::string use_name(const sim::usage& u, const sim::machine& m) {
  using part = sim::usage::part;
  std::string text = sim::name(u.what);
  if (u.what != part::memory && u.what != part::kernels) text = m.levels[u.level].name + " " + text;
  if (u.what == part::rank_out || u.what == part::rank_in)
    text += " via " + m.levels[u.level].transports[u.transport].name;
  text += " " + std::to_string(u.member);
  if (u.what == part::port_out || u.what == part::port_in || u.what == part::port_both)
    text += ", port " + std::to_string(u.port);
  if (u.what == part::link) text += " to " + std::to_string(u.port);
  return text;
}

std::vector<sim::usage> busiest(const sim::prediction& p, std::size_t count) {
  std::vector<sim::usage> list = p.uses;
  std::stable_sort(list.begin(), list.end(), [&](const sim::usage& a, const sim::usage& b) {
    return a.utilisation(p.seconds) > b.utilisation(p.seconds);
  });
  if (list.size() > count) list.resize(count);
  return list;
}

}  // namespace sucl::tools
