// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/topology.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "core/exchange/processor_set.hpp"
#include "core/exchange/rank_record.hpp"
#include "core/support/host_identity.hpp"

#include <sucl/version.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <map>
#include <tuple>

namespace sucl::core {
namespace {

void gather(const sucl_oob& oob, const void* mine, void* all, std::uint64_t bytes) {
  sucl_oob channel = oob;
  if (const auto status = services().oob_allgather(&channel, mine, all, bytes)) throw_last(status);
}

using lines = std::vector<std::string>;

// The value of the line's key in other lines, as a line; or that there is none.
std::string same_key_in(const lines& others, const std::string& line) {
  const std::string key = line.substr(0, line.find(" = ")) + " = ";
  for (const std::string& other : others)
    if (other.compare(0, key.size(), key) == 0) return other;
  return key + "unset";
}

// The first values in which two texts of lines "key = value" differ, as "here, but there".
std::string first_difference(const std::string& a, const std::string& b) {
  const lines left = base::split(a, '\n'), right = base::split(b, '\n');
  const auto has = [](const lines& in, const std::string& line) {
    return std::find(in.begin(), in.end(), line) != in.end();
  };
  for (const std::string& line : left)
    if (!has(right, line)) return line + ", but " + same_key_in(right, line);
  for (const std::string& line : right)
    if (!has(left, line)) return same_key_in(left, line) + ", but " + line;
  // The order says which comes first.
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    if (left[i] != right[i]) return left[i] + " comes first, but " + right[i];
  return {};
}

// Compares what has to be the same on every rank; the values are only sent where they differ.
void check_settings(const sucl_oob& oob, const std::string& mine,
                    const std::vector<std::string>& hashes) {
  if (std::all_of(hashes.begin(), hashes.end(), [&](auto& h) { return h == hashes[0]; })) return;
  const auto all = exchange(oob, static_cast<int>(hashes.size()), mine);
  std::size_t other = 1;
  while (other + 1 < all.size() && all[other] == all[0]) ++other;
  base::fail(errc::configuration,
             "the configuration of ranks 0 and " + std::to_string(other) +
                 " differs: " + first_difference(all[0], all[other]),
             "Give every rank the same configuration file and SUCL_ variables; `sucl info` "
             "prints the values and where each came from");
}

}  // namespace

std::vector<std::string> exchange(const sucl_oob& oob, int size, const std::string& mine) {
  // Short texts are sent with their length; another round is for longer texts only.
  struct first_round {
    std::uint64_t length;
    std::array<char, 1016> text;
  };
  const auto p = static_cast<std::size_t>(size);
  first_round mine_first{mine.size(), {}};
  std::copy_n(mine.begin(), std::min(mine.size(), mine_first.text.size()), mine_first.text.begin());
  std::vector<first_round> firsts(p);
  gather(oob, &mine_first, firsts.data(), sizeof mine_first);
  std::uint64_t most = 0;
  for (const auto& c : firsts) most = std::max(most, c.length);
  std::vector<std::string> texts;
  if (most <= mine_first.text.size()) {
    for (const auto& c : firsts) texts.emplace_back(c.text.data(), c.length);
    return texts;
  }
  std::vector<char> padded(most), all(most * p);
  std::copy(mine.begin(), mine.end(), padded.begin());
  gather(oob, padded.data(), all.data(), most);
  for (std::size_t r = 0; r < p; ++r) texts.emplace_back(all.data() + r * most, firsts[r].length);
  return texts;
}

void compare_settings(const sucl_oob& oob, int size, const std::string& mine) {
  check_settings(oob, mine, exchange(oob, size, std::to_string(base::fnv1a(mine))));
}

std::string declared_node(const std::vector<std::uint64_t>& sizes, int world_rank) {
  if (sizes.empty()) return {};
  auto rest = static_cast<std::uint64_t>(world_rank);
  std::size_t node = 0;
  for (; rest >= sizes[node] && node + 1 < sizes.size(); ++node) rest -= sizes[node];
  return std::to_string(node + rest / sizes[node]);
}

std::string declared_island(const std::vector<std::string>& names, int world_rank) {
  return names.empty() ? "" : names[static_cast<std::size_t>(world_rank) % names.size()];
}

std::string number_representation() {
  const bool little = std::endian::native == std::endian::little;
  return std::string(little ? "little" : "big") + "-endian, pointers of " +
         std::to_string(sizeof(void*)) + " bytes, long of " + std::to_string(sizeof(long)) +
         ", long double of " + std::to_string(sizeof(long double));
}

namespace {

rank_record record_of(const self_description& self) {
  rank_record r;
  r.self.host = host_name();
  r.self.process = getpid();
  r.self.platform = self.platform;
  r.self.implementation = self.implementation;
  r.self.sycl_backend = self.sycl_backend;
  r.self.device = self.device;
  r.self.device_memory_on_host = self.device_memory_on_host;
  r.machine = host_identity();
  r.declared_node = self.declared_node;
  r.declared_island = self.declared_island;
  r.version = SUCL_VERSION_STRING;
  r.representation = number_representation();
  r.processors = processor_set::own().text();
  r.settings = base::fnv1a(self.settings);
  r.job = self.job;
  r.world_rank = self.world_rank;
  r.wrong = self.failure;
  return r;
}

// Data is sent as it lies in memory, and records of ranks as their version of SuCL writes them.
void check_alike(const rank_record& first, const rank_record& other, int rank) {
  const std::string name = "rank " + std::to_string(rank);
  if (other.version != first.version)
    base::fail(
        errc::mismatch,
        name + " runs version " + other.version + " of SuCL, and rank 0 runs " + first.version,
        "Start every rank with libraries of the same version; those built with different "
        "SYCL implementations work together");
  if (other.representation != first.representation)
    base::fail(errc::mismatch,
               name + " has numbers in memory as " + other.representation + ", and rank 0 as " +
                   first.representation + "; data is sent as it lies in memory",
               "Start ranks that exchange data on machines of one kind of processor, with programs "
               "for the same ABI");
}

// What one backend reaches: all memory that the host reads, or that of the devices of a platform.
std::string reach_of(const member& m) {
  return m.device_memory_on_host ? "host" : "device:" + m.platform;
}

std::vector<rank_record> records_of(const std::vector<std::string>& texts) {
  std::vector<rank_record> records;
  records.reserve(texts.size());
  for (std::size_t r = 0; r < texts.size(); ++r) {
    auto record = rank_record::parse(texts[r]);
    if (!record)
      base::fail(errc::mismatch, "rank " + std::to_string(r) + " runs another version of SuCL",
                 "Start every rank with the same build");
    if (record->wrong)
      base::fail(
          record->wrong->code,
          "rank " + std::to_string(r) + " cannot make the communicator: " + record->wrong->message,
          record->wrong->hint);
    if (r > 0) check_alike(records.front(), *record, static_cast<int>(r));
    if (r > 0 && record->job != records.front().job)
      base::fail(errc::invalid_argument,
                 "rank " + std::to_string(r) + " belongs to another runtime than rank 0",
                 "Make communicators of processes that have started one sucl::runtime together");
    records.push_back(std::move(*record));
  }
  return records;
}

// Counts ranks by machine, not by node: several nodes may be declared on one machine.
int processors_per_rank(const std::vector<rank_record>& records) {
  std::map<std::string, std::pair<processor_set, std::size_t>> machines;
  for (const rank_record& r : records) {
    auto& [together, ranks] = machines[r.machine];
    together.add(processor_set::of(r.processors));
    ++ranks;
  }
  std::size_t fewest = processor_set::most;
  for (const auto& [machine, m] : machines) fewest = std::min(fewest, m.first.count() / m.second);
  return static_cast<int>(fewest);
}

}  // namespace

topology discover(const sucl_oob& oob, int rank, int size, const self_description& self) {
  auto records = records_of(exchange(oob, size, record_of(self).text()));
  std::vector<std::string> hashes;
  for (const rank_record& r : records) hashes.push_back(std::to_string(r.settings));
  check_settings(oob, self.settings, hashes);
  topology t;
  t.rank = rank;
  t.processors_per_rank = processors_per_rank(records);
  std::map<std::pair<std::string, std::string>, int> nodes;
  std::map<std::tuple<int, std::string, std::string>, int> islands;
  std::map<int, int> on_node;
  for (rank_record& r : records) {
    member m = std::move(r.self);
    m.rank = static_cast<int>(t.members.size());
    m.node = nodes.try_emplace({r.machine, r.declared_node}, static_cast<int>(nodes.size()))
                 .first->second;
    m.local_rank = on_node[m.node]++;
    m.island =
        islands
            .try_emplace({m.node, reach_of(m), r.declared_island}, static_cast<int>(islands.size()))
            .first->second;
    t.device_memory_everywhere_on_host &= m.device_memory_on_host;
    t.world_ranks.push_back(r.world_rank);
    t.node_of.push_back(m.node);
    t.island_of.push_back(m.island);
    t.members.push_back(std::move(m));
  }
  t.nodes = static_cast<int>(nodes.size());
  t.islands = static_cast<int>(islands.size());
  t.local_size = on_node[t.node_of[static_cast<std::size_t>(rank)]];
  return t;
}

}  // namespace sucl::core
