// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A rectangular part of a 2-D buffer: every rank owns a band of rows of a field and sends the block
// in the middle of it to rank 0, which puts the blocks one below the other. SuCL packs and unpacks.
//
//   sucl run -n 2 -- buffer_block
#include <sucl/sucl.hpp>

#include <cstdio>

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sycl::queue queue;
  sucl::communicator comm = runtime.world(queue);
  const auto ranks = static_cast<std::size_t>(comm.size());

  constexpr std::size_t rows = 16, columns = 32, height = 4, width = 8;
  sycl::buffer<double, 2> field{sycl::range<2>{rows, columns}};
  {
    sycl::host_accessor f{field, sycl::write_only, sycl::no_init};
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        f[i][j] = 1000.0 * comm.rank() + static_cast<double>(i * columns + j);
  }

  sycl::buffer<double, 2> gathered{sycl::range<2>{height * ranks, width}};
  const sucl::block middle{field, {6, 12}, {height, width}};
  comm.gather(middle, gathered, 0);

  std::size_t wrong = 0;
  if (comm.rank() == 0) {
    sycl::host_accessor g{gathered, sycl::read_only};
    for (std::size_t i = 0; i < height * ranks; ++i)
      for (std::size_t j = 0; j < width; ++j)
        wrong += g[i][j] != 1000.0 * static_cast<double>(i / height) +
                                static_cast<double>((6 + i % height) * columns + 12 + j);
    std::printf("rank 0 gathered %zu blocks of %zux%zu, %zu elements wrong\n", ranks, height, width,
                wrong);
  }
  comm.wait();
  return wrong == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
