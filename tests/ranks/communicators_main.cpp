// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// communicators ended N: makes and ends N communicators, of several sizes and groups.
// communicators alive N: keeps N, or as many as MPI has room for; the error says so on every rank,
// and the others go on.
#include <sucl/sucl.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

bool works(sucl::communicator& c) {
  int value = 1;
  c.allreduce(&value, 1, sucl::op::sum).wait();
  return value == c.size();
}

int make_and_end(sucl::communicator& world, int number) {
  int failures = 0;
  for (int i = 0; i < number; ++i) {
    auto all = world.dup();
    if (i % 64 == 0 && !works(all)) ++failures;
    if (i % 8 != 0) continue;
    auto part = world.split(world.rank() % 2, -world.rank());
    if (!works(part)) ++failures;
  }
  return failures;
}

int keep(sucl::communicator& world, int number) {
  int failures = 0;
  std::vector<sucl::communicator> kept;
  std::string said;
  try {
    while (static_cast<int>(kept.size()) < number) kept.push_back(world.dup());
  } catch (const sucl::error& e) {
    said = e.what();
  }
  if (world.rank() == 0)
    std::printf("%zu communicators at once; %s\n", kept.size(),
                said.empty() ? "all that were asked for" : said.c_str());
  const bool explained = said.empty() || (said.find("MPI cannot") != said.npos &&
                                          said.find("end those that are not used") != said.npos);
  if (!explained || kept.size() < 1000) ++failures;
  if (!works(world) || !works(kept.front()) || !works(kept.back())) ++failures;
  kept.clear();
  auto again = world.dup();  // there is room again
  return failures + (works(again) ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  sucl::runtime runtime{argc, argv};
  auto world = runtime.world();
  const int failures = what == "ended" ? make_and_end(world, number) : keep(world, number);
  std::printf("rank %d: %d failures\n", world.rank(), failures);
  return failures == 0 ? 0 : 1;
}
