// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/selection.hpp"
#include "backends/built_ins.hpp"

#include "base/text.hpp"
#include "unit/allocation_counter.hpp"
#include "unit/helpers.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace sucl::core {
namespace {

selection_table compile(const base::config& c, const selection_scope& scope) {
  return core::compile(c, scope, core::built_ins());
}

using names = std::vector<std::string>;

const selection_scope eight_gpus{"cuda", 8, 2};
const selection_scope eight_cpus{"opencl", 8, 2};
const char* const vendors = R"(
[backends.nccl]
platforms = ["cuda"]
[backends.rccl]
platforms = ["hip"]
[backends.ucc]
)";

base::config loaded(const std::string& text) {
  test::working_directory here;
  here.write("sucl.toml", text);
  return base::load_config("", {});
}

selection_query query(kind what, std::uint64_t bytes, sucl_memory memory = SUCL_MEMORY_DEVICE) {
  selection_query q;
  q.what = what;
  q.element = type::fp32;
  q.reduction = reduces(what) ? op::sum : op::none;
  q.memory = memory;
  q.bytes = bytes;
  return q;
}

selection_query of_unknown_size(kind what) {
  selection_query q = query(what, 0);
  q.bytes_known = false;
  return q;
}

// The name of the backend that is chosen when those in `broken` cannot be used. choose() and
// explain() must agree on it.
std::string chosen(const std::string& text, const selection_query& q,
                   const selection_scope& scope = eight_gpus,
                   const std::set<std::string>& broken = {}) {
  const selection_table table = compile(loaded(text), scope);
  const auto name_of = [&](int b) { return table.backends.at(static_cast<std::size_t>(b)); };
  const candidate* taken = choose(table, q, [&](int b) { return broken.count(name_of(b)) == 0; });
  const int backend = taken ? taken->backend : -1;
  const explanation e = explain(
      table, q, [&](int b) { return std::string(broken.count(name_of(b)) == 0 ? "" : "broken"); });
  const std::string result = backend < 0 ? "" : name_of(backend);
  EXPECT_EQ(e.backend, result) << render(e);
  return result;
}

TEST(Selection, WithoutConfigurationTheVendorOrMpiExecutesEverything) {
  for (int k = 0; k < SUCL_KIND_COUNT; ++k) {
    const auto q = query(static_cast<kind>(k), 4);
    EXPECT_EQ(chosen("", q), "nccl");
    EXPECT_EQ(chosen("", q, eight_gpus, {"nccl"}), "mpi");
    EXPECT_EQ(chosen("", q, {"host", 2, 1}, {"plan", "messages"}), "mpi");
  }
}

TEST(Selection, TheNetworkComesAfterMpi) {
  for (int k = 0; k < SUCL_KIND_COUNT; ++k) {
    const auto q = query(static_cast<kind>(k), 4, SUCL_MEMORY_SYSTEM);
    EXPECT_EQ(chosen("", q, {"host", 4, 4}, {"plan", "messages"}), "mpi");
    EXPECT_EQ(chosen("", q, {"host", 4, 4}, {"plan", "messages", "mpi"}), "fabric");
    EXPECT_EQ(chosen("default_backend = \"fabric\"", q, {"host", 4, 4}), "fabric");
    EXPECT_EQ(chosen("default_backend = \"fabric\"", q, {"host", 4, 4}, {"fabric"}), "mpi");
    EXPECT_EQ(chosen("[backends.fabric]\nenabled = false", q, {"host", 4, 4},
                     {"plan", "messages", "mpi"}),
              "");
  }
}

TEST(Selection, TakesTheFirstBackendOfThePlatform) {
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4)), "nccl");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), {"hip", 2, 1}, {"kernels"}), "rccl");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), {"host", 2, 1}), "ucc");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), {mixed_platforms, 2, 1}), "ucc");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), eight_gpus, {"nccl"}), "ucc");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), eight_gpus, {"nccl", "ucc"}), "mpi");
  const std::set<std::string> loaded_ones{"nccl", "ucc", "mpi", "fabric"};
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), eight_gpus, loaded_ones), "plan");
  std::set<std::string> all = loaded_ones;
  all.insert("plan");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), eight_gpus, all), "");
}

TEST(Selection, KernelsGoBeforeTheVendorWhereTheyAreFaster) {
  const selection_scope one_node{"cuda", 8, 1}, two_ranks{"cuda", 2, 1};
  const selection_scope four_ranks{"cuda", 4, 1};
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 128 << 10), one_node), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 129 << 10), one_node), "nccl");
  for (const auto& [what, bytes, backend] : {std::tuple{kind::allreduce, 64 << 20, "kernels"},
                                             {kind::allreduce, 65 << 20, "nccl"},
                                             {kind::broadcast, 16 << 20, "kernels"},
                                             {kind::broadcast, 17 << 20, "nccl"},
                                             {kind::reduce, 4 << 20, "kernels"},
                                             {kind::reduce, 5 << 20, "nccl"},
                                             {kind::gather, 4 << 20, "kernels"},
                                             {kind::scatter, 5 << 20, "nccl"}})
    EXPECT_EQ(chosen(vendors, query(what, bytes), four_ranks), backend) << bytes;
  for (const kind what : {kind::reduce_scatter_block, kind::reduce_scatter, kind::allgather,
                          kind::allgatherv, kind::alltoall})
    EXPECT_EQ(chosen(vendors, query(what, 1 << 30), four_ranks), "kernels") << name(what);
  for (const kind what : {kind::alltoallv, kind::gatherv, kind::scatterv})
    EXPECT_EQ(chosen(vendors, of_unknown_size(what), four_ranks), "kernels") << name(what);
  EXPECT_EQ(chosen(vendors, query(kind::broadcast, 64 << 10), one_node), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::broadcast, 65 << 10), one_node), "nccl");
  EXPECT_EQ(chosen(vendors, query(kind::broadcast, 1 << 20), one_node, {"nccl", "ucc"}), "kernels");
  EXPECT_EQ(chosen(vendors, of_unknown_size(kind::alltoallv), one_node), "nccl");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 1 << 30), two_ranks), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::gather, 1 << 20), two_ranks), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::scatter, 4 << 20), two_ranks), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::scatter, 16 << 20), two_ranks), "nccl");
  EXPECT_EQ(chosen(vendors, query(kind::scatter, 16 << 20), two_ranks, {"nccl", "ucc"}), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::scatter, 64 << 20), two_ranks), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::gather, 2 << 20), two_ranks), "kernels");
  EXPECT_EQ(chosen(vendors, of_unknown_size(kind::alltoallv), two_ranks), "kernels");
  EXPECT_EQ(chosen(vendors, query(kind::send, 4), one_node), "nccl");
  EXPECT_EQ(chosen(vendors, query(kind::allreduce, 4), eight_gpus), "nccl");
  EXPECT_EQ(chosen("[backends.kernels]\nenabled = false", query(kind::allreduce, 4), one_node),
            "nccl");
}

TEST(Selection, LevelsGoBeforeMpiForDeviceMemoryOnSeveralNodes) {
  const selection_scope devices{"cuda", 8, 2, false, true};
  EXPECT_EQ(chosen("", query(kind::allreduce, 4), devices), "nccl");
  EXPECT_EQ(chosen("", query(kind::allreduce, 4), devices, {"nccl"}), "hierarchical");
  EXPECT_EQ(chosen("", query(kind::allreduce, 4, SUCL_MEMORY_SYSTEM), devices, {"nccl"}),
            "hierarchical")
      << "ranks that use other memory in the same operation must choose alike";
  EXPECT_EQ(chosen("", query(kind::send, 4), devices, {"nccl", "messages"}), "mpi");
  EXPECT_EQ(chosen("", query(kind::allreduce, 4), {"cuda", 8, 1, false, true}, {"nccl", "kernels"}),
            "mpi");
  EXPECT_EQ(chosen("threshold = -1", query(kind::allreduce, 4), devices), "mpi");
  EXPECT_EQ(chosen("[backends.hierarchical]\nenabled = false", query(kind::allreduce, 4), devices,
                   {"nccl"}),
            "mpi");
  const std::string rule = "[[rules]]\nbackend = \"hierarchical\"";
  EXPECT_EQ(chosen(rule, query(kind::allreduce, 4, SUCL_MEMORY_SYSTEM), {"host", 4, 2}),
            "hierarchical");
  EXPECT_EQ(
      chosen(rule, query(kind::send, 4, SUCL_MEMORY_SYSTEM), {"host", 4, 2}, {"hierarchical"}),
      "messages")
      << "a rule for hierarchical leaves messages as they are";
}

TEST(Selection, ThresholdSplitsBySize) {
  const std::string text = "threshold = \"16Ki\"\n" + std::string(vendors);
  EXPECT_EQ(chosen(text, query(kind::allreduce, 0)), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 16383)), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 16384)), "nccl");
  EXPECT_EQ(chosen(text, query(kind::allreduce, ~std::uint64_t{0})), "nccl");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 4), eight_gpus, {"mpi"}), "nccl");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1 << 20), {"host", 2, 1}, {"ucc"}), "mpi");
  EXPECT_EQ(chosen(text, of_unknown_size(kind::allgatherv)), "nccl");
}

TEST(Selection, ThresholdOfZeroAlwaysAsksTheVendor) {
  const std::string text = "threshold = 0\n" + std::string(vendors);
  for (const std::uint64_t bytes : {0, 1, 1 << 30})
    EXPECT_EQ(chosen(text, query(kind::allreduce, bytes)), "nccl");
}

TEST(Selection, NegativeThresholdAlwaysAsksMpi) {
  const std::string text = "threshold = -1\n" + std::string(vendors);
  for (const std::uint64_t bytes : {0, 1, 1 << 30})
    EXPECT_EQ(chosen(text, query(kind::allreduce, bytes)), "mpi");
  EXPECT_EQ(chosen(text, of_unknown_size(kind::alltoallv)), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 4), eight_gpus, {"mpi"}), "nccl");
}

TEST(Selection, RulesGoBeforeTheThreshold) {
  const std::string text = "threshold = -1\n" + std::string(vendors) + R"(
[[rules]]
collective = "allreduce"
backend = ["rccl", "ucc"]
)";
  EXPECT_EQ(chosen(text, query(kind::allreduce, 4)), "rccl");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 4), eight_gpus, {"rccl"}), "ucc");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 4), eight_gpus, {"rccl", "ucc"}), "mpi");
  EXPECT_EQ(chosen(text, query(kind::reduce, 4)), "mpi");
}

TEST(Selection, TheFirstMatchingRuleWins) {
  const std::string text = std::string(vendors) + R"(
[[rules]]
bytes = "..4Ki"
backend = "ucc"
[[rules]]
bytes = "4Ki..64Ki"
backend = "nccl"
[[rules]]
backend = "mpi"
)";
  EXPECT_EQ(chosen(text, query(kind::reduce, 4096)), "ucc");
  EXPECT_EQ(chosen(text, query(kind::reduce, 4097)), "nccl");
  EXPECT_EQ(chosen(text, query(kind::reduce, 65536)), "nccl");
  EXPECT_EQ(chosen(text, query(kind::reduce, 65537)), "mpi");
  EXPECT_EQ(chosen(text, of_unknown_size(kind::gatherv)), "mpi");
}

TEST(Selection, EveryConditionOfARuleCounts) {
  const std::string text = std::string(vendors) + R"(
[[rules]]
collective = ["allreduce", "reduce"]
platform = ["cuda", "hip"]
ranks = "4..8"
nodes = 2
bytes = "1Ki.."
memory = ["device", "shared"]
backend = "ucc"
[[rules]]
backend = "mpi"
)";
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024)), "ucc");
  EXPECT_EQ(chosen(text, query(kind::reduce, 1024, SUCL_MEMORY_SHARED)), "ucc");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024), {"hip", 4, 2}), "ucc");
  EXPECT_EQ(chosen(text, query(kind::broadcast, 1024)), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1023)), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024, SUCL_MEMORY_HOST)), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024, SUCL_MEMORY_SYSTEM)), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024), {"cuda", 3, 2}), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024), {"cuda", 9, 2}), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024), {"cuda", 8, 1}), "mpi");
  EXPECT_EQ(chosen(text, query(kind::allreduce, 1024), {"host", 8, 2}), "mpi");
}

TEST(Selection, DisabledBackendsAreNeverTaken) {
  const std::string off = "[backends.nccl]\nplatforms = \"cuda\"\nenabled = false\n";
  EXPECT_EQ(chosen(off, query(kind::allreduce, 4)), "mpi");
  EXPECT_EQ(chosen(off + "[[rules]]\nbackend = \"nccl\"\n", query(kind::allreduce, 4)), "mpi");
}

TEST(Selection, BackendsWithoutPlatformsAreForRules) {
  const auto q = query(kind::allreduce, 4);
  EXPECT_EQ(chosen("[backends.mock]\nenabled = true\n", q, eight_cpus), "mpi");
  EXPECT_EQ(chosen("[[rules]]\nbackend = \"mock\"\n", q, eight_cpus), "mock");
  EXPECT_EQ(chosen("[[rules]]\nbackend = \"mock\"\ncollective = \"reduce\"\n", q, eight_cpus),
            "mpi");
}

// Both ends of a message must choose alike, whatever each of them knows of it.
TEST(Selection, MessagesGoByOneBackendOrByNone) {
  const selection_scope two{"host", 2, 1};
  const kind kinds[] = {kind::send, kind::recv, kind::sendrecv, kind::group};
  const auto all = [&](const std::string& text, const std::set<std::string>& broken = {}) {
    std::set<std::string> found;
    for (const kind k : kinds) {
      for (const std::uint64_t bytes : {0u, 100u, 1u << 20})
        found.insert(chosen(text, query(k, bytes, SUCL_MEMORY_SYSTEM), two, broken));
      found.insert(chosen(text, of_unknown_size(k), two, broken));
    }
    std::string text_of;
    for (const auto& name : found) text_of += (text_of.empty() ? "" : " ") + name;
    return text_of;
  };
  EXPECT_EQ(all(""), "messages");
  EXPECT_EQ(all("", {"messages"}), "mpi");
  EXPECT_EQ(all("[backends.messages]\nenabled = false"), "mpi");
  EXPECT_EQ(all("[backends.plan]\nenabled = false"), "messages");
  EXPECT_EQ(all("threshold = 0"), "messages");
  EXPECT_EQ(all("threshold = 4096"), "mpi");
  EXPECT_EQ(all("default_backend = \"mock\""), "mock");
  const auto rule = [](const char* body) { return std::string("[[rules]]\n") + body + "\n"; };
  EXPECT_EQ(all(rule("collective = \"send\"\nbackend = \"mpi\"")), "mpi");
  EXPECT_EQ(all(rule("collective = \"recv\"\nbytes = \"..64\"\nbackend = \"mpi\"")), "mpi");
  EXPECT_EQ(all(rule("collective = \"allreduce\"\nbackend = \"mpi\"")), "messages");
  EXPECT_EQ(all(rule("nodes = \"2..\"\nbackend = \"mpi\"")), "messages");
  EXPECT_EQ(all(rule("backend = [\"plan\", \"messages\", \"mpi\"]"), {"plan"}), "messages");
  EXPECT_EQ(
      all("default_backend = \"mock\"\n" + rule("collective = \"send\"\nbackend = \"messages\"")),
      "mock");
  EXPECT_EQ(chosen("", query(kind::send, 4, SUCL_MEMORY_SYSTEM), eight_cpus), "messages");
  EXPECT_EQ(chosen(vendors, query(kind::send, 4, SUCL_MEMORY_SYSTEM), eight_cpus), "ucc");
  EXPECT_NE(
      render(explain(compile(loaded(rule("collective = \"send\"\nbackend = \"mpi\"")), two),
                     query(kind::recv, 4, SUCL_MEMORY_SYSTEM), [](int) { return std::string(); }))
          .find("passed messages, built in: rules[0] (file sucl.toml:1:1) has mpi for some of "
                "send, and both ends of a message must choose alike"),
      std::string::npos);
}

// A backend that is loaded is taken to have messages until it is known that it has none.
TEST(Selection, BackendsWithoutMessagesRuleNoneOut) {
  const base::config c = loaded("[[rules]]\nbackend = \"nccl\"\n");
  std::vector<bool> none;
  for (const auto& b : c.backends) none.push_back(b.name == "nccl");
  const auto by = [&](const std::vector<bool>& without) {
    const selection_table table =
        core::compile(c, {"cuda", 2, 1}, core::built_ins(), nullptr, without);
    const auto usable = [&](int b) {
      const std::string& name = table.backends[static_cast<std::size_t>(b)];
      return name == "messages" || name == "mpi";
    };
    const candidate* found = choose(table, query(kind::send, 4), usable);
    return found ? table.backends[static_cast<std::size_t>(found->backend)] : "";
  };
  EXPECT_EQ(by({}), "mpi");
  EXPECT_EQ(by(none), "messages");
}

TEST(Selection, KernelsExecuteAllMessagesOrNone) {
  const selection_scope two{"cuda", 2, 1};
  const std::string on = "[backends.kernels]\nmessages = true\n";
  const auto all = [&](const std::string& text, const selection_scope& scope,
                       const std::set<std::string>& broken = {}) {
    std::set<std::string> found;
    for (const kind k : {kind::send, kind::recv, kind::sendrecv, kind::group})
      for (const sucl_memory m : {SUCL_MEMORY_SYSTEM, SUCL_MEMORY_DEVICE}) {
        for (const std::uint64_t bytes : {0u, 100u, 1u << 30})
          found.insert(chosen(text, query(k, bytes, m), scope, broken));
        found.insert(chosen(text, of_unknown_size(k), scope, broken));
      }
    return base::join({found.begin(), found.end()}, " ");
  };
  EXPECT_EQ(all("", two), "nccl");
  EXPECT_EQ(all(on, two), "kernels");
  EXPECT_EQ(all(on, two, {"kernels"}), "nccl");
  EXPECT_EQ(all(on, two, {"kernels", "nccl"}), "mpi");
  EXPECT_EQ(all(on, eight_gpus), "nccl");
  EXPECT_EQ(all(on, {"host", 2, 1}), "messages");
  EXPECT_EQ(all(on + "enabled = false\n", two), "nccl");
  EXPECT_EQ(all("threshold = 4096\n" + on, two, {"nccl"}), "mpi");
  const auto rule = [](const char* body) { return std::string("[[rules]]\n") + body + "\n"; };
  EXPECT_EQ(all(on + rule("backend = \"kernels\""), {"host", 2, 1}), "kernels");
  EXPECT_EQ(
      all(on + rule("collective = \"send\"\nbytes = \"..64\"\nbackend = \"mpi\""), two, {"nccl"}),
      "mpi");
  EXPECT_EQ(all(rule("backend = \"kernels\""), {"host", 2, 1}, {"kernels"}), "messages");
}

TEST(Selection, TheDefaultBackendGoesBeforeMpi) {
  const std::string text = "default_backend = \"mock\"\n";
  const auto q = query(kind::allreduce, 4);
  EXPECT_EQ(chosen(text, q, eight_cpus), "mock");
  EXPECT_EQ(chosen(text, q, eight_cpus, {"mock"}), "mpi");
  EXPECT_EQ(chosen(text + vendors, q), "nccl");
  const std::string without_mpi = text + "[backends.mpi]\nenabled = false\n";
  EXPECT_EQ(chosen(without_mpi, q, eight_cpus, {"mock", "fabric"}), "plan");
  EXPECT_EQ(chosen(without_mpi, q, eight_cpus, {"mock", "fabric", "plan"}), "");
}

TEST(Selection, PlansGoBeforeMpiOnMemoryOfTheHost) {
  const auto host = [](const std::string& text, const std::set<std::string>& broken = {}) {
    return chosen(text, query(kind::allreduce, 4, SUCL_MEMORY_SHARED), eight_cpus, broken);
  };
  EXPECT_EQ(host(""), "plan");
  EXPECT_EQ(host("", {"plan"}), "mpi");
  const auto broadcast = [](std::uint64_t bytes) {
    return chosen("", query(kind::broadcast, bytes, SUCL_MEMORY_SHARED), {"host", 8, 1});
  };
  EXPECT_EQ(broadcast(32 << 10), "plan");
  EXPECT_EQ(broadcast((32 << 10) + 1), "mpi");
  EXPECT_EQ(broadcast(8 << 20), "plan");
  // Reads copy once, as MPI does.
  selection_scope reading{"host", 8, 1};
  reading.reads = true;
  const auto large = query(kind::broadcast, (32 << 10) + 1, SUCL_MEMORY_SHARED);
  EXPECT_EQ(chosen("", large, reading), "plan");
  // Between nodes each byte should cross the network once, and each pair's data does anyway.
  const auto between = [](kind k, std::uint64_t bytes) {
    return chosen("", query(k, bytes, SUCL_MEMORY_SYSTEM), {"host", 8, 2});
  };
  EXPECT_EQ(between(kind::broadcast, 1 << 20), "plan");
  EXPECT_EQ(between(kind::alltoall, 32 << 10), "plan");
  EXPECT_EQ(between(kind::alltoall, (32 << 10) + 1), "mpi");
  EXPECT_EQ(chosen("", query(kind::allreduce, 4, SUCL_MEMORY_DEVICE), eight_cpus), "mpi");
  EXPECT_EQ(host(vendors), "ucc");
  EXPECT_EQ(host("threshold = -1"), "mpi");
  EXPECT_EQ(host("default_backend = \"mock\""), "mock");
  EXPECT_EQ(host("[backends.plan]\nenabled = false"), "mpi");
  EXPECT_EQ(host("[[rules]]\nbytes = \"..8\"\nbackend = \"mpi\""), "mpi");
  const selection_table table = compile(loaded(""), {"host", 2, 1});
  const explanation e = explain(table, query(kind::allreduce, 4, SUCL_MEMORY_SHARED),
                                [](int) { return std::string(); });
  EXPECT_NE(render(e).find("taken  plan, built in: faster than MPI within a node"),
            std::string::npos)
      << render(e);
}

TEST(Selection, ExplainsWhatItTookAndPassedOver) {
  const selection_table table = compile(loaded("threshold = 4096\n" + std::string(vendors) + R"(
[[rules]]
collective = "broadcast"
backend = "mpi"
[[rules]]
platform = "hip"
backend = "rccl"
[[rules]]
ranks = "2..4"
backend = "rccl"
[[rules]]
nodes = 1
backend = "rccl"
[[rules]]
memory = ["host", "system"]
backend = "mpi"
[[rules]]
bytes = "..4Ki"
backend = "mpi"
[[rules]]
backend = "mock"
)"),
                                        eight_gpus);
  const auto obstacle = [&](int b) {
    const std::string& name = table.backends[static_cast<std::size_t>(b)];
    if (name == "mock") return "not loaded: no such file";
    return name == "nccl" ? "it has no allreduce of fp32" : "";
  };
  EXPECT_EQ(
      render(explain(table, query(kind::allreduce, 1 << 20), obstacle)),
      R"(allreduce of 1Mi bytes (fp32, sum, device memory) on cuda, 8 ranks on 2 nodes: executed by ucc
  passed mpi, rules[0] (file sucl.toml:9:1): it is for broadcast
  passed rccl, rules[1] (file sucl.toml:12:1): it is for platform hip
  passed rccl, rules[2] (file sucl.toml:15:1): it is for ranks 2..4, not 8
  passed rccl, rules[3] (file sucl.toml:18:1): it is for nodes 1, not 2
  passed mpi, rules[4] (file sucl.toml:21:1): it is for system, host memory
  passed mpi, rules[5] (file sucl.toml:24:1): it is for ..4Ki bytes
  passed mock, rules[6] (file sucl.toml:27:1): not loaded: no such file
  passed mpi, threshold: the message is not below 4Ki
  passed kernels, platform: it is for the ranks of one node
  passed nccl, platform: it has no allreduce of fp32
  passed rccl, platform: it is for platform hip
  taken  ucc, platform: the first backend for platform cuda that can execute it
)");
}

TEST(Selection, ExplainsUnknownSizesThresholdsAndTheLastResort) {
  const auto fine = [](int) { return std::string(); };
  const auto broken = [](int) { return std::string("it is broken"); };
  const selection_scope one{"host", 1, 1};
  const selection_table split = compile(loaded("threshold = 64\ndefault_backend = \"mock\""), one);
  selection_query q = of_unknown_size(kind::allgatherv);
  q.memory = SUCL_MEMORY_SYSTEM;
  EXPECT_EQ(
      render(explain(split, q, broken)),
      R"(allgatherv of any size (fp32, system memory) on host, 1 rank on 1 node: no backend can execute it
  passed mpi, threshold: it is for ..63 bytes, and ranks may have different sizes
  passed kernels, platform: it is for platform cuda, hip
  passed nccl, platform: it is for platform cuda
  passed rccl, platform: it is for platform hip
  passed mock, default_backend: it is broken
  passed mpi, last resort: it is broken
  passed fabric, last resort: it is broken
  passed plan, last resort: it is broken
)");
  const selection_query small = query(kind::reduce, 63);
  EXPECT_EQ(explain(split, small, fine).considered.at(0).why, "the message is below 64");
  const selection_table never = compile(loaded("threshold = -1"), one);
  EXPECT_EQ(explain(never, small, fine).considered.at(0).why, "a negative threshold selects MPI");
  const selection_table plain = compile(loaded(""), one);
  const explanation e = explain(plain, query(kind::allreduce, 63), fine);
  ASSERT_EQ(e.considered.size(), 5u);  // after kernels and the two vendors' libraries
  EXPECT_EQ(e.considered[3].why, "it is for system, host, shared memory");
  EXPECT_EQ(e.considered[4].source, "default_backend");
  EXPECT_TRUE(e.considered[4].taken);
  EXPECT_EQ(e.considered[4].why, "nothing before it applies");
}

TEST(Selection, ChoosingAllocatesNothing) {
  const selection_table table = compile(loaded(std::string(vendors) + R"(
[[rules]]
bytes = "..4Ki"
backend = ["mock", "rccl", "mpi"]
)"),
                                        eight_gpus);
  const selection_query q = query(kind::allreduce, 64);
  int found = 0;
  const long before = test::allocations();
  for (int i = 0; i < 100; ++i) found += choose(table, q, [](int b) { return b == 1; }) != nullptr;
  EXPECT_EQ(test::allocations(), before);
  EXPECT_EQ(table.backends[1], "rccl");
  EXPECT_EQ(found, 100);
}

// choose() and explain() agree on every question, whatever can be used.
TEST(Selection, TheReasonsAgreeWithTheChoice) {
  const selection_table table = compile(loaded("threshold = 512\n" + std::string(vendors) + R"(
[[rules]]
bytes = "128..2Ki"
memory = "device"
backend = ["ucc", "nccl"]
[[rules]]
collective = "reduce"
backend = ["mock", "mpi"]
)"),
                                        eight_gpus);
  const unsigned backends = static_cast<unsigned>(table.backends.size());
  for (unsigned usable = 0; usable < 1u << backends; ++usable) {
    for (const kind k : {kind::allreduce, kind::reduce, kind::send}) {
      for (const std::uint64_t bytes : {0, 127, 128, 511, 512, 2048, 2049}) {
        for (int m = 0; m < SUCL_MEMORY_COUNT; ++m) {
          selection_query q = query(k, bytes, m);
          q.bytes_known = bytes != 511;
          const candidate* taken = choose(table, q, [&](int b) { return (usable >> b & 1u) != 0; });
          const int backend = taken ? taken->backend : -1;
          const explanation e = explain(table, q, [&](int b) {
            return std::string((usable >> b & 1u) != 0 ? "" : "unusable");
          });
          EXPECT_EQ(e.backend,
                    backend < 0 ? "" : table.backends[static_cast<std::size_t>(backend)]);
          EXPECT_EQ(e.backend.empty(), e.considered.empty() || !e.considered.back().taken);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sucl::core
