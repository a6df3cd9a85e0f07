// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// CG: solves A x = b by conjugate gradients. A is a Laplacian or comes from a Matrix Market file;
// every rank has a block of rows. An iteration exchanges the halo of one vector, while rows that
// need none are multiplied, and adds two scalars up over the ranks in one reduction.
//
// Read solve() first, the method; then solver.hpp, an iteration; last, the program and its checks.
//
//   sucl run -n 2 -- apps/cg --rows 32768
//   sucl run -n 2 -- apps/cg --matrix bcsstk16.mtx
//   sucl run -n 2 -- apps/cg --rows 1000000 --balance dynamic
//   sucl run -n 2 -- apps/cg --record 10
#include "cg/solver.hpp"
#include "common/grid/field.hpp"
#include "common/program/application.hpp"
#include "common/shares.hpp"

#include <cmath>
#include <memory>

namespace cg {
namespace {

struct settings : apps::settings {
  std::int64_t rows = 4096;
  std::string file;
  double tolerance = 1e-8;
  int solves = 1;
  apps::share_options shares;
  settings() { common.iterations = 10000; }
  void define(apps::command_line& line) override;
  void validate() override;
};

using rows_of_ranks = apps::balanced<solver, sucl::balancer>;

// The system of equations, and which rank has which rows of it.
rows_of_ranks share(apps::context& c, const matrix& a, const std::vector<double>& b,
                    const apps::share_options& how) {
  const auto rows = static_cast<std::size_t>(a.rows);
  rows_of_ranks all(c,
                    sucl::balancer(sucl::partition::by_speed(rows, how.speeds_of(c.size()), 1, 1)),
                    how, [&c, &a, &b](const sucl::balancer& shares) {
                      return std::make_unique<solver>(c, a, b, shares.current());
                    });
  if (how.how != apps::balance::probe) return all;
  all.solver().begin();  // there is something to multiply
  all.probe();
  return all;
}

// Iterations until the residual is small, at most those of the command line.
int solve(apps::context& c, rows_of_ranks& of, double tolerance) {
  of.solver().begin();
  const double start = of.solver().residual(), goal = tolerance * tolerance * start;
  const int recorded = c.wanted().recorded, limit = c.wanted().iterations;
  if (recorded > 0) of.solver().record(recorded);
  int done = 0, said = 0;
  while (done < limit && of.solver().residual() > goal) {
    if (!(of.solver().curvature() > 0))
      throw apps::usage_error(
          "the matrix is not positive definite: conjugate gradients do not "
          "apply to it");
    if (recorded > 0 && recorded <= limit - done) {
      of.solver().replay();
      done += recorded;
    } else {
      of.step();
      ++done;
    }
    if (done - said >= 100) {
      said = done;
      char text[80];
      std::snprintf(text, sizeof text, "iteration %d, residual %.3e", done,
                    std::sqrt(of.solver().residual() / start));
      c.say(text);
    }
  }
  return done;
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double e : x) sum += e * e;
  return std::sqrt(sum);
}

constexpr double max_serial_work = 5e9;  // multiplications, of the serial run

void check(apps::context& c, solver& s, const matrix& a, const std::vector<double>& b,
           const settings& wanted, apps::outcome& o) {
  const bool converged = o.iterations < c.wanted().iterations;
  auto residual = multiply(a, s.solution());
  for (std::size_t i = 0; i < b.size(); ++i) residual[i] = b[i] - residual[i];
  const double relative = norm(residual) / norm(b);
  // Where the iterations did not suffice, the recurrence's residual is what has to be confirmed.
  const double claimed = std::sqrt(s.residual()) / norm(b);
  o.details["residual"] = relative;
  o.check("residual computed independently, against that of the recurrence",
          std::abs(relative - claimed), converged ? wanted.tolerance : 0.01 * claimed + 1e-9);
  if (converged) o.check("residual", relative, 2 * wanted.tolerance);
  const double work = static_cast<double>(a.value.size()) * o.iterations;
  if (work > max_serial_work) return;
  const int serial = serial_iterations(a, b, wanted.tolerance, c.wanted().iterations);
  o.details["iterations_serial"] = serial;
  // Of those that are replayed together the last ones may not be needed.
  const int together = std::max(1, c.wanted().recorded);
  o.check("iterations more than a serial run's", o.iterations - serial, together + 0.02 * serial);
}

matrix load(apps::context& c, const settings& wanted) {
  // Every rank has the whole matrix and some vectors for the checks, and its part for the work.
  constexpr double matrix_row = 5 * (sizeof(double) + sizeof(std::int32_t)) + sizeof(std::int64_t);
  constexpr double check_vectors = 3 * sizeof(double), work_vectors = 6 * sizeof(double);
  if (wanted.file.empty())
    c.require_memory(static_cast<double>(wanted.rows) *
                     (matrix_row + check_vectors + (matrix_row + work_vectors) / c.size()));
  matrix a;
  std::string problem;
  try {
    a = wanted.file.empty() ? poisson(wanted.rows) : read_matrix_market(wanted.file);
    problem = obstacle(a);
    if (problem.empty() && a.rows < c.size())
      problem = std::to_string(a.rows) + " rows are too few for " + std::to_string(c.size()) +
                " ranks. Use fewer ranks";
  } catch (const std::exception& e) {
    problem = e.what();
  }
  c.agree(problem);
  return a;
}

apps::outcome run(apps::context& c, const settings& wanted) {
  const matrix a = load(c, wanted);
  c.prepare_kernels();
  const std::vector<double> b(static_cast<std::size_t>(a.rows), 1.0);
  rows_of_ranks all = share(c, a, b, wanted.shares);
  apps::outcome o;
  o.details["matrix"] = wanted.file.empty() ? "poisson" : wanted.file;
  o.details["rows"] = a.rows;
  o.details["nonzeros"] = a.value.size();
  solve(c, all, wanted.tolerance);  // to warm up
  o.seconds = c.run(wanted.solves, [&](int) { o.iterations = solve(c, all, wanted.tolerance); });
  solver& s = all.solver();
  o.details["rows_of_ranks"] = s.shares().counts_of_ranks();
  o.details["moves"] = all.moves().size();
  o.details["moved_after"] = all.moves();
  o.details["seconds_of_moves"] = all.seconds_of_moves();
  o.details["solves"] = wanted.solves;
  o.details["iterations_used"] = o.iterations;
  check(c, s, a, b, wanted, o);
  if (!c.wanted().plot.empty()) {
    const auto x = s.solution();
    const grid_extents extents = extents_of(a.rows);
    const apps::rank_grid grid(
        {1, wanted.file.empty() ? extents.height : 1, wanted.file.empty() ? extents.width : a.rows},
        apps::extents{1, 1, 1});
    if (c.rank() == 0) apps::write_vti(c.wanted().plot, grid.domain(), {x.begin(), x.end()});
  }
  if (c.wanted().breakdown > 0) {
    s.begin();
    o.phases = c.run_timed(c.wanted().breakdown, [&](int) { s.step(); });
  }
  return o;
}

void settings::define(apps::command_line& line) {
  line.add("--rows", rows, "Rows of a five-point Laplacian (4096)", "N");
  line.add("--matrix", file, "Matrix Market file of a symmetric matrix", "FILE");
  line.exclude("--matrix", "--rows");
  line.add("--tolerance", tolerance, "Residual to reach, relative to the right-hand side (1e-8)",
           "X");
  line.add("--solves", solves, "Solve N times (1)", "N");
  shares.define(line);
  apps::add_record_option(line, common);
}

void settings::validate() {
  if (rows < 1 || rows > 1 << 28)
    throw apps::usage_error("--rows: use a number from 1 to 268435456");
  if (!(tolerance > 0 && tolerance < 1))
    throw apps::usage_error("--tolerance: use a number between 0 and 1");
  if (solves < 1) throw apps::usage_error("--solves: use a number from 1 on");
  apps::validate_record_option(common);
  if (common.recorded > 0 && shares.how == apps::balance::dynamic)
    throw apps::usage_error(
        "--record: what is recorded stays, and --balance dynamic moves rows. Use --balance probe");
}

}  // namespace
}  // namespace cg

int main(int argc, char** argv) {
  return apps::run_application(argc, argv, "cg",
                               "Conjugate gradients on a distributed sparse matrix.", cg::run);
}
