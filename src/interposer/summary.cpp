// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/summary.hpp"

#include <sucl/types.hpp>

#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <vector>

namespace sucl::interposer {
namespace {

constexpr std::size_t outcomes = static_cast<std::size_t>(outcome::count);
constexpr const char* headings[outcomes] = {"served",       "in trials", "MPI faster", "set-up",
                                            "communicator", "no room",   "not known"};

void print(const counters_by_kind& all) {
  std::fprintf(stderr, "sucl: collectives of all ranks\n%22s %12s %12s %14s   %s\n", "", "served",
               "passed on", "saved, s", "why passed on");
  for (std::size_t k = 0; k < SUCL_KIND_COUNT; ++k) {
    const counters& t = all[k];
    const std::uint64_t passed =
        std::accumulate(t.calls.begin() + 1, t.calls.end(), std::uint64_t{0});
    if (t.calls[0] + passed == 0) continue;
    std::fprintf(stderr, "%22s %12llu %12llu %14.6f  ", name(static_cast<kind>(k)),
                 static_cast<unsigned long long>(t.calls[0]),
                 static_cast<unsigned long long>(passed), t.saved);
    const char* before = " ";
    for (std::size_t f = 1; f < outcomes; ++f) {
      if (t.calls[f] == 0) continue;
      std::fprintf(stderr, "%s%s %llu", before, headings[f],
                   static_cast<unsigned long long>(t.calls[f]));
      before = ", ";
    }
    std::fputc('\n', stderr);
  }
  const std::uint64_t on_devices =
      std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const counters& t) { return sum + t.on_devices; });
  if (on_devices > 0)
    std::fprintf(stderr, "%22s %12llu   had buffers on devices\n", "of these",
                 static_cast<unsigned long long>(on_devices));
}

}  // namespace

void counters::operator+=(const counters& other) {
  for (std::size_t f = 0; f < outcomes; ++f) calls[f] += other.calls[f];
  on_devices += other.on_devices;
  saved += other.saved;
}

void print_summary(counters_by_kind mine, int rank) {
  std::vector<std::uint64_t> calls;
  std::vector<std::uint64_t> on_devices;
  std::vector<double> saved;
  for (const counters& t : mine) {
    calls.insert(calls.end(), t.calls.begin(), t.calls.end());
    on_devices.push_back(t.on_devices);
    saved.push_back(t.saved);
  }
  const bool first = rank == 0;
  const auto sum = [first](auto& values, MPI_Datatype type) {
    PMPI_Reduce(first ? MPI_IN_PLACE : values.data(), first ? values.data() : nullptr,
                static_cast<int>(values.size()), type, MPI_SUM, 0, MPI_COMM_WORLD);
  };
  sum(calls, MPI_UINT64_T);
  sum(on_devices, MPI_UINT64_T);
  sum(saved, MPI_DOUBLE);
  if (!first) return;
  for (std::size_t k = 0; k < mine.size(); ++k) {
    for (std::size_t f = 0; f < outcomes; ++f) mine[k].calls[f] = calls[k * outcomes + f];
    mine[k].on_devices = on_devices[k];
    mine[k].saved = saved[k];
  }
  print(mine);
}

}  // namespace sucl::interposer
