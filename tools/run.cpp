// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "launcher/environment.hpp"
#include "launcher/launch.hpp"

#include "base/text.hpp"
#include "core/control/registry.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace sucl::tools {
namespace {

constexpr const char* run_examples =
    "PROGRAM and its arguments come last; put -- before them, so that its options stay its own.\n\n"
    "Examples:\n"
    "  sucl run -n 4 -- ./solver input.dat\n"
    "  sucl run -n 2 --mpi mpich --timeout 30 -- ./solver   a hang becomes an error\n"
    "  sucl run -n 2 --validate --trace t%r.json -- ./solver\n"
    "  sucl run -n 4 --interpose --summary -- ./solver      an MPI program as it is, collectives "
    "by "
    "SuCL\n"
    "  sucl run -n 4 --launcher local -- ./solver           without any MPI\n"
    "  sucl run -n 2 --print -- ./solver                    show the command, run nothing\n\n"
    "Exit code: that of the rank that failed first, 128 + N if signal N ended it; 0 if none did.\n"
    "2 for a wrong command line, 127 if there is no such program.\n"
    "With --enable-recovery ranks that a signal ended do not count, unless no rank ended with 0.";

// What a watchdog takes beyond its timeout, and a rank to print why it fails.
constexpr std::chrono::seconds beyond_timeout{5};

struct run_options {
  int ranks = 1;
  std::string mpi;
  std::string launcher;
  std::string input;
  std::string timeout;
  std::string trace;
  bool recovers = false;
  bool validate = false;
  std::string config;
  bool print = false;
  bool interpose = false;
  bool summary = false;
};

bool is_program(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// The full path of a program, as a shell would find it. Programs that are built with this one, as
// apps/halo, are also found by their path in the build folder.
std::string find_program(const std::string& name) {
  namespace fs = std::filesystem;
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return fs::absolute(name).string();
    std::error_code ignored;
    const fs::path built = fs::read_symlink("/proc/self/exe", ignored).parent_path() / ".." / name;
    if (!fs::path(name).is_absolute() && is_program(built))
      return built.lexically_normal().string();
    const bool exists = fs::exists(name);
    throw exit_error(exit_code::not_found,
                     exists ? "'" + name +
                                  "' is not an executable file. Make it one (chmod +x), or "
                                  "start its interpreter: sucl run ... -- python3 " +
                                  name
                            : "there is no file '" + name +
                                  "'. Is the program built, and the path "
                                  "relative to the working directory?");
  }
  const char* path = std::getenv("PATH");
  for (const std::string& folder : base::split(path ? path : "", ':'))
    if (is_program(fs::path(folder) / name)) return (fs::path(folder) / name).string();
  if (name == "sucl") return own_path();
  throw exit_error(exit_code::not_found,
                   "there is no program '" + name + "' on PATH. " +
                       (fs::exists(name) ? "For the file here write './" + name + "'."
                                         : "Give its path, as in ./build/" + name + "."));
}

// Everything after the first "--", or from the first word that is neither option nor value on.
words take_program(CLI::App& app, words& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) {
    const words program(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
    return program;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.rfind('-', 0) != 0) {
      const words program(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      arguments.resize(i);
      return program;
    }
    const CLI::Option* option = app.get_option_no_throw(word);
    if (option && option->get_expected_min() > 0) ++i;  // the next word is its value
  }
  return {};
}

void define(CLI::App& app, run_options& o) {
  app.add_option("-n,--ranks", o.ranks, "Number of ranks (default 1)")
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->type_name("N");
  app.add_option("--mpi", o.mpi, "MPI to use, as 'sucl info' lists them")->type_name("FLAVOUR");
  app.add_option("--launcher", o.launcher,
                 "Who starts the ranks: mpi, local (this machine, no MPI), srun (Slurm, no MPI). "
                 "Otherwise mpi, or local if SuCL was built without one")
      ->type_name("NAME");
  app.add_option("--stdin", o.input,
                 "Ranks that read standard input, which is read to its end first: all, 0, or none. "
                 "Otherwise as the launcher does: rank 0, of srun all")
      ->check(CLI::IsMember({"all", "none", "0"}).description(""))
      ->type_name("RANKS");
  app.add_option("--timeout", o.timeout,
                 "Operations that take longer (30, 500ms, 2min) become errors on every rank, and "
                 "ranks outlive one that dies")
      ->type_name("TIME");
  app.add_flag(
      "--enable-recovery", o.recovers,
      "With --launcher local: ranks outlive one that a signal ends, and the job has failed "
      "only if one of them fails");
  app.add_option("--trace", o.trace, "Write a timeline of all operations; %r is the rank")
      ->type_name("FILE");
  app.add_flag("--validate", o.validate, "Compare the arguments of every operation across ranks");
  app.add_option("--config", o.config, "Configuration file of SuCL")->type_name("FILE");
  app.add_flag(
      "--interpose", o.interpose,
      "Execute the collectives of an MPI program, which needs no change, by SuCL where that "
      "is faster");
  app.add_flag("--summary", o.summary, "With --interpose: print at the end what that has changed");
  app.add_flag("--print", o.print, "Print the environment and the command instead of running");
  app.add_option("PROGRAM", "What to run, and its arguments");  // for the help only
  app.footer(run_examples);
}

job make_job(const run_options& o, const environment& env) {
  job result;
  result.by = choose_launcher(env, o.launcher);
  if (result.by == launcher::mpi) result.flavour = &choose_flavour(env, o.mpi);
  if (!result.flavour && !o.mpi.empty())
    wrong_usage("--mpi goes with --launcher mpi: the others start ranks without MPI.");
  if (!result.flavour && o.interpose)
    wrong_usage("--interpose is for programs of MPI: it goes with --launcher mpi.");
  if (o.recovers && result.by != launcher::local)
    wrong_usage("--enable-recovery goes with --launcher local: MPI ends a job that loses a rank.");
  result.ranks = o.ranks;
  result.input = o.input;
  const auto set = [&result](const char* name, const std::string& value) {
    result.variables.emplace_back(name, value);
  };
  if (!o.timeout.empty()) {
    const auto time = read_option("--timeout", [&] { return base::parse_duration(o.timeout); });
    set("SUCL_TIMEOUT", base::print_duration(time));
    result.survive = time.count() > 0;
    result.time_to_report = time + beyond_timeout;
  }
  result.recovers = o.recovers;
  result.survive = result.survive || o.recovers;
  if (!o.trace.empty()) set("SUCL_TRACE", std::filesystem::absolute(o.trace).string());
  if (o.validate) set("SUCL_VALIDATE", "true");
  if (o.summary) set("SUCL_INTERPOSE_SUMMARY", "true");
  if (!o.config.empty()) {
    if (!std::filesystem::exists(o.config))
      wrong_usage("--config: there is no file '" + o.config + "'.");
    set("SUCL_CONFIG", std::filesystem::absolute(o.config).string());
  }
  return result;
}

// The launcher itself must not be interposed, so the ranks are started through env.
void interpose(const job& what, words& program) {
  const std::string file = "libsucl_pmpi_" + what.flavour->name + ".so";
  std::string path = core::find_module(file, core::module_directories());
  const bool built = std::filesystem::exists(path);
  // The one for any library sees whether the program was built for the standard ABI. Open MPI has
  // none, and lacks functions whose names that one defines, which programs take for there.
  const std::string any = core::find_module("libsucl_pmpi.so", core::module_directories());
  if (what.flavour->family != "openmpi" && std::filesystem::exists(any)) path = any;
  if (!built)
    throw exit_error(exit_code::failure, "there is no interposer for " + what.flavour->name + " (" +
                                             file +
                                             "). Run `make build`, with that MPI if it was left "
                                             "out.");
  const char* others = std::getenv("LD_PRELOAD");
  program.insert(program.begin(), {find_program("env"), "LD_PRELOAD=" + path + (others ? ":" : "") +
                                                            (others ? others : "")});
}

}  // namespace

int run_command(const words& arguments) {
  run_options o;
  CLI::App app{"Starts a program as N ranks, with the environment that SYCL and MPI need.",
               "sucl run"};
  define(app, o);
  words own = arguments;
  words program = take_program(app, own);
  if (!parse(app, own)) return exit_code::success;
  if (program.empty()) wrong_usage("no program to run. See sucl run --help.");
  const environment env = load_environment();
  job what = make_job(o, env);
  program.front() = find_program(program.front());
  if (o.summary && !o.interpose) wrong_usage("--summary goes with --interpose.");
  if (o.interpose) interpose(what, program);
  what.program = program;
  if (o.print) {
    if (what.by != launcher::srun && (o.input == "all" || o.input == "0"))
      wrong_usage("`sucl run` does what --stdin " + o.input + " says, so --print cannot show it.");
    std::fputs(describe(env, what).c_str(), stdout);
    return exit_code::success;
  }
  launch(env, what);
}

}  // namespace sucl::tools
