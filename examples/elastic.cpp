// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Data-parallel training that goes on when ranks die: gradient descent, in which each rank has a
// share of the samples and all have the model. `--kill RANK STEP` kills a rank in that step.
//
//   sucl run --launcher local --enable-recovery -n 4 -- elastic --kill 2 50
#include <sucl/sucl.hpp>

#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int steps = 200;
constexpr std::size_t samples = 6000;
constexpr double rate = 0.4;

using model = std::array<double, 3>;  // y = a u + b v + c

/// The gradient of the squared error over samples [first, last).
model gradient_of(const model& m, std::size_t first, std::size_t last) {
  model g{};
  for (std::size_t i = first; i < last; ++i) {
    const double u = static_cast<double>(i % 101) / 50 - 1;
    const double v = static_cast<double>(i % 67) / 33 - 1;
    const double wrong = m[0] * u + m[1] * v + m[2] - (3 * u - 2 * v + 0.5);
    g[0] += wrong * u / samples;
    g[1] += wrong * v / samples;
    g[2] += wrong / samples;
  }
  return g;
}

model stepped(const model& m, const model& gradient) {
  model next = m;
  for (std::size_t k = 0; k < next.size(); ++k) next[k] -= rate * gradient[k];
  return next;
}

}  // namespace

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sucl::communicator comm = runtime.world(sycl::queue{});
  const bool kills = argc == 4 && std::strcmp(argv[1], "--kill") == 0;
  const int victim = kills ? std::atoi(argv[2]) : -1, fatal_step = kills ? std::atoi(argv[3]) : -1;
  const int first_rank = comm.rank(), first_size = comm.size();

  model current{}, previous{};
  int done = 0;
  for (bool in_step = true; done < steps;) try {
      if (!in_step) {  // a rank that was ahead when another one died takes its last step back
        int common = done;
        comm.blocking().allreduce(&common, 1, sucl::op::min);
        if (common < done) current = previous;
        done = common;
        in_step = true;
      }
      if (first_rank == victim && done == fatal_step) raise(SIGKILL);
      const auto rank = static_cast<std::size_t>(comm.rank());
      const auto size = static_cast<std::size_t>(comm.size());
      model g = gradient_of(current, samples * rank / size, samples * (rank + 1) / size);
      comm.blocking().allreduce(g.data(), g.size(), sucl::op::sum);
      previous = current;
      current = stepped(current, g);
      ++done;
    } catch (const sucl::error& e) {
      if (e.code() != sucl::errc::peer_lost) throw;
      comm = comm.shrink();
      in_step = false;
      if (comm.rank() == 0) std::printf("%s\n  %d ranks go on\n", e.message().c_str(), comm.size());
    }

  model alone{};  // what one rank computes that loses none
  for (int i = 0; i < steps; ++i) alone = stepped(alone, gradient_of(alone, 0, samples));
  double difference = 0;
  for (std::size_t k = 0; k < 3; ++k)
    difference = std::max(difference, std::abs(current[k] - alone[k]));
  if (comm.rank() == 0)
    std::printf("%d of %d ranks: y = %.3f u %+.3f v %+.3f after %d steps, %s\n", comm.size(),
                first_size, current[0], current[1], current[2], done,
                difference < 1e-9 ? "right" : "WRONG");
  return difference < 1e-9 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
