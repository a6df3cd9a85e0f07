// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Random operations on the ranks of a job, each result compared with a reference and between the
// ranks: see CONTRIBUTING.md.
#include "stage.hpp"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

using namespace sucl::torture;
using std::uint64_t;

constexpr const char* usage =
    "random [--seed N] [--steps N] [--seconds N] [--from N] [--without NAME,...] [--only "
    "NAME,...]\n"
    "       [--replay SEED:STEP] [--times N] [--list] [--messages-in-order]\n\n"
    "NAME: a form (blocking, event, window, chained, persistent, compiled, allocated, threads,\n"
    "renewed), a communicator (world, in_order, queueless, copy, reversed, parity, but_last), a\n"
    "kind, type, op, or 'special', 'finite', 'exact' values. --only keeps the steps that have one\n"
    "of the names. --replay runs one step, --times times; --list only prints what steps do.\n"
    "--messages-in-order: where MPI executes messages, which then wait for each other.\n"
    "Prints a line of JSON. Exit status: 0, or 1 if a result was wrong or differed between "
    "ranks.\n";

struct options {
  uint64_t seed = 1, steps = 10000, from = 0, seconds = 0, times = 1;
  filter wanted;
  bool list = false, replay = false, messages_in_order = false;
};

[[noreturn]] void wrong_usage() {
  std::fputs(usage, stderr);
  std::exit(2);
}

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) wrong_usage();
  return value;
}

options parse(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--list") {
      o.list = true;
      continue;
    }
    if (word == "--messages-in-order") {
      o.messages_in_order = true;
      continue;
    }
    if (i + 1 == argc) wrong_usage();
    const std::string_view value = argv[++i];
    if (word == "--seed")
      o.seed = number(value);
    else if (word == "--steps")
      o.steps = number(value);
    else if (word == "--seconds")
      o.seconds = number(value);
    else if (word == "--from")
      o.from = number(value);
    else if (word == "--times")
      o.times = number(value);
    else if (word == "--without")
      o.wanted.without = names(value);
    else if (word == "--only")
      o.wanted.only = names(value);
    else if (word == "--replay" && value.find(':') != value.npos) {
      o.seed = number(value.substr(0, value.find(':')));
      o.from = number(value.substr(value.find(':') + 1));
      o.steps = 1;
      o.replay = true;
    } else {
      wrong_usage();
    }
  }
  return o;
}

std::string text(const step& s) {
  std::string line = name(s.form);
  for (std::size_t i = 0; i < s.groups.size(); ++i)
    line +=
        std::string(i == 0 ? ": " : "; ") + s.operations[i].text() + ", on " + name(s.groups[i]);
  return line;
}

void print(const options& o, uint64_t index, const step& s, int rank) {
  std::printf("step %llu:%llu, rank %d: %s\n", static_cast<unsigned long long>(o.seed),
              static_cast<unsigned long long>(index), rank, text(s).c_str());
}

enum counter { c_operations, c_wrong, c_differing, c_stop };

void run_steps(const options& o, stage& all, int rank, int ranks) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::seconds(o.seconds);
  uint64_t done = 0;  // the same on every rank
  for (uint64_t i = o.from; i < o.from + o.steps; ++i) {
    if (!o.wanted.allows(o.seed, i, ranks)) continue;
    const step s = draw_step(o.seed, i, rank, ranks);
    if (o.replay) print(o, i, s, rank);
    try {
      for (uint64_t t = 0; t < o.times; ++t) all.run(i, s);
    } catch (const std::exception&) {
      print(o, i, s, rank);
      throw;
    }
    if (o.seconds == 0 || ++done % 64 != 0) continue;
    // Rank 0's clock decides; the others see it behind the barrier of the comparison.
    if (rank == 0 && clock::now() > end) all.board.add(c_stop, 1);
    all.compare();
    if (all.board.sum(c_stop) > 0) break;
  }
  all.compare();
}

int run(const options& o, sucl::runtime& rt) {
  const int rank = rt.rank(), ranks = rt.size();
  if (o.list) {
    for (uint64_t i = o.from; i < o.from + o.steps; ++i)
      if (o.wanted.allows(o.seed, i, ranks)) print(o, i, draw_step(o.seed, i, rank, ranks), rank);
    return 0;
  }
  const auto began = std::chrono::steady_clock::now();
  stage all(rt, o.seed, o.messages_in_order);
  run_steps(o, all, rank, ranks);
  all.board.add(c_operations, all.found.operations);
  all.board.add(c_wrong, all.found.wrong);
  all.board.barrier();
  const uint64_t wrong = all.board.sum(c_wrong), differing = all.board.sum(c_differing);
  if (rank == 0) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf(
        "{\"seed\": %llu, \"ranks\": %d, \"control_plane\": \"%s\", \"operations\": %llu, "
        "\"wrong\": %llu, \"differing\": %llu, \"seconds\": %.1f}\n",
        static_cast<unsigned long long>(o.seed), ranks,
        rt.control_plane().substr(0, rt.control_plane().find(',')).c_str(),
        static_cast<unsigned long long>(all.found.operations),
        static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(differing),
        took.count());
    std::fflush(stdout);
  }
  return wrong + differing == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    sucl::runtime rt{argc, argv};
    const options o = parse(argc, argv);
    try {
      return run(o, rt);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "failed: %s; seed %llu\n", e.what(),
                   static_cast<unsigned long long>(o.seed));
      throw;
    }
  } catch (const std::exception&) {
    return 3;
  }
}
