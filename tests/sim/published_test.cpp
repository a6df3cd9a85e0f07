// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// On shipped machines, search is not worse than the parameter sets that others published, by any
// difference; a sample of the table in docs/results/plans/search.md, with the cells that were
// hardest. What search can choose for a thousand ranks stays small.
#include "cases.hpp"
#include "plan/ir/schedule.hpp"
#include "sim/simulate.hpp"
#include "tune/candidates.hpp"
#include "tune/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace sucl::tune {
namespace {

struct cell {
  const char* machine;
  kind what;
  int ranks;
  std::uint64_t bytes;
};

constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20;

sim::machine shipped(const char* name) {
  return sim::load_machine(std::string(SUCL_TEST_MACHINES_DIR) + "/" + name + ".toml");
}

class search_of : public testing::TestWithParam<cell> {};

TEST_P(search_of, is_not_worse_than_published_parameters) {
  const cell& c = GetParam();
  const sim::machine m = shipped(c.machine);
  const plan::problem p = plan::cases::make_problem(c.what, c.ranks, c.bytes / 4, 4);
  const found best = search(p, m).best.front();
  for (const auto& sets : {hiccl_sets(p, m), ext_mpi_sets(p, m)})
    for (const published& s : sets) {
      sim::simulate_options o;
      o.max_seconds = best.seconds;  // no need to know how much worse it is
      const sim::prediction t = sim::simulate(plan::build(p, s.how), m, o);
      EXPECT_TRUE(t.gave_up || t.seconds >= best.seconds)
          << s.source << " takes " << t.seconds << " s: " << plan::to_text(s.how)
          << "\nsearch takes " << best.seconds << " s: " << plan::to_text(best.how);
    }
}

INSTANTIATE_TEST_SUITE_P(
    sample, search_of,
    testing::Values(
        cell{"delta", kind::broadcast, 16, 256 * MiB}, cell{"delta", kind::reduce, 16, 8 * MiB},
        cell{"perlmutter", kind::allreduce, 16, 256 * KiB}, cell{"perlmutter", kind::gather, 16, 8},
        cell{"perlmutter", kind::gather, 16, 256 * MiB}, cell{"alps", kind::alltoall, 16, 8 * KiB},
        cell{"frontier", kind::scatter, 32, 8 * MiB},
        cell{"frontier", kind::broadcast, 32, 256 * MiB},
        cell{"aurora", kind::broadcast, 48, 256 * MiB},
        cell{"aurora", kind::broadcast, 48, 1024 * MiB},
        cell{"aurora", kind::allreduce, 48, 1024 * MiB},
        cell{"aurora", kind::reduce, 48, 1024 * MiB},
        cell{"aurora", kind::reduce_scatter_block, 48, 256 * MiB},
        cell{"aurora", kind::reduce_scatter_block, 48, 1024 * MiB},
        cell{"dgx-h100", kind::reduce, 32, 256 * MiB},
        cell{"dgx-h100", kind::reduce_scatter_block, 32, 1024 * MiB},
        cell{"stampede3-pvc", kind::reduce_scatter_block, 32, 1024 * MiB},
        cell{"stampede3-pvc", kind::allgather, 32, 256}),
    [](const auto& i) {
      std::string name = i.param.machine;
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_" + sucl::name(i.param.what) + "_" + std::to_string(i.param.bytes);
    });

// Instructions decide what building and proving costs: two million of them take about a second and
// 300 MiB. Nothing here depends on time. Of `make torture`.
TEST(search, chooses_plans_of_bounded_size_for_a_thousand_ranks) {
  search_options o;
  o.budget = 4e6;
  for (const auto& [machine, what] :
       {std::pair{"frontier", kind::broadcast}, std::pair{"perlmutter", kind::allgather}}) {
    const plan::problem p = plan::cases::make_problem(what, 1024, 16 * MiB, 4);
    const found best = search(p, shipped(machine), o).best.front();
    EXPECT_LT(best.instructions, 3'000'000u) << plan::to_text(best.how);
  }
}

}  // namespace
}  // namespace sucl::tune
