// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "launcher/environment.hpp"
#include "launcher/launch.hpp"
#include "measure/reading.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "bench/operations/problem.hpp"
#include "bench/tuning/tuner.hpp"

#include "base/text.hpp"
#include "sim/model/machine.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* tune_examples =
    "Measures MPI and SuCL's plans on host memory, for blocking calls and by event, and memory of\n"
    "communicator.allocate(); with --device gpu the vendor's library and SuCL's kernels on memory\n"
    "of GPUs, one a rank. Starts its own ranks, or measures with those it is run in. Rows that\n"
    "FILE has for other memory, collectives and numbers of ranks stay. Programs use the table "
    "with\n"
    "SUCL_TUNING_TABLE=FILE, or table = \"FILE\" below [tuning] in sucl.toml.\n\n"
    "Examples:\n"
    "  sucl tune -n 2\n"
    "  sucl tune -n 4 --seconds 120 --output cluster.toml\n"
    "  sucl tune allreduce broadcast -n 2 --sizes 4:64Mi:4 --json measured.json\n"
    "  sucl tune -n 2 --device gpu --sizes 128:1Gi:4\n"
    "  SUCL_TUNING_TABLE=tuned.toml sucl run -n 2 -- ./my_program\n\n"
    "Exit code: 1 if a file could not be made, 2 for a wrong command line.";

struct tune_options {
  words collectives;
  int ranks = 2;
  double seconds = 60;
  std::string sizes = "4:16Mi:4";
  std::string device = "cpu";
  std::string mpi;
  std::string launcher;
  std::string output = "tuned.toml";
  std::string json;
  bool no_symmetric = false;
};

CLI::Option* define(CLI::App& app, tune_options& w) {
  const auto add = [&app](const char* name, auto& value, const char* value_name, const char* help) {
    return app.add_option(name, value, help)->type_name(value_name);
  };
  app.add_option("COLLECTIVE", w.collectives,
                 "What to measure (broadcast, reduce, allreduce, reduce_scatter_block, allgather,\n"
                 "gather, scatter and alltoall)")
      ->type_name("");
  CLI::Option* ranks = add("-n,--ranks", w.ranks, "N", "Number of ranks (2)");
  ranks->check(CLI::Range(2, 1 << 20).description(""));
  add("--seconds", w.seconds, "S", "Time for all measurements (60)")
      ->check(CLI::Range(0.01, 1e6).description(""));
  add("--sizes", w.sizes, "LIST", "Bytes: 4:64Mi doubles, 4:64Mi:4 quadruples (4:16Mi:4)");
  add("--device", w.device, "KIND", "cpu: memory of the host; gpu: memory of GPUs (cpu)")
      ->check(CLI::IsMember({"cpu", "gpu"}).description(""));
  app.add_flag("--no-symmetric", w.no_symmetric, "Leave memory of communicator.allocate() out");
  add("--mpi", w.mpi, "FLAVOUR", "MPI to start ranks with, as 'sucl info' lists them");
  add("--launcher", w.launcher, "NAME", "Who starts the ranks, as for sucl run: mpi, local, srun");
  add("--output", w.output, "FILE", "Write the table here (tuned.toml)");
  add("--json", w.json, "FILE", "Write everything that was measured here");
  app.footer(tune_examples);
  return ranks;
}

bench::tuning_request read(const tune_options& w) {
  bench::tuning_request r;
  words list = w.collectives;
  if (list.empty())
    list = {"broadcast", "reduce", "allreduce", "reduce_scatter_block",
            "allgather", "gather", "scatter",   "alltoall"};
  r.collectives = read_collectives(list, "");
  for (const kind k : r.collectives)
    if (k == kind::barrier || k == kind::sendrecv || bench::row_of(k).with_counts)
      wrong_usage(std::string(name(k)) +
                  " has no one size to choose by. Choose among the other collectives.");
  r.sizes = read_option("--sizes", [&] { return base::parse_byte_sequence(w.sizes); });
  std::sort(r.sizes.begin(), r.sizes.end());
  r.sizes.erase(std::unique(r.sizes.begin(), r.sizes.end()), r.sizes.end());
  if (r.sizes.front() < 4) wrong_usage("--sizes: elements have 4 bytes.");
  r.symmetric = !w.no_symmetric;
  r.seconds = w.seconds;
  return r;
}

json as_json(const bench::tried& t) {
  json j{{"backend", t.backend}};
  if (!t.recipe.empty()) j["recipe"] = t.recipe;
  if (t.slice) j["slice"] = t.slice;
  if (!t.protocol.empty()) j["protocol"] = t.protocol;
  if (t.predicted > 0) j["predicted_us"] = t.predicted * 1e6;
  j["us"] = t.seconds * 1e6;
  j["samples"] = t.samples;
  return j;
}

json as_json(const bench::threshold_report& t, const bench::alternatives& between) {
  return {{"bytes", t.bytes},
          {"below", t.one_below ? between.one : between.others},
          {"mean", t.mean},
          {"worst", t.worst},
          {"worst_at", t.worst_at}};
}

json as_json(const bench::tuning_result& r) {
  json points = json::array();
  for (const auto& p : r.points) {
    json all = json::array();
    for (const auto& t : p.all) all.push_back(as_json(t));
    points.push_back({{"collective", name(p.what)},
                      {"memory", tune::name(p.memory)},
                      {"form", tune::name(p.form)},
                      {"bytes", p.bytes},
                      {"tried", all}});
  }
  const auto& m = r.table.machine;
  return {{"machine",
           {{"name", m.name},
            {"processor", m.processor},
            {"cores", m.cores},
            {"mpi", m.mpi},
            {"device", m.device}}},
          {"ranks", r.ranks},
          {"nodes", r.nodes},
          {"seconds", r.took},
          {"points", points},
          {"threshold_64Ki", as_json(r.fixed_64k, r.between)},
          {"best_threshold", as_json(r.best, r.between)}};
}

// What an earlier table says of other things than those that were measured now.
tune::table merged(const tune::table& old, const bench::tuning_result& r) {
  tune::table all = r.table;
  if (all.machine.device.empty()) all.machine.device = old.machine.device;
  const auto replaced = [&](const tune::table_row& row) {
    const auto same = [&](const tune::table_row& now) {
      return now.what == row.what && now.memory == row.memory && now.ranks == row.ranks &&
             now.nodes == row.nodes;
    };
    return std::any_of(r.table.rows.begin(), r.table.rows.end(), same);
  };
  for (const auto& row : old.rows)
    if (!replaced(row)) all.rows.push_back(row);
  return all;
}

std::string backend_instance(const bench::tried& t) {
  if (!t.protocol.empty()) return t.backend + ": " + t.protocol;
  if (t.recipe.empty()) return t.backend;
  return t.backend + ": " + t.recipe + ", " + base::print_bytes(t.slice);
}

void print(const bench::tuning_result& r) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& p : r.points) {
    const auto& best = p.all.front();
    const bool on_device = p.memory == tune::memory_kind::device;
    const auto alternative = std::find_if(p.all.begin(), p.all.end(), [&](const auto& t) {
      return on_device ? t.backend != r.between.one : t.backend == r.between.one;
    });
    rows.push_back({name(p.what), tune::name(p.memory), tune::name(p.form),
                    base::print_bytes(p.bytes), number_text(best.seconds * 1e6),
                    alternative == p.all.end() ? "-" : number_text(alternative->seconds * 1e6),
                    backend_instance(best)});
  }
  std::fputs(table({"collective", "memory", "form", "bytes", "us",
                    r.between.memory == tune::memory_kind::device ? "library us" : "MPI us",
                    "executed by "},
                   rows)
                 .c_str(),
             stdout);
}

void print(const char* what, const bench::threshold_report& t, const bench::alternatives& between) {
  std::printf("%s %s (%s below): %.2f times the table's times on average, %.2f at worst%s%s\n",
              what, base::print_bytes(t.bytes).c_str(),
              (t.one_below ? between.one : between.others).c_str(), t.mean, t.worst,
              t.worst_at.empty() ? "" : " at ", t.worst_at.c_str());
}

void write(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) throw exit_error(exit_code::failure, "cannot write " + file + ". Is the disk full?");
}

int finish(const tune_options& w, const bench::tuning_result& r, const tune::table& old) {
  print(r);
  std::printf("\n%s, if one size decided for all collectives between %s and %s:\n",
              r.between.memory == tune::memory_kind::device ? "Memory of the device"
                                                            : "Blocking calls on system memory",
              r.between.one.c_str(), r.between.others.c_str());
  print("the threshold", r.fixed_64k, r.between);
  print("the best threshold", r.best, r.between);
  if (!w.json.empty()) write(w.json, as_json(r).dump(1) + "\n");
  const tune::table all = merged(old, r);
  write(w.output, tune::to_toml(all));
  std::printf("\n%zu rows for %d ranks in %s, %zu of before; %.1f s\n", r.table.rows.size(),
              r.ranks, w.output.c_str(), all.rows.size() - r.table.rows.size(), r.took);
  std::printf("Use it: SUCL_TUNING_TABLE=%s\n",
              std::filesystem::absolute(w.output).lexically_normal().c_str());
  return exit_code::success;
}

// An earlier table, which must be one of this machine.
tune::table earlier(const std::string& file) {
  if (!std::filesystem::exists(file)) return {};
  tune::table t = tune::load_table(file, "--output");
  const std::string why = tune::foreign(t, tune::this_machine());
  if (!t.measured || !why.empty())
    wrong_usage("--output: " + file + " has rows that do not belong together with new ones: " +
                (t.measured ? why : "they were predicted") + ". Choose another file.");
  return t;
}

int work(const tune_options& w, bench::tuning_request wanted, const std::string& flavour) {
  try {
    const tune::table old = earlier(w.output);
    const progress shown("sucl tune");
    const bool terminal = isatty(STDERR_FILENO) != 0;
    int printed = -1;
    wanted.progress = [&](double part, const std::string& what) {
      const int percent = static_cast<int>(part * 100);
      if (terminal) return shown.at(std::to_string(percent) + "%, " + what);
      if (percent / 10 == printed) return;
      printed = percent / 10;
      std::fprintf(stderr, "sucl tune: %d%% of the time, %s\n", percent, what.c_str());
    };
    const bench::tuning_result r = w.device == "gpu" ? bench::run_device_tuning(wanted, flavour)
                                                     : bench::run_tuning(wanted, flavour);
    if (r.rank != 0) return exit_code::success;
    shown.at("");
    return finish(w, r, old);
  } catch (const std::exception& e) {
    // Without the usual end of MPI, so that the launcher ends the other ranks.
    std::fprintf(stderr, "%s\n", e.what());
    std::fflush(nullptr);
    std::_Exit(exit_code::failure);
  }
}

// Predictions decide what is tried first; without a description everything is tried in turn.
void describe_machine() {
  if (std::filesystem::exists(sim::this_machine_file())) return;
  try {
    std::fputs("sucl tune: measuring this machine for predictions\n", stderr);
    sim::write_this_machine(sim::measure_this_machine());
  } catch (const error& e) {
    std::fprintf(stderr, "sucl tune: goes on without predictions: %s\n", e.message().c_str());
  }
}

}  // namespace

int tune_command(const words& arguments) {
  tune_options w;
  CLI::App app{"Benchmarks the backends and plans here, and writes a tuning table.", "sucl tune"};
  define(app, w);
  if (!parse(app, arguments)) return exit_code::success;
  const bench::tuning_request wanted = read(w);
  check_file("--output", w.output);
  check_file("--json", w.json);
  if (const auto flavour = job_flavour()) return work(w, wanted, *flavour);
  earlier(w.output);
  if (w.device == "cpu") describe_machine();
  const environment env = load_environment();
  job what;
  what.by = choose_launcher(env, w.launcher);
  if (what.by == launcher::mpi) what.flavour = &choose_flavour(env, w.mpi);
  what.ranks = w.ranks;
  what.program = {own_path(), "tune"};
  what.program.insert(what.program.end(), arguments.begin(), arguments.end());
  what.input = "none";
  launch(env, what);
}

}  // namespace sucl::tools
