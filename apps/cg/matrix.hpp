// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Sparse matrices on the host, and their distribution over ranks. No SYCL.
#pragma once

#include "common/pattern.hpp"

#include <sucl/partition.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace cg {

/// A square matrix in compressed rows; the columns of a row ascend.
struct matrix {
  std::int64_t rows = 0;
  std::vector<std::int64_t> start{0};  ///< of each row in the other two, and their end
  std::vector<std::int32_t> column;
  std::vector<double> value;
};

/// A grid of points, as square as their number allows: {height, width}.
struct grid_extents {
  std::int64_t height = 1;
  std::int64_t width = 1;
};
grid_extents extents_of(std::int64_t points);

/// The five-point Laplacian on a grid with as many points as rows, zero at its border.
matrix poisson(std::int64_t rows);

/// Reads a file in Matrix Market's coordinate form: real, integer or pattern; general or symmetric.
/// Throws std::runtime_error that names the line.
matrix read_matrix_market(const std::string& path);

/// Why conjugate gradients do not apply; "" if the matrix is symmetric with a positive diagonal.
std::string obstacle(const matrix& a);

/// y = A x.
std::vector<double> multiply(const matrix& a, const std::vector<double>& x);

/// The iterations that textbook conjugate gradients need from zero on one rank, at most `most`.
int serial_iterations(const matrix& a, const std::vector<double>& b, double tolerance, int most);

/// The rows of one rank. Columns below rows.size() are the rank's own, the others are numbers of
/// halo elements behind them, which other ranks send.
struct local_matrix {
  std::int64_t first = 0;  ///< of its rows in the whole matrix
  std::int64_t rows = 0;
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> column;
  std::vector<double> value;
  std::vector<std::int32_t> inner;  ///< rows that need no halo
  std::vector<std::int32_t> outer;  ///< rows that do
  std::vector<std::int32_t> send;   ///< own elements that other ranks need, message by message
  std::int64_t halo = 0;            ///< elements of other ranks that this one needs
  apps::pattern messages;           ///< pieces of `send` and of the halo
};

/// The part of a rank of a symmetric matrix whose rows are shared so.
local_matrix distribute(const matrix& a, int rank, const sucl::partition& rows);

}  // namespace cg
