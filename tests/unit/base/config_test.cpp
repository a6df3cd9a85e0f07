// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/config.hpp"

#include "base/config/keys.hpp"

#include "config_helpers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace sucl::base {
namespace {

using test::error_of;
using test::loaded;
using test::refused;
using test::working_directory;
using names = std::vector<std::string>;
using namespace std::chrono_literals;

const setting_row& row_of(const config& c, const std::string& key) {
  for (const auto& row : c.rows)
    if (row.key == key) return row;
  throw std::runtime_error("no row " + key);
}

names backend_order(const config& c) {
  names order;
  for (const auto& b : c.backends) order.push_back(b.name);
  return order;
}

TEST(Config, IsCompleteWithoutAnySource) {
  working_directory here;
  const config c = load_config("", {});
  EXPECT_EQ(c.file, "");
  EXPECT_FALSE(c.threshold.has_value());
  EXPECT_EQ(c.default_backend, "mpi");
  EXPECT_EQ(c.mpi.flavour, "auto");
  EXPECT_EQ(c.mpi.module, "");
  EXPECT_EQ(c.mpi.device_memory, "probe");
  EXPECT_EQ(c.staging.chunk, 1u << 20);
  EXPECT_EQ(c.staging.depth, 3u);
  EXPECT_EQ(c.progress.poll_us, 5u);
  EXPECT_EQ(c.progress.spin_us, 50u);
  EXPECT_FALSE(c.layers.validate);
  EXPECT_EQ(c.layers.trace, "");
  EXPECT_EQ(c.watchdog.timeout, 0s);
  EXPECT_EQ(c.log.level, "warn");
  EXPECT_TRUE(c.nodes.size.empty());
  EXPECT_TRUE(c.rules.empty());
  EXPECT_TRUE(c.warnings.empty());
  EXPECT_EQ(backend_order(c), (names{"nccl", "rccl", "mpi", "plan", "messages", "kernels",
                                     "hierarchical", "ipc", "fabric", "mock"}));
  EXPECT_EQ(c.find_backend("mpi")->platforms, names{"*"});
  EXPECT_FALSE(c.find_backend("mock")->enabled);
  EXPECT_EQ(c.find_backend("ucc"), nullptr);
  for (const auto& row : c.rows) EXPECT_EQ(row.origin, "default") << row.key;
}

constexpr const char* every_key = R"(threshold = "16Ki"
default_backend = "nccl"
[mpi]
flavour = "mpich"
module = "/opt/m.so"
device_memory = "stage"
[staging]
chunk = 65536
depth = 2
[progress]
poll_us = 0
spin_us = 7
[layers]
validate = true
trace = "t.%r.json"
[watchdog]
timeout = 1.5
[log]
level = "debug"
[nodes]
size = 4
[platforms]
tpu = { dpcpp = "ext_tpu" }
cuda = { adaptivecpp = ["cuda", "cuda2"] }
[backends.nccl]
path = "/opt/nccl.so"
platforms = ["cuda"]
channels = 8
ratio = 0.25
list = ["a", 1, true]
[backends.mpi]
fast = true
[[rules]]
collective = ["allreduce", "reduce"]
platform = "cuda"
ranks = "2..8"
nodes = 1
bytes = "64Ki.."
memory = ["device", "shared"]
backend = ["nccl", "mpi"]
[[rules]]
backend = "mpi"
)";

TEST(Config, ReadsEveryKeyOfAFile) {
  const config c = loaded(every_key);
  EXPECT_EQ(c.file, "sucl.toml");
  EXPECT_EQ(c.threshold, 16384);
  EXPECT_EQ(c.default_backend, "nccl");
  EXPECT_EQ(c.mpi.flavour, "mpich");
  EXPECT_EQ(c.mpi.module, "/opt/m.so");
  EXPECT_EQ(c.mpi.device_memory, "stage");
  EXPECT_EQ(c.staging.chunk, 65536u);
  EXPECT_EQ(c.staging.depth, 2u);
  EXPECT_EQ(c.progress.poll_us, 0u);
  EXPECT_EQ(c.progress.spin_us, 7u);
  EXPECT_TRUE(c.layers.validate);
  EXPECT_EQ(c.layers.trace, "t.%r.json");
  EXPECT_EQ(c.watchdog.timeout, 1500ms);
  EXPECT_EQ(c.log.level, "debug");
  EXPECT_EQ(c.nodes.size, std::vector<std::uint64_t>{4});
}

TEST(Config, ReadsBackendsAndRulesOfAFile) {
  const config c = loaded(every_key);
  EXPECT_EQ(backend_order(c), (names{"nccl", "mpi", "rccl", "plan", "messages", "kernels",
                                     "hierarchical", "ipc", "fabric", "mock"}));
  const backend_entry& nccl = *c.find_backend("nccl");
  EXPECT_EQ(nccl.path, "/opt/nccl.so");
  EXPECT_EQ(nccl.platforms, names{"cuda"});
  EXPECT_TRUE(nccl.enabled);
  const std::vector<std::pair<std::string, std::string>> settings{
      {"channels", "8"}, {"ratio", "0.25"}, {"list", "a,1,true"}};
  EXPECT_EQ(nccl.settings, settings);
  EXPECT_EQ(c.find_backend("mpi")->platforms, names{"*"});
  ASSERT_EQ(c.rules.size(), 2u);
  EXPECT_EQ(c.rules[0].collectives, (names{"allreduce", "reduce"}));
  EXPECT_EQ(c.rules[0].platforms, names{"cuda"});
  EXPECT_EQ(c.rules[0].ranks, (range{2, 8}));
  EXPECT_EQ(c.rules[0].nodes, (range{1, 1}));
  EXPECT_EQ(c.rules[0].bytes, (range{65536, range{}.high}));
  EXPECT_EQ(c.rules[0].memories, (names{"device", "shared"}));
  EXPECT_EQ(c.rules[0].backends, (names{"nccl", "mpi"}));
  EXPECT_EQ(c.rules[1].collectives, names{"*"});
  EXPECT_TRUE(c.rules[1].bytes.everything());
}

// One for each key.
config config_of_variables() {
  working_directory here;
  return load_config("", {{"SUCL_THRESHOLD", "-1"},
                          {"SUCL_DEFAULT_BACKEND", "mock"},
                          {"SUCL_DETERMINISM", "strict"},
                          {"SUCL_CONTROL_PLANE", "tcp"},
                          {"SUCL_TCP_INTERFACE", "10.1.0.0/16"},
                          {"SUCL_FABRIC_PROVIDER", "tcp"},
                          {"SUCL_FABRIC_LIBRARY", "fabric.so"},
                          {"SUCL_FABRIC_INTERFACE", "eth0"},
                          {"SUCL_TCP_PORT", "4000"},
                          {"SUCL_TCP_TIMEOUT", "20s"},
                          {"SUCL_MPI_FLAVOUR", "impi"},
                          {"SUCL_MPI_MODULE", "m.so"},
                          {"SUCL_DEVICE_MEMORY", "direct"},
                          {"SUCL_STAGING_CHUNK", "4Mi"},
                          {"SUCL_STAGING_DEPTH", "5"},
                          {"SUCL_POLL_US", "1"},
                          {"SUCL_SPIN_US", "2"},
                          {"SUCL_VALIDATE", "1"},
                          {"SUCL_TRACE", "x.json"},
                          {"SUCL_RECORD_DIR", "records"},
                          {"SUCL_TIMEOUT", "250ms"},
                          {"SUCL_LOG", "info"},
                          {"SUCL_TUNING_TABLE", "t.toml"},
                          {"SUCL_PMIX_LIBRARY", "pmix.so"},
                          {"SUCL_NODE_SIZE", "3,3,1"},
                          {"SUCL_ISLANDS", "gpu,gpu,cpu"},
                          {"SUCL_INTERPOSE_AFTER", "9"},
                          {"SUCL_INTERPOSE_TRIALS", "3"},
                          {"SUCL_INTERPOSE_DEVICES", "off"},
                          {"SUCL_INTERPOSE_SUMMARY", "on"},
                          {"SUCL_PLATFORMS", R"({ tpu = { dpcpp = "ext_tpu" } })"},
                          {"SUCL_RULES", R"([{ collective = "allreduce", backend = "nccl" }])"},
                          {"SUCL_BACKEND_NCCL_PATH", "n.so"},
                          {"SUCL_BACKEND_NCCL_PLATFORMS", "cuda, tpu"},
                          {"SUCL_BACKEND_NCCL_FAST_PATHS", "yes"}});
}

TEST(Config, EveryKeyHasAVariable) {
  const config c = config_of_variables();
  EXPECT_EQ(c.threshold, -1);
  EXPECT_EQ(c.default_backend, "mock");
  EXPECT_EQ(c.determinism, "strict");
  EXPECT_EQ(c.control_plane, "tcp");
  EXPECT_EQ(c.tcp.interface, "10.1.0.0/16");
  EXPECT_EQ(c.pmix.library, "pmix.so");
  EXPECT_EQ(c.fabric.provider, "tcp");
  EXPECT_EQ(c.fabric.library, "fabric.so");
  EXPECT_EQ(c.fabric.interface, "eth0");
  EXPECT_EQ(c.tcp.port, 4000u);
  EXPECT_EQ(c.tcp.timeout, 20s);
  EXPECT_EQ(c.mpi.flavour, "impi");
  EXPECT_EQ(c.mpi.module, "m.so");
  EXPECT_EQ(c.mpi.device_memory, "direct");
  EXPECT_EQ(c.staging.chunk, 4u << 20);
  EXPECT_EQ(c.staging.depth, 5u);
  EXPECT_EQ(c.progress.poll_us, 1u);
  EXPECT_EQ(c.tuning.table, "t.toml");
  EXPECT_EQ(c.progress.spin_us, 2u);
  EXPECT_TRUE(c.layers.validate);
  EXPECT_EQ(c.layers.trace, "x.json");
  EXPECT_EQ(c.record.folder, "records");
  EXPECT_EQ(c.watchdog.timeout, 250ms);
  EXPECT_EQ(c.log.level, "info");
  EXPECT_EQ(c.nodes.size, (std::vector<std::uint64_t>{3, 3, 1}));
  EXPECT_EQ(c.islands.of, (names{"gpu", "gpu", "cpu"}));
  EXPECT_EQ(c.interpose.after, 9u);
  EXPECT_EQ(c.interpose.trials, 3u);
  EXPECT_FALSE(c.interpose.devices);
  EXPECT_TRUE(c.interpose.summary);
  EXPECT_EQ(platform_name(c, sycl_implementation::dpcpp, "ext_tpu"), "tpu");
  EXPECT_EQ(c.rules.at(0).backends, names{"nccl"});
  EXPECT_EQ(backend_order(c), (names{"nccl", "rccl", "mpi", "plan", "messages", "kernels",
                                     "hierarchical", "ipc", "fabric", "mock"}));
  EXPECT_EQ(c.find_backend("nccl")->path, "n.so");
  EXPECT_EQ(c.find_backend("nccl")->platforms, (names{"cuda", "tpu"}));
  EXPECT_EQ(c.find_backend("nccl")->settings.at(0).first, "fast_paths");
  EXPECT_TRUE(c.warnings.empty());
  for (const auto& row : config_keys())
    if (!row.group() && !row.in_entry()) {
      EXPECT_EQ(row_of(c, row.name).origin, std::string("environment ") + row.environment);
    }
}

TEST(Config, AVariableGoesBeforeTheFile) {
  const std::string file =
      "threshold = 4\n[backends.nccl]\nplatforms = \"cuda\"\nalgo = \"ring\"\n"
      "[[rules]]\nbackend = \"nccl\"\n";
  const config c = loaded(file, {{"SUCL_THRESHOLD", "8"},
                                 {"SUCL_TIMEOUT", ""},
                                 {"SUCL_BACKEND_NCCL_ALGO", "tree"},
                                 {"SUCL_RULES", "[]"}});
  EXPECT_EQ(c.threshold, 8);
  EXPECT_EQ(row_of(c, "threshold").origin, "environment SUCL_THRESHOLD");
  EXPECT_EQ(row_of(c, "watchdog.timeout").origin, "default");
  EXPECT_EQ(c.find_backend("nccl")->settings.size(), 1u);
  EXPECT_EQ(c.find_backend("nccl")->settings[0].second, "tree");
  EXPECT_EQ(row_of(c, "backends.nccl.algo").origin, "environment SUCL_BACKEND_NCCL_ALGO");
  EXPECT_EQ(row_of(c, "backends.nccl.platforms").origin, "file sucl.toml:3:13");
  EXPECT_TRUE(c.rules.empty());
}

TEST(Config, OnlyTheFirstFileIsRead) {
  working_directory here;
  here.write("sucl.toml", "threshold = 1");
  here.write("named.toml", "threshold = 2");
  here.write("given.toml", "threshold = 3");
  EXPECT_EQ(load_config("", {}).threshold, 1);
  EXPECT_EQ(load_config("", {{"SUCL_CONFIG", "named.toml"}}).threshold, 2);
  EXPECT_EQ(load_config("given.toml", {{"SUCL_CONFIG", "named.toml"}}).threshold, 3);
  EXPECT_EQ(load_config("", {{"SUCL_CONFIG", ""}}).threshold, 1);
  EXPECT_EQ(load_config("", {{"SUCL_CONFIG", "/dev/null"}}).threshold, std::nullopt);
  EXPECT_EQ(row_of(load_config("given.toml", {}), "threshold").origin, "file given.toml:1:13");
}

TEST(Config, AFileThatIsAskedForMustBeThere) {
  working_directory here;
  EXPECT_EQ(
      error_of([] { load_config("absent.toml", {}); }),
      "sucl: cannot read the configuration file 'absent.toml' given by --sucl-config: No such "
      "file or directory [configuration]. Correct the path, or leave it out to use sucl.toml "
      "in the working directory.");
  std::filesystem::create_directory("folder");
  EXPECT_EQ(error_of([] { load_config("", {{"SUCL_CONFIG", "folder"}}); }),
            "sucl: cannot read the configuration file 'folder' given by SUCL_CONFIG: it is a "
            "directory [configuration]. Correct the path, or leave it out to use sucl.toml in the "
            "working directory.");
}

TEST(Config, BuiltInBackendsAreOnWhenTheyAreNamed) {
  EXPECT_FALSE(loaded("").find_backend("mock")->enabled);
  EXPECT_TRUE(loaded("[backends.mock]\nenabled = true").find_backend("mock")->enabled);
  EXPECT_TRUE(loaded("", {{"SUCL_BACKEND_MOCK_ENABLED", "on"}}).find_backend("mock")->enabled);
  const config c = loaded("default_backend = \"mock\"");
  EXPECT_TRUE(c.find_backend("mock")->enabled);
  EXPECT_EQ(row_of(c, "backends.mock.enabled").origin, "named by default_backend");
  EXPECT_TRUE(loaded("[[rules]]\nbackend = [\"mock\"]").find_backend("mock")->enabled);
  EXPECT_FALSE(loaded("[backends.mock]\nenabled = false\n[[rules]]\nbackend = \"mock\"")
                   .find_backend("mock")
                   ->enabled);
}

TEST(Config, PlatformNamesOfTheUserGoFirst) {
  const config plain = loaded("");
  EXPECT_EQ(platform_name(plain, sycl_implementation::dpcpp, "ext_oneapi_cuda"), "cuda");
  EXPECT_EQ(platform_name(plain, sycl_implementation::adaptivecpp, "cuda"), "cuda");
  EXPECT_EQ(platform_name(plain, sycl_implementation::dpcpp, "cuda"), "");
  EXPECT_EQ(platform_name(plain, sycl_implementation::dpcpp, "opencl"), "opencl");
  EXPECT_EQ(platform_name(plain, sycl_implementation::adaptivecpp, "ocl"), "opencl");
  EXPECT_EQ(platform_name(plain, sycl_implementation::adaptivecpp, "omp"), "cpu");
  const config c = loaded(
      "[platforms]\nbig = { dpcpp = \"ext_oneapi_cuda\" }\n"
      "hip = { dpcpp = [\"hip9\"] }\n");
  EXPECT_EQ(platform_name(c, sycl_implementation::dpcpp, "ext_oneapi_cuda"), "big");
  EXPECT_EQ(platform_name(c, sycl_implementation::adaptivecpp, "cuda"), "cuda");
  EXPECT_EQ(platform_name(c, sycl_implementation::dpcpp, "hip9"), "hip");
  EXPECT_EQ(platform_name(c, sycl_implementation::dpcpp, "ext_oneapi_hip"), "");
  EXPECT_EQ(platform_name(c, sycl_implementation::adaptivecpp, "hip"), "hip");
  EXPECT_EQ(row_of(c, "platforms.big").value, "dpcpp = ext_oneapi_cuda");
  EXPECT_EQ(row_of(c, "platforms.big").origin, "file sucl.toml:2:1");
}

TEST(Config, AWrongValueIsAnErrorEvenIfAVariableGoesBeforeIt) {
  EXPECT_EQ(refused("default_backend = \"mip\"", {{"SUCL_DEFAULT_BACKEND", "mpi"}}),
            refused("default_backend = \"mip\""));
  EXPECT_NE(refused("[[rules]]\nbackend = \"mip\"", {{"SUCL_RULES", "[]"}}), "");
  EXPECT_NE(refused("[watchdog]\ntimeout = true", {{"SUCL_TIMEOUT", "3"}}), "");
}

TEST(Config, UnknownVariablesAreWarnedOf) {
  const config c = loaded("", {{"SUCL_TIMEOT", "3"},
                               {"SUCL_ZZZZZZZZZZZZZZZ", "3"},
                               {"SUCL_VENV", "x"},
                               {"SUCL_MPI", "mpicc"},
                               {"SUCL_SYCL", "pip"},
                               {"SUCL_BENCH_SIZES", "4"},
                               {"PATH", "/bin"}});
  EXPECT_EQ(c.warnings,
            (names{"environment SUCL_TIMEOT: no such variable, it is ignored; did you mean "
                   "'SUCL_TIMEOUT'?",
                   "environment SUCL_ZZZZZZZZZZZZZZZ: no such variable; it is ignored"}));
}

TEST(Config, ASettingLikeAKeyIsWarnedOf) {
  const config c = loaded("[backends.nccl]\nplatform = \"cuda\"\nport = 3\n");
  EXPECT_EQ(c.warnings,
            names{"file sucl.toml:2:12: backends.nccl.platform is handed to the backend "
                  "as it is; if 'platforms' was meant, correct it"});
  EXPECT_EQ(c.find_backend("nccl")->settings.size(), 2u);
}

TEST(Config, RowsSayWhereEveryValueCameFrom) {
  const config c = loaded(
      "[staging]\n  chunk = \"64Ki\"\n[[rules]]\nbytes = \"4..8\"\n"
      "collective = \"reduce\"\nbackend = [\"mpi\", \"mock\"]\n");
  const setting_row& chunk = row_of(c, "staging.chunk");
  EXPECT_EQ(chunk.value, "64Ki");
  EXPECT_EQ(chunk.origin, "file sucl.toml:2:11");
  EXPECT_EQ(chunk.environment, "SUCL_STAGING_CHUNK");
  EXPECT_FALSE(chunk.help.empty());
  EXPECT_TRUE(chunk.shared);
  const setting_row& rule_row = row_of(c, "rules[0]");
  EXPECT_EQ(rule_row.value, "collective = reduce; bytes = 4..8; backend = mpi, mock");
  EXPECT_EQ(rule_row.origin, "file sucl.toml:3:1");
  EXPECT_EQ(rule_row.environment, "SUCL_RULES");
  EXPECT_EQ(row_of(c, "threshold").value, "unset");
  EXPECT_EQ(row_of(c, "backends.mpi.platforms").environment, "SUCL_BACKEND_MPI_PLATFORMS");
}

TEST(Config, TheDigestSeesWhatMustBeTheSameEverywhere) {
  const std::string plain = shared_values(loaded(""));
  EXPECT_EQ(plain, shared_values(loaded("threshold = \"\"")));
  EXPECT_EQ(plain, shared_values(loaded("", {{"SUCL_TRACE", "x"},
                                             {"SUCL_LOG", "info"},
                                             {"SUCL_POLL_US", "9"},
                                             {"SUCL_BACKEND_MPI_PATH", "x.so"}})));
  EXPECT_EQ(shared_values(loaded("threshold = 1024")),
            shared_values(loaded("", {{"SUCL_THRESHOLD", "1Ki"}})));
  for (const char* different :
       {"threshold = 4", "threshold = 0", "[staging]\nchunk = 4", "[watchdog]\ntimeout = 3",
        "[nodes]\nsize = 2", "[layers]\nvalidate = true", "[backends.ucc]",
        "[backends.mpi]\nplatforms = \"cuda\"", "[[rules]]\nbackend = \"mpi\"",
        "[platforms]\ncuda = { dpcpp = \"x\" }", "[backends.mock]\n[backends.mpi]",
        "[backends.ipc]\nreads = false", "[backends.kernels]\nstaging = \"1Mi\""})
    EXPECT_NE(shared_values(loaded(different)), plain) << different;
  EXPECT_NE(shared_values(loaded("[[rules]]\nbackend = \"mpi\"")),
            shared_values(loaded("[[rules]]\nbackend = \"mpi\"\nranks = 2")));
}

struct arguments {
  explicit arguments(names given) : texts(std::move(given)) {
    for (auto& t : texts) pointers.push_back(t.data());
    pointers.push_back(nullptr);
    count = static_cast<int>(texts.size());
  }
  names left() const { return {pointers.begin(), pointers.begin() + count}; }
  names texts;
  std::vector<char*> pointers;
  int count;
};

TEST(ConfigArgument, IsTakenOutOfTheArguments) {
  arguments a({"prog", "-n", "--sucl-config", "x.toml", "rest"});
  EXPECT_EQ(take_config_argument(&a.count, a.pointers.data()), "x.toml");
  EXPECT_EQ(a.left(), (names{"prog", "-n", "rest"}));
  EXPECT_EQ(a.pointers[3], nullptr);
  arguments b({"prog", "--sucl-config=y.toml"});
  EXPECT_EQ(take_config_argument(&b.count, b.pointers.data()), "y.toml");
  EXPECT_EQ(b.left(), names{"prog"});
  arguments c({"prog", "--sucl-configure", "--", "--sucl-config", "z"});
  EXPECT_EQ(take_config_argument(&c.count, c.pointers.data()), "");
  EXPECT_EQ(c.left().size(), 5u);
  EXPECT_EQ(take_config_argument(nullptr, nullptr), "");
  for (const names& bad : {names{"prog", "--sucl-config"}, names{"prog", "--sucl-config="}}) {
    arguments d(bad);
    EXPECT_EQ(error_of([&] { take_config_argument(&d.count, d.pointers.data()); }),
              "sucl: --sucl-config has no path [configuration]. Write --sucl-config PATH.");
  }
}

TEST(ConfigArgument, AndTheEnvironmentOfTheProcessAreUsed) {
  working_directory here;
  here.write("given.toml", "threshold = 3\n");
  arguments a({"prog", "--sucl-config", "given.toml"});
  ::setenv("SUCL_NODE_SIZE", "6", 1);
  const config c = load_config(&a.count, a.pointers.data());
  ::unsetenv("SUCL_NODE_SIZE");
  EXPECT_EQ(c.threshold, 3);
  EXPECT_EQ(c.nodes.size, std::vector<std::uint64_t>{6});
}

TEST(ConfigKeys, AreCompleteAndUnique) {
  names seen;
  for (const auto& row : config_keys()) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), row.name), 0) << row.name;
    seen.emplace_back(row.name);
    EXPECT_STRNE(row.help, "") << row.name;
    EXPECT_EQ(std::string(row.help).find('|'), std::string::npos) << row.name;
    if (!row.in_entry() && std::string(row.name) != "backends") {
      EXPECT_EQ(std::string(row.environment).substr(0, 5), "SUCL_") << row.name;
    }
    EXPECT_FALSE(foreign_variable(row.environment)) << row.name;
  }
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// SUCL_TEST_UPDATE=1 in the environment writes the table into the page instead.
TEST(ConfigKeys, AreListedInTheDocumentation) {
  const std::string path = SUCL_TEST_SOURCE_DIR "/docs/reference/configuration.md";
  const std::string page = file_text(path);
  const std::string begin = "<!-- keys: begin -->\n";
  const auto first = page.find(begin);
  const auto last = page.find("<!-- keys: end -->");
  ASSERT_NE(first, std::string::npos) << path;
  ASSERT_NE(last, std::string::npos) << path;
  const auto start = first + begin.size();
  if (std::getenv("SUCL_TEST_UPDATE") != nullptr) {
    std::ofstream(path) << page.substr(0, start) << keys_markdown() << page.substr(last);
    GTEST_SKIP() << "wrote the table of keys into " << path;
  }
  EXPECT_EQ(page.substr(start, last - start), keys_markdown())
      << "run this test with SUCL_TEST_UPDATE=1 to bring " << path << " up to date";
}

TEST(ConfigKeys, AreAllInTheExample) {
  const std::string path = SUCL_TEST_SOURCE_DIR "/examples/sucl.toml";
  const config c = load_config(path, {});
  EXPECT_TRUE(c.warnings.empty());
  const std::string text = file_text(path);
  for (const auto& row : config_keys()) {
    const std::string name = row.name;
    const std::string last = name.substr(name.rfind('.') + 1);
    EXPECT_NE(text.find(last), std::string::npos) << name;
  }
}

// The example shows the defaults where it sets a plain key, so that copying it changes nothing.
TEST(ConfigKeys, HaveTheirDefaultsInTheExample) {
  working_directory here;
  const config example = load_config(SUCL_TEST_SOURCE_DIR "/examples/sucl.toml", {});
  const config plain = load_config("", {});
  for (const auto& row : config_keys())
    if (!row.group() && !row.in_entry() && std::string(row.name) != "threshold") {
      EXPECT_EQ(row_of(example, row.name).value, row_of(plain, row.name).value) << row.name;
    }
}

// Whatever stands in a file, loading it returns or throws sucl::error.
TEST(Config, SurvivesDamagedFiles) {
  working_directory here;
  const std::string good = file_text(SUCL_TEST_SOURCE_DIR "/examples/sucl.toml");
  std::uint64_t state = 1;
  const auto random = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  };
  int refusals = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = good;
    for (int n = 0; n < 4; ++n) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 20);
      else
        text[at] = static_cast<char>(random() % 256);
    }
    here.write("damaged.toml", text);
    errc code = errc::configuration;
    if (!error_of([] { load_config("damaged.toml", {}); }, &code).empty()) ++refusals;
    EXPECT_EQ(code, errc::configuration);
  }
  EXPECT_GT(refusals, 20);
}

}  // namespace
}  // namespace sucl::base
