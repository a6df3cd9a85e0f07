// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The conformance suite: every kind of operation through the public API, checked element by
// element. Each rank runs this program:
//
//   conformance_suite [--profile NAME] [--seed N] [--list] [--verbose] [FACTOR=VALUE,...]...
//
// A profile is a configuration to run under, a factor restricts the cases; with a value for every
// factor one case remains. Ranks make the same list of cases without talking to each other.
#include "run.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace sucl::conformance {
namespace {

struct profile {
  const char* name;
  const char* backend;  ///< that must execute the collectives
  std::vector<std::pair<const char*, const char*>> settings;
  bool (*leaves)(int kind) = nullptr;  ///< collectives that it leaves to others; null: none
  /// That must execute messages, one after the other; null: in any order, by any backend.
  const char* in_order = nullptr;
  bool divides_first = false;  ///< averages of 16-bit floats
};

bool prefixes(int kind) { return kind == SUCL_KIND_SCAN || kind == SUCL_KIND_EXSCAN; }

// Only some ranks know the counts.
bool hidden_counts(int kind) {
  return kind == SUCL_KIND_ALLTOALLV || kind == SUCL_KIND_GATHERV || kind == SUCL_KIND_SCATTERV;
}

bool not_in_hierarchical(int kind) {
  return kind > SUCL_KIND_ALLREDUCE && kind != SUCL_KIND_ALLGATHER &&
         kind != SUCL_KIND_REDUCE_SCATTER_BLOCK;
}

bool not_on_islands(int kind) { return prefixes(kind); }

std::vector<profile> profiles_of_nodes() {
  return {
      {"mpi", "mpi", {{"SUCL_BACKEND_PLAN_ENABLED", "0"}, {"SUCL_BACKEND_MESSAGES_ENABLED", "0"}}},
      {"plan", "plan", {}},
      {"plan_watched", "plan", {{"SUCL_TIMEOUT", "60"}, {"SUCL_VALIDATE", "1"}}},
      {"nodes", "plan", {{"SUCL_NODE_SIZE", "2"}}, hidden_counts},
      {"fabric", "fabric", {{"SUCL_NODE_SIZE", "1"}}},
      {"nodes_uneven", "plan", {{"SUCL_NODE_SIZE", "3,3,1"}}, hidden_counts},
      {"hierarchical",
       "hierarchical",
       {{"SUCL_NODE_SIZE", "2"},
        {"SUCL_RULES", "[{ backend = \"hierarchical\" }]"},
        {"SUCL_BACKEND_HIERARCHICAL_SINGLE_LEADER", "256"}},
       not_in_hierarchical},
  };
}

std::vector<profile> profiles_of_islands() {
  return {
      // Islands of one node, in turns: between them all goes through memory of the host.
      {"islands",
       "hierarchical",
       {{"SUCL_ISLANDS", "gpu,cpu"},
        {"SUCL_BACKEND_HIERARCHICAL_SINGLE_LEADER", "256"},
        {"SUCL_BACKEND_HIERARCHICAL_PIECE", "16Ki"}},
       not_on_islands},
      {"islands_three",
       "hierarchical",
       {{"SUCL_ISLANDS", "gpu,cpu,emulator"}, {"SUCL_BACKEND_HIERARCHICAL_PIECE", "16Ki"}},
       not_on_islands},
      {"islands_staged",
       "hierarchical",
       {{"SUCL_ISLANDS", "gpu,gpu,cpu,emulator,emulator"},
        {"SUCL_DEVICE_MEMORY", "stage"},
        {"SUCL_STAGING_CHUNK", "32Ki"},
        {"SUCL_BACKEND_HIERARCHICAL_SINGLE_LEADER", "256"}},
       not_on_islands},
      {"islands_alone",
       "plan",
       {{"SUCL_ISLANDS", "gpu,cpu,emulator"}, {"SUCL_DEVICE_MEMORY", "stage"}}},
      // For ranks with unlike devices, as SUCL_TEST_DEVICES says, of which each is alone on its
      // island, or some are not.
      {"unlike_alone", "plan", {}},
      {"unlike", "hierarchical", {}, not_on_islands},
  };
}

std::vector<profile> profiles_of_layers() {
  return {
      {"mock", "mock", {{"SUCL_RULES", "[{ backend = \"mock\" }]"}}},
      {"staged1",
       "mpi",
       {{"SUCL_DEVICE_MEMORY", "stage"},
        {"SUCL_STAGING_CHUNK", "4Ki"},
        {"SUCL_STAGING_DEPTH", "1"}}},
      {"staged3",
       "mpi",
       {{"SUCL_DEVICE_MEMORY", "stage"},
        {"SUCL_STAGING_CHUNK", "4Ki"},
        {"SUCL_STAGING_DEPTH", "3"}}},
      // Without MPI, what hosts share is what is left.
      {"staged_alone", "plan", {{"SUCL_DEVICE_MEMORY", "stage"}, {"SUCL_STAGING_CHUNK", "32Ki"}}},
      {"sliced",
       "mpi",
       {{"SUCL_BACKEND_PLAN_ENABLED", "0"},
        {"SUCL_BACKEND_MESSAGES_ENABLED", "0"},
        {"SUCL_BACKEND_MPI_MAX_COUNT", "100"}}},
      {"layers",
       "mpi",
       {{"SUCL_BACKEND_PLAN_ENABLED", "0"},
        {"SUCL_BACKEND_MESSAGES_ENABLED", "0"},
        {"SUCL_VALIDATE", "1"},
        {"SUCL_TRACE", "conformance.trace.%r.json"}}},
      {"watched",
       "mpi",
       {{"SUCL_BACKEND_PLAN_ENABLED", "0"},
        {"SUCL_BACKEND_MESSAGES_ENABLED", "0"},
        {"SUCL_TIMEOUT", "60"}}},
  };
}

std::vector<profile> profiles_of_gpus() {
  return {
      // Without a rule GPUs take nccl too.
      {"nccl", "nccl", {{"SUCL_BACKEND_KERNELS_ENABLED", "0"}}, prefixes, nullptr, true},
      // With more than two ranks, where NCCL rounds 16-bit floats more than once.
      {"nccl_exact",
       "nccl",
       {{"SUCL_BACKEND_KERNELS_ENABLED", "0"}, {"SUCL_BACKEND_NCCL_EXACT", "true"}},
       prefixes},
      {"kernels", "kernels", {{"SUCL_RULES", "[{ backend = \"kernels\" }]"}}},
      {"kernels_small_buffers",
       "kernels",
       {{"SUCL_RULES", "[{ backend = \"kernels\" }]"},
        {"SUCL_BACKEND_KERNELS_LL_MAX_BYTES", "256"},
        {"SUCL_BACKEND_KERNELS_STAGING", "128Ki"},
        {"SUCL_BACKEND_KERNELS_TWO_SHOT_MIN_BYTES", "16Ki"},
        {"SUCL_BACKEND_KERNELS_GROUPS", "4"}}},
      // Four ranks on two nodes: kernels within each, and between them MPI, or NCCL on the streams,
      // which wants a GPU for each rank.
      {"hierarchical_kernels",
       "hierarchical",
       {{"SUCL_NODE_SIZE", "2"},
        {"SUCL_RULES", "[{ backend = [\"hierarchical\", \"kernels\", \"mpi\"] }]"},
        {"SUCL_BACKEND_HIERARCHICAL_SINGLE_LEADER", "256"}},
       not_in_hierarchical},
      {"hierarchical_nccl",
       "hierarchical",
       {{"SUCL_NODE_SIZE", "2"},
        {"SUCL_RULES", "[{ backend = [\"hierarchical\", \"kernels\", \"nccl\"] }]"},
        {"SUCL_BACKEND_NCCL_EXACT", "true"},
        {"SUCL_BACKEND_HIERARCHICAL_SINGLE_LEADER", "256"}},
       not_in_hierarchical},
      {"kernels_messages",
       "kernels",
       {{"SUCL_RULES", "[{ backend = \"kernels\" }]"}, {"SUCL_BACKEND_KERNELS_MESSAGES", "true"}},
       nullptr,
       "kernels"},
      {"gpu_staged", "mpi", {{"SUCL_THRESHOLD", "-1"}}},
  };
}

const std::vector<profile>& profiles() {
  static const std::vector<profile> all = [] {
    std::vector<profile> list;
    for (const auto& part :
         {profiles_of_nodes(), profiles_of_islands(), profiles_of_layers(), profiles_of_gpus()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

struct options {
  const profile* how = &profiles()[0];
  std::optional<std::uint64_t> seed;  ///< unset: each combination of MPI, profile and ranks its own
  bool list = false;
  bool verbose = false;
  filter cases;
};

[[noreturn]] void complain(const std::string& what) {
  std::fprintf(stderr, "conformance: %s\n", what.c_str());
  std::exit(2);
}

options read(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--list") {
      o.list = true;
    } else if (word == "--verbose") {
      o.verbose = true;
    } else if (word == "--seed" && more) {
      o.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--profile" && more) {
      o.how = nullptr;
      ++i;
      for (const profile& p : profiles())
        if (argv[i] == std::string(p.name)) o.how = &p;
      if (o.how == nullptr) complain("there is no profile '" + std::string(argv[i]) + "'");
    } else if (const auto problem = o.cases.restrict(word); !problem.empty()) {
      complain(problem);
    }
  }
  return o;
}

std::string flavour(const std::string& control_plane) {
  for (const auto& [words, name] :
       {std::pair{"Open MPI", "openmpi"}, {"Intel", "impi"}, {"SuCL over TCP", "tcp"}})
    if (control_plane.find(words) != std::string::npos) return name;
  return "mpich";
}

// SUCL_TEST_DEVICES, as "gpu,cpu,gpu": the kind of device of each rank, from the start again where
// there are more ranks; empty: devices of one kind.
std::vector<std::string> wanted_devices() {
  std::vector<std::string> words;
  const char* given = std::getenv("SUCL_TEST_DEVICES");
  std::istringstream list(given ? given : "");
  for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  return words;
}

// The ranks before that want a GPU have the GPUs before.
::sycl::device wanted_device(const std::vector<std::string>& words, int rank) {
  const auto word = [&](int r) { return words[static_cast<std::size_t>(r) % words.size()]; };
  const bool gpu = word(rank) == "gpu";
  const auto all = ::sycl::device::get_devices(gpu ? ::sycl::info::device_type::gpu
                                                   : ::sycl::info::device_type::cpu);
  if (all.empty() || (!gpu && word(rank) != "cpu"))
    complain("SUCL_TEST_DEVICES gives rank " + std::to_string(rank) + " the device '" + word(rank) +
             "', which is not there");
  std::size_t before = 0;
  for (int r = 0; r < rank && gpu; ++r) before += word(r) == "gpu";
  return all[before % all.size()];
}

// A GPU of its own for each rank, where there are any.
::sycl::device device_of(int rank) {
  if (const auto words = wanted_devices(); !words.empty()) return wanted_device(words, rank);
  const auto gpus = ::sycl::device::get_devices(::sycl::info::device_type::gpu);
  if (gpus.empty()) return ::sycl::device(::sycl::default_selector_v);
  return gpus[static_cast<std::size_t>(rank) % gpus.size()];
}

class suite {
 public:
  suite(runtime& rt, const options& o, const char* program)
      : m_options(o), m_program(program), m_mpi(flavour(rt.control_plane())) {
    ::sycl::queue free(device_of(rt.rank()));
    ::sycl::queue in_order{free.get_context(), free.get_device(),
                           ::sycl::property::queue::in_order()};
    m_comms.push_back({rt.world(free), free});
    m_comms.push_back({rt.world(in_order), in_order});
    const auto& world = m_comms[0].comm;
    m_comms.push_back({world.split(0, -world.rank()), free});
    m_comms.push_back({rt.world(), std::nullopt});
  }

  bool run() {
    check_backends();
    check_backend_of_messages();
    const auto cases = cover(m_options.cases, seed(), ranks());
    const auto start = std::chrono::steady_clock::now();
    for (test_case c : cases) {
      c.messages_in_order = m_options.how->in_order != nullptr || waits_in_a_lane(c);
      c.divides_first = m_options.how->divides_first;
      if ((m_options.list || m_options.verbose) && rank() == 0) {
        std::printf("%s\n", c.text().c_str());
        std::fflush(stdout);
      }
      if (!m_options.list) run(c);
      if (m_failures > 20) break;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (rank() == 0 && !m_options.list)
      std::printf(
          "conformance: %s, profile %s, %d ranks: %zu cases in %.1f s, %d failed on rank 0\n",
          m_mpi.c_str(), m_options.how->name, ranks(), cases.size(), took.count(), m_failures);
    if (cases.empty()) complain("no call of the API matches");
    return m_failures == 0;
  }

 private:
  int rank() const { return m_comms[0].comm.rank(); }
  int ranks() const { return m_comms[0].comm.size(); }

  // AdaptiveCpp's CPU backend has one lane for what works on buffers: a message in it may hold up
  // the one that it waits for. docs/reference/sycl-implementations.md
  bool waits_in_a_lane([[maybe_unused]] const test_case& c) const {
#ifdef SYCL_IMPLEMENTATION_ACPP
    const int m = c.at[f_memory];
    const auto& queue = m_comms[static_cast<std::size_t>(c.at[f_comm])].queue;
    if (!wanted_devices().empty()) return m == mixed_memory || is_buffer(m);  // on every rank
    return (m == mixed_memory || is_buffer(m)) && (!queue || !queue->get_device().is_gpu());
#else
    return false;
#endif
  }

  std::uint64_t seed() const {
    if (m_options.seed) return *m_options.seed;
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const char c : m_mpi + " " + m_options.how->name + " " + std::to_string(ranks()))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
  }

  // Otherwise a profile could test something else than it says.
  void check_backends() {
    const std::string wanted = std::string("executed by ") + m_options.how->backend + "\n";
    for (int k = 0; k <= SUCL_KIND_EXSCAN; ++k) {
      if (m_options.how->leaves && m_options.how->leaves(k)) continue;
      const auto text = m_comms[0].comm.explain(static_cast<kind>(k), 4096);
      if (text.find(wanted) != std::string::npos) continue;
      std::printf("not %s%s", wanted.c_str(), text.c_str());
      ++m_failures;
    }
  }

  // The same for messages, which plans leave to a backend of their own.
  void check_backend_of_messages() {
    const std::string collectives = m_options.how->backend;
    std::string backend;
    if (m_options.how->in_order)
      backend = m_options.how->in_order;
    else if (collectives == "plan" || m_options.how->name == std::string_view("islands"))
      backend = "messages";
    else if (collectives == "mpi")
      backend = "mpi";
    else
      return;
    const std::string wanted = "executed by " + backend + "\n";
    for (int k = SUCL_KIND_SEND; k <= SUCL_KIND_GROUP; ++k) {
      const auto text = m_comms[0].comm.explain(static_cast<kind>(k), 4096);
      if (text.find(wanted) != std::string::npos) continue;
      std::printf("not %s%s", wanted.c_str(), text.c_str());
      ++m_failures;
    }
  }

  void run(const test_case& c) {
    comm_and_queue& where = m_comms[static_cast<std::size_t>(c.at[f_comm])];
    const int me = where.comm.rank();
    const flow f = flow_of(call_spec_of(c, ranks()), me, ranks());
    const images before = make_images(c, f, me, ranks());
    try {
      const outcome after = runner_of(c.at[f_type])(c, f, before, where);
      const auto problem = compare(c, f, before, after.send, after.recv);
      if (!problem.empty()) report(c, me, problem);
    } catch (const error& e) {
      report(c, me, e.what());
      // The other ranks may be in the middle of the operation.
      if (m_options.how->name != std::string("watched") && ranks() > 1) std::_Exit(3);
    } catch (const std::exception& e) {
      report(c, me, e.what());
    }
  }

  void report(const test_case& c, int me, const std::string& problem) {
    ++m_failures;
    std::printf(
        "FAILED on rank %d, backend %s: %s\n  %s\n"
        "  reproduce: sucl run -n %d %s%s -- %s --profile %s %s\n",
        me, m_options.how->backend, c.text().c_str(), problem.c_str(), ranks(),
        m_mpi == "tcp" ? "--launcher local" : "--mpi ", m_mpi == "tcp" ? "" : m_mpi.c_str(),
        m_program, m_options.how->name, c.text().c_str());
    std::fflush(stdout);
  }

  const options& m_options;
  const char* m_program;
  std::string m_mpi;
  std::vector<comm_and_queue> m_comms;
  int m_failures = 0;
};

int run_all(int argc, char** argv) {
  const options o = read(argc, argv);
  for (const auto& [name, value] : o.how->settings) setenv(name, value, 1);
  try {
    runtime rt(argc, argv);
    return suite(rt, o, argv[0]).run() ? 0 : 1;
  } catch (const std::exception& e) {
    std::printf("FAILED: %s\n", e.what());
    std::fflush(stdout);
    std::_Exit(3);
  }
}

}  // namespace
}  // namespace sucl::conformance

int main(int argc, char** argv) { return sucl::conformance::run_all(argc, argv); }
