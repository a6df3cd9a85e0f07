// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// CG: solves A x = b by conjugate gradients. A is a Laplacian or comes from a Matrix Market file;
// every rank has a block of rows. An iteration exchanges the halo of one vector, while rows that
// need none are multiplied, and adds two scalars up over the ranks in one reduction.
//
// Read solve() first, the method; then solver::step() and multiply_and_reduce(), an iteration;
// last, the program and its checks.
//
//   sucl run -n 2 -- apps/cg --rows 32768
//   sucl run -n 2 -- apps/cg --matrix bcsstk16.mtx
#include "cg/kernels.hpp"
#include "cg/matrix.hpp"
#include "common/grid/field.hpp"
#include "common/kernels.hpp"
#include "common/messages.hpp"
#include "common/program/application.hpp"

#include <algorithm>
#include <cmath>

namespace cg {
namespace {

using apps::events;
using apps::in;
using apps::inout;
using apps::out;
using apps::phase;
using sucl::kernels::items;

struct settings : apps::settings {
  std::int64_t rows = 4096;
  std::string file;
  double tolerance = 1e-8;
  int solves = 1;
  settings() { common.iterations = 10000; }
  void define(apps::command_line& line) override;
  void validate() override;
};

class solver {
 public:
  solver(apps::context& c, const matrix& a, const std::vector<double>& b)
      : m_context(c),
        m_own(distribute(a, c.rank(), c.size())),
        m_total(b.size()),
        m_team(c),
        m_inner(c, m_own.inner),
        m_outer(c, m_own.outer),
        m_list(c, m_own.send),
        m_start(c, m_own.start),
        m_column(c, m_own.column),
        m_value(c, m_own.value),
        m_sums(c, 2, apps::reach::shared),
        m_reduction(c, m_sums) {
    const auto n = static_cast<std::size_t>(m_own.rows);
    m_parts_count = std::clamp<std::size_t>((n + 63) / 64 * 64, 64, 512);
    for (auto* x : {&m_x, &m_r, &m_w, &m_p, &m_s}) *x = {c, n};
    m_b = {c, std::vector<double>(b.begin() + m_own.first, b.begin() + m_own.first + m_own.rows)};
    m_send = m_team.message_memory<double>(m_own.send.size());
    m_halo = m_team.message_memory<double>(static_cast<std::size_t>(m_own.halo));
    m_parts = {c, 2 * m_parts_count};
    m_state = {c, 2};
  }

  /// Begins a solve; afterwards residual() is that of zero.
  void begin() {
    m_ready = {m_context.timed(phase::compute, [&] {
      return m_context.launch(items(rows()), m_ready, reset{m_own.rows}, in(m_b), out(m_p),
                              out(m_s), out(m_x), out(m_r));
    })};
    m_is_first = true;
    multiply_and_reduce();
  }

  /// One iteration.
  void step() {
    m_ready = {m_context.timed(phase::compute, [&] {
      return m_context.launch(items(rows()), m_ready, update{m_own.rows}, in(m_sums), in(m_state),
                              in(m_w), inout(m_p), inout(m_s), inout(m_x), inout(m_r));
    })};
    multiply_and_reduce();
  }

  /// (r, r) over all ranks.
  double residual() { return m_reduction.value(0); }
  /// (r, Ar), which is positive as long as r is not zero.
  double curvature() { return m_reduction.value(1); }

  std::vector<double> solution() {
    m_context.queue().wait_and_throw();
    const auto mine = m_x.get();
    sucl::counts counts, places;
    for (int r = 0; r < m_context.size(); ++r) {
      const auto total = static_cast<std::int64_t>(m_total);
      places.push_back(static_cast<std::size_t>(apps::begin_of(total, m_context.size(), r)));
      counts.push_back(static_cast<std::size_t>(apps::begin_of(total, m_context.size(), r + 1)) -
                       places.back());
    }
    std::vector<double> all(m_total);
    m_context.world().blocking().allgatherv(mine.data(), mine.size(), all.data(), counts, places);
    return all;
  }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(m_own.rows); }

  // w = A r, (r, r) and (r, w).
  void multiply_and_reduce() {
    auto& c = m_context;
    sycl::event packed, arrived;
    if (!m_own.messages.out.empty())
      packed = c.timed(phase::pack, [&] {
        return c.launch(items(m_send.size()), m_ready,
                        apps::gather<double>{static_cast<std::int64_t>(m_send.size())}, in(m_r),
                        in(m_list), out(m_send));
      });
    events multiplied;
    if (m_inner.size() > 0)
      multiplied.push_back(c.timed(phase::compute, [&] {
        return c.launch(items(m_inner.size(), 64), m_ready,
                        multiply_inner{static_cast<std::int64_t>(m_inner.size())}, in(m_inner),
                        in(m_start), in(m_column), in(m_value), in(m_r), inout(m_w));
      }));
    if (!m_own.messages.empty()) {
      arrived = c.timed(phase::communicate,
                        [&] { return m_team.exchange(m_send, m_halo, m_own.messages, {packed}); });
      events deps = m_ready;
      deps.push_back(arrived);
      multiplied.push_back(c.timed(phase::compute, [&] {
        return c.launch(items(m_outer.size(), 64), deps,
                        multiply_rows{static_cast<std::int64_t>(m_outer.size()),
                                      static_cast<std::int32_t>(m_own.rows)},
                        in(m_outer), in(m_start), in(m_column), in(m_value), in(m_r), in(m_halo),
                        inout(m_w));
      }));
    } else {
      c.meet();
    }
    const auto parts = static_cast<std::int64_t>(m_parts_count);
    const auto finished = c.timed(phase::compute, [&] {
      const auto summed = c.launch(items(m_parts_count, 64), multiplied, partial_sums{m_own.rows},
                                   in(m_r), in(m_w), out(m_parts));
      return c.launch(items(1, 1), {summed}, finish_sums{parts, m_is_first}, in(m_parts),
                      inout(m_sums), inout(m_state));
    });
    m_is_first = false;
    m_ready = {finished,
               c.timed(phase::communicate, [&] { return m_reduction.start({finished}); })};
  }

  apps::context& m_context;
  local_matrix m_own;
  std::size_t m_total;
  apps::team m_team;
  apps::array<std::int32_t> m_inner, m_outer, m_list;
  apps::array<std::int64_t> m_start;
  apps::array<std::int32_t> m_column;
  apps::array<double> m_value, m_sums;
  apps::reduction m_reduction;
  apps::array<double> m_x, m_r, m_w, m_p, m_s, m_b, m_send, m_halo, m_parts, m_state;
  std::size_t m_parts_count = 0;
  bool m_is_first = true;
  events m_ready;
};

// Iterations until the residual is small, at most those of the command line.
int solve(apps::context& c, solver& s, double tolerance) {
  s.begin();
  const double start = s.residual(), goal = tolerance * tolerance * start;
  int done = 0;
  while (done < c.wanted().iterations && s.residual() > goal) {
    if (!(s.curvature() > 0))
      throw apps::usage_error(
          "the matrix is not positive definite: conjugate gradients do not "
          "apply to it");
    s.step();
    if (++done % 100 == 0) {
      char text[80];
      std::snprintf(text, sizeof text, "iteration %d, residual %.3e", done,
                    std::sqrt(s.residual() / start));
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
  o.check("iterations more than a serial run's", o.iterations - serial, 1 + 0.02 * serial);
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
  solver s(c, a, b);
  apps::outcome o;
  o.details["matrix"] = wanted.file.empty() ? "poisson" : wanted.file;
  o.details["rows"] = a.rows;
  o.details["nonzeros"] = a.value.size();
  solve(c, s, wanted.tolerance);  // to warm up
  o.seconds = c.run(wanted.solves, [&](int) { o.iterations = solve(c, s, wanted.tolerance); });
  o.details["solves"] = wanted.solves;
  o.details["iterations_used"] = o.iterations;
  check(c, s, a, b, wanted, o);
  if (!c.wanted().plot.empty()) {
    const auto x = s.solution();
    const grid_shape shape = shape_of(a.rows);
    const apps::rank_grid grid(
        {1, wanted.file.empty() ? shape.height : 1, wanted.file.empty() ? shape.width : a.rows},
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
}

void settings::validate() {
  if (rows < 1 || rows > 1 << 28)
    throw apps::usage_error("--rows: use a number from 1 to 268435456");
  if (!(tolerance > 0 && tolerance < 1))
    throw apps::usage_error("--tolerance: use a number between 0 and 1");
  if (solves < 1) throw apps::usage_error("--solves: use a number from 1 on");
}

}  // namespace
}  // namespace cg

int main(int argc, char** argv) {
  return apps::run_application(argc, argv, "cg",
                               "Conjugate gradients on a distributed sparse matrix.", cg::run);
}
