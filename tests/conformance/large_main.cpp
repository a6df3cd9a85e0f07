// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations of more than 2^31 elements, which an int cannot count. Skipped, with exit status 77,
// where the machine has too little memory.
#include <sucl/sucl.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

namespace {

constexpr std::size_t n = (std::size_t{1} << 31) + (std::size_t{1} << 26) + 5;
constexpr std::size_t bytes_needed_per_rank = std::size_t{5} << 30;

std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::size_t kib = 0;
  while (file >> key >> kib >> unit)
    if (key == "MemAvailable:") return kib << 10;
  return 0;
}

std::int8_t value(int rank, std::size_t i) {
  return static_cast<std::int8_t>((i * 37 + (i >> 31) * 11 + static_cast<std::size_t>(rank) * 5) %
                                  31);
}

template <class Expected>
bool check(const char* what, int rank, const std::int8_t* data, Expected&& expected) {
  for (std::size_t i = 0; i < n; ++i) {
    if (data[i] == expected(i)) continue;
    std::printf("FAILED on rank %d: %s of %zu int8, element %zu: got %d, expected %d\n", rank, what,
                n, i, data[i], expected(i));
    return false;
  }
  return true;
}

int run(sucl::runtime& rt) {
  auto comm = rt.world();
  const int me = comm.rank();
  const int ranks = comm.size();
  std::uint64_t least = available_bytes();
  comm.blocking().allreduce(&least, 1, sucl::op::min);
  const auto needed =
      bytes_needed_per_rank * static_cast<std::size_t>(ranks) + (std::size_t{2} << 30);
  if (least < needed) {
    if (me == 0)
      std::printf("skipped: %zu GiB of memory are free, %zu are needed\n",
                  static_cast<std::size_t>(least >> 30), needed >> 30);
    return 77;
  }
  const std::unique_ptr<std::int8_t[]> data(new std::int8_t[n]);
  const auto fill = [&] {
    for (std::size_t i = 0; i < n; ++i) data[i] = value(me, i);
  };
  const auto sum = [&](std::size_t i) {
    int total = 0;
    for (int r = 0; r < ranks; ++r) total += value(r, i);
    return static_cast<std::int8_t>(total);
  };
  fill();
  comm.blocking().allreduce(data.get(), n, sucl::op::sum);
  bool good = check("allreduce", me, data.get(), sum);
  fill();
  comm.broadcast(data.get(), n, ranks - 1).wait();
  comm.check();
  good = check("broadcast", me, data.get(), [&](std::size_t i) { return value(ranks - 1, i); }) &&
         good;
  if (good && me == 0) std::printf("%zu elements: allreduce and broadcast are right\n", n);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int status = 0;
    {
      sucl::runtime rt{argc, argv};
      status = run(rt);
    }
    return status;
  } catch (const std::exception& e) {
    std::printf("FAILED: %s\n", e.what());
    return 1;
  }
}
