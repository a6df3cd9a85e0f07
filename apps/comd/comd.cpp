// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// CoMD: classical molecular dynamics of a copper crystal in link cells, after the mini-application
// of that name. Ranks own boxes; each step moves atoms between cells and ranks and copies those at
// the borders to the neighbours, one dimension after the other.
//
// Here are the program and its checks; simulation::step() and redistribute() are a time step.
//
//   sucl run -n 2 -- apps/comd --cells 32x32x32 --potential eam
//   sucl run -n 2 -- apps/comd --iterations 100 --record 10
#include "comd/simulation.hpp"
#include "common/program/application.hpp"
#include "common/shares.hpp"

#include <array>
#include <cmath>
#include <fstream>
#include <memory>

namespace comd {
namespace {

struct settings : apps::settings {
  problem what;
  std::string potential = "lj";
  apps::share_options shares;
  void define(apps::command_line& line) override;
  void validate() override;
};

constexpr std::size_t max_serial_atoms = 2500;
constexpr double max_slots = 2147483647;  // which atoms are numbered by

// A frame of extended XYZ, which OVITO opens; velocities in Angstrom per femtosecond.
void write_frame(std::ofstream& file, const snapshot& atoms, const problem& p, double time) {
  const vector3 domain = p.domain();
  file << atoms.position.size() << "\nLattice=\"" << domain[0] << " 0 0 0 " << domain[1]
       << " 0 0 0 " << domain[2]
       << "\" Properties=species:S:1:pos:R:3:velo:R:3 pbc=\"T T T\" Time=" << time << '\n';
  char line[160];
  for (std::size_t a = 0; a < atoms.position.size(); ++a) {
    const vector3& x = atoms.position[a];
    const vector3& v = atoms.momentum[a];
    std::snprintf(line, sizeof line, "Cu %.6f %.6f %.6f %.6e %.6e %.6e\n", x[0], x[1], x[2],
                  v[0] / copper_mass, v[1] / copper_mass, v[2] / copper_mass);
    file << line;
  }
}

void check_crystal(simulation& s, const problem& p, apps::outcome& o) {
  const auto atoms = static_cast<double>(p.atoms());
  const double energy = s.sum().potential / atoms;
  o.details["crystal_energy_eV"] = energy;
  if (!p.eam) {
    o.check("energy of an atom of the crystal against a lattice sum",
            energy - crystal_energy(p.lj, 1), 1e-9);
    return;
  }
  const johnson_copper copper;
  o.check("cohesive energy against the published 3.54 eV", energy + copper.cohesive_energy, 1e-6);
  for (const double stretch : {0.98, 1.03})
    o.check("energy of a crystal stretched to " + std::to_string(stretch).substr(0, 4) +
                " against the equation of state",
            crystal_energy(*p.eam, stretch) - copper.equation_of_state(stretch), 1e-5);
}

// The largest distance of an atom from where plain loops over all pairs take it; on rank 0.
double serial_difference(const snapshot& before, const snapshot& after, const problem& p,
                         int steps) {
  snapshot reference = before;
  const vector3 domain = p.domain();
  move_serially(reference, domain, p.time_step, steps, p.lj, p.eam ? &*p.eam : nullptr);
  double largest = 0;
  for (std::size_t a = 0; a < after.position.size(); ++a)
    for (std::size_t d = 0; d < 3; ++d) {
      double off = after.position[a][d] - reference.position[a][d];
      off -= domain[d] * std::round(off / domain[d]);
      largest = std::abs(off) <= largest ? largest : std::abs(off);  // NaN is larger
    }
  return largest;
}

void check_conservation(const state_totals& start, const state_totals& end, const problem& p,
                        apps::outcome& o) {
  const auto atoms = static_cast<double>(p.atoms());
  // Velocity Verlet keeps the energy up to terms of the order of the squared time step.
  const double step2 = p.time_step * p.time_step;
  o.check("energy of an atom has drifted, in eV", (end.energy() - start.energy()) / atoms,
          5e-4 * std::max(1e-3, step2) * std::max(0.1, p.temperature / 600));
  double momentum = 0;
  for (const double m : end.momentum) momentum = std::max(momentum, std::abs(m));
  o.check("momentum of an atom, in that of heat",
          momentum / atoms / std::sqrt(copper_mass * boltzmann * std::max(1.0, p.temperature)),
          1e-10);
}

double temperature(const state_totals& now, const problem& p) {
  return now.kinetic / static_cast<double>(p.atoms()) / 1.5 / boltzmann;
}

/// The crystal, and which rank has which box of it.
class crystal {
 public:
  crystal(apps::context& c, const problem& p, const apps::rank_grid& even, std::int64_t least,
          const apps::share_options& how)
      : m_all(c, start(even, least, how.speeds_of(c.size())), how,
              [&c, p, even](const sucl::box_balancer& b) {
                return make(c, p, {even, b.current()});
              }) {
    if (how.how == apps::balance::probe) {
      atoms().make_crystal();
      m_all.probe();
    }
    atoms().make_crystal();
  }

  simulation& atoms() { return m_all.solver(); }
  const std::vector<int>& moves() const { return m_all.moves(); }
  double seconds_of_moves() const { return m_all.seconds_of_moves(); }
  /// Unit cells that rank 0 has now.
  std::size_t cells_of_first() const {
    std::size_t cells = 1;
    for (const sucl::partition& p : m_all.balancer().current().along) cells *= p.count(0);
    return cells;
  }

  void step() { m_all.step(); }
  /// The same for as many steps as are recorded.
  void replay(int recorded) {
    atoms().record(recorded);
    atoms().replay();
  }

 private:
  static sucl::box_balancer start(const apps::rank_grid& even, std::int64_t least,
                                  const std::vector<double>& speeds) {
    std::array<std::size_t, 3> cells{};
    std::array<int, 3> ranks{};
    for (std::size_t d = 0; d < 3; ++d) {
      cells[d] = static_cast<std::size_t>(even.domain()[d]);
      ranks[d] = static_cast<int>(even.grid()[d]);
    }
    sucl::balance_options options;
    options.least = static_cast<std::size_t>(least);
    return {cells, ranks, speeds, options};
  }
  static std::unique_ptr<simulation> make(apps::context& c, const problem& p,
                                          const apps::rank_grid& grid) {
    const apps::box part = grid.part(c.rank());
    c.require_memory(p.bytes(part));
    c.agree(static_cast<double>(p.cells(part).slot_count()) > max_slots
                ? "--cells: a rank's link cells have room for more than 2^31 atoms. Use more ranks"
                : "");
    return std::make_unique<simulation>(c, p, grid);
  }

  apps::balanced<simulation, sucl::box_balancer> m_all;
};

// The timed iterations, with what is printed and, if wanted, filmed on the way; their seconds.
double run_and_film(apps::context& c, crystal& all, const problem& p, double time) {
  const bool films = !c.wanted().plot.empty();
  std::ofstream film;
  if (films && c.rank() == 0) film.open(c.wanted().plot);
  const int recorded = c.wanted().recorded, together = std::max(1, recorded);
  const int part = std::max(1, c.wanted().iterations / 10 / together) * together;
  const double seconds = c.run(c.wanted().iterations / together, [&](int replays) {
    const int i = replays * together + together - 1;
    recorded > 0 ? all.replay(recorded) : all.step();
    if ((i + 1) % part != 0) return;
    const state_totals now = all.atoms().sum();
    char text[120];
    std::snprintf(text, sizeof text, "energy %.9f eV, temperature %.2f K",
                  now.energy() / static_cast<double>(p.atoms()), temperature(now, p));
    c.say(text);
    if (!films) return;
    const snapshot atoms = all.atoms().gather();
    if (c.rank() == 0) write_frame(film, atoms, p, time + p.time_step * (i + 1));
  });
  if (films && c.rank() == 0 && !film.flush())
    throw std::runtime_error("cannot write '" + c.wanted().plot + "': is the disk full?");
  return seconds;
}

apps::outcome run(apps::context& c, const settings& wanted) {
  const problem& p = wanted.what;
  const auto least = static_cast<std::int64_t>(std::ceil(2 * p.cutoff() / lattice_constant));
  const apps::rank_grid grid(p.lattice, c.size(), least);
  c.prepare_kernels();
  crystal all(c, p, grid, least, wanted.shares);
  apps::outcome o;
  o.details["cells"] = apps::print(p.lattice);
  o.details["atoms"] = p.atoms();
  o.details["potential"] = wanted.potential;
  o.details["grid"] = apps::print(grid.grid());
  check_crystal(all.atoms(), p, o);
  all.atoms().heat();
  const state_totals start = all.atoms().sum();
  const bool is_small = p.atoms() <= static_cast<std::int64_t>(max_serial_atoms);
  const snapshot before = is_small ? all.atoms().gather() : snapshot{};
  // Which also warms up; where atoms move between ranks, until they may have.
  const int first = !is_small ? 2 : wanted.shares.how == apps::balance::dynamic ? 30 : 10;
  for (int i = 0; i < first; ++i) all.step();
  if (is_small) {
    const snapshot after = all.atoms().gather();
    const double off = c.rank() == 0 ? serial_difference(before, after, p, first) : 0;
    o.check("positions after " + std::to_string(first) + " steps against a serial run, in Angstrom",
            c.max(off), 1e-9);
  }

  o.iterations = c.wanted().iterations;
  o.seconds = run_and_film(c, all, p, first * p.time_step);
  const state_totals end = all.atoms().sum();
  o.details["moves"] = all.moves().size();
  o.details["moved_after"] = all.moves();
  o.details["seconds_of_moves"] = all.seconds_of_moves();
  o.details["cells_of_rank_0"] = all.cells_of_first();
  o.details["energy_eV"] = end.energy() / static_cast<double>(p.atoms());
  o.details["temperature_K"] = temperature(end, p);
  check_conservation(start, end, p, o);
  if (c.wanted().breakdown > 0)
    o.phases = c.run_timed(c.wanted().breakdown, [&](int) { all.step(); });
  return o;
}

void settings::define(apps::command_line& line) {
  line.add_extents("--cells", what.lattice, "Unit cells of the crystal");
  line.add_choice<std::string>("--potential", potential, {{"lj", "lj"}, {"eam", "eam"}},
                               "lj (Lennard-Jones) or eam (embedded atom) (lj)");
  line.add("--temperature", what.temperature, "At the start, in K (600)", "K");
  line.add("--time-step", what.time_step, "In femtoseconds (1)", "FS");
  shares.define(line);
  apps::add_record_option(line, common);
}

void settings::validate() {
  if (static_cast<double>(what.atoms()) > max_slots)
    throw apps::usage_error("--cells: more than 2^31 atoms");
  if (!(what.temperature >= 0 && what.temperature <= 1e4))
    throw apps::usage_error("--temperature: use 0 to 10000 K");
  if (!(what.time_step > 0 && what.time_step <= 10))
    throw apps::usage_error("--time-step: use more than 0, up to 10 fs");
  apps::validate_record_option(common);
  if (common.recorded % 2 != 0 || common.iterations % std::max(1, common.recorded) != 0)
    throw apps::usage_error("--record: use an even number that divides --iterations (" +
                            std::to_string(common.iterations) + ")");
  if (common.recorded > 0 && shares.how == apps::balance::dynamic)
    throw apps::usage_error(
        "--record: what is recorded stays, and --balance dynamic moves atoms. Use --balance probe");
  if (potential != "eam") return;
  const johnson_copper copper;
  what.eam = eam_tables{copper.pair(), copper.density(), copper.embedding()};
}

}  // namespace
}  // namespace comd

int main(int argc, char** argv) {
  return apps::run_application(argc, argv, "comd", "Molecular dynamics of a copper crystal.",
                               comd::run);
}
