// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "cg/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace cg {
namespace {

struct entry {
  std::int64_t row, column;
  double value;
};

matrix assemble(std::int64_t rows, std::vector<entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  });
  matrix a;
  a.rows = rows;
  a.start.assign(static_cast<std::size_t>(rows) + 1, 0);
  for (const entry& e : entries) {
    ++a.start[static_cast<std::size_t>(e.row) + 1];
    a.column.push_back(static_cast<std::int32_t>(e.column));
    a.value.push_back(e.value);
  }
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) a.start[r + 1] += a.start[r];
  return a;
}

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// Lines of a Matrix Market file that are no comments, and complaints that name them.
class market_file {
 public:
  explicit market_file(const std::string& path) : m_path(path) {
    check(path);
    m_file.open(path);
    if (!m_file) throw std::runtime_error("cannot read '" + path + "'. Does the file exist?");
    read_banner();
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(m_path + ":" + std::to_string(m_line) + ": " + what);
  }
  std::istringstream next(const char* what) {
    std::string text;
    while (std::getline(m_file, text)) {
      ++m_line;
      if (text.find_first_not_of(" \t\r") != std::string::npos && text[0] != '%')
        return std::istringstream(text);
    }
    fail(std::string("the file ends where ") + what + " should be");
  }
  bool has_values() const { return m_field != "pattern"; }
  bool is_symmetric() const { return m_symmetry == "symmetric"; }

 private:
  // A pipe or a device may have no end, and entries take memory.
  static void check(const std::string& path) {
    constexpr std::uintmax_t most = std::uintmax_t{64} << 20;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;  // opening it says why
    if (!std::filesystem::is_regular_file(path, ignored))
      throw std::runtime_error("cannot read '" + path + "': it is no regular file");
    if (const auto size = std::filesystem::file_size(path, ignored); !ignored && size > most)
      throw std::runtime_error("cannot read '" + path + "': it has " + std::to_string(size) +
                               " bytes, more than the 64 MiB that are read. Use a smaller matrix");
  }
  void read_banner() {
    std::string banner, object, form;
    std::string text;
    std::getline(m_file, text);
    m_line = 1;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::istringstream(text) >> banner >> object >> form >> m_field >> m_symmetry;
    if (banner != "%%matrixmarket") fail("not a Matrix Market file: it begins otherwise");
    if (object != "matrix" || form != "coordinate")
      fail("'" + object + " " + form + "' is not read, only 'matrix coordinate'");
    if (m_field != "real" && m_field != "integer" && m_field != "pattern")
      fail("'" + m_field + "' values are not read, only real, integer and pattern");
    if (m_symmetry != "general" && m_symmetry != "symmetric")
      fail("'" + m_symmetry + "' is not read, only general and symmetric");
  }

  std::string m_path;
  std::ifstream m_file;
  int m_line = 0;
  std::string m_field, m_symmetry;
};

}  // namespace

grid_extents extents_of(std::int64_t points) {
  auto height = static_cast<std::int64_t>(std::sqrt(static_cast<double>(points)));
  while (points % height != 0) --height;
  return {height, points / height};
}

matrix poisson(std::int64_t rows) {
  const auto [height, width] = extents_of(rows);
  matrix a;
  a.rows = rows;
  const auto add = [&](std::int64_t column, double value) {
    a.column.push_back(static_cast<std::int32_t>(column));
    a.value.push_back(value);
  };
  for (std::int64_t i = 0; i < height; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t here = i * width + j;
      if (i > 0) add(here - width, -1);
      if (j > 0) add(here - 1, -1);
      add(here, 4);
      if (j + 1 < width) add(here + 1, -1);
      if (i + 1 < height) add(here + width, -1);
      a.start.push_back(static_cast<std::int64_t>(a.column.size()));
    }
  }
  return a;
}

matrix read_matrix_market(const std::string& path) {
  market_file file(path);
  std::int64_t rows = 0, columns = 0, count = 0;
  if (!(file.next("the size") >> rows >> columns >> count)) file.fail("this is not a size");
  if (rows != columns || rows < 1 || rows > 1 << 30)
    file.fail("a matrix of " + std::to_string(rows) + " rows and " + std::to_string(columns) +
              " columns cannot be solved for: it must be square, with 1 to 1073741824 rows");
  std::vector<entry> entries;
  for (std::int64_t i = 0; i < count; ++i) {
    auto line = file.next("an entry");
    entry e{0, 0, 1};
    if (!(line >> e.row >> e.column) || (file.has_values() && !(line >> e.value)))
      file.fail("this is not an entry");
    if (!std::isfinite(e.value)) file.fail("the value of an entry must be finite");
    if (e.row < 1 || e.row > rows || e.column < 1 || e.column > rows)
      file.fail("entry (" + std::to_string(e.row) + ", " + std::to_string(e.column) +
                ") is outside the matrix");
    --e.row;
    --e.column;
    entries.push_back(e);
    if (file.is_symmetric() && e.row != e.column) entries.push_back({e.column, e.row, e.value});
  }
  // So no more memory is taken than the file has entries for.
  if (static_cast<std::int64_t>(entries.size()) < rows)
    file.fail(std::to_string(entries.size()) + " entries are too few for " + std::to_string(rows) +
              " rows: the diagonal of each must be positive");
  return assemble(rows, entries);
}

std::string obstacle(const matrix& a) {
  const auto find = [&](std::int64_t row, std::int64_t column) {
    const auto begin = a.column.begin() + a.start[static_cast<std::size_t>(row)];
    const auto end = a.column.begin() + a.start[static_cast<std::size_t>(row) + 1];
    const auto at = std::lower_bound(begin, end, static_cast<std::int32_t>(column));
    return at != end && *at == column ? &a.value[static_cast<std::size_t>(at - a.column.begin())]
                                      : nullptr;
  };
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const double* diagonal = find(i, i);
    if (!diagonal || !(*diagonal > 0))
      return "the diagonal of row " + std::to_string(i + 1) +
             " is not positive, so the matrix is not positive definite";
    for (auto k = static_cast<std::size_t>(a.start[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.start[static_cast<std::size_t>(i) + 1]); ++k) {
      const double* mirrored = find(a.column[k], i);
      if (!mirrored || std::abs(*mirrored - a.value[k]) > 1e-12 * std::abs(a.value[k]))
        return "entries (" + std::to_string(i + 1) + ", " + std::to_string(a.column[k] + 1) +
               ") and its mirror image differ, so the matrix is not symmetric";
    }
  }
  return {};
}

std::vector<double> multiply(const matrix& a, const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(a.rows));
  for (std::size_t i = 0; i < y.size(); ++i)
    for (auto k = static_cast<std::size_t>(a.start[i]);
         k < static_cast<std::size_t>(a.start[i + 1]); ++k)
      y[i] += a.value[k] * x[static_cast<std::size_t>(a.column[k])];
  return y;
}

int serial_iterations(const matrix& a, const std::vector<double>& b, double tolerance, int most) {
  std::vector<double> x(b.size()), r = b, p = b;
  double gamma = dot(r, r);
  const double goal = tolerance * tolerance * gamma;
  int done = 0;
  while (done < most && gamma > goal) {
    const auto q = multiply(a, p);
    const double alpha = gamma / dot(p, q), before = gamma;
    for (std::size_t i = 0; i < b.size(); ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    gamma = dot(r, r);
    for (std::size_t i = 0; i < b.size(); ++i) p[i] = r[i] + gamma / before * p[i];
    ++done;
  }
  return done;
}

local_matrix distribute(const matrix& a, int rank, const sucl::partition& rows) {
  const auto owner = [&](std::int64_t column) {
    return rows.owner(static_cast<std::size_t>(column));
  };
  local_matrix m;
  m.first = static_cast<std::int64_t>(rows.begin(rank));
  m.rows = static_cast<std::int64_t>(rows.count(rank));
  const auto begin = static_cast<std::size_t>(a.start[static_cast<std::size_t>(m.first)]);
  const auto end = static_cast<std::size_t>(a.start[static_cast<std::size_t>(m.first + m.rows)]);
  m.value.assign(a.value.begin() + static_cast<std::ptrdiff_t>(begin),
                 a.value.begin() + static_cast<std::ptrdiff_t>(end));
  // The halo in order of columns, and so in order of the ranks that own them. As the matrix is
  // symmetric, a rank whose elements a row of ours needs needs that row's element too.
  std::map<std::int32_t, std::int32_t> halo;
  std::map<int, std::set<std::int32_t>> needed;
  const auto is_own = [&](std::int64_t column) {
    return column >= m.first && column < m.first + m.rows;
  };
  for (std::size_t k = begin; k < end; ++k)
    if (!is_own(a.column[k])) halo[a.column[k]];
  std::int32_t index = static_cast<std::int32_t>(m.rows);
  for (auto& [column, at] : halo) {
    at = index++;
    const int peer = owner(column);
    auto& in = m.messages.in;
    if (in.empty() || in.back().peer != peer)
      in.push_back({peer, static_cast<std::size_t>(at - m.rows), 0});
    ++in.back().count;
  }
  m.halo = static_cast<std::int64_t>(halo.size());
  m.column.reserve(end - begin);
  m.start.reserve(static_cast<std::size_t>(m.rows) + 1);
  m.inner.reserve(static_cast<std::size_t>(m.rows));
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const auto row = static_cast<std::size_t>(m.first + i);
    m.start.push_back(a.start[row] - static_cast<std::int64_t>(begin));
    bool needs_halo = false;
    for (auto k = static_cast<std::size_t>(a.start[row]);
         k < static_cast<std::size_t>(a.start[row + 1]); ++k) {
      if (is_own(a.column[k])) {
        m.column.push_back(static_cast<std::int32_t>(a.column[k] - m.first));
      } else {
        m.column.push_back(halo[a.column[k]]);
        needed[owner(a.column[k])].insert(static_cast<std::int32_t>(i));
        needs_halo = true;
      }
    }
    (needs_halo ? m.outer : m.inner).push_back(static_cast<std::int32_t>(i));
  }
  m.start.push_back(static_cast<std::int64_t>(m.column.size()));
  for (const auto& [peer, rows] : needed) {
    m.messages.out.push_back({peer, m.send.size(), rows.size()});
    m.send.insert(m.send.end(), rows.begin(), rows.end());
  }
  return m;
}

}  // namespace cg
