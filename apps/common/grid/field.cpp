// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/grid/field.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace apps {

void write_vti(const std::string& path, const extents& size, const std::vector<float>& values) {
  std::ofstream file(path, std::ios::binary);
  // VTK's first dimension varies fastest, ours last.
  const std::string range = "0 " + std::to_string(size[2] - 1) + " 0 " +
                            std::to_string(size[1] - 1) + " 0 " + std::to_string(size[0] - 1);
  file << "<?xml version=\"1.0\"?>\n"
          "<VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"LittleEndian\" "
          "header_type=\"UInt64\">\n  <ImageData WholeExtent=\""
       << range << "\" Origin=\"0 0 0\" Spacing=\"1 1 1\">\n    <Piece Extent=\"" << range
       << "\">\n      <PointData Scalars=\"field\">\n        <DataArray type=\"Float32\" "
       << "Name=\"field\" format=\"appended\" offset=\"0\"/>\n      </PointData>\n"
       << "    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n_";
  const std::uint64_t bytes = values.size() * sizeof(float);
  file.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(bytes));
  file << "\n  </AppendedData>\n</VTKFile>\n";
  if (!file) throw std::runtime_error("cannot write '" + path + "': is the disk full?");
}

void write_field(context& c, const rank_grid& grid, const std::vector<float>& mine) {
  sucl::counts counts, displs;
  std::size_t all = 0;
  for (int r = 0; r < c.size(); ++r) {
    displs.push_back(all);
    counts.push_back(static_cast<std::size_t>(grid.part(r).volume()));
    all += counts.back();
  }
  std::vector<float> gathered(c.rank() == 0 ? all : 1);
  c.world().blocking().gatherv(mine.data(), mine.size(), gathered.data(), counts, displs, 0);
  if (c.rank() != 0) return;
  const extents& n = grid.domain();
  std::vector<float> field(all);
  auto from = gathered.begin();
  for (int r = 0; r < c.size(); ++r) {
    const box b = grid.part(r);
    for (std::int64_t i = b.low[0]; i < b.high[0]; ++i)
      for (std::int64_t j = b.low[1]; j < b.high[1]; ++j, from += b.extent(2))
        std::copy_n(from, b.extent(2), field.begin() + ((i * n[1] + j) * n[2] + b.low[2]));
  }
  write_vti(c.wanted().plot, n, field);
}

}  // namespace apps
