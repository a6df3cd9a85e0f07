// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "launcher/environment.hpp"
#include "launcher/launch.hpp"
#include "measure/plot.hpp"
#include "measure/reading.hpp"

#include "bench/operations/problem.hpp"
#include "bench/session.hpp"

#include "base/text.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <utility>

namespace sucl::tools {
namespace {

constexpr const char* bench_examples =
    "Starts its own ranks, or measures with those it is run in (mpiexec, srun, sucl run).\n"
    "BYTES are those of one rank's message; for gathers, scatters, alltoalls and reduce_scatters\n"
    "of one rank's block. 'mpi' is raw MPI on the same memory; 'host-accessor' is raw MPI on the\n"
    "pointer of a sycl::host_accessor. Every result is compared with a reference on every rank.\n\n"
    "Examples:\n"
    "  sucl bench allreduce -n 2\n"
    "  sucl bench allreduce broadcast -n 4 --memory device,buffer --sizes 4:64Mi \\\n"
    "    --json results.json --plot results.svg\n"
    "  sucl bench all -n 3 --sizes 1Ki --types int32,float16 --ops max --iterations 20\n"
    "  mpiexec -n 8 sucl bench alltoall --memory shared --form event --against mpi\n\n"
    "Exit code: 1 if a result is wrong or a file could not be made, 2 for a wrong command line.";

// The options as they are written.
struct bench_options {
  words collectives;
  int ranks = 2;
  std::string memory = "device,buffer";
  std::string form = "blocking,event";
  std::string against = "mpi,host-accessor";
  std::string timing = "call";
  std::string queue = "auto";
  std::string sizes = "4:1Mi";
  std::string types = "fp32";
  std::string ops = "sum";
  int root = 0;
  int iterations = 0;
  int warmup = 0;
  double seconds = 0.3;
  std::string device;
  std::string mpi;
  std::string launcher;
  std::string json;
  std::string plot;
  bool terminal = false;
};

struct handles {
  CLI::Option* ranks;
  CLI::Option* against;
  CLI::Option* iterations;
  CLI::Option* warmup;
};

// Checks whose own description would make the help unreadable.
CLI::Validator between(int low, int high) { return CLI::Range(low, high).description(""); }

handles define(CLI::App& app, bench_options& w) {
  handles h{};
  const auto add = [&app](const char* name, auto& value, const char* value_name, const char* help) {
    return app.add_option(name, value, help)->type_name(value_name);
  };
  app.add_option("COLLECTIVE", w.collectives, "What to measure, or 'all'")->type_name("");
  h.ranks = add("-n,--ranks", w.ranks, "N", "Number of ranks (2)")->check(between(1, 1 << 20));
  add("--memory", w.memory, "LIST",
      "Any of device, shared, host, system, symmetric, registered, window (of NCCL), buffer "
      "(device,buffer)");
  add("--form", w.form, "LIST",
      "Forms of SuCL's calls: blocking, event, persistent (blocking,event)");
  h.against = add("--against", w.against, "LIST",
                  "Compare with mpi, host-accessor, nccl, or none (mpi,host-accessor)");
  add("--timing", w.timing, "LIST",
      "call: until the result is there; stream: back to back, on average; device: the same by the "
      "GPU's clock; issue: until they have returned, on average; replay: 100 calls that are "
      "recorded and replayed, on average (call)");
  add("--queue", w.queue, "KIND", "in-order or out-of-order (in-order with --device gpu)");
  add("--sizes", w.sizes, "LIST", "Bytes: 4:64Mi doubles, 4:64Mi:4 quadruples, 0,8,1Ki (4:1Mi)");
  add("--types", w.types, "LIST", "Element types, as in fp32 or float32 (fp32)");
  add("--ops", w.ops, "LIST", "Reduction operators (sum)");
  add("--root", w.root, "RANK", "Root of rooted collectives (0)")->check(between(0, 1 << 30));
  h.iterations = add("--iterations", w.iterations, "N",
                     "Iterations of each point (by size and --seconds, at most 1000)")
                     ->check(between(1, 1 << 30));
  h.warmup = add("--warmup", w.warmup, "N", "Iterations before (a tenth of --iterations)")
                 ->check(between(0, 1 << 30));
  add("--seconds", w.seconds, "S", "Most time for one point's iterations (0.3)")
      ->check(CLI::Range(1e-6, 1e6).description(""));
  add("--device", w.device, "KINDS",
      "cpu, gpu, or a list, as gpu,cpu: of each rank (a GPU if there is one)");
  add("--mpi", w.mpi, "FLAVOUR", "MPI to start ranks with, as 'sucl info' lists them");
  add("--launcher", w.launcher, "NAME", "Who starts the ranks, as for sucl run: mpi, local, srun");
  add("--json", w.json, "FILE", "Write the results to this file");
  add("--plot", w.plot, "FILE", "Draw the results into this SVG file");
  app.add_flag("--terminal", w.terminal)->group("");  // from the first process to its ranks
  app.footer(bench_examples);
  return h;
}

const aliases type_aliases{{"float", "fp32"},
                           {"float32", "fp32"},
                           {"double", "fp64"},
                           {"float64", "fp64"},
                           {"half", "fp16"},
                           {"float16", "fp16"},
                           {"bfloat16", "bf16"},
                           {"int", "int32"},
                           {"unsigned", "uint32"},
                           {"float8_e4m3fn", "fp8_e4m3"},
                           {"float8_e5m2", "fp8_e5m2"},
                           {"complex64", "complex_fp32"},
                           {"complex128", "complex_fp64"}};

words read_words(const std::string& text, const words& known, const char* option,
                 const char* what) {
  const words list = base::split(text, ',');
  if (list.empty()) wrong_usage(std::string(option) + " is empty.");
  for (const std::string& word : list) check_word(word, known, what);
  return list;
}

bool contains(const words& list, const char* word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::vector<type> all_types() {
  std::vector<type> list;
  for (int t = SUCL_TYPE_INT8; t < SUCL_TYPE_COUNT; ++t) list.push_back(static_cast<type>(t));
  return list;
}

std::vector<op> all_ops() {
  std::vector<op> list;
  for (int o = SUCL_OP_SUM; o < SUCL_OP_COUNT; ++o) list.push_back(static_cast<op>(o));
  return list;
}

std::vector<bench::memory_choice> read_memories(const std::string& text) {
  using bench::memory;
  const std::vector<bench::memory_choice> known{
      {"device", memory::device},       {"shared", memory::shared},
      {"host", memory::host},           {"system", memory::system},
      {"symmetric", memory::symmetric}, {"registered", memory::registered},
      {"window", memory::window},       {"buffer", memory::buffer}};
  words names;
  for (const auto& choice : known) names.push_back(choice.label);
  std::vector<bench::memory_choice> result;
  for (const std::string& word : read_words(text, names, "--memory", "memory"))
    for (const auto& choice : known)
      if (choice.label == word) result.push_back(choice);
  return result;
}

// An operator that none of the types has would silently measure nothing.
void check_reductions(const bench::options& o) {
  if (std::none_of(o.collectives.begin(), o.collectives.end(), [](kind k) { return reduces(k); }))
    return;
  for (const op one : o.ops)
    if (std::none_of(o.types.begin(), o.types.end(), [one](type t) { return defined(one, t); }))
      wrong_usage(std::string("--ops: ") + name(one) + " is not defined for any of the --types.");
}

// While a graph uses a buffer the host cannot look at it, as results are checked.
void leave_out_buffers(bench::options& o) {
  std::erase_if(o.memories,
                [](const bench::memory_choice& m) { return m.where == bench::memory::buffer; });
  if (o.memories.empty()) wrong_usage("--timing replay records calls on USM. Try: --memory device");
}

bench::options read(const bench_options& w, const handles& h) {
  bench::options o;
  o.collectives = read_collectives(w.collectives, "Try: sucl bench allreduce");
  o.memories = read_memories(w.memory);
  const words forms = read_words(w.form, {"blocking", "event", "persistent"}, "--form", "form");
  o.blocking = contains(forms, "blocking");
  o.event = contains(forms, "event");
  o.persistent = contains(forms, "persistent");
  const words others = read_words(w.against, {"mpi", "host-accessor", "nccl", "none"}, "--against",
                                  "implementation");
  o.against_mpi = contains(others, "mpi");
  o.against_host_accessor = contains(others, "host-accessor");
  o.against_nccl = contains(others, "nccl");
  const bool windows =
      std::any_of(o.memories.begin(), o.memories.end(),
                  [](const bench::memory_choice& m) { return m.where == bench::memory::window; });
  if (windows && !o.against_nccl)
    wrong_usage("--memory window is memory of bare NCCL: it needs --against nccl.");
  const words timing =
      read_words(w.timing, {"call", "stream", "device", "issue", "replay"}, "--timing", "timing");
  o.to_completion = contains(timing, "call");
  o.back_to_back = contains(timing, "stream");
  o.on_device = contains(timing, "device");
  o.issuing = contains(timing, "issue");
  o.replayed = contains(timing, "replay");
  if (o.replayed && timing.size() == 1) leave_out_buffers(o);
  check_word(w.queue, {"auto", "in-order", "out-of-order"}, "queue");
  if (!w.device.empty()) o.devices = read_words(w.device, {"cpu", "gpu"}, "--device", "device");
  o.in_order = w.queue == "in-order" || (w.queue == "auto" && contains(o.devices, "gpu"));
  if (o.on_device && !o.in_order)
    wrong_usage("--timing device times one stream: it needs --queue in-order (or --device gpu).");
  o.sizes = read_option("--sizes", [&] { return base::parse_byte_sequence(w.sizes); });
  o.types = read_names(base::split(w.types, ','), all_types(), "element type", type_aliases);
  o.ops = read_names(base::split(w.ops, ','), all_ops(), "reduction operator");
  if (o.types.empty()) wrong_usage("--types is empty.");
  if (o.ops.empty()) wrong_usage("--ops is empty.");
  check_reductions(o);
  o.root = w.root;
  if (h.iterations->count() > 0) o.iterations = w.iterations;
  if (h.warmup->count() > 0) o.warmup = w.warmup;
  o.seconds = w.seconds;
  check_file("--json", w.json);
  check_file("--plot", w.plot);
  // A plot is made from the file with the results.
  o.json = w.json.empty() && !w.plot.empty() ? w.plot + ".json" : w.json;
  o.plot = w.plot;
  o.terminal = w.terminal;
  return o;
}

void print_time(const char* what, const nlohmann::ordered_json& time) {
  if (!time.is_null()) std::printf("  %-36s %8.1f us\n", what, time["median_us"].get<double>());
}

// What rank 0 does with the results; returns the exit code.
int finish(const bench::options& o, const bench::session_result& result, const environment& env) {
  int code = bench::all_valid(result.rows) ? exit_code::success : exit_code::failure;
  if (!o.json.empty()) {
    std::ofstream file(o.json);
    file << bench::as_json(result.header, result.rows).dump(1) << "\n";
    file.close();
    if (!file) code = exit_code::failure;
    if (!file) std::fprintf(stderr, "sucl: cannot write %s. Is the disk full?\n", o.json.c_str());
  }
  std::fputs(bench::as_tables(result.rows).c_str(), stdout);
  std::puts("\nFor comparison:");
  print_time("an empty host task", result.header["empty_host_task"]);
  print_time("an empty host task with an accessor", result.header["empty_host_task_with_accessor"]);
  print_time("making a communicator", result.header["communicator_creation"]);
  print_time("more for the first of a size", result.header["first_of_size"]);
  print_time("a bare exchange of flags", result.header["flag_exchange"]);
  std::printf("  %-36s %8.1f GB/s\n", "all ranks copying memory",
              result.header["memory_gbs"].get<double>());
  std::puts("");
  if (!o.json.empty()) std::printf("results: %s\n", o.json.c_str());
  if (!o.plot.empty()) {
    const std::string problem = draw(env, o.json, o.plot);
    if (problem.empty()) {
      std::printf("plot: %s\n", o.plot.c_str());
    } else {
      std::printf("no plot: %s\n", problem.c_str());
      code = exit_code::failure;
    }
  }
  std::printf("%s\n", bench::validity_summary(result.rows).c_str());
  return code;
}

// The part of a rank.
int work(const bench::options& o, const environment& env, const std::string& flavour,
         std::optional<int> ranks) {
  try {
    const bench::session_result result = bench::run_session(o, flavour);
    const int there = result.header["ranks"].get<int>();
    if (result.rank == 0 && ranks && *ranks != there)
      std::fprintf(stderr, "sucl bench: -n %d is ignored: the job has %d ranks.\n", *ranks, there);
    // The exit code is that of rank 0: another rank's would make the launcher end it too early.
    return result.rank == 0 ? finish(o, result, env) : exit_code::success;
  } catch (const std::exception& e) {
    // Without the usual end of MPI, so that the launcher ends the other ranks.
    std::fprintf(stderr, "%s\n", e.what());
    std::fflush(nullptr);
    std::_Exit(exit_code::failure);
  }
}

// In a job without MPI there is no raw MPI to compare with.
void leave_out_mpi(bench::options& o, const bench_options& w, const handles& h) {
  if (h.against->count() > 0 && (o.against_mpi || o.against_host_accessor))
    wrong_usage("--against " + w.against +
                ": raw MPI is compared with in a job of MPI. Choose nccl or none here, or "
                "--launcher mpi.");
  o.against_mpi = o.against_host_accessor = false;
}

}  // namespace

int bench_command(const words& arguments) {
  bench_options w;
  CLI::App app{
      "Measures collectives in the style of the OSU benchmarks, checks every result and "
      "compares with raw MPI.",
      "sucl bench"};
  const handles h = define(app, w);
  if (!parse(app, arguments)) return exit_code::success;
  bench::options o = read(w, h);
  o.command = shell_quoted(process_arguments());
  const environment env = load_environment();
  job what;
  what.by = choose_launcher(env, w.launcher);
  const std::optional<std::string> flavour = job_flavour();
  if (flavour ? flavour->empty() : what.by != launcher::mpi) leave_out_mpi(o, w, h);
  if (flavour) {
    prepare_sycl(env);
    return work(o, env, *flavour, h.ranks->count() > 0 ? std::optional(w.ranks) : std::nullopt);
  }
  if (o.root >= w.ranks)
    wrong_usage("--root " + std::to_string(o.root) + ", but the " + std::to_string(w.ranks) +
                " ranks are counted from 0. Choose a smaller root or more ranks.");
  if (what.by == launcher::mpi) what.flavour = &choose_flavour(env, w.mpi);
  what.ranks = w.ranks;
  what.program = {own_path(), "bench"};
  what.program.insert(what.program.end(), arguments.begin(), arguments.end());
  if (isatty(STDERR_FILENO)) what.program.emplace_back("--terminal");
  what.input = "none";
  launch(env, what);
}

}  // namespace sucl::tools
