// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where the sub-commands of `sucl plan` take a plan from: a file, or a problem and a recipe.
#pragma once

#include "plan/algorithms/algorithms.hpp"
#include "plan/verify/verify.hpp"
#include "sim/model/machine.hpp"

#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sucl::tools {

/// The options that describe a collective, as they are written.
struct problem_options {
  std::string collective = "allreduce";
  int ranks = 0;
  std::string bytes;
  std::uint64_t element = 4;
  int root = 0;
  bool in_place = false;
  bool ranked = false;
  bool fixed = false;
};

/// A plan as it is written: `file`, or the others.
struct source_options {
  std::string file;
  problem_options problem;
  std::string recipe;
  double effort = 4e9;  ///< steps of a proof and of a simulation, and bytes of their memory
};

/// Adds the options. `bytes` is not added where a command has sizes of its own.
void define(CLI::App& app, problem_options& o, bool bytes = true);
void define(CLI::App& app, source_options& o);
void define_machine(CLI::App& app, std::string& name);
void define_effort(CLI::App& app, source_options& o);

/// Kinds of collective that have plans, by name.
kind read_collective(const std::string& word);

/// The problem with `bytes` for each rank's message or block. Ends in wrong_usage() where it makes
/// no sense.
plan::problem make_problem(const problem_options& o, std::uint64_t bytes);

/// The problem as the options say it.
plan::problem read_problem(const problem_options& o);

/// A recipe that fits the problem. Ends in wrong_usage().
plan::recipe read_recipe(const std::string& text, const plan::problem& p);

/// The plan, not verified. Ends in wrong_usage() where the options are wrong.
plan::schedule read_plan(const source_options& o);

/// The plan as it is for one rank, if it is given as a recipe of one that is the same for all and
/// has so many ranks that search looks for such plans.
std::optional<plan::symmetric_schedule> read_symmetric_plan(const source_options& o);

/// The verdict on the plan. Throws sucl::error where it takes more than the options allow.
plan::verdict prove(const plan::schedule& s, const source_options& o);

/// The description of a machine by name or file. Ends in wrong_usage() where there is no name.
sim::machine read_machine(const std::string& name);

/// Bytes of the largest buffer that a rank has: what HiCCL's throughput counts.
double largest_buffer(const plan::problem& p);

/// HiCCL's throughput in bytes a second; 0 where there is nothing to move.
double throughput(const plan::problem& p, double seconds);

/// A hash as 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

/// The whole of a file, or of standard input for "-". Throws sucl::error.
std::string read_file(const std::string& path);

/// Writes a file, or standard output for "-". Throws sucl::error.
void write_file(const std::string& path, const std::string& text);

}  // namespace sucl::tools
