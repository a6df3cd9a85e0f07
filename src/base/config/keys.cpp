// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/keys.hpp"

#include "base/bounds.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <array>

namespace sucl::base {
namespace {

using words = std::vector<std::string>;

// How values of one C++ type are written.
template <class T>
struct form {
  const char* name;
  const char* example;
  unsigned accepted;
  T (*parse)(const words&);
  std::string (*print)(const T&);
};

template <auto Parse>
auto only(const words& given) {
  return Parse(given.empty() ? std::string_view{} : std::string_view(given.front()));
}

std::string same(std::string_view text) { return std::string(text); }

constexpr std::string_view unset = "unset";

std::optional<std::int64_t> parse_threshold(std::string_view text) {
  if (text.empty() || text == unset) return std::nullopt;
  return parse_signed_bytes(text);
}

const form<std::string> text_form{"text", "\"...\"", accept_string, only<same>,
                                  [](const std::string& s) { return s; }};
const form<words> list_form{"word or list", "[\"one\", \"two\"]", accept_string | accept_array,
                            [](const words& given) { return given; },
                            [](const words& list) { return join(list, ", "); }};
const form<std::uint64_t> size_form{"size", "\"64Ki\"", accept_string | accept_integer,
                                    only<parse_bytes>,
                                    [](const std::uint64_t& bytes) { return print_bytes(bytes); }};
const form<std::optional<std::int64_t>> threshold_form{
    "size, 0 or negative", "\"16Ki\"", accept_string | accept_integer, only<parse_threshold>,
    [](const std::optional<std::int64_t>& value) {
      return value ? print_signed_bytes(*value) : std::string(unset);
    }};
const form<std::uint64_t> number_form{
    "whole number", "3", accept_integer, only<parse_number>,
    [](const std::uint64_t& number) { return std::to_string(number); }};
// Sizes of nodes; none for a single 0.
std::vector<std::uint64_t> parse_sizes(const words& given) {
  std::vector<std::uint64_t> sizes;
  for (const auto& text : given) sizes.push_back(parse_number(text));
  if (sizes == std::vector<std::uint64_t>{0}) return {};
  if (std::find(sizes.begin(), sizes.end(), 0u) != sizes.end())
    fail(errc::invalid_argument, "a node of 0 ranks", "Write sizes greater than 0, or 0 alone.");
  for (const std::uint64_t n : sizes)
    check_bounds("", "", n, bounds<std::uint64_t>{1, 0x7fffffff}, errc::invalid_argument);
  return sizes;
}

std::string print_sizes(const std::vector<std::uint64_t>& sizes) {
  words list;
  for (const std::uint64_t n : sizes) list.push_back(std::to_string(n));
  return list.empty() ? "0" : join(list, ", ");
}

const form<std::vector<std::uint64_t>> sizes_form{
    "whole number or list", "[3, 3, 1]", accept_integer | accept_array, parse_sizes, print_sizes};
const form<range> range_form{"range", "\"2..8\"", accept_string | accept_integer, only<parse_range>,
                             print_range};
const form<range> size_range_form{"range of sizes", "\"4Ki..64Ki\"", accept_string | accept_integer,
                                  only<parse_byte_range>, print_byte_range};
// Short enough to be added to any time there is.
std::chrono::nanoseconds parse_timeout(const words& given) {
  constexpr std::chrono::nanoseconds most = std::chrono::hours(24 * 366);
  const std::chrono::nanoseconds time = only<parse_duration>(given);
  if (time > most)
    fail(errc::invalid_argument, "the time '" + given.front() + "' is too long",
         "Write at most a year, 8784h, or 0 for none.");
  return time;
}

const form<std::chrono::nanoseconds> time_form{
    "time", "\"30s\"", accept_string | accept_integer | accept_float, parse_timeout,
    [](const std::chrono::nanoseconds& time) { return print_duration(time); }};
const form<bool> boolean_form{"true or false", "true", accept_boolean, only<parse_boolean>,
                              [](const bool& yes) { return std::string(yes ? "true" : "false"); }};

words backend_names(const config& c) {
  words names;
  for (const auto& b : c.backends) names.push_back(b.name);
  return names;
}

words platform_names(const config& c) {
  words names{"*", "mixed"};
  for (const auto& p : c.platforms) names.push_back(p.name);
  return names;
}

words kind_names(const config&) {
  words names{"*"};
  for (int k = 0; k < SUCL_KIND_COUNT; ++k) names.emplace_back(sucl::name(static_cast<kind>(k)));
  return names;
}

words level_names(const config&) {
  words names;
  for (int level = 0; level <= static_cast<int>(log_level::debug); ++level)
    names.emplace_back(name(static_cast<log_level>(level)));
  return names;
}

const vocabulary backends{"backend", backend_names,
                          "A backend of your own needs its table [backends.NAME]."};
const vocabulary platforms{"platform", platform_names,
                           "A platform of your own needs its line in [platforms]."};
const vocabulary collectives{"collective", kind_names, ""};
const vocabulary memories{
    "memory", [](const config&) { return words{"*", "system", "host", "shared", "device"}; }, ""};
const vocabulary flavours{
    "MPI flavour", [](const config&) { return words{"auto", "openmpi", "mpich", "impi", "abi"}; },
    ""};
const vocabulary planes{"control plane", [](const config&) { return words{"auto", "mpi", "tcp"}; },
                        ""};
const vocabulary device_memory_modes{
    "way to treat device memory", [](const config&) { return words{"probe", "direct", "stage"}; },
    ""};
const vocabulary levels{"log level", level_names, ""};
const vocabulary reproducible{"level of determinism",
                              [](const config&) { return words{"ranks", "run", "strict"}; }, ""};

// What a row says about its key, apart from where its value lives.
struct about {
  const char* name;
  const char* fallback;
  const char* environment;
  const char* help;
  bool shared = false;
  const vocabulary* known = nullptr;
};

template <class T, class Field>
key_row row(const about& a, const form<T>& f, Field field) {
  const auto set = [field, parse = f.parse](const key_target& t, const words& given) {
    field(t) = parse(given);
  };
  const auto get = [field, print = f.print](const key_target& t) { return print(field(t)); };
  return {a.name,     f.name,  f.example, a.fallback, a.environment, a.help, a.shared,
          f.accepted, a.known, set,       get};
}

// The same for a number within bounds.
template <class Field>
key_row bounded_row(const about& a, const form<std::uint64_t>& f, bounds<std::uint64_t> wanted,
                    Field field) {
  key_row result = row(a, f, field);
  result.set = [field, wanted, parse = f.parse](const key_target& t, const words& given) {
    field(t) = parse(given);
    check_bounds("", "", field(t), wanted, errc::invalid_argument);
  };
  return result;
}

key_row group(const char* name, const char* environment, const char* help) {
  return {name, "table", "", "", environment, help, true, accept_nothing, nullptr, {}, {}};
}

constexpr bool shared = true;

// Of a polling time: up to a minute.
constexpr bounds<std::uint64_t> microseconds{0, 60000000};

void add_selection(std::vector<key_row>& t) {
  t.push_back(row({"threshold", "", "SUCL_THRESHOLD",
                   "Messages below this size go through MPI, the others through the backends of "
                   "their platform. 0: never MPI where a platform backend can do it; negative: "
                   "always MPI; unset: rules and platforms decide alone.",
                   shared},
                  threshold_form, [](auto& k) -> auto& { return k.all->threshold; }));
  t.push_back(
      row({"default_backend", "mpi", "SUCL_DEFAULT_BACKEND",
           "Executes what no rule and no backend of the platform executes.", shared, &backends},
          text_form, [](auto& k) -> auto& { return k.all->default_backend; }));
  t.push_back(row({"determinism", "ranks", "SUCL_DETERMINISM",
                   "Whose results of a reduction have the same bits: ranks (all ranks of an "
                   "operation), run (also those of another run) or strict (also those of any "
                   "backend, placement, memory and size of slices: one fixed order).",
                   shared, &reproducible},
                  text_form, [](auto& k) -> auto& { return k.all->determinism; }));
  t.push_back(row({"mpi.flavour", "auto", "SUCL_MPI_FLAVOUR",
                   "The MPI library to use: auto (the one that is loaded or that started the "
                   "process), openmpi, mpich, impi, or abi: any with the standard ABI of MPI 5.",
                   false, &flavours},
                  text_form, [](auto& k) -> auto& { return k.all->mpi.flavour; }));
  t.push_back(row({"mpi.module", "", "SUCL_MPI_MODULE",
                   "Path of an MPI module to load instead of the one for the flavour."},
                  text_form, [](auto& k) -> auto& { return k.all->mpi.module; }));
  t.push_back(row({"mpi.device_memory", "probe", "SUCL_DEVICE_MEMORY",
                   "What MPI gets for device memory: probe (queries the library once), direct "
                   "(the pointer as it is) or stage (always a copy in host memory).",
                   shared, &device_memory_modes},
                  text_form, [](auto& k) -> auto& { return k.all->mpi.device_memory; }));
}

void add_staging(std::vector<key_row>& t) {
  t.push_back(
      bounded_row({"staging.chunk", "1Mi", "SUCL_STAGING_CHUNK",
                   "Size of the pieces in which device memory is staged; at most 1Gi.", shared},
                  size_form, {1, 1 << 30}, [](auto& k) -> auto& { return k.all->staging.chunk; }));
  t.push_back(bounded_row({"staging.depth", "3", "SUCL_STAGING_DEPTH",
                           "Pieces that are in flight at once; at most 1024.", shared},
                          number_form, {1, 1024},
                          [](auto& k) -> auto& { return k.all->staging.depth; }));
  t.push_back(bounded_row(
      {"progress.poll_us", "5", "SUCL_POLL_US",
       "Microseconds for which an asynchronous call polls its own operation before it "
       "returns; more for larger messages, at most 100. 0: not at all."},
      number_form, microseconds, [](auto& k) -> auto& { return k.all->progress.poll_us; }));
  t.push_back(bounded_row(
      {"progress.spin_us", "50", "SUCL_SPIN_US",
       "Spin time in microseconds before a waiting thread yields its processor between "
       "polls."},
      number_form, microseconds, [](auto& k) -> auto& { return k.all->progress.spin_us; }));
}

void add_diagnosis(std::vector<key_row>& t) {
  t.push_back(row({"layers.validate", "false", "SUCL_VALIDATE",
                   "Compare the arguments of every operation across ranks before it runs.", shared},
                  boolean_form, [](auto& k) -> auto& { return k.all->layers.validate; }));
  t.push_back(row({"layers.trace", "", "SUCL_TRACE",
                   "File for a timeline of all operations; %r stands for the rank. Empty: none."},
                  text_form, [](auto& k) -> auto& { return k.all->layers.trace; }));
  t.push_back(row({"record.folder", "", "SUCL_RECORD_DIR",
                   "Folder where ranks write their last operations when something fails, for "
                   "`sucl diagnose`. Empty: sucl/records in XDG_CACHE_HOME or ~/.cache; none: "
                   "nowhere."},
                  text_form, [](auto& k) -> auto& { return k.all->record.folder; }));
  t.push_back(row(
      {"watchdog.timeout", "0", "SUCL_TIMEOUT",
       "An operation that takes longer becomes an error on every rank. 0: wait forever.", shared},
      time_form, [](auto& k) -> auto& { return k.all->watchdog.timeout; }));
  t.push_back(row({"log.level", "warn", "SUCL_LOG",
                   "Lines to write to standard error: error, warn, info or debug.", false, &levels},
                  text_form, [](auto& k) -> auto& { return k.all->log.level; }));
  t.push_back(row({"tuning.table", "", "SUCL_TUNING_TABLE",
                   "File with a table of choices, as `sucl tune` and `sucl plan search --toml` "
                   "write it. Empty: none."},
                  text_form, [](auto& k) -> auto& { return k.all->tuning.table; }));
  t.push_back(row(
      {"nodes.size", "0", "SUCL_NODE_SIZE",
       "Treat so many consecutive ranks of the job as one node, to try a job of several nodes on "
       "one; a list has the size of each, and the last one repeats. 0: nodes as they are found.",
       shared},
      sizes_form, [](auto& k) -> auto& { return k.all->nodes.size; }));
  t.push_back(row(
      {"islands.of", "", "SUCL_ISLANDS",
       "Name of the island of each rank of the job, to try devices that do not reach each other's "
       "memory on one machine: ranks of a node with different names are on different islands. A "
       "shorter list begins again. Empty: islands as they are found.",
       shared},
      list_form, [](auto& k) -> auto& { return k.all->islands.of; }));
}

void add_control_plane(std::vector<key_row>& t) {
  t.push_back(row({"control_plane", "auto", "SUCL_CONTROL_PLANE",
                   "How the processes of a job find each other: mpi, tcp (without MPI), or auto "
                   "(mpi where the process belongs to a job of MPI).",
                   false, &planes},
                  text_form, [](auto& k) -> auto& { return k.all->control_plane; }));
  t.push_back(row({"tcp.interface", "", "SUCL_TCP_INTERFACE",
                   "Network of the control plane tcp: the name of an interface, or a subnet as "
                   "10.1.0.0/16. Empty: any."},
                  text_form, [](auto& k) -> auto& { return k.all->tcp.interface; }));
  t.push_back(bounded_row({"tcp.port", "0", "SUCL_TCP_PORT",
                           "Port at which rank 0 waits for the others, until all have come. 0: by "
                           "the launcher, as MASTER_PORT + 1."},
                          number_form, {0, 65535},
                          [](auto& k) -> auto& { return k.all->tcp.port; }));
  t.push_back(row({"tcp.timeout", "5min", "SUCL_TCP_TIMEOUT",
                   "For so long a rank waits for the others to come, without MPI."},
                  time_form, [](auto& k) -> auto& { return k.all->tcp.timeout; }));
}

void add_fabric(std::vector<key_row>& t) {
  t.push_back(row({"pmix.library", "", "SUCL_PMIX_LIBRARY",
                   "Path of libpmix.so.2, for jobs without MPI of PMIx launchers. Empty: where the "
                   "dynamic linker finds it, or else in PMIX_PREFIX."},
                  text_form, [](auto& k) -> auto& { return k.all->pmix.library; }));
  t.push_back(row({"fabric.provider", "", "SUCL_FABRIC_PROVIDER",
                   "Provider of libfabric that carries data between nodes without MPI, as tcp, cxi "
                   "or verbs;ofi_rxm. Empty: the best one that libfabric offers.",
                   shared},
                  text_form, [](auto& k) -> auto& { return k.all->fabric.provider; }));
  t.push_back(row({"fabric.library", "", "SUCL_FABRIC_LIBRARY",
                   "Path of libfabric.so.1. Empty: where the dynamic linker finds it, or else that "
                   "of Intel MPI."},
                  text_form, [](auto& k) -> auto& { return k.all->fabric.library; }));
  t.push_back(row({"fabric.interface", "", "SUCL_FABRIC_INTERFACE",
                   "Interface for data between nodes without MPI: its name, as eth0 or cxi0, a "
                   "subnet as 10.1.0.0/16, or loopback. Empty: that of tcp.interface."},
                  text_form, [](auto& k) -> auto& { return k.all->fabric.interface; }));
}

void add_interposer(std::vector<key_row>& t) {
  t.push_back(bounded_row(
      {"interpose.after", "4", "SUCL_INTERPOSE_AFTER",
       "Interposed MPI programs: collectives on a communicator that are left to MPI "
       "before SuCL sets itself up for it.",
       shared},
      number_form, {0, 0x7fffffff}, [](auto& k) -> auto& { return k.all->interpose.after; }));
  t.push_back(
      bounded_row({"interpose.trials", "5", "SUCL_INTERPOSE_TRIALS",
                   "Interposed MPI programs: rounds in which SuCL and MPI take turns, for each "
                   "kind, form and size, after which the faster executes the rest; at most 15. 0: "
                   "no trial.",
                   shared},
                  number_form, {0, 15}, [](auto& k) -> auto& { return k.all->interpose.trials; }));
  t.push_back(row({"interpose.devices", "true", "SUCL_INTERPOSE_DEVICES",
                   "Interposed MPI programs: memory of CUDA's and HIP's devices is recognised. "
                   "false: programs that use devices are left alone.",
                   shared},
                  boolean_form, [](auto& k) -> auto& { return k.all->interpose.devices; }));
  t.push_back(row(
      {"interpose.summary", "false", "SUCL_INTERPOSE_SUMMARY",
       "Interposed MPI programs: print at the end what was served, passed on and saved.", shared},
      boolean_form, [](auto& k) -> auto& { return k.all->interpose.summary; }));
}

void add_platforms_and_backends(std::vector<key_row>& t) {
  t.push_back(
      group("platforms", "SUCL_PLATFORMS", "What each SYCL implementation calls the platforms."));
  t.push_back(row({"platforms.*.dpcpp", "", "", "Names of sycl::backend in DPC++.", shared},
                  list_form, [](auto& k) -> auto& { return k.platform->dpcpp; }));
  t.push_back(
      row({"platforms.*.adaptivecpp", "", "", "Names of sycl::backend in AdaptiveCpp.", shared},
          list_form, [](auto& k) -> auto& { return k.platform->adaptivecpp; }));
  t.push_back(group("backends", "", "The backends that may be loaded; the first ones go first."));
  t.push_back(row({"backends.*.path", "", "SUCL_BACKEND_<NAME>_PATH",
                   "Path of its module. Empty: libsucl_backend_NAME.so beside the core."},
                  text_form, [](auto& k) -> auto& { return k.backend->path; }));
  t.push_back(row({"backends.*.platforms", "*", "SUCL_BACKEND_<NAME>_PLATFORMS",
                   "Platforms it is used on without a rule; * for all.", shared, &platforms},
                  list_form, [](auto& k) -> auto& { return k.backend->platforms; }));
  t.push_back(row({"backends.*.enabled", "true", "SUCL_BACKEND_<NAME>_ENABLED",
                   "Whether it may be used at all.", shared},
                  boolean_form, [](auto& k) -> auto& { return k.backend->enabled; }));
}

void add_rules(std::vector<key_row>& t) {
  t.push_back(group("rules", "SUCL_RULES", "Which backend executes what; the first match wins."));
  t.push_back(row({"rules.*.collective", "*", "", "Kinds of operation.", shared, &collectives},
                  list_form, [](auto& k) -> auto& { return k.selection->collectives; }));
  t.push_back(
      row({"rules.*.platform", "*", "", "Platforms, by canonical name.", shared, &platforms},
          list_form, [](auto& k) -> auto& { return k.selection->platforms; }));
  t.push_back(row({"rules.*.ranks", "*", "", "Ranks of the communicator.", shared}, range_form,
                  [](auto& k) -> auto& { return k.selection->ranks; }));
  t.push_back(row({"rules.*.nodes", "*", "", "Nodes of the communicator.", shared}, range_form,
                  [](auto& k) -> auto& { return k.selection->nodes; }));
  t.push_back(row({"rules.*.bytes", "*", "",
                   "Size of the message. A rule with one never applies where ranks may have "
                   "different sizes, as in allgatherv.",
                   shared},
                  size_range_form, [](auto& k) -> auto& { return k.selection->bytes; }));
  t.push_back(
      row({"rules.*.memory", "*", "", "Memory: system, host, shared or device.", shared, &memories},
          list_form, [](auto& k) -> auto& { return k.selection->memories; }));
  t.push_back(
      row({"rules.*.backend", "", "", "Backends, the best one first. Required.", shared, &backends},
          list_form, [](auto& k) -> auto& { return k.selection->backends; }));
}

std::vector<key_row> build_keys() {
  std::vector<key_row> table;
  add_selection(table);
  add_control_plane(table);
  add_fabric(table);
  add_staging(table);
  add_diagnosis(table);
  add_interposer(table);
  add_platforms_and_backends(table);
  add_rules(table);
  return table;
}

}  // namespace

bool key_row::in_entry() const noexcept {
  return std::string_view(name).find('*') != std::string_view::npos;
}

const std::vector<key_row>& config_keys() {
  static const std::vector<key_row> table = build_keys();
  return table;
}

const key_row* find_key(std::string_view name) {
  for (const auto& r : config_keys())
    if (name == r.name) return &r;
  return nullptr;
}

std::vector<std::string> keys_below(std::string_view prefix) {
  std::vector<std::string> names;
  for (const auto& r : config_keys()) {
    std::string_view rest = r.name;
    if (rest.substr(0, prefix.size()) != prefix) continue;
    rest.remove_prefix(prefix.size());
    const std::string part(rest.substr(0, rest.find('.')));
    if (std::find(names.begin(), names.end(), part) == names.end()) names.push_back(part);
  }
  return names;
}

bool foreign_variable(std::string_view name) {
  // A star at the end stands for any rest. SUCL_MPI is the compiler wrapper of the build.
  constexpr std::array<std::string_view, 21> others{
      "SUCL_CONFIG",      "SUCL_MODULE_PATH", "SUCL_SYCL*",    "SUCL_VENV*",    "SUCL_MPI",
      "SUCL_ACPP*",       "SUCL_ICPX*",       "SUCL_BENCH*",   "SUCL_BUILD*",   "SUCL_TEST*",
      "SUCL_RUN*",        "SUCL_INSTALL*",    "SUCL_CI*",      "SUCL_PYTHON*",  "SUCL_EXAMPLE*",
      "SUCL_ENVIRONMENT", "SUCL_TCP_ID",      "SUCL_TCP_RANK", "SUCL_TCP_SIZE", "SUCL_TCP_ADDRESS",
      "SUCL_TCP_SECRET"};
  return std::any_of(others.begin(), others.end(), [&](std::string_view other) {
    if (other.back() != '*') return name == other;
    other.remove_suffix(1);
    return name.substr(0, other.size()) == other;
  });
}

}  // namespace sucl::base
