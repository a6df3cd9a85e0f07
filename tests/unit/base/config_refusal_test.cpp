// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What is wrong in files and variables, and what is said about it.
#include "config_helpers.hpp"

#include <functional>

namespace sucl::base {
namespace {

using test::loaded;
using test::refused;

struct bad_file {
  const char* name;
  const char* text;
  const char* message;
};

void PrintTo(const bad_file& f, std::ostream* out) { *out << f.name; }

struct BadFile : testing::TestWithParam<bad_file> {};

TEST_P(BadFile, IsRefusedWithLocationCauseAndCure) {
  EXPECT_EQ(refused(GetParam().text), GetParam().message);
}

const bad_file bad_files[] = {
    {"Syntax", "threshold = 4\nstaging = [1, 2\nx = 3\n",
     "sucl: sucl.toml:3:1: this is not TOML: Error while parsing array: expected comma or "
     "closing ']', saw 'x' [configuration]. Correct it there or on the line before; strings "
     "need quotes, and every key = value a line of its own."},
    {"BeyondAscii", "# \xc3\xa9 and '\ndefault_backend = \"\xc3\xa9\\\"\"\nthreshold = 1\xc2\xbe\n",
     "sucl: sucl.toml:3:14: this is not TOML: Error while parsing decimal integer: expected digit, "
     "saw '\xc2\xbe' [configuration]. Correct it there or on the line before; strings "
     "need quotes, and every key = value a line of its own."},
    {"BeyondAsciiAfterAQuote", "threshold=2'..\xd3\x9a'\n",
     "sucl: sucl.toml:1:12: this is not TOML: Error while parsing floating-point: expected decimal "
     "digit, saw ''' [configuration]. Correct it there or on the line before; strings need quotes, "
     "and every key = value a line of its own."},
    {"BlankBeyondAscii", "threshold =\xc2\xa0 1\n",
     "sucl: sucl.toml:1:12: this is not TOML: Error while parsing key-value pair: expected space "
     "or "
     "tab, saw '\\u00A0' [configuration]. Correct it there or on the line before; strings "
     "need quotes, and every key = value a line of its own."},
    {"Unquoted", "default_backend = mpi\n",
     "sucl: sucl.toml:1:19: this is not TOML: Error while parsing value: could not determine "
     "value type [configuration]. Correct it there or on the line before; strings need "
     "quotes, and every key = value a line of its own."},
    {"Duplicate", "threshold = 1\nthreshold = 2\n",
     "sucl: sucl.toml:2:13: this is not TOML: Error while parsing key-value pair: cannot "
     "redefine existing integer 'threshold' [configuration]. Correct it there or on the line "
     "before; strings need quotes, and every key = value a line of its own."},
    {"UnknownKey", "# a comment\n\ntreshold = 4\n",
     "sucl: sucl.toml:3:1: unknown key 'treshold' [configuration]. Did you mean 'threshold'?"},
    {"UnknownTable", "[stagging]\nchunk = 1\n",
     "sucl: sucl.toml:1:2: unknown key 'stagging' [configuration]. Did you mean 'staging'?"},
    {"UnknownKeyInTable", "[staging]\ndepth = 2\n  chunck = \"1Mi\"\n",
     "sucl: sucl.toml:3:3: unknown key 'staging.chunck' [configuration]. Did you mean 'chunk'?"},
    {"KeyWithoutItsTable", "poll_us = 3\n",
     "sucl: sucl.toml:1:1: unknown key 'poll_us' [configuration]. It belongs in [progress]."},
    {"KeyInTheWrongTable", "[staging]\npoll_us = 3\n",
     "sucl: sucl.toml:2:1: unknown key 'staging.poll_us' [configuration]. It belongs in "
     "[progress]."},
    {"WrongType", "[staging]\nchunk = true\n",
     "sucl: sucl.toml:2:9: staging.chunk is a boolean [configuration]. Write chunk = \"64Ki\" "
     "(size)."},
    {"TextForANumber", "[staging]\ndepth = \"3\"\n",
     "sucl: sucl.toml:2:9: staging.depth is a string [configuration]. Write depth = 3 (whole "
     "number)."},
    {"NumberForABoolean", "[layers]\nvalidate = 1\n",
     "sucl: sucl.toml:2:12: layers.validate is an integer [configuration]. Write validate = "
     "true (true or false)."},
    {"TableForAValue", "[threshold]\nx = 1\n",
     "sucl: sucl.toml:1:1: threshold is a table [configuration]. Write threshold = \"16Ki\" "
     "(size, 0 or negative)."},
    {"ValueForATable", "staging = 3\n",
     "sucl: sucl.toml:1:11: staging is an integer [configuration]. Write a table."},
    {"ArrayForAValue", "default_backend = [\"mpi\"]\n",
     "sucl: sucl.toml:1:19: default_backend is an array [configuration]. Write "
     "default_backend = \"...\" (text)."},
    {"BadSize", "[staging]\nchunk = \"1Mo\"\n",
     "sucl: sucl.toml:2:9: staging.chunk: '1Mo' is not a size [configuration]. Write a whole "
     "number of bytes, alone or with Ki, Mi, Gi or Ti: 64Ki."},
    {"ZeroChunk", "[staging]\nchunk = 0\n",
     "sucl: sucl.toml:2:9: staging.chunk: 0 is out of range [configuration]. Write a number "
     "from 1 to 1073741824."},
    {"ChunkOfAges", "[staging]\nchunk = \"2Gi\"\n",
     "sucl: sucl.toml:2:9: staging.chunk: 2147483648 is out of range [configuration]. Write a "
     "number from 1 to 1073741824."},
    {"TooDeep", "[staging]\ndepth = 1025\n",
     "sucl: sucl.toml:2:9: staging.depth: 1025 is out of range [configuration]. Write a number "
     "from 1 to 1024."},
    {"PollOfAges", "[progress]\npoll_us = 9223372036854775807\n",
     "sucl: sucl.toml:2:11: progress.poll_us: 9223372036854775807 is out of range "
     "[configuration]. Write a number from 0 to 60000000."},
    {"ManyTrials", "[interpose]\ntrials = 16\n",
     "sucl: sucl.toml:2:10: interpose.trials: 16 is out of range [configuration]. Write a number "
     "from 0 to 15."},
    {"TimeOfAges", "[watchdog]\ntimeout = \"8785h\"\n",
     "sucl: sucl.toml:2:11: watchdog.timeout: the time '8785h' is too long [configuration]. Write "
     "at most a year, 8784h, or 0 for none."},
    {"LargeNode", "[nodes]\nsize = [2, 4294967296]\n",
     "sucl: sucl.toml:2:8: nodes.size: 4294967296 is out of range [configuration]. Write a number "
     "from 1 to 2147483647."},
    {"NegativeDepth", "[staging]\ndepth = -3\n",
     "sucl: sucl.toml:2:9: staging.depth: '-3' is not a whole number [configuration]. Write "
     "digits only; it must not be negative."},
    {"BadTime", "[watchdog]\ntimeout = \"soon\"\n",
     "sucl: sucl.toml:2:11: watchdog.timeout: 'soon' is not a time [configuration]. Write "
     "seconds, or a number with ns, us, ms, s, min or h: 30, 1.5s, 500ms."},
    {"BadChoice", "[mpi]\nflavour = \"openmp\"\n",
     "sucl: sucl.toml:2:11: mpi.flavour: there is no MPI flavour 'openmp' [configuration]. "
     "Did you mean 'openmpi'?"},
    {"BadLevel", "[log]\nlevel = \"verbose\"\n",
     "sucl: sucl.toml:2:9: log.level: there is no log level 'verbose' [configuration]. Known "
     "names: error, warn, info, debug."},
    {"UnknownDefaultBackend", "default_backend = \"mip\"\n",
     "sucl: sucl.toml:1:19: default_backend: there is no backend 'mip' [configuration]. Did "
     "you mean 'mpi'? A backend of your own needs its table [backends.NAME]."},
    {"UnknownBackendInRule", "[[rules]]\nbackend = [\"mpi\", \"acme\"]\n",
     "sucl: sucl.toml:2:19: rules[0].backend: there is no backend 'acme' [configuration]. "
     "Known names: nccl, rccl, mpi, plan, messages, kernels, hierarchical, ipc, fabric, mock. A "
     "backend of "
     "your "
     "own "
     "needs its "
     "table "
     "[backends.NAME]."},
    {"UnknownCollective", "[[rules]]\ncollective = \"alreduce\"\nbackend = \"mpi\"\n",
     "sucl: sucl.toml:2:14: rules[0].collective: there is no collective 'alreduce' "
     "[configuration]. Did you mean 'allreduce'?"},
    {"UnknownPlatform", "[[rules]]\nplatform = \"cudda\"\nbackend = \"mpi\"\n",
     "sucl: sucl.toml:2:12: rules[0].platform: there is no platform 'cudda' [configuration]. "
     "Did you mean 'cuda'? A platform of your own needs its line in [platforms]."},
    {"UnknownPlatformOfBackend", "[backends.nccl]\nplatforms = [\"cuda\", \"rocm\"]\n",
     "sucl: sucl.toml:2:22: backends.nccl.platforms: there is no platform 'rocm' "
     "[configuration]. Known names: *, mixed, cuda, hip, level_zero, opencl, cpu, host. A "
     "platform of your own needs its line in [platforms]."},
    {"UnknownMemory", "[[rules]]\nmemory = \"gpu\"\nbackend = \"mpi\"\n",
     "sucl: sucl.toml:2:10: rules[0].memory: there is no memory 'gpu' [configuration]. Known "
     "names: *, system, host, shared, device."},
    {"UnknownKeyInRule", "[[rules]]\nbackend = \"mpi\"\nsize = \"4..\"\n",
     "sucl: sucl.toml:3:1: unknown key 'rules[0].size' [configuration]. Known names: "
     "collective, platform, ranks, nodes, bytes, memory, backend."},
    {"UnknownImplementation", "[platforms]\ncuda = { dpc = \"x\" }\n",
     "sucl: sucl.toml:2:10: unknown key 'platforms.cuda.dpc' [configuration]. Did you mean "
     "'dpcpp'?"},
    {"RuleWithoutBackend", "[[rules]]\nbackend = \"mpi\"\n[[rules]]\ncollective = \"reduce\"\n",
     "sucl: sucl.toml:3:1: rules[1] names no backend [configuration]. Add backend = \"NAME\" "
     "to it."},
    {"EmptyRange", "[[rules]]\nbytes = \"64Ki..4Ki\"\nbackend = \"mpi\"\n",
     "sucl: sucl.toml:2:9: rules[0].bytes: the range '64Ki..4Ki' is empty [configuration]. "
     "Write the smaller end first."},
    {"RulesAsATable", "[rules]\nbackend = \"mpi\"\n",
     "sucl: sucl.toml:1:1: rules is a table [configuration]. Write each rule as a table "
     "[[rules]]."},
    {"NumberInAList", "[[rules]]\nbackend = [\"mpi\", [1]]\n",
     "sucl: sucl.toml:2:19: rules[0].backend is an array [configuration]. Write backend = "
     "[\"one\", \"two\"] (word or list)."},
    {"BackendName", "[backends.\"My CCL\"]\npath = \"x\"\n",
     "sucl: sucl.toml:1:11: 'My CCL' cannot be a name [configuration]. Use small letters, "
     "digits, '_' and '-' only."},
    {"BackendAsAValue", "[backends]\nnccl = \"x.so\"\n",
     "sucl: sucl.toml:2:8: backends.nccl is a string [configuration]. Write a table."},
    {"TableAsASetting", "[backends.mpi.deep]\nx = 1\n",
     "sucl: sucl.toml:1:1: backends.mpi.deep is a table [configuration]. Write a plain value "
     "or a list of them for the backend."},
    {"DateAsASetting", "[backends.mpi]\nwhen = 2020-01-01\n",
     "sucl: sucl.toml:2:8: backends.mpi.when is a date [configuration]. Write a plain value "
     "or a list of them for the backend."},
    {"DisabledDefault", "[backends.mpi]\nenabled = false\n",
     "sucl: sucl.toml:2:11: backends.mpi.enabled: the default backend cannot be disabled "
     "[configuration]. Enable it, or set default_backend to another one."},
    {"DisabledUnknown", "[backends.ipx]\nenabled = false\n",
     "sucl: sucl.toml:2:11: there is no backend 'ipx' to disable [configuration]. Did you mean "
     "'ipc'?"},
    {"PlatformTwice", "[platforms]\na = { dpcpp = \"x\" }\nb = { dpcpp = \"x\" }\n",
     "sucl: sucl.toml:3:1: platforms.b and platforms.a both list 'x' [configuration]. A SYCL "
     "backend belongs to one platform: remove it from one of them."},
};

INSTANTIATE_TEST_SUITE_P(Golden, BadFile, testing::ValuesIn(bad_files),
                         [](const auto& info) { return std::string(info.param.name); });

std::string repeated(std::size_t times, const std::function<std::string(std::size_t)>& text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text(i);
  return all;
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

// What a file may hold is bounded, so that every file is read in a moment or refused.
TEST(ManyEntries, AreRefused) {
  const auto rules = [](std::size_t n) {
    return repeated(n, [](std::size_t) { return "[[rules]]\nbackend = \"mpi\"\n"; });
  };
  EXPECT_EQ(loaded(rules(10000)).rules.size(), 10000u);
  EXPECT_EQ(refused(rules(10001)),
            "sucl: sucl.toml:1:1: there are 10001 rules, more than the 10000 that are read "
            "[configuration]. Write fewer; those that nothing reaches can go.");
  const auto backends = repeated(
      257, [](std::size_t i) { return "[backends.b" + std::to_string(i) + "]\npath = \"x\"\n"; });
  EXPECT_PRED2(says, refused(backends), "there are 257 backends, more than the 256");
  const auto platforms = repeated(257, [](std::size_t i) {
    return "[platforms.p" + std::to_string(i) + "]\ndpcpp = [\"d" + std::to_string(i) + "\"]\n";
  });
  EXPECT_PRED2(says, refused(platforms), "there are 257 platforms, more than the 256");
  const auto settings = repeated(1001, [](std::size_t i) {
    return "key" + std::to_string(i) + " = " + std::to_string(i) + "\n";
  });
  EXPECT_PRED2(says, refused("[backends.mpi]\n" + settings),
               "there are 1001 settings of a backend, more than the 1000");
}

TEST(LongFile, IsRefused) {
  const std::string most(std::size_t{4} << 20, '#');
  EXPECT_NO_THROW(loaded(most));
  EXPECT_PRED2(says, refused(most + "#"), "it has 4194305 bytes, more than the 4Mi");
}

struct bad_variable {
  const char* name;
  const char* value;
  const char* message;
};

void PrintTo(const bad_variable& v, std::ostream* out) { *out << v.name; }

struct BadVariable : testing::TestWithParam<bad_variable> {};

TEST_P(BadVariable, IsRefusedWithNameCauseAndCure) {
  EXPECT_EQ(refused("", {{GetParam().name, GetParam().value}}), GetParam().message);
}

const bad_variable bad_variables[] = {
    {"SUCL_TIMEOUT", "soon",
     "sucl: environment SUCL_TIMEOUT: watchdog.timeout: 'soon' is not a time [configuration]. "
     "Write seconds, or a number with ns, us, ms, s, min or h: 30, 1.5s, 500ms."},
    {"SUCL_VALIDATE", "maybe",
     "sucl: environment SUCL_VALIDATE: layers.validate: 'maybe' is not true or false "
     "[configuration]. Write true or false; 1, on and yes, and 0, off and no are the same."},
    {"SUCL_MPI_FLAVOUR", "mpch",
     "sucl: environment SUCL_MPI_FLAVOUR: mpi.flavour: there is no MPI flavour 'mpch' "
     "[configuration]. Did you mean 'mpich'?"},
    {"SUCL_LOG", "2",
     "sucl: environment SUCL_LOG: log.level: there is no log level '2' [configuration]. Known "
     "names: error, warn, info, debug."},
    {"SUCL_BACKEND_MPY_TUNED", "1",
     "sucl: environment SUCL_BACKEND_MPY_TUNED: there is no backend 'mpy' [configuration]. "
     "Did you mean 'mpi'? Or give it a module with SUCL_BACKEND_<NAME>_PATH."},
    {"SUCL_BACKEND_MPI_ENABLED", "perhaps",
     "sucl: environment SUCL_BACKEND_MPI_ENABLED: backends.mpi.enabled: 'perhaps' is not true "
     "or false [configuration]. Write true or false; 1, on and yes, and 0, off and no are the "
     "same."},
    {"SUCL_BACKEND_PLNA_ENABLED", "0",
     "sucl: environment SUCL_BACKEND_PLNA_ENABLED: there is no backend 'plna' to disable "
     "[configuration]. Did you mean 'plan'?"},
    {"SUCL_RULES", "[{ backend = \"mpi\", sise = 3 }]",
     "sucl: environment SUCL_RULES:1:21: unknown key 'rules[0].sise' [configuration]. Known "
     "names: collective, platform, ranks, nodes, bytes, memory, backend."},
    {"SUCL_RULES", "[{ backend = ]",
     "sucl: environment SUCL_RULES:1:14: this is not TOML: Error while parsing key-value "
     "pair: expected value, saw ']' [configuration]. Correct it there or on the line before; "
     "strings need quotes, and every key = value a line of its own."},
    {"SUCL_RULES", "[]\nthreshold = 4",
     "sucl: environment SUCL_RULES: this is more than one TOML value [configuration]. Write "
     "one value, as after rules = in a file."},
    {"SUCL_PLATFORMS", "4",
     "sucl: environment SUCL_PLATFORMS:1:1: platforms is an integer [configuration]. Write a "
     "table."},
};

INSTANTIATE_TEST_SUITE_P(Golden, BadVariable, testing::ValuesIn(bad_variables),
                         [](const auto& info) {
                           return std::string(info.param.name) + "_" + std::to_string(info.index);
                         });

}  // namespace
}  // namespace sucl::base
